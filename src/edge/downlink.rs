//! Unit → client: the answer's audio and its events, in the order of `audio_out`, checked for staleness one last time.

use crate::limits::DELTA_FRAMES_MAX;
use crate::message::{FRAME_SAMPLES, ResponseKey, SpeechOut, Stamp};
use crate::unit::{EdgePort, Unit, UnitCounters};

/// What comes next.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "returned by value and used at once; never stored")]
pub enum Pulled {
    /// Nothing is there.
    Nothing,
    /// Audio of one response; the samples are in [`Downlink::samples`].
    Audio(ResponseKey),
    /// An event of the answer.
    Event(SpeechOut),
}

/// One client's way out.
#[derive(Debug)]
pub struct Downlink {
    samples: Vec<i16>,
}

impl Downlink {
    /// Empty.
    #[must_use]
    pub fn new() -> Self {
        Self { samples: Vec::with_capacity(DELTA_FRAMES_MAX * FRAME_SAMPLES) }
    }

    /// The audio of the last pull: mono, at the session's output rate, at most 100 ms at 24 kHz.
    #[must_use]
    pub fn samples(&self) -> &[i16] {
        &self.samples
    }

    /// Takes the next thing out of `audio_out`; audio that is there already is joined. Only the caller's task bumps the
    /// generation, so what is not stale here is not stale when the caller writes it before doing anything else.
    pub fn pull(&mut self, unit: &Unit, port: &mut EdgePort) -> Pulled {
        self.samples.clear();
        let mut audio_of = None;
        while let Some(item) = port.audio_out.peek() {
            if stamp_of(item).is_none_or(|stamp| unit.is_stale(stamp)) {
                UnitCounters::count(&unit.counters.stale_items);
                port.audio_out.pop();
                continue;
            }
            match item {
                SpeechOut::Audio { response, frame, .. } => {
                    let full = self.samples.len() + frame.used().len() > self.samples.capacity();
                    if full || audio_of.is_some_and(|of| of != *response) {
                        break;
                    }
                    audio_of = Some(*response);
                    self.samples.extend_from_slice(frame.used());
                    port.audio_out.pop();
                }
                _ if audio_of.is_some() => break,
                _ => return port.audio_out.pop().map_or(Pulled::Nothing, Pulled::Event),
            }
        }
        audio_of.map_or(Pulled::Nothing, Pulled::Audio)
    }
}

impl Default for Downlink {
    fn default() -> Self {
        Self::new()
    }
}

/// `None`: a marker, which comes only when the lease is gone.
fn stamp_of(item: &SpeechOut) -> Option<Stamp> {
    match item {
        SpeechOut::Text { stamp, .. }
        | SpeechOut::Audio { stamp, .. }
        | SpeechOut::Call { stamp, .. }
        | SpeechOut::RateLimits { stamp, .. }
        | SpeechOut::End { stamp, .. }
        | SpeechOut::Failed { stamp, .. } => Some(*stamp),
        SpeechOut::SessionEnd { .. } => None,
    }
}
