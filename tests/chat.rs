//! The language model's one path: the client against a scripted server, and the built-in server behind its supervisor.

#[path = "chat/client.rs"]
mod client;
#[path = "chat/scripted_server.rs"]
mod scripted_server;
