//! The cost of an answer.

use super::ids::AnswerStamp;

/// Tokens of one completion, as the language model server counts them; 0 when it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub input: u32,
    /// Of these, tokens that were in the server's cache.
    pub input_cached: u32,
    /// Tokens of the completion.
    pub output: u32,
}

/// Language model → session, by triple buffer, ahead of the answer in the rings: the cost of an answer. An answer that is
/// broken off after its last token and before its last audio has cost as much.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// The answer.
    pub stamp: AnswerStamp,
    /// Its cost.
    pub usage: TokenUsage,
}
