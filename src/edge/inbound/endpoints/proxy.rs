//! The language model's own calls, passed on. Body and headers go there; status, headers and body come back as they
//! arrive.
//!
//! The server's key is sent, the client's never is. The request names the server's model if one is configured.
//! Responses are not stored at the model server (`store`), and no client can pose as a session ([`NOT_ASKED`]).

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::TryStreamExt;
use serde_json::{Value, json};

use super::error::ApiError;
use super::token_count::TokenCount;
use crate::edge::inbound::shared::Shared;
use crate::edge::outbound::http::CallError;
use crate::edge::outbound::llm::{ChatClient, ChatEndpoint};

/// Headers of the client that are not passed on: those of the connection, of the body's length, which may change, of a
/// compression that would hold events back, and those that identify the client.
const NOT_THERE: [&str; 17] = [
    "host",
    "accept-encoding",
    "connection",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "proxy-authorization",
    "content-length",
    "expect",
    "authorization",
    "api-key",
    "x-api-key",
    "cookie",
    "openai-organization",
    "openai-project",
];

/// Headers of the model server that are not passed on: those of the connection.
const NOT_BACK: [&str; 4] = ["connection", "keep-alive", "transfer-encoding", "upgrade"];

/// Fields of a request that are not passed on: through them a client could use the cache and the rank of a session.
const NOT_ASKED: [&str; 2] = ["id_slot", "antiphon_caller"];

/// The language model's server, ready for a call.
struct Upstream<'a> {
    shared: &'a Arc<Shared>,
    client: &'a ChatClient,
    endpoint: ChatEndpoint,
}

impl<'a> Upstream<'a> {
    /// Waits until the server is there, 3 s at most.
    async fn new(shared: &'a Arc<Shared>) -> Result<Self, ApiError> {
        let client = shared.model.client().ok_or_else(|| {
            ApiError::not_implemented(
                "this server has no language model, expected --llm-url or --stages real",
            )
        })?;
        Ok(Self { shared, client, endpoint: client.endpoint().await.map_err(unreachable)? })
    }

    /// Returns the body with this server's decisions in it; the client's own bytes if there are none.
    fn decided(&self, body: Bytes, store: Option<bool>) -> Result<Bytes, ApiError> {
        let bad = |problem: String| ApiError::request(StatusCode::BAD_REQUEST, problem);
        let mut value: Value =
            serde_json::from_slice(&body).map_err(|error| bad(format!("JSON: {error}")))?;
        let fields = value.as_object_mut();
        let fields = fields.ok_or_else(|| bad("JSON: found no object, expected one".to_owned()))?;
        let decisions =
            [("model", self.endpoint.model().map(|model| json!(model))), ("store", store.map(Value::from))];
        let mut is_changed = false;
        for name in NOT_ASKED {
            is_changed |= fields.shift_remove(name).is_some();
        }
        for (name, value) in decisions {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
                is_changed = true;
            }
        }
        Ok(if is_changed { value.to_string().into() } else { body })
    }

    /// Passes one call on. The answer's body is passed back as it arrives. If the client goes away, the call ends.
    async fn pass(
        self,
        method: Method,
        path: &str,
        mut headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, ApiError> {
        let Self { shared, client, endpoint } = self;
        NOT_THERE.iter().for_each(|name| {
            headers.remove(*name);
        });
        let answer = client.pass(&endpoint, method, path, headers, body).await.map_err(|error| {
            shared.roster.count_proxied(StatusCode::BAD_GATEWAY.as_u16());
            unreachable(error)
        })?;
        let (status, mut headers) = (answer.status(), answer.headers().clone());
        shared.roster.count_proxied(status.as_u16());
        NOT_BACK.iter().for_each(|name| {
            headers.remove(*name);
        });
        let mut count = TokenCount::new(Arc::clone(shared));
        let body = answer.bytes_stream().inspect_ok(move |bytes| count.look_at(bytes));
        Ok((status, headers, Body::from_stream(body)).into_response())
    }
}

fn unreachable(error: CallError) -> ApiError {
    match error {
        CallError::Unreachable(cause) | CallError::Broken(cause) => ApiError::upstream_unreachable(&cause),
        error => ApiError::upstream_unreachable(&error.to_string()),
    }
}

fn whole(body: Result<Bytes, BytesRejection>) -> Result<Bytes, ApiError> {
    body.map_err(|error| ApiError::request(error.status(), error.body_text()))
}

/// Handles `POST /v1/chat/completions`.
pub(super) async fn chat_completions(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let upstream = Upstream::new(&shared).await?;
    let body = upstream.decided(whole(body)?, None)?;
    upstream.pass(Method::POST, "chat/completions", headers, body).await
}

/// Handles `POST /v1/responses`.
pub(super) async fn responses(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let upstream = Upstream::new(&shared).await?;
    let body = upstream.decided(whole(body)?, Some(false))?;
    upstream.pass(Method::POST, "responses", headers, body).await
}

/// Handles `GET /v1/models`.
pub(super) async fn models(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    Upstream::new(&shared).await?.pass(Method::GET, "models", headers, Bytes::new()).await
}
