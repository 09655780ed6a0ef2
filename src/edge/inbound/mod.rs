//! Service to clients: admission, connections, endpoints, and the way of audio from a socket to a unit and back.

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
