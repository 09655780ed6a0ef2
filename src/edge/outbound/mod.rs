//! Model servers that this server calls over HTTP, whoever runs them. Nothing here knows a unit or a session.

pub mod http;
pub mod language_model;
pub mod llm;
pub mod llm_process;
pub mod speech;
