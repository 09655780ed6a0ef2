//! Prompt → streaming completion → text and clauses. One task per unit, for the unit's whole life.
//!
//! It owns the unit's language model port. Cancel drops the request, which closes the socket at once.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::bell::Wakers;
use super::chat::{ChatDelta, ChatError};
use super::model_server::ModelServer;
use crate::limits::CLAUSE_BYTES_MAX;
use crate::message::{
    CallPiece, ChatRequest, ClauseItem, FailureCode, FinishReason, ResponseKey, Spent, Stamp, TextChunk,
    TextPrompt, TokenUsage, UnitId, text_chunks,
};
use crate::text::{ClauseSplitter, Speakable};
use crate::unit::{LlmPort, Unit, UnitSlab};

/// Runs until the runtime ends.
pub async fn attend(slab: &'static UnitSlab, unit: UnitId, wakers: Arc<Wakers>, server: Arc<ModelServer>) {
    let mut task =
        LlmTask { unit: slab.unit(unit), id: unit, wakers, server, port: slab.unit(unit).llm.borrow() };
    loop {
        match task.port.text_prompts.pop() {
            None => task.wakers.llm(unit).notified().await,
            Some(TextPrompt::SessionEnd { epoch }) => {
                let end = task.port.clauses.push_marker(ClauseItem::SessionEnd { epoch });
                debug_assert!(end.is_ok(), "a slot is kept for the marker");
            }
            Some(TextPrompt::Speak { stamp, response, text }) => {
                let speech = AssertUnwindSafe(task.speak(stamp, response, &text)).catch_unwind().await;
                task.survive(stamp, response, speech).await;
            }
            Some(TextPrompt::Generate { stamp, response, request }) => {
                // On the heap: a kilobyte that an idle unit does not have to keep.
                let answer = Box::pin(task.answer(stamp, response, &request));
                let answer = AssertUnwindSafe(answer).catch_unwind().await;
                task.survive(stamp, response, answer).await;
            }
        }
    }
}

/// What of the answer's text is spoken, clause by clause.
#[derive(Default)]
struct Voice {
    splitter: ClauseSplitter,
    speakable: Speakable,
}

impl Voice {
    fn push(&mut self, text: &str) -> Vec<String> {
        let (mut clauses, speakable) = (Vec::new(), &mut self.speakable);
        self.splitter.push(text, &mut |clause: &str| clauses.push(spoken(speakable, clause)));
        clauses
    }

    fn finish(&mut self) -> Vec<String> {
        let (mut clauses, speakable) = (Vec::new(), &mut self.speakable);
        self.splitter.finish(&mut |clause: &str| clauses.push(spoken(speakable, clause)));
        clauses
    }
}

/// Pieces of at most [`CLAUSE_BYTES_MAX`] bytes, cut between words where there are any.
fn pieces(mut clause: &str) -> impl Iterator<Item = &str> {
    std::iter::from_fn(move || {
        if clause.is_empty() {
            return None;
        }
        let mut end = clause.floor_char_boundary(CLAUSE_BYTES_MAX);
        if end < clause.len() {
            end = clause[..end].rfind(' ').filter(|at| *at > 0).unwrap_or(end);
        }
        let piece;
        (piece, clause) = clause.split_at(end);
        Some(piece)
    })
}

fn spoken(speakable: &mut Speakable, clause: &str) -> String {
    let mut text = String::new();
    speakable.clause(clause, &mut text);
    text
}

/// What a delta is in the ring, clauses excepted. Thoughts are nothing.
pub(super) fn items(stamp: Stamp, response: ResponseKey, delta: &ChatDelta) -> Vec<ClauseItem> {
    let call = |piece| ClauseItem::Call { stamp, response, piece };
    match delta {
        ChatDelta::Text(text) => {
            let chunks = text_chunks(text).filter(|(chunk, _)| !chunk.as_str().is_empty());
            chunks.map(|(chunk, _)| ClauseItem::Text { stamp, response, chunk }).collect()
        }
        ChatDelta::Reasoning => Vec::new(),
        ChatDelta::Call { name } => vec![call(CallPiece::Name(TextChunk::split(name).0))],
        ChatDelta::Arguments(json) => {
            text_chunks(json).map(|(chunk, _)| call(CallPiece::Arguments(chunk))).collect()
        }
        ChatDelta::CallEnd => vec![call(CallPiece::End)],
        ChatDelta::RateLimits(limits) => vec![ClauseItem::RateLimits { stamp, response, limits: *limits }],
        ChatDelta::Done { finish, usage } => {
            vec![ClauseItem::End { stamp, response, finish: *finish, usage: *usage }]
        }
    }
}

/// The end of an answer that failed.
pub(super) fn failed(stamp: Stamp, response: ResponseKey, error: &ChatError) -> ClauseItem {
    let (detail, _) = TextChunk::split(&error.detail());
    ClauseItem::Failed { stamp, response, code: error.code(), detail }
}

