//! The routes of the built-in server.
#![expect(clippy::disallowed_methods, reason = "the language model's own process has no stage threads")]
#![expect(clippy::disallowed_types, reason = "the language model's own process has no stage threads")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::SystemTime;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use futures_util::stream;
use serde_json::{Value, json};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use uuid::Uuid;

use super::api::{AnswerHead, ApiRequest, call_object, finish_reason};
use super::call_parser::{CallParser, ParsedPart};
use super::engine_thread::{CompletionEvent, CompletionEventSink};
use super::error::RequestError;
use crate::model::llama::{Completion, Weights};

/// Completions per slot that callers without a session may have under way: one that runs and one that waits. Sessions
/// are never refused.
const GUESTS_PER_SLOT: usize = 2;

/// Placeholder for a token that is held back or still to come, in the field for content that is not spoken.
const HELD_BACK: &str = "…";

/// State of all handlers.
pub(super) struct Served {
    weights: &'static Weights,
    requests: Sender<Completion>,
    /// Permits for completions of callers without a session.
    guests: Arc<Semaphore>,
    /// Tokens of prompt and answer together, per completion.
    context: usize,
}

impl Served {
    pub(super) fn new(
        weights: &'static Weights,
        requests: Sender<Completion>,
        slots: u16,
        context: u32,
    ) -> Self {
        let guests = Arc::new(Semaphore::new(GUESTS_PER_SLOT * usize::from(slots)));
        Self { weights, requests, guests, context: context as usize }
    }

    /// Sends a request to the engine.
    fn submit(&self, request: &ApiRequest) -> Result<AnswerStream, RequestError> {
        let messages = request.messages.iter().map(|(role, content)| (*role, content.as_str()));
        let prompt = self
            .weights
            .prompt(messages)
            .map_err(|error| RequestError::new(500, "template_failed", error.to_string()))?;
        if prompt.len() >= self.context {
            let message =
                format!("found a prompt of {} tokens, expected less than {}", prompt.len(), self.context);
            return Err(RequestError::new(400, "context_length_exceeded", message));
        }
        let guest = match request.caller {
            Some(_) => None,
            None => Some(
                Arc::clone(&self.guests)
                    .try_acquire_owned()
                    .map_err(|_| RequestError::new(429, "server_busy", "too many requests at once"))?,
            ),
        };
        let room = self.context - prompt.len();
        let tokens_max = room.min(usize::try_from(request.limit.hard).unwrap_or(usize::MAX));
        let (sink, events) = CompletionEventSink::channel(tokens_max);
        let completion = Completion {
            caller: request.caller,
            prompt,
            sampling: request.sampling,
            grammar: request.tools.grammar(),
            limit: request.limit,
            sink: Box::new(sink),
        };
        self.requests
            .send(completion)
            .map_err(|_| RequestError::new(503, "engine_gone", "the engine has ended"))?;
        let created =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let head = AnswerHead {
            id: format!("chatcmpl-{}", Uuid::new_v4().simple()),
            model: self.weights.name().to_owned(),
            created,
        };
        Ok(AnswerStream { events, head, parser: request.tools.parser(), calls: 0, _guest: guest })
    }
}

/// A completion being read. If the client goes away, the stream is dropped and the engine finds the channel closed,
/// which ends the work.
struct AnswerStream {
    events: mpsc::Receiver<CompletionEvent>,
    head: AnswerHead,
    parser: CallParser,
    /// Number of calls so far.
    calls: usize,
    /// Permit of a caller without a session; `None` for a session.
    _guest: Option<OwnedSemaphorePermit>,
}

impl AnswerStream {
    /// Returns the parts of `written`, or at the end of the answer, if `None`, the rest.
    fn parts(&mut self, written: Option<&str>) -> Vec<ParsedPart> {
        let mut parts = Vec::new();
        match written {
            Some(text) => self.parser.feed(text, &mut parts),
            None => self.parser.finish(&mut parts),
        }
        parts
    }

    /// Returns the deltas of `parts`.
    fn deltas(&mut self, parts: Vec<ParsedPart>) -> Vec<Value> {
        let deltas = parts.into_iter().map(|part| match part {
            ParsedPart::Text(text) => json!({"content": text}),
            ParsedPart::Call { name, arguments } => {
                let mut call = call_object(&call_id(), &name, &arguments);
                call["index"] = self.calls.into();
                self.calls += 1;
                json!({"tool_calls": [call]})
            }
        });
        deltas.collect()
    }

