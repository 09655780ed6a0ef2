//! Streaming client of an OpenAI-compatible server, of its chat completions or its responses: the one way to every
//! language model.
//!
//! Nothing here knows a ring or a session: a request goes in, deltas come out, and dropping the stream closes the
//! socket, which every such server takes as a cancel.

mod chunk;
mod completions;
mod endpoint;
mod error;
mod models;
mod order;
mod rate_limit;
mod reasoning;
mod responses;
mod sse;
mod stream;

use std::time::Duration;

use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use tokio::sync::watch;

use super::http::{self, root_cause};
use crate::config::LlmApi;
use crate::message::{ChatRequest, FinishReason, RateLimits, TokenUsage};

pub use endpoint::ChatEndpoint;
pub use error::ChatError;
pub(super) use error::error_message;
pub use stream::ChatStream;

use stream::{Opened, ParseEvent};

/// How long the list of models may take. It is asked for when the server starts; without it an assumption does.
const MODELS_WAIT: Duration = Duration::from_secs(5);

/// Longest list of models that is read, bytes; the longest known, of some 400 models, has a twentieth of it.
const MODELS_BODY_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// How long each part of a completion may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChatTimeouts {
    /// Until the connection stands, TLS included; also how long a request waits for a built-in server that is being
    /// started again. Default 3 s.
    pub connect: Duration,
    /// From the request to the first token, thoughts included. Default 20 s: a long prompt on a busy server.
    pub first_token: Duration,
    /// Between two tokens, thoughts included; comments that only keep the connection alive do not count. Default 10 s.
    pub between_tokens: Duration,
}

impl Default for ChatTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            first_token: Duration::from_secs(20),
            between_tokens: Duration::from_secs(10),
        }
    }
}

/// What comes out of a [`ChatStream`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatDelta {
    /// Text of the answer, never empty, never cut inside a character.
    Text(String),
    /// The model is thinking; what it thinks is not passed on.
    Reasoning,
    /// A function call begins; the text before it is complete. Calls come one after the other, in the order in which
    /// the model began them, whatever the server interleaves.
    Call {
        /// The function.
        name: String,
    },
    /// A piece of the JSON arguments of the call that has begun, never empty. A call has at least one: `{}` where the
    /// model wrote nothing.
    Arguments(String),
    /// The call that has begun is whole. Missing where the answer was cut in the middle of it.
    CallEnd,
    /// What the server allows its caller; before everything else.
    RateLimits(RateLimits),
    /// The answer is complete. Nothing follows.
    Done {
        /// How it ended.
        finish: FinishReason,
        /// What it cost; zeros if the server does not say.
        usage: TokenUsage,
    },
}

/// A client of one server. Cheap to clone; clones share the idle connections.
#[derive(Clone, Debug)]
pub struct ChatClient {
    http: reqwest::Client,
    endpoint: watch::Receiver<Option<ChatEndpoint>>,
    timeouts: ChatTimeouts,
}

impl ChatClient {
    /// A client of a server whose address does not change.
    ///
    /// # Errors
    /// [`ChatError::Setup`] if the system has no trusted root certificates and the address needs them.
    pub fn new(endpoint: ChatEndpoint, timeouts: ChatTimeouts) -> Result<Self, ChatError> {
        let http = http::client(endpoint.is_loopback(), endpoint.is_tls(), timeouts.connect)
            .map_err(ChatError::Setup)?;
        let (_, endpoint) = watch::channel(Some(endpoint));
        Ok(Self { http, endpoint, timeouts })
    }

    /// A client of the server on this machine that `endpoint` names at the moment of each request; while it holds
    /// `None` a request waits, at most the connect time-out.
    ///
    /// # Errors
    /// [`ChatError::Setup`] if the HTTP client cannot be made.
    pub fn following(
        endpoint: watch::Receiver<Option<ChatEndpoint>>,
        timeouts: ChatTimeouts,
    ) -> Result<Self, ChatError> {
        let http = http::client(true, false, timeouts.connect).map_err(ChatError::Setup)?;
        Ok(Self { http, endpoint, timeouts })
    }

    /// Asks for a completion. Nothing is sent before the first [`ChatStream::next`]. `slot` is the index of the
    /// caller's unit, for a server that keeps a cache per unit.
    #[must_use]
    pub fn stream(&self, request: &ChatRequest, slot: u16) -> ChatStream {
        self.stream_in(request, Some(slot))
    }

    /// The same in whichever slot is free.
    #[must_use]
    pub fn stream_in_any_slot(&self, request: &ChatRequest) -> ChatStream {
        self.stream_in(request, None)
    }

