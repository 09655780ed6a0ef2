//! The routes of the built-in server.
#![expect(clippy::disallowed_methods, reason = "the language model's own process has no stage threads")]
#![expect(clippy::disallowed_types, reason = "the language model's own process has no stage threads")]

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::mpsc::{SyncSender, TrySendError};
use std::time::{Duration, SystemTime};

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
use super::call_parser::{CallParser, Part};
use super::engine_thread::{Progress, ProgressSink, Request};
use super::error::ApiError;
use crate::model::llama::{Completion, Weights};

/// Completions of one slot at a time: one under way, and one whose predecessor has been given up a moment ago.
const COMPLETIONS_PER_SLOT: usize = 2;

/// A request to a slot that has both waits this long for one to end before it is refused with 409.
const SLOT_WAIT: Duration = Duration::from_secs(1);

/// Stands for a token that is held back, in the field for what is not to be spoken.
const HELD_BACK: &str = "…";

/// What all handlers share.
pub(super) struct Served {
    weights: &'static Weights,
    requests: SyncSender<Request>,
    slots: Vec<Arc<Semaphore>>,
    /// Tokens of one slot.
    context: usize,
}

impl Served {
    pub(super) fn new(
        weights: &'static Weights,
        requests: SyncSender<Request>,
        slots: u16,
        context: u32,
    ) -> Self {
        let slots = (0..slots).map(|_| Arc::new(Semaphore::new(COMPLETIONS_PER_SLOT))).collect();
        Self { weights, requests, slots, context: context as usize }
    }

    /// A place in the slot that was asked for, or in any that is free.
    async fn place(&self, slot: Option<usize>) -> Result<(usize, OwnedSemaphorePermit), ApiError> {
        let Some(slot) = slot else {
            return self
                .slots
                .iter()
                .position(|slot| slot.available_permits() == COMPLETIONS_PER_SLOT)
                .and_then(|index| Some((index, Arc::clone(&self.slots[index]).try_acquire_owned().ok()?)))
                .ok_or_else(|| ApiError::new(429, "server_busy", "all slots are busy"));
        };
        match tokio::time::timeout(SLOT_WAIT, Arc::clone(&self.slots[slot]).acquire_owned()).await {
            Ok(Ok(permit)) => Ok((slot, permit)),
            _ => Err(ApiError::new(409, "slot_busy", format!("slot {slot} is busy"))),
        }
    }

    /// Hands a request to the engine.
    async fn submit(&self, request: &ApiRequest) -> Result<Answer, ApiError> {
        let messages = request.messages.iter().map(|(role, content)| (*role, content.as_str()));
        let prompt = self
            .weights
            .prompt(messages)
            .map_err(|error| ApiError::new(500, "template_failed", error.to_string()))?;
        if prompt.len() >= self.context {
            let message =
                format!("found a prompt of {} tokens, expected less than {}", prompt.len(), self.context);
            return Err(ApiError::new(400, "context_length_exceeded", message));
        }
        let (slot, permit) = self.place(request.slot).await?;
        let room = self.context - prompt.len();
        let tokens_max = room.min(usize::try_from(request.limit.hard).unwrap_or(usize::MAX));
        let (sink, progress) = ProgressSink::channel(tokens_max);
        let completion = Completion {
            prompt,
            sampling: request.sampling,
            grammar: request.tools.grammar(),
            limit: request.limit,
            sink: Box::new(sink),
        };
        self.requests.try_send(Request { slot, completion }).map_err(|error| match error {
            TrySendError::Full(_) => ApiError::new(429, "server_busy", "too many requests at once"),
            TrySendError::Disconnected(_) => ApiError::new(503, "engine_gone", "the engine has ended"),
        })?;
        let created =
            SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let head = AnswerHead {
            id: format!("chatcmpl-{}", Uuid::new_v4().simple()),
            model: self.weights.name().to_owned(),
            created,
        };
        Ok(Answer { progress, head, parser: request.tools.parser(), calls: 0, _permit: permit })
    }
}

/// A completion being read. Dropping it, when the client goes away, ends the work: the engine finds the channel closed.
struct Answer {
    progress: mpsc::Receiver<Progress>,
    head: AnswerHead,
    parser: CallParser,
    /// Calls so far.
    calls: usize,
    _permit: OwnedSemaphorePermit,
}

impl Answer {
    /// What the model has written, taken apart; at its end, what is left of it.
    fn parts(&mut self, written: Option<&str>) -> Vec<Part> {
        let mut parts = Vec::new();
        match written {
            Some(text) => self.parser.feed(text, &mut parts),
            None => self.parser.finish(&mut parts),
        }
        parts
    }

    /// Deltas of `parts`.
    fn deltas(&mut self, parts: Vec<Part>) -> Vec<Value> {
        let deltas = parts.into_iter().map(|part| match part {
            Part::Text(text) => json!({"content": text}),
            Part::Call { name, arguments } => {
                let mut call = call_object(&call_id(), &name, &arguments);
                call["index"] = self.calls.into();
                self.calls += 1;
                json!({"tool_calls": [call]})
            }
        });
        deltas.collect()
    }

    /// The next bytes of a streamed answer, and whether they are the last.
    async fn next(&mut self, include_usage: bool) -> (String, bool) {
        let (written, end) = match self.progress.recv().await {
            Some(Progress::Text(text)) => (Some(text), None),
            Some(Progress::Done(end, usage)) => (None, Some((end, usage))),
            Some(Progress::Failed(message)) => {
                return (event(&ApiError::new(500, "completion_failed", message).body()), true);
            }
            None => return (event(&ApiError::new(500, "engine_gone", "the engine has ended").body()), true),
        };
        let parts = self.parts(written.as_deref());
        let mut deltas = self.deltas(parts);
        if deltas.is_empty() && end.is_none() {
            // What may be a call is held back; whoever waits for the next token shall know that there was one.
            deltas.push(json!({"reasoning_content": HELD_BACK}));
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

fn call_id() -> String {
    format!("call_{}", Uuid::new_v4().simple())
}

/// All routes.
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
    let slots = u16::try_from(served.slots.len()).unwrap_or(u16::MAX);
    let request = match ApiRequest::parse(&body, slots) {
        Ok(request) => request,
        Err(error) => return error_response(&error),
    };
    match served.submit(&request).await {
        Ok(answer) if request.stream => streamed(answer, request.include_usage),
        Ok(answer) => whole(answer).await,
        Err(error) => error_response(&error),
    }
}

fn error_response(error: &ApiError) -> Response {
    let status = StatusCode::from_u16(error.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(error.body())).into_response()
}

async fn whole(mut answer: Answer) -> Response {
    let (mut text, mut calls) = (String::new(), Vec::new());
    loop {
        let (parts, end) = match answer.progress.recv().await {
            Some(Progress::Text(piece)) => (answer.parts(Some(&piece)), None),
            Some(Progress::Done(end, usage)) => (answer.parts(None), Some((end, usage))),
            Some(Progress::Failed(message)) => {
                return error_response(&ApiError::new(500, "completion_failed", message));
            }
            None => return error_response(&ApiError::new(500, "engine_gone", "the engine has ended")),
        };
        for part in parts {
            match part {
                Part::Text(piece) => text.push_str(&piece),
                Part::Call { name, arguments } => calls.push(call_object(&call_id(), &name, &arguments)),
            }
        }
        if let Some((end, usage)) = end {
            return Json(answer.head.completion(&text, calls, end, usage)).into_response();
        }
    }
}

fn streamed(answer: Answer, include_usage: bool) -> Response {
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
