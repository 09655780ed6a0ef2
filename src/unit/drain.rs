//! The drain of a unit without a lease. Both markers of its epoch must come out before the next claim.

use super::slab::UnitSlab;
use crate::message::{Epoch, UnitId};

/// The progress of a drain.
///
/// *Thread:* the edge's dispatcher alone. *Never:* waits; the dispatcher calls [`Drain::advance`] again when the unit
/// rings.
#[derive(Clone, Copy, Debug)]
pub struct Drain {
    epoch: Epoch,
    /// The marker has come out of `text_events`.
    text: bool,
    /// The marker has come out of `answer_out`.
    answer: bool,
}

impl Drain {
    /// Begins the drain of the claim `epoch`, whose markers are on their way.
    #[must_use]
    pub fn new(epoch: Epoch) -> Self {
        Self { epoch, text: false, answer: false }
    }

    /// Returns the claim that ends.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Pops everything that has reached the edge. Frees the unit and returns true once both markers of its epoch have
    /// come. The unit must be `Draining` or `Quarantined` in this epoch.
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

    /// Puts the unit into quarantine until its markers arrive. Returns true if the unit was still draining.
    pub fn quarantine(&self, slab: &UnitSlab, unit: UnitId) -> bool {
        slab.quarantine(unit, self.epoch)
    }
}
