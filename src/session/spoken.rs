//! The spoken part of an answer: its text, the place of each piece in the audio, and the part that was heard.

use crate::audio::SampleRate;

/// Text beside the samples that were sent with it. A piece of text comes before its audio; the audio until the next
/// piece belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spoken {
    rate: SampleRate,
    text: String,
    /// Beginning of each piece in `text`, bytes, and in the audio, samples. Both grow.
    marks: Vec<(usize, u64)>,
    /// Samples sent.
    samples: u64,
    /// Samples that can have been heard, at most `samples`; the number only falls. `None`: all, sent or still to come.
    heard: Option<u64>,
}

impl Spoken {
    /// Creates an empty answer with audio at `rate`.
    pub(super) const fn new(rate: SampleRate) -> Self {
        Self { rate, text: String::new(), marks: Vec::new(), samples: 0, heard: None }
    }

    /// Returns all text, heard or not.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text that can have been heard, a beginning of all text. A piece that was heard in part counts with
    /// as many whole words as its share of the audio holds. More audio of that piece makes the share smaller, never
    /// larger.
    pub(super) fn heard(&self) -> &str {
        let Some(heard) = self.heard else {
            return &self.text;
        };
        let pieces = self.marks.partition_point(|(_, begin)| *begin < heard);
        let Some(&(from, begin)) = pieces.checked_sub(1).map(|last| &self.marks[last]) else {
            return "";
        };
        let (to, end) = self.marks.get(pieces).copied().unwrap_or((self.text.len(), self.samples));
        &self.text[..from + words_of_share(&self.text[from..to], heard - begin, end - begin)]
    }

    /// Returns the audio sent, milliseconds, rounded down.
    pub(super) const fn millis(&self) -> u32 {
        self.rate.millis_of(self.samples)
    }

    /// Appends text whose audio comes next.
    pub(super) fn push(&mut self, text: &str) {
        // Pieces without audio between them are one piece.
        if self.marks.last().is_none_or(|(_, samples)| *samples < self.samples) {
            self.marks.push((self.text.len(), self.samples));
        }
        self.text.push_str(text);
    }

    /// Counts audio of the text so far, which has been sent.
    pub(super) const fn send(&mut self, samples: u64) {
        self.samples = self.samples.saturating_add(samples);
    }

    /// Marks text whose audio has not begun as not heard, since no more audio is sent.
    pub(super) fn break_off(&mut self) {
        self.heard = Some(self.heard_samples());
    }

    /// Marks all but the first `end_ms` milliseconds as not heard, including all audio still to come.
    ///
    /// # Errors
    /// Returns the milliseconds that can be kept if they are less than `end_ms`. A part of a millisecond counts as a
    /// whole one.
    pub(super) fn truncate(&mut self, end_ms: u32) -> Result<(), u32> {
        let heard = self.heard_samples();
        let millis = self.rate.millis_around(heard);
        if end_ms > millis {
            return Err(millis);
        }
        self.heard = Some(heard.min(self.rate.samples_in(end_ms)));
        Ok(())
    }

    /// Returns the samples that can have been heard by now.
    fn heard_samples(&self) -> u64 {
        self.heard.unwrap_or(self.samples)
    }
}

