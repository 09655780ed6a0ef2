//! A real server process, real sockets: what a client can see.
//!
//! One server is alive at a time ([`server::Server`] holds the machine), so that the tests do not measure each other.

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
mod llm_failures;
mod many_talkers;
mod pool;
mod shutdown;
mod speech;
mod talk;
