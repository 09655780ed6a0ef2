//! A completion as it is asked for, and the work on it.

use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::token::LlamaToken;

use super::sampling::{Sampler, Sampling};
use super::text::TextAssembler;
use crate::message::Caller;

/// Where a completion goes, implemented by whoever serves it. Called by the engine's thread; must not block.
pub trait CompletionSink: Send {
    /// Whether nobody reads any more. Asked before every step; the work is dropped then.
    fn is_closed(&self) -> bool;
    /// Text of the answer, never empty, whole characters.
    fn text(&mut self, text: String);
    /// The completion waits for its next turn. Called every few steps, never before the first token.
    fn waiting(&mut self);
    /// The answer is complete; the last call.
    fn done(&mut self, end: End, usage: CompletionUsage);
    /// The answer ends in failure; the last call.
    fn failed(&mut self, message: &str);
}

/// One completion to make.
pub struct Completion {
    /// The session that asks; `None`: no session.
    pub caller: Option<Caller>,
    /// The prompt; not empty and shorter than the context of a slot.
    pub prompt: Vec<LlamaToken>,
    /// How tokens are chosen.
    pub sampling: Sampling,
    /// Grammar that the answer is held to, in llama.cpp's notation, its root named `root`.
    pub grammar: Option<String>,
    /// How long it may become.
    pub limit: Limit,
    /// Where it goes.
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

/// How long a completion may become, tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// It is cut here.
    pub hard: u32,
    /// From here on it ends with the sentence.
    pub soft: Option<u32>,
}

/// How a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The model was done, or its sentence was at the soft limit.
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

/// A completion in the works.
pub(super) struct Work {
    /// Number that no other completion of the engine has.
    pub(super) id: u64,
    /// Prompt and answer so far. The sequences know how many of them are in the context.
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
    /// Prepares the work on `completion`. If the grammar is none, the sink is told and there is no work.
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

    /// Returns true if nothing is left to do: the sink has had its last call, or nobody reads any more.
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

    /// Takes the bytes of a chosen token; returns the end if the completion has reached it.
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

/// Whether a piece of text ends a sentence, a list item or a paragraph.
fn ends_sentence(piece: &str) -> bool {
    piece.contains('\n')
        || piece.trim_end_matches(['"', '\'', '”', '’', ')', ' ']).ends_with(['.', '!', '?', '…', '。'])
}

/// A number of tokens as it travels; the context is far shorter.
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
