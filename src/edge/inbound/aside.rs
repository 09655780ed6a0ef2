//! Answers that need no unit: out of band and in text. They belong to the connection and die with it.

use std::future::pending;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::select_all;

use crate::edge::outbound::model_server::{CompletionStream, ModelServer};
use crate::edge::tasks::llm::{failed, items};
use crate::message::{ChatRequest, ClauseItem, ResponseKey, SpeechOut, Stamp};

/// The asides of one client, each on a request of its own.
#[derive(Debug)]
pub(super) struct Asides {
    server: Arc<ModelServer>,
    running: Vec<(ResponseKey, CompletionStream)>,
}

impl Asides {
    /// None.
    pub(super) fn new(server: Arc<ModelServer>) -> Self {
        Self { server, running: Vec::new() }
    }

    /// Asks the model.
    pub(super) fn begin(&mut self, response: ResponseKey, request: &ChatRequest) {
        self.running.push((response, self.server.stream(request, None)));
    }

    /// Gives one up; its socket is closed.
    pub(super) fn give_up(&mut self, response: ResponseKey) {
        self.running.retain(|(running, _)| *running != response);
    }

    /// What comes next, of whichever; never where none is running. Cancel safe, as a completion stream is.
    pub(super) async fn next(&mut self) -> Vec<SpeechOut> {
        if self.running.is_empty() {
            return pending().await;
        }
        let streams = self.running.iter_mut().map(|(_, stream)| stream.next().boxed());
        let (delta, at, _) = select_all(streams).await;
        let (response, stamp) = (self.running[at].0, Stamp::default());
        let items = match delta {
            Ok(delta) => items(stamp, response, &delta),
            Err(error) => {
                tracing::warn!(%error, "language model, out of band");
                vec![failed(stamp, response, &error)]
            }
        };
        if matches!(items.last(), Some(ClauseItem::End { .. } | ClauseItem::Failed { .. })) {
            self.running.remove(at);
        }
        items.into_iter().filter_map(ClauseItem::passed_on).collect()
    }
}
