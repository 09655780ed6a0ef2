//! The cost of an answer.

use super::ids::AnswerStamp;

/// Tokens of one completion, as the language model server counts them; 0 if the server does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub input: u32,
    /// Tokens of the prompt that were in the server's cache.
    pub input_cached: u32,
    /// Tokens of the completion.
    pub output: u32,
}

/// The cost of an answer, from the language model's task to the session by triple buffer, ahead of the answer in the
/// rings. An answer that is broken off between its last token and its last audio has its full cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// Stamp of the answer.
    pub stamp: AnswerStamp,
    /// Cost of the answer.
    pub usage: TokenUsage,
}
