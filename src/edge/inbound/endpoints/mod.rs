//! The OpenAI endpoints beside the Realtime one, with `--serve-endpoints`: transcription and speech on the models of this
//! server, through units of its pool, and the language model's own calls passed on to it.
//!
//! Each request for a transcript or for speech claims a unit as a session does. The unit is given back when the request
//! is answered or its client goes away.

mod claim;
mod error;
mod proxy;
mod speech;
mod token_count;
mod transcription;

use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};

use super::shared::Shared;
use error::ApiError;

/// Largest recording, bytes. Source: OpenAI API reference, "Create transcription".
const RECORDING_BYTES_MAX: usize = 25 * 1_000 * 1_000;

/// Most bytes of the form fields around the recording.
const FORM_BYTES_MAX: usize = 64 * 1_024;

/// Largest request for speech, bytes: the longest input in escapes, and the fields around it.
const SPEECH_BYTES_MAX: usize = 64 * 1_024;

/// Largest request to the language model, bytes: a long conversation and some pictures.
const PROXIED_BYTES_MAX: usize = 32 * 1_024 * 1_024;

/// Makes the routes of the endpoints.
pub(super) fn router(shared: Arc<Shared>) -> Router {
    let proxied = Router::new()
        .route("/v1/models", get(proxy::models))
        .route("/v1/chat/completions", post(proxy::chat_completions))
        .route("/v1/responses", post(proxy::responses))
        .layer(DefaultBodyLimit::max(PROXIED_BYTES_MAX));
    let transcriptions = Router::new()
        .route("/v1/audio/transcriptions", post(transcription::transcribe))
        .layer(DefaultBodyLimit::max(RECORDING_BYTES_MAX + FORM_BYTES_MAX));
    let speech = Router::new()
        .route("/v1/audio/speech", post(speech::speak))
        .layer(DefaultBodyLimit::max(SPEECH_BYTES_MAX));
    proxied.merge(transcriptions).merge(speech).with_state(shared)
}

/// Makes the answer to every call while the server starts.
pub(super) fn starting() -> Response {
    ApiError::starting().into_response()
}

/// Makes the routes without `--serve-endpoints`: each call is answered with an error that names the flag.
pub(super) fn disabled() -> Router {
    let paths = [
        "/v1/models",
        "/v1/chat/completions",
        "/v1/responses",
        "/v1/audio/transcriptions",
        "/v1/audio/speech",
    ];
    paths.iter().fold(Router::new(), |router, path| {
        router
            .route(path, any(|| async { ApiError::not_implemented("disabled, expected --serve-endpoints") }))
    })
}
