//! Prompt → streaming completion → text and clauses. One task per unit, for the unit's whole life.
//!
//! The task owns the unit's language model port. A cancel drops the request, which closes the socket at once.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;

use super::Stale;
use crate::edge::dispatcher::Wakers;
use crate::edge::outbound::language_model::LanguageModel;
use crate::edge::outbound::llm::{ChatDelta, failure_event};
use crate::limits::CLAUSE_BYTES_MAX;
use crate::message::{
    AnswerEvent, AnswerIn, AnswerStamp, Caller, ChatRequest, Envelope, FailureCode, FinishReason, Rank,
    Spent, TextChunk, TextPrompt, TokenUsage, UnitId, text_chunks,
};
use crate::text::{ClauseSplitter, Speakable};
use crate::unit::{LlmPort, Stamp, UnitSlab, UnitStatus};

/// Most items of an answer that wait for room in the ring, some thousand tokens, 300 kB; then the model server is read
/// no further. The server can be this far ahead of the voice, so that its slot is free, and the usage known, long
/// before all is spoken.
const AHEAD_ITEMS_MAX: usize = 1_024;

/// Answers the prompts of `unit` until the runtime ends.
pub async fn attend(slab: &'static UnitSlab, unit: UnitId, wakers: Arc<Wakers>, server: Arc<LanguageModel>) {
    let (status, port) = (&slab.unit(unit).status, slab.unit(unit).llm.borrow());
    let mut task = LlmTask { unit: status, id: unit, wakers, server, port };
    loop {
        let (stamp, prompt) = match task.port.text_prompts.next_live(status) {
            None => {
                task.wakers.llm(unit).notified().await;
                continue;
            }
            Some(Envelope::SessionEnd(epoch)) => {
                task.port.answer_in.push_end(epoch);
                continue;
            }
            Some(Envelope::Item { stamp, item }) => (stamp, item),
        };
        let outcome = match prompt {
            TextPrompt::Speak(text) => AssertUnwindSafe(task.speak(stamp, &text)).catch_unwind().await,
            TextPrompt::Generate(request) => {
                // On the heap, so that an idle unit does not keep this kilobyte.
                let answer = Box::pin(task.answer(stamp, &request));
                AssertUnwindSafe(answer).catch_unwind().await
            }
        };
        task.survive(stamp, outcome).await;
    }
}

/// The spoken part of an answer's text, clause by clause.
#[derive(Default)]
struct SpokenClauses {
    splitter: ClauseSplitter,
    speakable: Speakable,
}

impl SpokenClauses {
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

/// Cuts `clause` into pieces of at most [`CLAUSE_BYTES_MAX`] bytes, between words if there are any.
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

/// Cuts clauses into items of the ring.
fn clause_items(clauses: &[String]) -> Vec<AnswerIn> {
    // The spoken form of a text may be longer than the written one.
    let pieces = clauses.iter().flat_map(|clause| pieces(clause));
    let chunks = pieces.flat_map(text_chunks);
    chunks.map(|(chunk, last)| AnswerIn::Clause { chunk, last }).collect()
}

struct LlmTask<'a> {
    unit: &'static UnitStatus,
    id: UnitId,
    wakers: Arc<Wakers>,
    server: Arc<LanguageModel>,
    port: crate::sync::PortGuard<'a, LlmPort>,
}

