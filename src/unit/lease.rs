//! The proof of a claim. A lease can be moved and not cloned; its drop, on any path, begins the drain.

use super::bell::Bell;
use super::edge_bell::EdgeSignal;
use super::edge_port::EdgePort;
use super::slab::{Unit, UnitSlab};
use super::status::{UnitCounters, UnitStatus};
use crate::message::{AnswerStamp, Epoch, Generation, ResponseKey, TtsSettings, UnitId};
use crate::sync::PortGuard;

/// A claimed unit and its edge port. It cannot be cloned:
/// ```compile_fail
/// fn twice(lease: antiphon::door::unit::UnitLease) -> (antiphon::door::unit::UnitLease, antiphon::door::unit::UnitLease) {
///     (lease.clone(), lease)
/// }
/// ```
#[derive(Debug)]
pub struct UnitLease {
    slab: &'static UnitSlab,
    unit: UnitId,
    epoch: Epoch,
    /// `None` only during the drop.
    port: Option<PortGuard<'static, EdgePort>>,
}

impl UnitLease {
    /// Claims a free unit. Returns `None` if all are taken; that touches no unit.
    pub fn claim(slab: &'static UnitSlab) -> Option<Self> {
        loop {
            let unit = UnitId::new(u16::try_from(slab.free.take()?).expect("UNITS_MAX fits u16"));
            // The bit is a hint, the slot decides. A lost race leaves the winner's unit alone.
            let status = &slab.unit(unit).status;
            let Some(epoch) = status.slot.claim() else { continue };
            UnitCounters::count(&status.counters.claims);
            let mut port = slab.unit(unit).edge.borrow();
            port.tts_settings.write(TtsSettings::default());
            return Some(Self { slab, unit, epoch, port: Some(port) });
        }
    }

    /// Returns the number of the unit.
    #[must_use]
    pub fn id(&self) -> UnitId {
        self.unit
    }

    /// Returns the number of the claim.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Returns the unit.
    #[must_use]
    pub fn unit(&self) -> &'static Unit {
        self.slab.unit(self.unit)
    }

    /// Returns the unit's shared words.
    #[must_use]
    pub fn status(&self) -> &'static UnitStatus {
        &self.unit().status
    }

    /// Returns the edge port.
    pub fn port(&mut self) -> &mut EdgePort {
        self.port.as_mut().expect("taken only by drop")
    }

    /// Returns the stamp of a prompt that is made now for `response`. All that is made of the prompt inherits it.
    #[must_use]
    pub fn stamp(&self, response: ResponseKey) -> AnswerStamp {
        AnswerStamp { epoch: self.epoch, generation: self.status().generation.current(), response }
    }

    /// Makes the running answer stale in all stages at once.
    pub fn cancel(&self) -> Generation {
        let generation = self.status().generation.bump();
        // The language model task sleeps in its request and must close the socket now.
        self.slab.bells.edge.ring(EdgeSignal::Llm, self.unit);
        self.slab.bells.tts.ring(self.unit);
        generation
    }
}

impl Drop for UnitLease {
    fn drop(&mut self) {
        let status = self.status();
        status.generation.bump();
        let mut port = self.port.take().expect("taken only here");
        port.audio_in.push_end(self.epoch);
        port.text_prompts.push_end(self.epoch);
        // Before the state changes: a drain that reads `Draining` borrows the port.
        drop(port);
        let began = status.slot.begin_drain(self.epoch);
        debug_assert!(began, "only the lease leaves Claimed");
        // The marker may have woken a task that waits for a transcript while the slot was still claimed. This ring lets
        // the task see that the session is over.
        if let stt @ Bell::Task(..) = self.slab.bells.stt {
            stt.ring(self.unit);
        }
        self.slab.bells.edge.ring(EdgeSignal::Session, self.unit);
    }
}
