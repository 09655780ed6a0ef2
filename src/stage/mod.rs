//! VAD, STT and TTS as ring-to-ring steps. (The language model is `edge::tasks::llm`: always HTTP.)
//!
//! Stages are shared, units are private: a stage has a few workers, each of which takes ready units off the stage's
//! doorbell and works on their ports. A stage never waits: if a ring is full or empty, the worker goes on with the next
//! unit and is rung later.
#![warn(clippy::wildcard_enum_match_arm, reason = "a variant that is new is thought of everywhere")]

mod runner;
mod stt;
mod tts;
mod urgency;
mod vad;

use crate::message::{Moment, UnitId};
use crate::unit::UnitSlab;

pub use runner::{Deadlines, WorkerSpec, spawn_worker};
pub use stt::SttStage;
pub use tts::TtsStage;
pub use urgency::{CallClass, Urgency};
pub use vad::VadStage;

/// One worker of a stage.
///
/// A worker takes ready units, prepares each of them, and calls its model for the most urgent ones. All others go back, so
/// that other workers may take them meanwhile, and are compared again before the next call.
///
/// *Thread:* a worker of this stage. *Never:* blocks, locks, allocates, reads a clock.
pub trait Stage: Send {
    /// Returns the most units that a worker compares before a call.
    fn candidates_max(&self) -> usize {
        64
    }

    /// Returns the most units of one call of the model, `1..=candidates_max`.
    fn rows_max(&self) -> usize {
        1
    }

    /// Does everything for `unit` that needs no model: takes items, passes events on, sends what is ready. Returns the
    /// place in the order of the call that the unit needs next. `None`: the unit needs no call, or has no room for its
    /// result, and is rung when that changes. No other thread borrows the unit's port meanwhile.
    fn prepare(
        &mut self,
        slab: &'static UnitSlab,
        unit: UnitId,
        now: Moment,
        deadlines: &mut Deadlines,
    ) -> Option<Urgency>;

    /// Calls the model once for `units`, which have been prepared, and rings for those that may need more. No other thread
    /// borrows the ports meanwhile.
    fn call(&mut self, slab: &'static UnitSlab, units: &[UnitId]);

    /// Restores the port of `unit` after a panic. The work at hand is lost; STT and TTS report it as failed.
    fn recover(&mut self, slab: &'static UnitSlab, unit: UnitId);
}