impl LlmTask<'_> {
    async fn answer(&mut self, stamp: AnswerStamp, request: &ChatRequest) -> Result<(), Stale> {
        let mut voice = request.spoken.then(SpokenClauses::default);
        let mut waiting = VecDeque::new();
        // Checked before the request is sent: the prompt may be stale.
        self.hand_on(stamp, &mut waiting)?;
        let server = Arc::clone(&self.server);
        let rank = if request.spoken { Rank::Spoken } else { Rank::Written };
        let mut stream = server.stream(request, Caller { unit: self.id, epoch: stamp.epoch, rank });
        loop {
            while waiting.len() >= AHEAD_ITEMS_MAX {
                self.wakers.llm(self.id).notified().await;
                self.hand_on(stamp, &mut waiting)?;
            }
            let delta = {
                let mut next = pin!(stream.next());
                loop {
                    self.hand_on(stamp, &mut waiting)?;
                    tokio::select! {
                        biased;
                        () = self.wakers.llm(self.id).notified() => {}
                        delta = &mut next => break delta,
                    }
                }
            };
            let delta = match delta {
                Ok(delta) => delta,
                Err(error) => {
                    tracing::warn!(unit = %self.id, %error, "language model");
                    waiting.push_back(AnswerIn::Event(failure_event(&error)));
                    break;
                }
            };
            let clauses = match (&mut voice, &delta) {
                (Some(voice), ChatDelta::Text(text)) => voice.push(text),
                // Text that came before is spoken before.
                (Some(voice), ChatDelta::Call { .. } | ChatDelta::Done { .. }) => voice.finish(),
                _ => Vec::new(),
            };
            let (clauses, events) = (clause_items(&clauses), delta.events().into_iter().map(AnswerIn::Event));
            // Text goes before its clauses, anything else behind the clauses of the text before it.
            if let ChatDelta::Text(_) = delta {
                waiting.extend(events.chain(clauses));
            } else {
                waiting.extend(clauses.into_iter().chain(events));
            }
            if let ChatDelta::Done { usage, .. } = delta {
                self.port.spent.write(Spent { stamp, usage });
                break;
            }
        }
        // The model server is not needed any more.
        drop(stream);
        self.hand_on_all(stamp, waiting).await
    }

    /// Reports a panic as a failure of the response. Without the task the unit would never answer again, nor become
    /// free.
    async fn survive(&mut self, stamp: AnswerStamp, outcome: std::thread::Result<Result<(), Stale>>) {
        // A stale answer needs no report.
        if outcome.is_err() {
            tracing::error!(unit = %self.id, "language model task panicked, its response fails");
            let (code, detail) = (FailureCode::StagePanicked, TextChunk::split("").0);
            let failed = AnswerIn::Event(AnswerEvent::Failed { code, detail });
            let _ = self.hand_on_all(stamp, [failed].into()).await;
        }
    }

    /// Sends a text that is complete, clause by clause.
    async fn speak(&mut self, stamp: AnswerStamp, text: &str) -> Result<(), Stale> {
        let mut voice = SpokenClauses::default();
        let clauses = [voice.push(text), voice.finish()].concat();
        let mut waiting = VecDeque::from(clause_items(&clauses));
        let (finish, usage) = (FinishReason::Stop, TokenUsage::default());
        waiting.push_back(AnswerIn::Event(AnswerEvent::End { finish, usage }));
        self.hand_on_all(stamp, waiting).await
    }

    /// Pushes as many items as the ring has room for. The task is woken when there is room for the rest.
    fn hand_on(&mut self, stamp: AnswerStamp, waiting: &mut VecDeque<AnswerIn>) -> Result<(), Stale> {
        if stamp.is_stale(self.unit) {
            return Err(Stale);
        }
        while !waiting.is_empty() && self.port.answer_in.has_room_or_ring(1) {
            let item = waiting.pop_front().expect("it is not empty");
            self.port.answer_in.push(stamp, item).expect("there is room, and only this task pushes");
        }
        Ok(())
    }

    async fn hand_on_all(
        &mut self,
        stamp: AnswerStamp,
        mut waiting: VecDeque<AnswerIn>,
    ) -> Result<(), Stale> {
        loop {
            self.hand_on(stamp, &mut waiting)?;
            if waiting.is_empty() {
                return Ok(());
            }
            self.wakers.llm(self.id).notified().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_at_the_start_of_an_answer_is_not_read_out() {
        for (answer, expected) in
            [("# Results\nAll is well.", ["Results", "All is well."]), ("* One.\n* Two.", ["One.", "Two."])]
        {
            let mut clauses = SpokenClauses::default();
            let spoken = [clauses.push(answer), clauses.finish()].concat();
            assert_eq!(spoken, expected);
        }
    }

    #[test]
    fn pieces_fit_and_lose_nothing() {
        for text in ["", "short", &"word ".repeat(300), &"x".repeat(1_000), &"é".repeat(700), " lead"] {
            let pieces: Vec<_> = pieces(text).collect();
            assert_eq!(pieces.concat(), text);
            assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.len() <= CLAUSE_BYTES_MAX));
        }
    }
}
