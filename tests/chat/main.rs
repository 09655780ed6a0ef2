//! The language model's one path: the client against a scripted server, and the built-in server behind its supervisor.
//!
//! The tests of the built-in server run the real model, which is fetched if it is missing.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a test may wait, and fails by panicking"
)]

mod answer;
#[cfg(feature = "builtin-llm")]
mod builtin;
#[cfg(feature = "builtin-llm")]
mod builtin_calls;
#[cfg(feature = "builtin-llm")]
mod builtin_sessions;
mod calls;
mod client;
#[cfg(feature = "builtin-llm")]
mod engine;
mod responses;
mod scripted_server;
