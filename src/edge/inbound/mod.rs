//! Clients of this server: who may come in, what each is told, and how audio gets from a socket to a unit and back.

pub mod admin;
mod aside;
mod backlog;
pub mod connection;
pub mod downlink;
pub mod endpoints;
pub mod entrance;
pub mod listener;
mod liveness;
pub mod roster;
pub mod shared;
pub mod uplink;
