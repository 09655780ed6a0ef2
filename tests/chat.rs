//! The language model's one path: the client against a scripted server, and the built-in server behind its supervisor.
//!
//! The tests of the built-in server run the real model, which is fetched if it is missing.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    reason = "a test may wait, and fails by panicking"
)]

#[path = "chat/answer.rs"]
mod answer;
#[cfg(feature = "builtin-llm")]
#[path = "chat/builtin.rs"]
mod builtin;
#[cfg(feature = "builtin-llm")]
#[path = "chat/builtin_calls.rs"]
mod builtin_calls;
#[path = "chat/calls.rs"]
mod calls;
#[path = "chat/client.rs"]
mod client;
#[cfg(feature = "builtin-llm")]
#[path = "chat/engine.rs"]
mod engine;
#[path = "chat/responses.rs"]
mod responses;
#[path = "chat/scripted_server.rs"]
mod scripted_server;
