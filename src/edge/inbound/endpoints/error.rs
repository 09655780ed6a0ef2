//! Errors of the endpoints, in the form of the API.
//!
//! # Source
//! OpenAI API reference, "Error codes": `{"error": {"message", "type", "param", "code"}}`.

use axum::Json;
use axum::http::StatusCode;
use axum::http::header::RETRY_AFTER;
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Value of `Retry-After`, seconds. A unit is free as soon as a client leaves, and that time cannot be predicted.
const RETRY_AFTER_S: &str = "1";

/// An error answer.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    kind: &'static str,
    code: &'static str,
    param: Option<&'static str>,
    message: String,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, kind, code, param: None, message: message.into() }
    }

    /// Makes the error for a field of the request that is not valid.
    pub(super) fn field(param: &'static str, code: &'static str, problem: impl std::fmt::Display) -> Self {
        let message = format!("{param}: {problem}");
        Self {
            param: Some(param),
            ..Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", code, message)
        }
    }

    /// Makes the error for a request that is not valid as a whole.
    pub(super) fn request(status: StatusCode, message: impl Into<String>) -> Self {
        Self::new(status, "invalid_request_error", "invalid_request", message)
    }

    /// Makes the error for a request while all units are taken.
    pub(super) fn pool_full(units: usize) -> Self {
        let message = format!("all {units} session slots are in use");
        Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "session_limit_reached", message)
    }

    /// Makes the error for a request while the server starts.
    pub(super) fn starting() -> Self {
        let message = "server is starting: its models are being loaded";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", "server_starting", message)
    }

    /// Makes the error for a request while the server shuts down.
    pub(super) fn shutting_down() -> Self {
        let message = "server is shutting down";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", "server_shutting_down", message)
    }

    /// Makes the error for a model that failed.
    pub(super) fn failed(code: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", code, message)
    }

    /// Makes the error for a language model server that cannot be reached.
    pub(super) fn upstream_unreachable(cause: &str) -> Self {
        let message = format!("the language model server cannot be reached: {cause}");
        Self::new(StatusCode::BAD_GATEWAY, "upstream_unreachable", "upstream_unreachable", message)
    }

    /// Makes the error for a request that this server does not support.
    pub(super) fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "not_implemented", "not_implemented", message)
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, kind, code, param, message } = self;
        let body = json!({"error": {"message": message, "type": kind, "param": param, "code": code}});
        let mut response = (status, Json(body)).into_response();
        if matches!(status, StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE) {
            response.headers_mut().insert(RETRY_AFTER, RETRY_AFTER_S.parse().expect("a number is a header"));
        }
        response
    }
}
