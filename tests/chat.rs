//! The language model's one path: the client against a scripted server, and the built-in server behind its supervisor.
//!
//! The tests of the built-in server run the real model; `ANTIPHON_GGUF` names its file, and without it they fail.

#[cfg(feature = "builtin-llm")]
#[path = "chat/builtin.rs"]
mod builtin;
#[path = "chat/client.rs"]
mod client;
#[path = "chat/scripted_server.rs"]
mod scripted_server;
