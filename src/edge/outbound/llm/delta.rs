//! The steps of a completion.

use crate::message::{AnswerEvent, CallPiece, FinishReason, RateLimits, TextChunk, TokenUsage, text_chunks};

/// One step of a completion, as it comes out of a [`ChatStream`](super::ChatStream).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatDelta {
    /// Text of the answer, never empty, never cut inside a character.
    Text(String),
    /// The model is thinking; its thoughts are not passed on.
    Reasoning,
    /// A function call begins; the text before it is complete. Calls come one after the other, in the order in which
    /// the model began them, also if the server interleaves them.
    Call {
        /// Name of the function.
        name: String,
    },
    /// A piece of the JSON arguments of the call that has begun, never empty. A call has at least one: `{}` if the
    /// model wrote nothing.
    Arguments(String),
    /// The call that has begun is whole. This step is missing if the answer was cut in the middle of the call.
    CallEnd,
    /// Rate limits of the server; they come before everything else.
    RateLimits(RateLimits),
    /// The answer is complete. Nothing follows.
    Done {
        /// End of the answer.
        finish: FinishReason,
        /// Usage of the answer; zeros if the server reports none.
        usage: TokenUsage,
    },
}

impl ChatDelta {
    /// Cuts the step into events of the answer. Thoughts give none.
    #[must_use]
    pub fn events(&self) -> Vec<AnswerEvent> {
        match self {
            Self::Text(text) => {
                let chunks = text_chunks(text).filter(|(chunk, _)| !chunk.as_str().is_empty());
                chunks.map(|(chunk, _)| AnswerEvent::Text(chunk)).collect()
            }
            Self::Reasoning => Vec::new(),
            Self::Call { name } => vec![AnswerEvent::Call(CallPiece::Name(TextChunk::split(name).0))],
            Self::Arguments(json) => {
                text_chunks(json).map(|(chunk, _)| AnswerEvent::Call(CallPiece::Arguments(chunk))).collect()
            }
            Self::CallEnd => vec![AnswerEvent::Call(CallPiece::End)],
            Self::RateLimits(limits) => vec![AnswerEvent::RateLimits(*limits)],
            Self::Done { finish, usage } => vec![AnswerEvent::End { finish: *finish, usage: *usage }],
        }
    }
}
