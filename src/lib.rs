//! Antiphon: a real-time speech-to-speech server. [`guide`] says how it is built.

pub mod guide;

pub mod server;
pub mod stage_models;

pub mod audio;
pub mod edge;
pub mod limits;
pub mod message;
pub mod model;
pub mod protocol;
pub mod rt;
pub mod session;
pub mod stage;
pub mod text;
pub mod unit;

pub mod clock;
pub mod config;
pub mod profile;
pub mod store;
pub mod sync;
