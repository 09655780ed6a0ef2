//! Antiphon: a real-time speech-to-speech server. [`guide`] says how it is built; the modules below stand in the order in
//! which data flows.

pub mod guide;

// Puts it together.
pub mod server;
pub mod stage_models;

// Edge zone: async, allocates, awaits.
pub mod edge;

// Pure zone: bytes, text and time in, values out.
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

// Leaves: they know nobody, or next to nobody.
pub mod clock;
pub mod language;
pub mod limits;
pub mod sync;

// Before the start: what to run, on what, with which files.
pub mod config;
pub mod profile;
pub mod store;

// Programs of their own: the client (`antiphon talk`) and the built-in language model (`antiphon llm`).
#[cfg(feature = "builtin-llm")]
pub mod llm_server;
pub mod talk;
