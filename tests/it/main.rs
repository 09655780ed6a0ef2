//! A real server process, real sockets: what a client can see.
//!
//! One server is alive at a time ([`server::Server`] holds the machine), so that the tests do not measure each other.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a test may wait, and fails by panicking"
)]

mod client;
mod http;
mod installed;
mod llm;
mod rng;
mod server;
mod signal;
mod speech_server;

mod bad_input;
mod barge_in;
#[cfg(feature = "builtin-llm")]
mod builtin_llm;
mod cancel;
mod clients;
mod connection;
mod endpoints;
mod formats;
mod framing;
mod functions;
mod history;
mod idle;
mod idle_timeout;
mod images;
mod isolation;
mod languages;
mod llm_context;
mod llm_failures;
mod many_talkers;
mod pool;
mod privacy;
mod profile;
mod proxy;
mod races;
mod remote_stt;
mod remote_tts;
mod scripted_llm;
mod settings;
mod shutdown;
mod speech;
mod start;
mod talk;
mod transcripts;
#[cfg(feature = "builtin-llm")]
mod two_servers;
mod usage;
