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
mod edge_bell;
mod free;
mod generation;
mod lease;
mod port;
mod ready_set;
mod ring;
mod slab;
mod slot;
mod stage_bell;
mod utterance;

pub use answer::resample;
pub use bell::{Bell, Ringer};
pub use drain::Drain;
pub use edge_bell::{EdgeBell, EdgeSignal};
pub use free::FreeUnits;
pub use generation::GenerationCounter;
pub use lease::UnitLease;
pub use port::{
    EdgePort, ItemHearing, LlmPort, OpenUtterance, SttPort, TtsPort, TtsState, VadPort, VadState,
};
pub use ring::{Consumer, Producer, PushError, ring};
pub use slab::{Bells, CounterTotals, Unit, UnitCounters, UnitSlab};
pub use slot::{SlotState, SlotWord};
pub use stage_bell::StageBell;
pub use utterance::{Piece, SttWork, push_transcript};
