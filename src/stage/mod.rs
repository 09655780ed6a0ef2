//! VAD, STT and TTS as ring-to-ring steps. (The language model is `edge::tasks::llm`: always HTTP.)
//!
//! Stages are shared, units are private: a stage has a few workers, each takes ready units off the stage's doorbell and
//! works on their ports. A stage never waits: when a ring is full or empty it goes on with the next unit and is rung.
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
    /// Most units that one call of [`Stage::work`] takes.
    fn units_max(&self) -> usize;

    /// Works on `units` until nothing is left to do, a ring is full, or others had to wait long enough; in the last case
    /// it rings for the unit again. Their ports are free for the caller to borrow.
    fn work(&mut self, slab: &'static UnitSlab, units: &[UnitId], now: Moment, deadlines: &mut Deadlines);

    /// Brings `units` back in order after a panic in [`Stage::work`]: the work in them is lost and said to be.
    fn recover(&mut self, slab: &'static UnitSlab, units: &[UnitId]);
}
