//! What an answer has said so far: its text, and where in the audio each piece of it stands.

use crate::audio::SampleRate;

/// Text beside the samples that were sent with it. A piece of text comes before its audio; the audio until the next
/// piece belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Spoken {
    rate: SampleRate,
    text: String,
    /// Pieces: where a piece begins in `text`, bytes, and in the audio, samples. Both grow.
    marks: Vec<(usize, u64)>,
    /// Samples sent.
    samples: u64,
}

impl Spoken {
    /// Nothing yet, of audio at `rate`.
    pub(super) const fn new(rate: SampleRate) -> Self {
        Self { rate, text: String::new(), marks: Vec::new(), samples: 0 }
    }

    /// All text, heard or not.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Audio sent, milliseconds, rounded down.
    pub(super) const fn millis(&self) -> u32 {
        self.rate.millis_of(self.samples)
    }

    /// Text whose audio comes next.
    pub(super) fn push(&mut self, text: &str) {
        // Pieces without audio between them are one piece.
        if self.marks.last().is_none_or(|(_, samples)| *samples < self.samples) {
            self.marks.push((self.text.len(), self.samples));
        }
        self.text.push_str(text);
    }

    /// Audio of the text so far has been sent.
    pub(super) const fn send(&mut self, samples: u64) {
        self.samples = self.samples.saturating_add(samples);
    }

    /// Forgets the text whose audio has not begun.
    pub(super) fn forget_unsaid(&mut self) {
        if let Some((from, _)) = self.marks.pop_if(|(_, begin)| *begin == self.samples) {
            self.text.truncate(from);
        }
    }

    /// Forgets what comes after the first `end_ms` milliseconds. Of a piece that was heard in part, as many whole words
    /// stay as its share of the audio holds.
    pub(super) fn truncate(&mut self, end_ms: u32) {
        let samples = self.rate.samples_in(end_ms);
        if samples >= self.samples {
            return;
        }
        let piece = self.marks.partition_point(|(_, begin)| *begin < samples);
        let end = match piece.checked_sub(1) {
            None => 0,
            Some(heard) => {
                let (from, begin) = self.marks[heard];
                let (to, end) = self.marks.get(piece).copied().unwrap_or((self.text.len(), self.samples));
                from + words_of_share(&self.text[from..to], samples - begin, end - begin)
            }
        };
        self.text.truncate(end);
        self.marks.truncate(piece);
        self.samples = samples;
    }
}

/// Bytes of `text` up to the last whole word within `part` of `whole`.
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

    #[test]
    fn what_was_not_heard_is_forgotten() {
        let whole = spoken(&[("Good morning. ", 1_000), ("How are ", 0), ("you today?", 2_000)]);
        assert_eq!((whole.text(), whole.millis()), ("Good morning. How are you today?", 3_000));
        let heard = |ms| {
            let mut heard = whole.clone();
            heard.truncate(ms);
            heard.text().to_owned()
        };
        assert_eq!(heard(9_999), whole.text());
        assert_eq!(heard(3_000), whole.text());
        assert_eq!(heard(1_000), "Good morning. ");
        assert_eq!(heard(500), "Good");
        assert_eq!(heard(2_200), "Good morning. How are");
        assert_eq!(heard(1_001), "Good morning. ");
        assert_eq!(heard(0), "");
    }

    #[test]
    fn an_answer_can_be_cut_again_and_go_on() {
        let mut spoken = spoken(&[("one two ", 1_000), ("three four", 1_000)]);
        spoken.truncate(1_500);
        assert_eq!((spoken.text(), spoken.millis()), ("one two three", 1_500));
        spoken.truncate(1_800);
        assert_eq!(spoken.millis(), 1_500, "there is no more");
        spoken.push(" five");
        spoken.send(800);
        spoken.truncate(500);
        assert_eq!((spoken.text(), spoken.millis()), ("one", 500));
    }

    #[test]
    fn text_without_audio_was_not_said() {
        let mut broken_off = spoken(&[("Good morning. ", 1_000), ("How are you", 0)]);
        broken_off.forget_unsaid();
        assert_eq!((broken_off.text(), broken_off.millis()), ("Good morning. ", 1_000));
        broken_off.forget_unsaid();
        assert_eq!(broken_off.text(), "Good morning. ");
    }

    proptest! {
        #[test]
        fn less_audio_is_never_more_text(
            pieces in proptest::collection::vec(("[a-zé🚀 ]{0,12}", 0_u64..500), 0..8),
            cuts in proptest::collection::vec(0_u32..4_000, 1..4),
        ) {
            let pieces: Vec<_> = pieces.iter().map(|(text, ms)| (text.as_str(), *ms)).collect();
            let mut spoken = spoken(&pieces);
            let whole = spoken.text().to_owned();
            for cut in cuts {
                let before = spoken.clone();
                spoken.truncate(cut);
                prop_assert!(whole.starts_with(spoken.text()) && before.text().len() >= spoken.text().len());
                prop_assert_eq!(spoken.millis(), before.millis().min(cut));
            }
        }
    }
}
