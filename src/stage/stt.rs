//! Speech recognition: collects utterances and transcribes each at its end.
//!
//! *Thread:* `stt-<n>`. *Never:* blocks, locks, allocates (what the model call does inside ONNX Runtime aside).
//! *In:* `speech`. *Out:* `text_events`. *Budget:* `stt_ms_p99` of the hw-profile.

use super::{Deadlines, Stage};
use crate::limits::{TRANSCRIPT_BYTES_MAX, TRANSCRIPT_ITEMS, UTTERANCE_SAMPLES_MAX};
use crate::message::{
    Epoch, FailureCode, Moment, SpeechItem, Stamp, Stamped, SttEvent, UnitId, UtteranceId, text_chunks,
};
use crate::model::{ModelError, SttModel};
use crate::rt::alloc::foreign;
use crate::unit::{SttPort, Unit, UnitCounters, UnitSlab};

/// Where a piece of a very long utterance may be cut: the quietest block of the last 5 s.
const CUT_SEARCH_SAMPLES: usize = 5 * 16_000;

/// 100 ms.
const CUT_BLOCK_SAMPLES: usize = 1_600;

/// The STT stage.
pub struct SttStage {
    model: Box<dyn SttModel>,
}

impl std::fmt::Debug for SttStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SttStage").finish_non_exhaustive()
    }
}

impl SttStage {
    /// A worker with its own instance of the model.
    #[must_use]
    pub fn new(model: Box<dyn SttModel>) -> Self {
        Self { model }
    }

    /// Handles items until one transcription has been made. False when nothing is left to do.
    fn step(&mut self, unit: &Unit, port: &mut SttPort) -> bool {
        loop {
            if !port.events.has_room_or_ring(2 * TRANSCRIPT_ITEMS - 1) {
                return false;
            }
            let Some(item) = port.speech.pop() else { return false };
            if let SpeechItem::SessionEnd { epoch } = item {
                end_session(port, epoch);
                continue;
            }
            if unit.is_over(item.epoch()) {
                UnitCounters::count(&unit.counters.stale_items);
                port.reset();
                continue;
            }
            match item {
                SpeechItem::Start { stamp, utterance } => {
                    port.reset();
                    port.open = Some((stamp, utterance));
                }
                SpeechItem::Frame { frame, .. } => {
                    let Some(open) = port.open else { continue };
                    let samples = &frame.samples[..usize::from(frame.len)];
                    let full = port.audio.len() + samples.len() > UTTERANCE_SAMPLES_MAX;
                    if full {
                        let cut = quietest_cut(&port.audio);
                        self.transcribe(unit, port, open, cut, false);
                    }
                    port.audio.extend_from_slice(samples);
                    if full {
                        return true;
                    }
                }
                SpeechItem::End { .. } => {
                    // Open until it is transcribed: should that panic, `recover` says what has failed.
                    let Some(open) = port.open else { continue };
                    let samples = port.audio.len();
                    self.transcribe(unit, port, open, samples, true);
                    port.open = None;
                    return true;
                }
                SpeechItem::Abort { .. } => port.reset(),
                SpeechItem::SessionEnd { .. } => unreachable!("handled above"),
            }
        }
    }

    /// Transcribes the first `samples` samples of the open utterance and forgets them.
    fn transcribe(
        &mut self,
        unit: &Unit,
        port: &mut SttPort,
        (stamp, utterance): (Stamp, UtteranceId),
        samples: usize,
        last: bool,
    ) {
        let SttPort { audio, transcript, .. } = port;
        let stale = || unit.is_over(stamp.epoch);
        let result = foreign(|| self.model.transcribe(&audio[..samples], &stale, transcript));
        port.audio.drain(..samples);
        match result {
            Ok(()) => {
                // A model that talks in circles: more than this nobody says in 30 s.
                port.transcript.truncate(port.transcript.floor_char_boundary(TRANSCRIPT_BYTES_MAX));
                for (chunk, end) in text_chunks(&port.transcript) {
                    let event = SttEvent::Transcript { stamp, utterance, chunk, last: last && end };
                    port.events.push(event).expect("room was checked before the item was taken");
                }
                if !last && !port.transcript.is_empty() {
                    let (space, _) = crate::message::TextChunk::split(" ");
                    let event = SttEvent::Transcript { stamp, utterance, chunk: space, last: false };
                    port.events.push(event).expect("room was checked before the item was taken");
                }
            }
            Err(ModelError::Stale) => UnitCounters::count(&unit.counters.stale_items),
            Err(_) => fail(port, stamp, utterance, FailureCode::SttFailed),
        }
    }
}

impl Stage for SttStage {
    fn units_max(&self) -> usize {
        1
    }

    fn work(&mut self, slab: &'static UnitSlab, units: &[UnitId], _now: Moment, _deadlines: &mut Deadlines) {
        for unit in units {
            if self.step(slab.unit(*unit), &mut slab.unit(*unit).stt.borrow()) {
                slab.bells.stt.ring(*unit);
            }
        }
    }

    fn recover(&mut self, slab: &'static UnitSlab, units: &[UnitId]) {
        for unit in units {
            let mut port = slab.unit(*unit).stt.borrow();
            if let Some((stamp, utterance)) = port.open.take()
                && port.events.room() > 0
            {
                fail(&mut port, stamp, utterance, FailureCode::StagePanicked);
            }
            port.reset();
            slab.bells.stt.ring(*unit);
        }
    }
}

fn fail(port: &mut SttPort, stamp: Stamp, utterance: UtteranceId, code: FailureCode) {
    port.open = None;
    let event = SttEvent::Failed { stamp, utterance, code };
    port.events.push(event).expect("room was checked before the item was taken");
}

fn end_session(port: &mut SttPort, epoch: Epoch) {
    port.reset();
    let end = port.events.push_marker(SttEvent::SessionEnd { epoch });
    debug_assert!(end.is_ok(), "a slot is kept for the marker");
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