/// Returns the bytes of `text` up to the last whole word within `part` of `whole`.
fn words_of_share(text: &str, part: u64, whole: u64) -> usize {
    if part >= whole {
        return text.len();
    }
    let bytes = u128::from(part) * text.len() as u128 / u128::from(whole);
    let share = text.floor_char_boundary(usize::try_from(bytes).unwrap_or(text.len()));
    let begins_word = text[share..].starts_with(char::is_whitespace);
    let end = if begins_word { share } else { text[..share].rfind(char::is_whitespace).unwrap_or(0) };
    text[..end].trim_end().len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spoken(pieces: &[(&str, u64)]) -> Spoken {
        let mut spoken = Spoken::new(SampleRate::HZ_8K);
        for (text, ms) in pieces {
            spoken.push(text);
            spoken.send(ms * 8);
        }
        spoken
    }

    /// Cuts a copy of `spoken` and gives the text that is left.
    fn heard(spoken: &Spoken, end_ms: u32) -> Result<String, u32> {
        let mut spoken = spoken.clone();
        spoken.truncate(end_ms)?;
        Ok(spoken.heard().to_owned())
    }

    #[test]
    fn text_that_was_not_heard_is_not_told() {
        let whole = spoken(&[("Good morning. ", 1_000), ("How are ", 0), ("you today?", 2_000)]);
        assert_eq!((whole.text(), whole.heard(), whole.millis()), (whole.heard(), whole.text(), 3_000));
        for (end_ms, expected) in [
            (3_000, whole.text()),
            (1_000, "Good morning. "),
            (500, "Good"),
            (2_200, "Good morning. How are"),
            (1_001, "Good morning. "),
            (0, ""),
        ] {
            assert_eq!(heard(&whole, end_ms).as_deref(), Ok(expected), "{end_ms} ms");
        }
        assert_eq!(heard(&whole, 3_001), Err(3_000));
    }

    #[test]
    fn a_part_of_a_millisecond_counts_as_a_whole_one() {
        let mut odd = spoken(&[("Good morning. ", 1_000)]);
        odd.send(1);
        assert_eq!((heard(&odd, 1_001).as_deref(), heard(&odd, 1_002)), (Ok("Good morning. "), Err(1_001)));
    }

    #[test]
    fn a_cut_holds_while_the_answer_goes_on() {
        let mut spoken = spoken(&[("one two ", 1_000), ("three four", 1_000)]);
        assert_eq!((spoken.truncate(1_500), spoken.heard()), (Ok(()), "one two three"));
        assert_eq!(spoken.truncate(1_800), Err(1_500), "the rest was not heard");
        spoken.send(8 * 8_000);
        assert_eq!(spoken.heard(), "one two ", "the piece is longer than was known");
        spoken.push(" five");
        spoken.send(800);
        assert_eq!((spoken.text(), spoken.heard()), ("one two three four five", "one two "));
        assert_eq!((spoken.truncate(500), spoken.heard(), spoken.millis()), (Ok(()), "one", 10_100));
    }

    #[test]
    fn text_without_audio_was_not_heard() {
        let mut broken_off = spoken(&[("Good morning. ", 1_000), ("How are you", 0)]);
        broken_off.break_off();
        assert_eq!((broken_off.heard(), broken_off.text()), ("Good morning. ", "Good morning. How are you"));
        assert_eq!((broken_off.truncate(500), broken_off.heard()), (Ok(()), "Good"));
        broken_off.break_off();
        assert_eq!(broken_off.heard(), "Good");
    }

    proptest! {
        #[test]
        fn less_audio_is_never_more_text(
            pieces in proptest::collection::vec(("[a-zé🚀 ]{0,12}", 0_u64..500), 0..8),
            more in proptest::collection::vec(("[a-zé🚀 ]{0,12}", 0_u64..500), 0..4),
            cuts in proptest::collection::vec(0_u32..4_000, 1..4),
        ) {
            let pieces: Vec<_> = pieces.iter().map(|(text, ms)| (text.as_str(), *ms)).collect();
            let mut spoken = spoken(&pieces);
            for cut in cuts {
                let (text, before) = (spoken.text().to_owned(), spoken.heard().to_owned());
                let longest = spoken.rate.millis_around(spoken.heard_samples());
                prop_assert_eq!(spoken.truncate(cut), if cut > longest { Err(longest) } else { Ok(()) });
                prop_assert!(text.starts_with(&before) && before.starts_with(spoken.heard()));
            }
            let before = (spoken.heard.is_some(), spoken.heard().to_owned());
            for (text, ms) in more {
                spoken.push(&text);
                spoken.send(ms * 8);
            }
            prop_assert!(!before.0 || before.1.starts_with(spoken.heard()));
        }
    }
}
