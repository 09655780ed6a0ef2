//! The edge: every network boundary of the server. Of the server's process, only the edge and the composition root import
//! tokio.

pub mod admin;
pub mod api_base;
mod aside;
pub mod bell;
pub mod chat;
pub mod connection;
pub mod downlink;
mod http;
mod item_audio;
pub mod listener;
pub mod llm;
pub mod llm_child;
pub mod model_server;
pub mod roster;
pub mod served;
pub mod speech_server;
pub mod stt;
pub mod talk;
pub mod tts;
pub mod uplink;
pub mod wav;