    /// Returns the next bytes of a streamed answer, and true if they are the last.
    async fn next(&mut self, include_usage: bool) -> (String, bool) {
        let (written, end) = match self.events.recv().await {
            Some(CompletionEvent::Text(text)) => (Some(text), None),
            // Shows the reader that its next token will come.
            Some(CompletionEvent::Waiting) => return (event(&self.head.chunk(&held_back(), None)), false),
            Some(CompletionEvent::Done(end, usage)) => (None, Some((end, usage))),
            Some(CompletionEvent::Failed(message)) => {
                return (event(&RequestError::new(500, "completion_failed", message).body()), true);
            }
            None => {
                return (event(&RequestError::new(500, "engine_gone", "the engine has ended").body()), true);
            }
        };
        let parts = self.parts(written.as_deref());
        let mut deltas = self.deltas(parts);
        if deltas.is_empty() && end.is_none() {
            // A possible call is held back; the placeholder shows the reader that there was a token.
            deltas.push(held_back());
        }
        let mut bytes: String = deltas.iter().map(|delta| event(&self.head.chunk(delta, None))).collect();
        if let Some((end, usage)) = end {
            let finish = finish_reason(end, self.calls > 0);
            bytes.push_str(&event(&self.head.chunk(&json!({}), Some(finish))));
            if include_usage {
                bytes.push_str(&event(&self.head.usage_chunk(usage)));
            }
            bytes.push_str("data: [DONE]\n\n");
        }
        (bytes, end.is_some())
    }
}

fn held_back() -> Value {
    json!({"reasoning_content": HELD_BACK})
}

fn call_id() -> String {
    format!("call_{}", Uuid::new_v4().simple())
}

/// Returns all routes.
pub(super) fn router(served: Arc<Served>) -> Router {
    Router::new()
        .route("/health", get(|| async { Json(json!({"status": "ok"})) }))
        .route("/v1/models", get(models))
        .route("/v1/chat/completions", post(completions))
        .with_state(served)
}

async fn models(State(served): State<Arc<Served>>) -> Json<Value> {
    let model = json!({"id": served.weights.name(), "object": "model", "created": 0, "owned_by": "local"});
    Json(json!({"object": "list", "data": [model]}))
}

async fn completions(State(served): State<Arc<Served>>, body: Bytes) -> Response {
    let request = match ApiRequest::parse(&body) {
        Ok(request) => request,
        Err(error) => return error_response(&error),
    };
    match served.submit(&request) {
        Ok(answer) if request.stream => streamed(answer, request.include_usage),
        Ok(answer) => whole(answer).await,
        Err(error) => error_response(&error),
    }
}

fn error_response(error: &RequestError) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error.body())).into_response()
}

async fn whole(mut answer: AnswerStream) -> Response {
    let (mut text, mut calls) = (String::new(), Vec::new());
    loop {
        let (parts, end) = match answer.events.recv().await {
            Some(CompletionEvent::Text(piece)) => (answer.parts(Some(&piece)), None),
            Some(CompletionEvent::Waiting) => continue,
            Some(CompletionEvent::Done(end, usage)) => (answer.parts(None), Some((end, usage))),
            Some(CompletionEvent::Failed(message)) => {
                return error_response(&RequestError::new(500, "completion_failed", message));
            }
            None => return error_response(&RequestError::new(500, "engine_gone", "the engine has ended")),
        };
        for part in parts {
            match part {
                ParsedPart::Text(piece) => text.push_str(&piece),
                ParsedPart::Call { name, arguments } => {
                    calls.push(call_object(&call_id(), &name, &arguments))
                }
            }
        }
        if let Some((end, usage)) = end {
            return Json(answer.head.completion(&text, calls, end, usage)).into_response();
        }
    }
}

fn streamed(answer: AnswerStream, include_usage: bool) -> Response {
    let role = event(&answer.head.chunk(&json!({"role": "assistant", "content": ""}), None));
    let rest = stream::unfold(Some(answer), move |answer| async move {
        let mut answer = answer?;
        let (bytes, is_last) = answer.next(include_usage).await;
        Some((Ok::<_, Infallible>(bytes), if is_last { None } else { Some(answer) }))
    });
    let body = stream::StreamExt::chain(stream::iter([Ok(role)]), rest);
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(body)).into_response()
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
