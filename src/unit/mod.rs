//! The units: one pre-built pipeline each, in a slab that is allocated once.
//!
//! ```text
//!            audio_in           speech              text_events
//!  EdgePort ─────────▶ VadPort ─────────▶ SttPort ─────────────▶ EdgePort   (VadPort has its own half of text_events)
//!     │  text_prompts           answer_in           answer_out
//!     └────────────▶ LlmPort ──────────▶ TtsPort ─────────────▶ EdgePort
//! ```
//! Every arrow is one SPSC ring. The ports sit in [`PortCell`](crate::sync::PortCell)s. A thread that works on a unit
//! borrows its port; a second borrower is a bug and panics, and no borrower waits.
#![warn(clippy::wildcard_enum_match_arm, reason = "a variant that is new is thought of everywhere")]

mod bell;
mod drain;
mod edge_bell;
mod edge_port;
mod free;
mod generation;
mod lease;
mod llm_port;
mod ready_set;
mod ring;
mod slab;
mod slot;
mod stage_bell;
mod status;
mod stt_port;
mod tts_port;
mod vad_port;

pub use bell::{Bell, Ringer};
pub use drain::Drain;
pub use edge_bell::{EdgeBell, EdgeSignal};
pub use edge_port::EdgePort;
pub use generation::GenerationCounter;
pub use lease::UnitLease;
pub use llm_port::LlmPort;
pub use ring::{Producer, PushError, ring};
pub use slab::{Bells, Unit, UnitSlab};
pub use slot::SlotState;
pub use stage_bell::StageBell;
pub use status::{Stamp, UnitCounters, UnitStatus};
pub use stt_port::{Piece, SttPort, SttWork, push_transcript};
pub use tts_port::{TtsPort, TtsProgress, resample};
pub use vad_port::{ItemHearing, OpenUtterance, VadPort, VadState};
#[allow(unused_imports, reason = "the models of tests/loom name them")]
pub use {free::FreeUnits, ring::Consumer, slot::SlotWord};
