//! The port of a unit in STT, whoever makes the transcript: collects utterances, cuts what is too long, sends the transcript
//! in pieces and the marker on.

use super::ring::{Consumer, Producer};
use super::status::UnitStatus;
use crate::language::Language;
use crate::limits::{TRANSCRIPT_BYTES_MAX, TRANSCRIPT_ITEMS, UTTERANCE_SAMPLES_MAX};
use crate::message::{
    Envelope, Epoch, FailureCode, SpeechHints, SpeechItem, SttEvent, TextChunk, UtteranceId, text_chunks,
};

/// Where a piece of a very long utterance may be cut: the quietest block of the last 5 s.
const CUT_SEARCH_SAMPLES: usize = 5 * 16_000;

/// 100 ms.
const CUT_BLOCK_SAMPLES: usize = 1_600;

/// STT's ends and state.
#[derive(Debug)]
pub struct SttPort {
    /// Utterances.
    pub speech: Consumer<SpeechItem>,
    /// `text_events`, STT's half.
    pub events: Producer<SttEvent>,
    /// The open utterance: 16 kHz, capacity [`UTTERANCE_SAMPLES_MAX`].
    pub audio: Vec<i16>,
    /// The transcript being made, capacity [`TRANSCRIPT_BYTES_MAX`].
    pub transcript: String,
    /// The utterance that `audio` belongs to; `None`: no utterance is open.
    pub open: Option<(Epoch, UtteranceId)>,
    /// Hints of the client, for this utterance and all that follow.
    pub hints: SpeechHints,
}

/// Speech to transcribe: the first `samples` samples of [`SttPort::audio`].
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The session that it belongs to.
    pub epoch: Epoch,
    /// The utterance that it is cut from.
    pub utterance: UtteranceId,
    /// Its samples, 16 kHz.
    pub samples: usize,
    /// The utterance ends with it.
    pub last: bool,
}

/// The next thing that STT has to do.
#[derive(Clone, Copy, Debug)]
pub enum SttWork {
    /// Transcribe this, and take it out ([`SttPort::forget`]).
    Transcribe(Piece),
    /// Forget the caller, who has left ([`SttPort::end_session`]).
    EndSession(Epoch),
}

impl SttPort {
    pub(super) fn new(speech: Consumer<SpeechItem>, events: Producer<SttEvent>) -> Self {
        Self {
            speech,
            events,
            audio: Vec::with_capacity(UTTERANCE_SAMPLES_MAX),
            transcript: String::with_capacity(TRANSCRIPT_BYTES_MAX),
            open: None,
            hints: SpeechHints::default(),
        }
    }

    /// Forgets the open utterance.
    pub fn reset(&mut self) {
        self.audio.clear();
        self.transcript.clear();
        self.open = None;
    }

    /// Takes items until there is something to do. `None`: there is nothing, or no room for a transcript; STT is rung when
    /// that changes.
    pub fn next_work(&mut self, unit: &UnitStatus) -> Option<SttWork> {
        loop {
            if !self.has_room_for_transcript_or_ring() {
                return None;
            }
            let frame_len = match self.speech.peek_live(unit)? {
                Envelope::Item { item: SpeechItem::Frame(frame), .. } => usize::from(frame.len),
                Envelope::Item { .. } | Envelope::SessionEnd(_) => 0,
            };
            if let Some((epoch, utterance)) = self.open
                && self.audio.len() + frame_len > UTTERANCE_SAMPLES_MAX
            {
                let samples = quietest_cut(&self.audio);
                return Some(SttWork::Transcribe(Piece { epoch, utterance, samples, last: false }));
            }
            let (epoch, item) = match self.speech.pop()? {
                Envelope::Item { stamp, item } => (stamp, item),
                Envelope::SessionEnd(epoch) => return Some(SttWork::EndSession(epoch)),
            };
            match item {
                SpeechItem::Start(utterance) => {
                    self.reset();
                    self.open = Some((epoch, utterance));
                }
                SpeechItem::Frame(frame) if self.open.is_some() => {
                    self.audio.extend_from_slice(&frame.samples[..usize::from(frame.len)]);
                }
                SpeechItem::Frame(_) => {}
                SpeechItem::End(_) => {
                    // Open until it is transcribed: should that panic, the stage says what has failed.
                    let Some((epoch, utterance)) = self.open else { continue };
                    let samples = self.audio.len();
                    return Some(SttWork::Transcribe(Piece { epoch, utterance, samples, last: true }));
                }
                SpeechItem::Hints(hints) => self.hints = hints,
                SpeechItem::Abort(_) => self.reset(),
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
    pub fn fail(&mut self, epoch: Epoch, utterance: UtteranceId, code: FailureCode) {
        if self.open.is_some_and(|(_, open)| open == utterance) {
            self.open = None;
        }
        let event = SttEvent::Failed { utterance, code };
        self.events.push(epoch, event).expect("room was checked before the item was taken");
    }

    /// Forgets the caller and passes the marker on: nothing of this epoch may be sent afterwards.
    pub fn end_session(&mut self, epoch: Epoch) {
        self.reset();
        self.hints = SpeechHints::default();
        self.events.push_end(epoch);
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
    let Piece { epoch, utterance, last, .. } = piece;
    let mut push = |chunk, last| {
        let event = SttEvent::Transcript { utterance, chunk, language, last };
        events.push(epoch, event).expect("room was checked before the item was taken");
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
