//! Unit → client: the answer's audio and its events, in the order of `audio_out`, checked for staleness one last time.

use crate::audio::SampleRate;
use crate::limits::{DELTA_MS_MAX, DELTA_SAMPLES_MAX};
use crate::message::{ResponseKey, SpeechOut, Stamp};
use crate::unit::{EdgePort, Unit, UnitCounters};

/// What comes next.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "returned by value and used at once; never stored")]
pub enum Pulled {
    /// Nothing is there.
    Nothing,
    /// Audio of one response, at one rate; the samples are in [`Downlink::samples`].
    Audio(ResponseKey, SampleRate),
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
        Self { samples: Vec::with_capacity(DELTA_SAMPLES_MAX) }
    }

    /// The audio of the last pull: mono, whole frames, at most [`DELTA_MS_MAX`].
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
                    let of = (*response, frame.rate);
                    let samples = self.samples.len() + frame.used().len();
                    let full = samples as u64 > frame.rate.samples_in(DELTA_MS_MAX);
                    if audio_of.is_some_and(|pulled| full || pulled != of) {
                        break;
                    }
                    audio_of = Some(of);
                    self.samples.extend_from_slice(frame.used());
                    port.audio_out.pop();
                }
                _ if audio_of.is_some() => break,
                _ => return port.audio_out.pop().map_or(Pulled::Nothing, Pulled::Event),
            }
        }
        audio_of.map_or(Pulled::Nothing, |(response, rate)| Pulled::Audio(response, rate))
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
