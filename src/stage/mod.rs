//! VAD, STT and TTS as ring-to-ring steps. (The language model is `edge::tasks::llm`: always HTTP.)
//!
//! Stages are shared, units are private: a stage has a few workers, each of which takes ready units off the stage's
//! doorbell and works on their ports. A stage never waits: if a ring is full or empty, the worker goes on with the next
//! unit and is rung later.
#![warn(clippy::wildcard_enum_match_arm, reason = "a variant that is new is thought of everywhere")]

mod runner;
mod stt;
mod tts;
mod vad;

use crate::message::{Moment, UnitId};
use crate::unit::UnitSlab;

pub use runner::{Deadlines, WorkerSpec, spawn_worker};
pub use stt::SttStage;
pub use tts::TtsStage;
pub use vad::VadStage;

/// One worker of a stage.
///
/// *Thread:* a worker of this stage. *Never:* blocks, locks, allocates, reads a clock.
pub trait Stage: Send {
    /// Returns the most units that one call of [`Stage::work`] takes.
    fn units_max(&self) -> usize;

    /// Works on `units` until nothing is left to do, a ring is full, or other units have waited long enough. In the
    /// last case the stage rings for the unit again. No other thread borrows the ports meanwhile.
    fn work(&mut self, slab: &'static UnitSlab, units: &[UnitId], now: Moment, deadlines: &mut Deadlines);

    /// Restores the ports of `units` after a panic in [`Stage::work`]. The work at hand is lost; STT and TTS report it
    /// as failed.
    fn recover(&mut self, slab: &'static UnitSlab, units: &[UnitId]);
}
