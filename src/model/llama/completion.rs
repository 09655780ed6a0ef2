//! A completion as the caller requests it, and the work on it.

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::sampling::{Sampler, Sampling};
use super::text::TextAssembler;
use crate::message::Caller;

/// The receiver of a completion. The engine's thread calls the methods; they must not block.
pub trait CompletionSink: Send {
    /// Returns true if the reader of the completion is gone. Called before every step; the work is dropped
    /// then.
    fn is_closed(&self) -> bool;
    /// Receives text of the answer: never empty, whole characters.
    fn text(&mut self, text: String);
    /// Reports that the completion waits for its next turn. Called every few steps, never before the first
    /// token.
    fn waiting(&mut self);
    /// Reports that the answer is complete; the last call.
    fn done(&mut self, end: End, usage: CompletionUsage);
    /// Reports that the answer has failed; the last call.
    fn failed(&mut self, message: &str);
}

/// One completion to make.
pub struct Completion {
    /// The session that asks; `None` for a caller without a session.
    pub caller: Option<Caller>,
    /// The prompt; not empty and shorter than the context of a slot.
    pub prompt: Vec<LlamaToken>,
    /// Parameters of the choice of tokens.
    pub sampling: Sampling,
    /// Grammar of the answer, in llama.cpp's notation, with the root `root`; `None`: free text.
    pub grammar: Option<String>,
    /// Limits on the length of the answer.
    pub limit: Limit,
    /// Receiver of the answer.
    pub sink: Box<dyn CompletionSink>,
}

impl std::fmt::Debug for Completion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Completion")
            .field("caller", &self.caller)
            .field("prompt_tokens", &self.prompt.len())
            .field("sampling", &self.sampling)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}

/// Limits on the length of a completion, tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// The completion is cut at this length.
    pub hard: u32,
    /// From this length on the completion ends with its sentence; `None`: no such limit.
    pub soft: Option<u32>,
}

/// Reason for the end of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The model ended its answer, or a sentence ended at or after the soft limit.
    Stop,
    /// The hard limit or the end of the context was reached.
    Length,
}

/// Tokens of one completion.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompletionUsage {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Of these, tokens that were in the context already.
    pub cached: u32,
    /// Tokens of the completion, its end mark included.
    pub output: u32,
}

/// A completion under way.
pub(super) struct Work {
    /// Number that no other completion of the engine has.
    pub(super) id: u64,
    /// Prompt and answer so far. [`Sequences`](super::sequences::Sequences) counts the tokens that are in
    /// the context.
    pub(super) tokens: Vec<LlamaToken>,
    pub(super) sink: Box<dyn CompletionSink>,
    pub(super) sampler: Sampler,
    limit: Limit,
    pub(super) usage: CompletionUsage,
    text: TextAssembler,
    /// True once the sink has had its last call.
    pub(super) has_ended: bool,
}

impl Work {
    /// Prepares the work on `completion`. If its grammar is invalid, fails the completion and returns
    /// `None`.
    pub(super) fn new(id: u64, mut completion: Completion, model: &LlamaModel) -> Option<Self> {
        let sampler = match completion.sampling.sampler(model, completion.grammar.as_deref()) {
            Ok(sampler) => sampler,
            Err(error) => {
                completion.sink.failed(&format!("grammar: {error}"));
                return None;
            }
        };
        Some(Self {
            id,
            sampler,
            usage: CompletionUsage { prompt: count(completion.prompt.len()), ..CompletionUsage::default() },
            tokens: completion.prompt,
            sink: completion.sink,
            limit: completion.limit,
            text: TextAssembler::default(),
            has_ended: false,
        })
    }

    /// Returns true if nothing is left to do: the sink has had its last call, or its reader is gone.
    pub(super) fn is_over(&self) -> bool {
        self.has_ended || self.sink.is_closed()
    }

    /// Ends the work.
    pub(super) fn end(&mut self, end: End) {
        self.sink.done(end, self.usage);
        self.has_ended = true;
    }

    /// Ends the work in failure.
    pub(super) fn fail(&mut self, message: &str) {
        self.sink.failed(message);
        self.has_ended = true;
    }

    /// Appends the bytes of a chosen token; returns the end if the completion has reached it.
    pub(super) fn push(&mut self, piece: impl FnOnce(&mut Vec<u8>)) -> Option<End> {
        piece(self.text.buffer());
        let text = self.text.take();
        let ends_sentence = ends_sentence(&text);
        if !text.is_empty() {
            self.sink.text(text);
        }
        if self.limit.soft.is_some_and(|soft| self.usage.output >= soft) && ends_sentence {
            Some(End::Stop)
        } else if self.usage.output >= self.limit.hard {
            Some(End::Length)
        } else {
            None
        }
    }
}

/// Returns true if a piece of text ends a sentence, a list item or a paragraph.
fn ends_sentence(piece: &str) -> bool {
    piece.contains('\n')
        || piece.trim_end_matches(['"', '\'', '”', '’', ')', ' ']).ends_with(['.', '!', '?', '…', '。'])
}

/// Converts a number of tokens to `u32`; the context is far shorter than `u32::MAX`.
pub(super) fn count(tokens: usize) -> u32 {
    u32::try_from(tokens).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::ends_sentence;

    #[test]
    fn sentence_ends() {
        assert!([".", "!\"", "? ", " fun.)", ":\n\n", "。"].into_iter().all(ends_sentence));
        assert!(!["", " word", ",", "\"", "3.5"].into_iter().any(ends_sentence));
    }
}
