//! Unit → client: the answer's audio and its events, in the order of `answer_out`, checked for staleness one last time.

use crate::audio::SampleRate;
use crate::limits::{DELTA_MS_MAX, DELTA_SAMPLES_MAX};
use crate::message::{AnswerEvent, AnswerOut, Envelope, ResponseKey};
use crate::unit::{EdgePort, UnitStatus};

/// Result of a pull.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "returned by value and used at once; never stored")]
pub enum Pulled {
    /// Nothing is there.
    Nothing,
    /// Audio of one response, at one rate; the samples are in [`Downlink::samples`].
    Audio(ResponseKey, SampleRate),
    /// An event of the answer to this response.
    Event(ResponseKey, AnswerEvent),
}

/// The downlink of one client.
#[derive(Debug)]
pub struct Downlink {
    samples: Vec<i16>,
}

impl Downlink {
    /// Makes a downlink without samples.
    #[must_use]
    pub fn new() -> Self {
        Self { samples: Vec::with_capacity(DELTA_SAMPLES_MAX) }
    }

    /// Returns the audio of the last pull: mono, whole frames, at most [`DELTA_MS_MAX`].
    #[must_use]
    pub fn samples(&self) -> &[i16] {
        &self.samples
    }

    /// Takes the next audio or event out of `answer_out`, and joins audio that is there already. Only the caller's task
    /// raises the generation. An item that is not stale here is therefore not stale if the caller writes it before
    /// doing anything else.
    pub fn pull(&mut self, unit: &UnitStatus, port: &mut EdgePort) -> Pulled {
        self.samples.clear();
        let mut audio_of = None;
        while let Some(envelope) = port.answer_out.peek_live(unit) {
            match envelope {
                Envelope::Item { stamp, item: AnswerOut::Audio(frame) } => {
                    let of = (stamp.response, frame.rate);
                    let samples = self.samples.len() + frame.used().len();
                    let full = samples as u64 > frame.rate.samples_in(DELTA_MS_MAX);
                    if audio_of.is_some_and(|pulled| full || pulled != of) {
                        break;
                    }
                    audio_of = Some(of);
                    self.samples.extend_from_slice(frame.used());
                    port.answer_out.pop();
                }
                Envelope::Item { stamp, item: AnswerOut::Event(event) } if audio_of.is_none() => {
                    let pulled = Pulled::Event(stamp.response, *event);
                    port.answer_out.pop();
                    return pulled;
                }
                // An event waits for the audio before it. The marker comes after the drop of the lease, and is left to
                // the drain.
                Envelope::Item { item: AnswerOut::Event(_), .. } | Envelope::SessionEnd(_) => break,
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
