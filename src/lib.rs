//! Antiphon: a real-time speech-to-speech server. [`guide`] describes the design; the modules below stand by zone.

pub mod guide;

// The composition of all parts.
mod server;
mod stage_models;

// Edge zone: async, allocates, awaits.
mod edge;

// Pure zone: takes bytes, text and time, returns values.
mod protocol;
mod session;
mod text;

mod audio;

// Real-time zone: plain threads, rings, atomics.
mod message;
mod unit;

mod rt;
mod stage;

// The networks.
mod model;

// Leaves: they import no other module, or few.
mod clock;
mod language;
mod limits;
mod sync;

// Before the start: settings, hardware profiles, model files.
mod config;
mod profile;
mod store;

// Programs of their own: the client (`antiphon talk`) and the built-in language model (`antiphon llm`).
#[cfg(feature = "builtin-llm")]
mod llm_server;
mod talk;

/// The subcommands of the program, for `main`.
pub mod program {
    pub use crate::config::ServeArgs;
    #[cfg(feature = "builtin-llm")]
    pub use crate::llm_server::{LlmArgs, run as llm};
    pub use crate::model::ort::disable_telemetry;
    pub use crate::profile::{ProfileCommand, run as profile, validate};
    pub use crate::rt::alloc::PhaseAllocator;
    pub use crate::server::serve;
    pub use crate::store::{ModelsCommand, run as models};
    pub use crate::talk::{TalkArgs, run as talk};
}

#[doc(hidden)]
pub mod door;
