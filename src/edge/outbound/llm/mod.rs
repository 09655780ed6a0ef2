//! Streaming client of an OpenAI-compatible server, of its chat completions or its responses.
//!
//! Nothing here touches a ring or a session: a request goes in and deltas come out. Dropping the stream closes the
//! socket, which every such server takes as a cancel.

mod chunk;
mod completions;
mod delta;
mod endpoint;
mod error;
mod failure;
mod models;
mod order;
mod rate_limit;
mod reasoning;
mod responses;
mod sse;
mod stream;

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response};
use tokio::sync::watch;

use super::http::{CONNECT_WAIT, CallError, HttpClient, within};
use crate::config::LlmApi;
use crate::message::{Caller, ChatRequest};

pub use delta::ChatDelta;
pub use endpoint::ChatEndpoint;
pub use failure::{failure_code, failure_detail, failure_event};
pub use stream::ChatStream;

use stream::Opened;

/// Wait for the list of models. The list is requested when the server starts; without it a context is assumed.
const MODELS_WAIT: Duration = Duration::from_secs(5);

/// Longest list of models that is read, bytes; the longest known, of some 400 models, has a twentieth of it.
const MODELS_BODY_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// Time-outs of the parts of a completion.
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
            connect: CONNECT_WAIT,
            first_token: Duration::from_secs(20),
            between_tokens: Duration::from_secs(10),
        }
    }
}

/// A client of one server. Cheap to clone; clones share the idle connections.
#[derive(Clone, Debug)]
pub struct ChatClient {
    http: HttpClient,
    endpoint: watch::Receiver<Option<ChatEndpoint>>,
    timeouts: ChatTimeouts,
}

impl ChatClient {
    /// Makes a client of a server whose address does not change.
    ///
    /// # Errors
    /// [`CallError::Setup`] if the system has no trusted root certificates and the address needs them.
    pub fn new(endpoint: ChatEndpoint, timeouts: ChatTimeouts) -> Result<Self, CallError> {
        let http = HttpClient::new(&endpoint.base, timeouts.connect)?;
        let (_, endpoint) = watch::channel(Some(endpoint));
        Ok(Self { http, endpoint, timeouts })
    }

    /// Makes a client of a server on this machine. Each request goes to the address that `endpoint` holds at that
    /// moment. While `endpoint` holds `None` a request waits, at most the connect time-out.
    ///
    /// # Errors
    /// [`CallError::Setup`] if the HTTP client cannot be made.
    pub fn following(
        endpoint: watch::Receiver<Option<ChatEndpoint>>,
        timeouts: ChatTimeouts,
    ) -> Result<Self, CallError> {
        Ok(Self { http: HttpClient::local(timeouts.connect)?, endpoint, timeouts })
    }

    /// Asks for a completion. Nothing is sent before the first [`ChatStream::next`]. `caller` is the session that asks, for
    /// the built-in server; `None`: no session.
    #[must_use]
    pub fn stream(&self, request: &ChatRequest, caller: Option<Caller>) -> ChatStream {
        let client = self.clone();
        // The body depends on the endpoint, which may change while the request waits for it.
        let request = request.clone();
        ChatStream::opening(async move { client.open(&request, caller).await }, self.timeouts)
    }

    /// Returns the tokens that prompt and answer may have together, from the server's list of models; `None` if the
    /// list does not name them.
    ///
    /// # Errors
    /// [`CallError`], also after 5 s without the whole list.
    pub async fn context_tokens(&self) -> Result<Option<u32>, CallError> {
        within(MODELS_WAIT, self.read_models()).await
    }

    async fn read_models(&self) -> Result<Option<u32>, CallError> {
        let endpoint = self.endpoint().await?;
        let list = self.http.call(&endpoint.base, Method::GET, "models", |request| {
            request.header(ACCEPT, "application/json")
        });
        let list = list.await?.whole(MODELS_BODY_BYTES_MAX).await?;
        let list = serde_json::from_slice(&list)
            .map_err(|error| CallError::Broken(format!("a list of models that is no JSON ({error})")))?;
        Ok(models::context_tokens(&list, endpoint.model()))
    }

    /// Passes the call of a client on to `path` below the base of the API, with this server's key. Waits for the head
    /// of the answer, of any status.
    ///
    /// # Errors
    /// [`CallError`] if there is no answer.
    pub(in crate::edge) async fn pass(
        &self,
        endpoint: &ChatEndpoint,
        method: Method,
        path: &str,
        headers: HeaderMap,
        body: Bytes,
    ) -> Result<Response, CallError> {
        self.http.send(&endpoint.base, method, path, |request| request.headers(headers).body(body)).await
    }

    /// Sends the request and waits for the response's headers.
    async fn open(self, request: &ChatRequest, caller: Option<Caller>) -> Result<Opened, CallError> {
        let endpoint = self.endpoint().await?;
        let model = endpoint.model();
        let body = match endpoint.api {
            LlmApi::Chat => {
                let caller = caller.filter(|_| endpoint.names_caller);
                completions::request_body(model, request, caller)
            }
            LlmApi::Responses => responses::request_body(model, request),
        };
        let reply = self.http.call(&endpoint.base, Method::POST, endpoint.call(), |request| {
            request.header(CONTENT_TYPE, "application/json").header(ACCEPT, "text/event-stream").body(body)
        });
        let reply = reply.await?;
        match reply.content_type() {
            found if found.contains("json") || found.contains("html") => {
                Err(CallError::Broken(format!("found content type {found}, expected text/event-stream")))
            }
            _ => Ok(Opened { reply, api: endpoint.api }),
        }
    }

    /// Waits until the server is there, at most the connect time-out.
    ///
    /// # Errors
    /// [`CallError::Unreachable`] if the server is not there in time, or has been shut down.
    pub(in crate::edge) async fn endpoint(&self) -> Result<ChatEndpoint, CallError> {
        let unreachable = |reason: &str| CallError::Unreachable(reason.to_owned());
        let mut endpoint = self.endpoint.clone();
        let endpoint = tokio::time::timeout(self.timeouts.connect, endpoint.wait_for(Option::is_some))
            .await
            .map_err(|_| unreachable("it is being started again"))?
            .map_err(|_| unreachable("it has been shut down"))?;
        endpoint.clone().ok_or_else(|| unreachable("it is being started again"))
    }
}
