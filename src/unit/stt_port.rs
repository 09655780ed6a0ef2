//! The port of a unit in STT, for workers and servers alike. It collects utterances, cuts those that are too long, and
//! sends the transcripts and the marker on.

use super::ring::{Consumer, Producer};
use super::status::UnitStatus;
use crate::language::Language;
use crate::limits::{TRANSCRIPT_BYTES_MAX, TRANSCRIPT_ITEMS, UTTERANCE_SAMPLES_MAX};
use crate::message::{
    Envelope, Epoch, FailureCode, Moment, SpeechHints, SpeechItem, SttEvent, TextChunk, UtteranceId,
    text_chunks,
};

/// The end of a very long utterance in which a cut is searched: the last 5 s.
const CUT_SEARCH_SAMPLES: usize = 5 * 16_000;

/// Length of the blocks that are compared: 100 ms.
const CUT_BLOCK_SAMPLES: usize = 1_600;

/// STT's ends and state.
#[derive(Debug)]
pub struct SttPort {
    /// Utterances of the client, from VAD.
    pub speech: Consumer<SpeechItem>,
    /// STT's half of `text_events`.
    pub events: Producer<SttEvent>,
    /// The open utterance: 16 kHz, capacity [`UTTERANCE_SAMPLES_MAX`].
    pub audio: Vec<i16>,
    /// The transcript being made, capacity [`TRANSCRIPT_BYTES_MAX`].
    pub transcript: String,
    /// The utterance that `audio` belongs to; `None`: no utterance is open.
    pub open: Option<(Epoch, UtteranceId)>,
    /// The piece of `audio` that waits for a worker's model, and the moment since when it waits.
    pub waiting: Option<(Piece, Moment)>,
    /// Hints of the client, for this utterance and all later ones.
    pub hints: SpeechHints,
}

/// Speech to transcribe: the first `samples` samples of [`SttPort::audio`].
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// The session of the utterance.
    pub epoch: Epoch,
    /// The utterance that the piece is cut from.
    pub utterance: UtteranceId,
    /// Length, samples at 16 kHz.
    pub samples: usize,
    /// True if the utterance ends with this piece.
    pub last: bool,
}

/// The next step of STT.
#[derive(Clone, Copy, Debug)]
pub enum SttWork {
    /// Transcribe this piece, then remove it with [`SttPort::forget`].
    Transcribe(Piece),
    /// End the session with [`SttPort::end_session`].
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
            waiting: None,
            hints: SpeechHints::default(),
        }
    }

    /// Drops the open utterance.
    pub fn reset(&mut self) {
        self.audio.clear();
        self.transcript.clear();
        self.open = None;
        self.waiting = None;
    }

    /// Takes items until there is a step to do. Returns `None` if there is nothing to read, or no room for a
    /// transcript; STT is rung when that changes.
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
                    // The utterance stays open until it is transcribed: after a panic, the stage reports it as failed.
                    let Some((epoch, utterance)) = self.open else { continue };
                    let samples = self.audio.len();
                    return Some(SttWork::Transcribe(Piece { epoch, utterance, samples, last: true }));
                }
                SpeechItem::Hints(hints) => self.hints = hints,
                SpeechItem::Abort(_) => self.reset(),
            }
        }
    }

    /// Returns true if the transcript of one piece, or its failure, can be sent now. If false, STT is rung as soon as
    /// it can.
    #[must_use]
    pub fn has_room_for_transcript_or_ring(&self) -> bool {
        self.events.has_room_or_ring(2 * TRANSCRIPT_ITEMS - 1)
    }

    /// Removes `piece` from the audio. Closes the utterance if the piece was its last.
    pub fn forget(&mut self, piece: Piece) {
        self.audio.drain(..piece.samples);
        if piece.last {
            self.open = None;
        }
    }

    /// Sends the failure of the utterance, and closes it. There must be room.
    pub fn fail(&mut self, epoch: Epoch, utterance: UtteranceId, code: FailureCode) {
        if self.open.is_some_and(|(_, open)| open == utterance) {
            self.open = None;
        }
        let event = SttEvent::Failed { utterance, code };
        self.events.push(epoch, event).expect("room was checked before the item was taken");
    }

    /// Drops the caller's state and passes the marker on. No item of this epoch may be sent afterwards.
    pub fn end_session(&mut self, epoch: Epoch) {
        self.reset();
        self.hints = SpeechHints::default();
        self.events.push_end(epoch);
    }
}

/// Sends the transcript of `piece`, with its language if the recogniser has named one. [`SttPort::next_work`] has
/// checked the room for one transcript.
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
    // The limit stops a model that repeats itself: 30 s of speech are shorter.
    let transcript = &transcript[..transcript.floor_char_boundary(TRANSCRIPT_BYTES_MAX)];
    for (chunk, end) in text_chunks(transcript) {
        push(chunk, last && end);
    }
    if !last && !transcript.is_empty() {
        push(TextChunk::split(" ").0, false);
    }
}

/// Returns the middle of the quietest block near the end.
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
