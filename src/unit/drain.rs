//! The way back of a unit whose lease is gone: both markers of its epoch must come out before anyone else gets it.

use super::slab::UnitSlab;
use crate::message::{Epoch, SpeechOut, SttEvent, UnitId};

/// What a draining unit still owes.
///
/// *Thread:* the edge's dispatcher alone. *Never:* waits; it is called again when the unit rings.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    epoch: Epoch,
    /// The marker has come out of `text_events`.
    text: bool,
    /// The marker has come out of `audio_out`.
    audio: bool,
}

impl Drain {
    /// The drain of the claim `epoch`, whose markers are on their way.
    #[must_use]
    pub fn new(epoch: Epoch) -> Self {
        Self { epoch, text: false, audio: false }
    }

    /// The claim that ends.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Takes everything out that the unit gives, and makes it free once both markers of its epoch have come: then true.
    /// Only for a unit whose state is `Draining` or `Quarantined` in this epoch.
    pub fn advance(&mut self, slab: &UnitSlab, unit: UnitId) -> bool {
        {
            let mut port = slab.unit(unit).edge.borrow();
            while port.vad_events.pop().is_some() {}
            while let Some(event) = port.stt_events.pop() {
                self.text |= matches!(event, SttEvent::SessionEnd { epoch } if epoch == self.epoch);
            }
            while let Some(out) = port.audio_out.pop() {
                self.audio |= matches!(out, SpeechOut::SessionEnd { epoch } if epoch == self.epoch);
            }
        }
        self.text && self.audio && slab.finish_drain(unit, self.epoch)
    }

    /// Gives the unit up until the markers do come: true if it was still draining.
    pub fn quarantine(&self, slab: &UnitSlab, unit: UnitId) -> bool {
        slab.quarantine(unit, self.epoch)
    }
}