/// The response was cancelled, or the session ended.
struct Stale;

struct LlmTask<'a> {
    unit: &'static Unit,
    id: UnitId,
    wakers: Arc<Wakers>,
    server: Arc<ModelServer>,
    port: crate::sync::PortGuard<'a, LlmPort>,
}

impl LlmTask<'_> {
    async fn answer(
        &mut self,
        stamp: Stamp,
        response: ResponseKey,
        request: &ChatRequest,
    ) -> Result<(), Stale> {
        if self.unit.is_stale(stamp) {
            return Err(Stale);
        }
        let mut voice = request.spoken.then(Voice::default);
        let server = Arc::clone(&self.server);
        let mut stream = server.stream(request, Some(self.id));
        loop {
            let delta = {
                let mut next = pin!(stream.next());
                loop {
                    tokio::select! {
                        biased;
                        () = self.wakers.llm(self.id).notified() => {
                            if self.unit.is_stale(stamp) {
                                return Err(Stale);
                            }
                        }
                        delta = &mut next => break delta,
                    }
                }
            };
            let delta = match delta {
                Ok(delta) => delta,
                Err(error) => {
                    tracing::warn!(unit = %self.id, %error, "language model");
                    return self.push(stamp, failed(stamp, response, &error)).await;
                }
            };
            let clauses = match (&mut voice, &delta) {
                (Some(voice), ChatDelta::Text(text)) => Some(voice.push(text)),
                // What was said before is spoken before.
                (Some(voice), ChatDelta::Call { .. } | ChatDelta::Done { .. }) => Some(voice.finish()),
                _ => None,
            };
            let is_text = matches!(delta, ChatDelta::Text(_));
            let ends = matches!(delta, ChatDelta::Done { .. });
            if let ChatDelta::Done { usage, .. } = delta {
                self.port.spent.write(Spent { stamp, response, usage });
            }
            // Text stands before its clauses, anything else behind what was said.
            if is_text {
                self.push_all(stamp, items(stamp, response, &delta)).await?;
            }
            self.push_clauses(stamp, response, clauses.unwrap_or_default()).await?;
            if !is_text {
                self.push_all(stamp, items(stamp, response, &delta)).await?;
            }
            if ends {
                return Ok(());
            }
        }
    }

    /// Goes on after a panic: without the task the unit would never answer again, nor be free.
    async fn survive(
        &mut self,
        stamp: Stamp,
        response: ResponseKey,
        outcome: std::thread::Result<Result<(), Stale>>,
    ) {
        // Stale: nobody waits for it.
        if outcome.is_err() {
            tracing::error!(unit = %self.id, "language model task panicked, its response fails");
            let (code, detail) = (FailureCode::StagePanicked, TextChunk::split("").0);
            let _ = self.push(stamp, ClauseItem::Failed { stamp, response, code, detail }).await;
        }
    }

    /// Clauses of a text that is there already.
    async fn speak(&mut self, stamp: Stamp, response: ResponseKey, text: &str) -> Result<(), Stale> {
        let mut voice = Voice::default();
        self.push_clauses(stamp, response, voice.push(text)).await?;
        self.push_clauses(stamp, response, voice.finish()).await?;
        let (finish, usage) = (FinishReason::Stop, TokenUsage::default());
        self.push(stamp, ClauseItem::End { stamp, response, finish, usage }).await
    }

    async fn push_all(&mut self, stamp: Stamp, items: Vec<ClauseItem>) -> Result<(), Stale> {
        for item in items {
            self.push(stamp, item).await?;
        }
        Ok(())
    }

    async fn push_clauses(
        &mut self,
        stamp: Stamp,
        response: ResponseKey,
        clauses: Vec<String>,
    ) -> Result<(), Stale> {
        for clause in clauses.into_iter().filter(|clause| !clause.is_empty()) {
            // Read out, a text may be longer than it was written.
            for piece in pieces(&clause) {
                for (chunk, last) in text_chunks(piece) {
                    self.push(stamp, ClauseItem::Clause { stamp, response, chunk, last }).await?;
                }
            }
        }
        Ok(())
    }

    /// Pushes as soon as there is room.
    async fn push(&mut self, stamp: Stamp, item: ClauseItem) -> Result<(), Stale> {
        while !self.port.clauses.has_room_or_ring(1) {
            if self.unit.is_stale(stamp) {
                return Err(Stale);
            }
            self.wakers.llm(self.id).notified().await;
        }
        if self.unit.is_stale(stamp) {
            return Err(Stale);
        }
        self.port.clauses.push(item).expect("there is room, and only this task pushes");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_fit_and_lose_nothing() {
        for text in ["", "short", &"word ".repeat(300), &"x".repeat(1_000), &"é".repeat(700), " lead"] {
            let pieces: Vec<_> = pieces(text).collect();
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= CLAUSE_BYTES_MAX));
        }
    }
}
