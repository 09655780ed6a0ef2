//! The way back of a unit whose lease is gone: both markers of its epoch must come out before anyone else gets it.

use super::slab::UnitSlab;
use crate::message::{Epoch, UnitId};

/// What a draining unit still owes.
///
/// *Thread:* the edge's dispatcher alone. *Never:* waits; it is called again when the unit rings.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    epoch: Epoch,
    /// The marker has come out of `text_events`.
    text: bool,
    /// The marker has come out of `answer_out`.
    answer: bool,
}

impl Drain {
    /// The drain of the claim `epoch`, whose markers are on their way.
    #[must_use]
    pub fn new(epoch: Epoch) -> Self {
        Self { epoch, text: false, answer: false }
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
            while let Some(envelope) = port.stt_events.pop() {
                self.text |= envelope.ends(self.epoch);
            }
            while let Some(envelope) = port.answer_out.pop() {
                self.answer |= envelope.ends(self.epoch);
            }
        }
        self.text && self.answer && slab.finish_drain(unit, self.epoch)
    }

    /// Gives the unit up until the markers do come: true if it was still draining.
    pub fn quarantine(&self, slab: &UnitSlab, unit: UnitId) -> bool {
        slab.quarantine(unit, self.epoch)
    }
}
