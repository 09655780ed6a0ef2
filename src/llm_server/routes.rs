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

use super::api::{AnswerHead, ApiError, ApiRequest};
use super::engine_thread::{Progress, ProgressSink, Request};
use crate::model::llama::{Completion, Weights};

/// Completions of one slot at a time: one under way, and one whose predecessor has been given up a moment ago.
const COMPLETIONS_PER_SLOT: usize = 2;

/// A request to a slot that has both waits this long for one to end before it is refused with 409.
const SLOT_WAIT: Duration = Duration::from_secs(1);

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
        let completion =
            Completion { prompt, sampling: request.sampling, limit: request.limit, sink: Box::new(sink) };
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
        Ok(Answer { progress, head, _permit: permit })
    }
}

/// A completion being read. Dropping it, when the client goes away, ends the work: the engine finds the channel closed.
struct Answer {
    progress: mpsc::Receiver<Progress>,
    head: AnswerHead,
    _permit: OwnedSemaphorePermit,
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
    let mut text = String::new();
    loop {
        match answer.progress.recv().await {
            Some(Progress::Text(piece)) => text.push_str(&piece),
            Some(Progress::Done(end, usage)) => {
                return Json(answer.head.completion(&text, end, usage)).into_response();
            }
            Some(Progress::Failed(message)) => {
                return error_response(&ApiError::new(500, "completion_failed", message));
            }
            None => return error_response(&ApiError::new(500, "engine_gone", "the engine has ended")),
        }
    }
}

fn streamed(answer: Answer, include_usage: bool) -> Response {
    let role = event(&answer.head.chunk(&json!({"role": "assistant", "content": ""}), None));
    let rest = stream::unfold(Some(answer), move |answer| async move {
        let mut answer = answer?;
        let (bytes, is_last) = match answer.progress.recv().await {
            Some(Progress::Text(text)) => (event(&answer.head.chunk(&json!({"content": text}), None)), false),
            Some(Progress::Done(end, usage)) => {
                let mut bytes = event(&answer.head.chunk(&json!({}), Some(end)));
                if include_usage {
                    bytes.push_str(&event(&answer.head.usage_chunk(usage)));
                }
                bytes.push_str("data: [DONE]\n\n");
                (bytes, true)
            }
            Some(Progress::Failed(message)) => {
                (event(&ApiError::new(500, "completion_failed", message).body()), true)
            }
            None => (event(&ApiError::new(500, "engine_gone", "the engine has ended").body()), true),
        };
        Some((Ok::<_, Infallible>(bytes), if is_last { None } else { Some(answer) }))
    });
    let body = stream::StreamExt::chain(stream::iter([Ok(role)]), rest);
    let headers = [(header::CONTENT_TYPE, "text/event-stream"), (header::CACHE_CONTROL, "no-cache")];
    (headers, Body::from_stream(body)).into_response()
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}
