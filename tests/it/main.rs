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
mod llm;
mod rng;
mod server;
mod signal;

mod bad_input;
mod barge_in;
mod cancel;
mod clients;
mod connection;
mod framing;
mod idle;
mod isolation;
mod llm_context;
mod llm_failures;
mod many_talkers;
mod pool;
mod profile;
mod scripted_llm;
mod shutdown;
mod speech;
mod talk;
