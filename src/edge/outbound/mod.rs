//! Calls of model servers over HTTP, of external ones and of the built-in language model. Nothing here touches a unit
//! or a session.

pub mod http;
pub mod language_model;
pub mod llm;
pub mod llm_process;
pub mod speech;
