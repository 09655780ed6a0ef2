//! What STT does with its port, whoever makes the transcript: collects utterances, cuts what is too long, sends the
//! transcript in pieces and the marker on.

use super::port::SttPort;
use super::ring::Producer;
use super::slab::{Unit, UnitCounters};
use crate::language::Language;
use crate::limits::{TRANSCRIPT_BYTES_MAX, TRANSCRIPT_ITEMS, UTTERANCE_SAMPLES_MAX};
use crate::message::{
    Epoch, FailureCode, SpeechHints, SpeechItem, Stamp, Stamped, SttEvent, TextChunk, UtteranceId,
    text_chunks,
};

/// Where a piece of a very long utterance may be cut: the quietest block of the last 5 s.
const CUT_SEARCH_SAMPLES: usize = 5 * 16_000;

/// 100 ms.
const CUT_BLOCK_SAMPLES: usize = 1_600;

/// Speech to transcribe: the first `samples` samples of [`SttPort::audio`].
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Inherited from the audio.
    pub stamp: Stamp,
    /// Of which utterance.
    pub utterance: UtteranceId,
    /// How many samples, 16 kHz.
    pub samples: usize,
    /// The utterance ends with it.
    pub last: bool,
}

/// What STT has to do next.
#[derive(Clone, Copy, Debug)]
pub enum SttWork {
    /// Transcribe this, and take it out ([`SttPort::forget`]).
    Transcribe(Piece),
    /// Forget the caller, whose last word this was ([`SttPort::end_session`]).
    EndSession(Epoch),
}

impl SttPort {
    /// Takes items until there is something to do. `None`: there is nothing, or no room for a transcript; STT is rung when
    /// that changes.
    pub fn next_work(&mut self, unit: &Unit) -> Option<SttWork> {
        loop {
            if !self.has_room_for_transcript_or_ring() {
                return None;
            }
            if let (Some((stamp, utterance)), Some(SpeechItem::Frame { frame, .. })) =
                (self.open, self.speech.peek())
                && self.audio.len() + usize::from(frame.len) > UTTERANCE_SAMPLES_MAX
                && !unit.is_over(stamp.epoch)
            {
                let samples = quietest_cut(&self.audio);
                return Some(SttWork::Transcribe(Piece { stamp, utterance, samples, last: false }));
            }
            let item = self.speech.pop()?;
            if let SpeechItem::SessionEnd { epoch } = item {
                return Some(SttWork::EndSession(epoch));
            }
            if unit.is_over(item.epoch()) {
                UnitCounters::count(&unit.counters.stale_items);
                self.reset();
                continue;
            }
            match item {
                SpeechItem::Start { stamp, utterance } => {
                    self.reset();
                    self.open = Some((stamp, utterance));
                }
                SpeechItem::Frame { frame, .. } if self.open.is_some() => {
                    self.audio.extend_from_slice(&frame.samples[..usize::from(frame.len)]);
                }
                SpeechItem::Frame { .. } => {}
                SpeechItem::End { .. } => {
                    // Open until it is transcribed: should that panic, the stage says what has failed.
                    let Some((stamp, utterance)) = self.open else { continue };
                    let samples = self.audio.len();
                    return Some(SttWork::Transcribe(Piece { stamp, utterance, samples, last: true }));
                }
                SpeechItem::Hints { hints, .. } => self.hints = hints,
                SpeechItem::Abort { .. } => self.reset(),
                SpeechItem::SessionEnd { .. } => unreachable!("handled above"),
            }
        }
    }

    /// Whether the transcript of one piece, or its failure, can be sent now. If not, STT is rung as soon as it can.
    #[must_use]
    pub fn has_room_for_transcript_or_ring(&self) -> bool {
        self.events.has_room_or_ring(2 * TRANSCRIPT_ITEMS - 1)
    }

    /// Takes `piece` out of the audio. The utterance is closed if that was its end.
    pub fn forget(&mut self, piece: Piece) {
        self.audio.drain(..piece.samples);
        if piece.last {
            self.open = None;
        }
    }

    /// Says that the utterance could not be transcribed, and takes no more of it. There must be room.
    pub fn fail(&mut self, stamp: Stamp, utterance: UtteranceId, code: FailureCode) {
        if self.open.is_some_and(|(_, open)| open == utterance) {
            self.open = None;
        }
        let event = SttEvent::Failed { stamp, utterance, code };
        self.events.push(event).expect("room was checked before the item was taken");
    }

    /// Forgets the caller and passes the marker on: nothing of this epoch may be sent afterwards.
    pub fn end_session(&mut self, epoch: Epoch) {
        self.reset();
        self.hints = SpeechHints::default();
        let end = self.events.push_marker(SttEvent::SessionEnd { epoch });
        debug_assert!(end.is_ok(), "a slot is kept for the marker");
    }
}

/// Sends what was said in `piece`, and in which language, if that is known. [`SttPort::next_work`] has seen to the room for
/// one.
pub fn push_transcript(
    events: &mut Producer<SttEvent>,
    piece: Piece,
    transcript: &str,
    language: Option<Language>,
) {
    let Piece { stamp, utterance, last, .. } = piece;
    let mut push = |chunk, last| {
        let event = SttEvent::Transcript { stamp, utterance, chunk, language, last };
        events.push(event).expect("room was checked before the item was taken");
    };
    // A model that talks in circles: more than this nobody says in 30 s.
    let transcript = &transcript[..transcript.floor_char_boundary(TRANSCRIPT_BYTES_MAX)];
    for (chunk, end) in text_chunks(transcript) {
        push(chunk, last && end);
    }
    if !last && !transcript.is_empty() {
        push(TextChunk::split(" ").0, false);
    }
}

/// Middle of the quietest block near the end.
fn quietest_cut(audio: &[i16]) -> usize {
    let from = audio.len().saturating_sub(CUT_SEARCH_SAMPLES);
    let energy = |block: &[i16]| block.iter().map(|s| i64::from(*s) * i64::from(*s)).sum::<i64>();
    audio[from..]
        .chunks_exact(CUT_BLOCK_SAMPLES)
        .enumerate()
        .min_by_key(|(_, block)| energy(block))
        .map_or(audio.len(), |(at, _)| from + at * CUT_BLOCK_SAMPLES + CUT_BLOCK_SAMPLES / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_utterance_is_cut_in_its_pause() {
        let mut audio = vec![1_000_i16; UTTERANCE_SAMPLES_MAX];
        let pause = UTTERANCE_SAMPLES_MAX - 32_000;
        audio[pause..pause + 3_200].fill(0);
        let cut = quietest_cut(&audio);
        assert!((pause..pause + 3_200).contains(&cut), "{cut} is not in {pause}..");
    }
}