    fn stream_in(&self, request: &ChatRequest, slot: Option<u16>) -> ChatStream {
        let client = self.clone();
        // The body depends on the endpoint, which may change while the request waits for it.
        let request = request.clone();
        let opening = Box::pin(async move { client.open(&request, slot).await });
        ChatStream::opening(opening, self.timeouts)
    }

    /// Tokens that prompt and answer may have together, as the server's list of models says; `None` if it says nothing.
    ///
    /// # Errors
    /// [`ChatError`], also after 5 s without the whole list.
    pub async fn context_tokens(&self) -> Result<Option<u32>, ChatError> {
        tokio::time::timeout(MODELS_WAIT, self.clone().read_models())
            .await
            .unwrap_or(Err(ChatError::FirstTokenTimeout(MODELS_WAIT)))
    }

    async fn read_models(mut self) -> Result<Option<u32>, ChatError> {
        let endpoint = self.current_endpoint().await?;
        let mut call = self.http.get(endpoint.models_url()).header(ACCEPT, "application/json");
        if let Some(authorization) = &endpoint.authorization {
            call = call.header(AUTHORIZATION, authorization);
        }
        let mut response = call.send().await.map_err(|error| send_error(&error))?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(status_error(response).await);
        }
        let mut body = Vec::new();
        while let Some(bytes) =
            response.chunk().await.map_err(|error| ChatError::Broken(root_cause(&error)))?
        {
            body.extend_from_slice(&bytes);
            if body.len() > MODELS_BODY_BYTES_MAX {
                let problem = format!("more than {MODELS_BODY_BYTES_MAX} bytes of models");
                return Err(ChatError::Broken(problem));
            }
        }
        let list = serde_json::from_slice(&body)
            .map_err(|error| ChatError::Broken(format!("a list of models that is no JSON ({error})")))?;
        Ok(models::context_tokens(&list, endpoint.model.as_deref()))
    }

    /// Sends the request and waits for the response's headers.
    async fn open(mut self, request: &ChatRequest, slot: Option<u16>) -> Result<Opened, ChatError> {
        let endpoint = self.current_endpoint().await?;
        let model = endpoint.model.as_deref();
        let (body, parse): (_, ParseEvent) = match endpoint.api {
            LlmApi::Chat => {
                let slot = slot.filter(|_| endpoint.slot_hint);
                (completions::request_body(model, request, slot), completions::parse_event)
            }
            LlmApi::Responses => (responses::request_body(model, request), responses::parse_event),
        };
        let mut call = self
            .http
            .post(endpoint.url)
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream")
            .body(body);
        if let Some(authorization) = endpoint.authorization {
            call = call.header(AUTHORIZATION, authorization);
        }
        let response = call.send().await.map_err(|error| send_error(&error))?;
        if response.status() != reqwest::StatusCode::OK {
            return Err(status_error(response).await);
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        match content_type {
            Some(found) if found.contains("json") || found.contains("html") => {
                Err(ChatError::Broken(format!("found content type {found}, expected text/event-stream")))
            }
            _ => Ok(Opened { response, parse }),
        }
    }

    async fn current_endpoint(&mut self) -> Result<ChatEndpoint, ChatError> {
        let unreachable = |reason: &str| ChatError::Unreachable(reason.to_owned());
        let endpoint = tokio::time::timeout(self.timeouts.connect, self.endpoint.wait_for(Option::is_some))
            .await
            .map_err(|_| unreachable("it is being started again"))?
            .map_err(|_| unreachable("it has been shut down"))?;
        endpoint.clone().ok_or_else(|| unreachable("it is being started again"))
    }
}

fn send_error(error: &reqwest::Error) -> ChatError {
    if error.is_connect() || error.is_timeout() {
        ChatError::Unreachable(root_cause(error))
    } else if error.is_builder() {
        ChatError::Setup(root_cause(error))
    } else {
        ChatError::Broken(root_cause(error))
    }
}

async fn status_error(mut response: reqwest::Response) -> ChatError {
    let status = response.status();
    let retry_after = response
        .headers()
        .get(reqwest::header::RETRY_AFTER)
        .and_then(|value| value.to_str().ok()?.trim().parse().ok())
        .map(Duration::from_secs);
    let body = http::error_body(&mut response).await;
    let message = error_message(&body)
        .unwrap_or_else(|| status.canonical_reason().unwrap_or("unknown status").to_owned());
    ChatError::Status { status: status.as_u16(), message, retry_after }
}
