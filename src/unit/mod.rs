//! The units: one pre-built pipeline each, in a slab that is allocated once.
//!
//! ```text
//!            audio_in           speech              text_events
//!  EdgePort ─────────▶ VadPort ─────────▶ SttPort ─────────────▶ EdgePort   (VadPort has its own half of text_events)
//!     │  text_prompts            clauses            audio_out
//!     └────────────▶ LlmPort ──────────▶ TtsPort ─────────────▶ EdgePort
//! ```
//! Every arrow is one SPSC ring. The ports sit in [`PortCell`](crate::sync::PortCell)s: whoever works on a unit
//! borrows its port, a second borrower is a bug that fails loudly, and nobody waits.

mod answer;
mod bell;
mod drain;
mod free;
mod generation;
mod lease;
mod port;
mod ring;
mod slab;
mod slot;
mod utterance;

pub use answer::resample;
pub use bell::{EdgeBell, EdgeSignal, StageBell};
pub use drain::Drain;
pub use free::FreeUnits;
pub use generation::GenerationCounter;
pub use lease::UnitLease;
pub use port::{
    EdgePort, ItemHearing, LlmPort, OpenUtterance, SttPort, TtsPort, TtsState, VadPort, VadState,
};
pub use ring::{Bell, Consumer, Producer, PushError, Ringer, ring};
pub use slab::{Bells, Cause, CounterTotals, Unit, UnitCounters, UnitSlab};
pub use slot::{SlotState, SlotWord};
pub use utterance::{Piece, SttWork, push_transcript};
