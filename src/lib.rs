//! Antiphon: a real-time speech-to-speech server. [`guide`] describes the design; the modules below stand by zone.

pub mod guide;

// The composition of all parts.
pub mod server;
pub mod stage_models;

// Edge zone: async, allocates, awaits.
pub mod edge;

// Pure zone: takes bytes, text and time, returns values.
pub mod protocol;
pub mod session;
pub mod text;

pub mod audio;

// Real-time zone: plain threads, rings, atomics.
pub mod message;
pub mod unit;

pub mod rt;
pub mod stage;

// The networks.
pub mod model;

// Leaves: they import no other module, or few.
pub mod clock;
pub mod language;
pub mod limits;
pub mod sync;

// Before the start: settings, hardware profiles, model files.
pub mod config;
pub mod profile;
pub mod store;

// Programs of their own: the client (`antiphon talk`) and the built-in language model (`antiphon llm`).
#[cfg(feature = "builtin-llm")]
pub mod llm_server;
pub mod talk;
