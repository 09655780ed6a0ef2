//! Error answers of the built-in server.
//!
//! # Source
//! OpenAI API reference, error object.

use serde_json::{Value, json};

/// Error of one request: its status, the code of its cause, and a sentence for people.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RequestError {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl RequestError {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request", message)
    }

    /// Returns the error object of the API.
    pub(super) fn body(&self) -> Value {
        let kind = if self.status < 500 { "invalid_request_error" } else { "server_error" };
        json!({"error": {"message": self.message, "type": kind, "param": null, "code": self.code}})
    }
}
