//! The real-time zone's own threads. Nothing here locks, sleeps on a timer or waits for a session.

pub mod alloc;
pub mod thread;
