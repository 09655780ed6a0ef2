//! Antiphon: a real-time speech-to-speech server.

pub mod server;

pub mod edge;
pub mod protocol;
pub mod session;
pub mod text;
pub mod audio;
pub mod limits;
pub mod message;
pub mod unit;
pub mod stage;
pub mod model;
pub mod rt;

pub mod clock;
pub mod profile;
pub mod store;
pub mod sync;
