//! Asides: written answers out of band, which need no unit. An aside belongs to a connection and ends with it.

use std::future::pending;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::select_all;

use crate::edge::outbound::language_model::{CompletionStream, LanguageModel};
use crate::edge::outbound::llm::failure_event;
use crate::message::{AnswerEvent, Caller, ChatRequest, Epoch, Rank, ResponseKey, UnitId};

/// The asides of one client, each on a request of its own.
#[derive(Debug)]
pub(super) struct Asides {
    server: Arc<LanguageModel>,
    caller: Caller,
    running: Vec<(ResponseKey, CompletionStream)>,
}

impl Asides {
    /// Makes an empty set for the session that has `unit` in `epoch`.
    pub(super) fn new(server: Arc<LanguageModel>, unit: UnitId, epoch: Epoch) -> Self {
        Self { server, caller: Caller { unit, epoch, rank: Rank::Aside }, running: Vec::new() }
    }

    /// Asks the model for an aside.
    pub(super) fn begin(&mut self, response: ResponseKey, request: &ChatRequest) {
        self.running.push((response, self.server.stream(request, self.caller)));
    }

    /// Gives up the aside `response` and closes its socket.
    pub(super) fn give_up(&mut self, response: ResponseKey) {
        self.running.retain(|(running, _)| *running != response);
    }

    /// Waits for the next events of an aside; for ever if none is running. Cancel safe, since completion streams are.
    pub(super) async fn next(&mut self) -> (ResponseKey, Vec<AnswerEvent>) {
        if self.running.is_empty() {
            return pending().await;
        }
        let streams = self.running.iter_mut().map(|(_, stream)| stream.next().boxed());
        let (delta, at, _) = select_all(streams).await;
        let response = self.running[at].0;
        let events = match delta {
            Ok(delta) => delta.events(),
            Err(error) => {
                tracing::warn!(%error, "language model, out of band");
                vec![failure_event(&error)]
            }
        };
        if matches!(events.last(), Some(AnswerEvent::End { .. } | AnswerEvent::Failed { .. })) {
            self.running.remove(at);
        }
        (response, events)
    }
}
