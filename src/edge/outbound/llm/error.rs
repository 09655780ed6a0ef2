//! Errors of an answer that has begun.

use super::sse::EventTooLong;
use crate::edge::outbound::http::{CallError, first_words};

/// Errors after which the rest of an answer is of no use.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum AnswerError {
    /// The server reports an error, in its own words if it has any.
    #[error("{}", .0.as_deref().unwrap_or("the server reported an error"))]
    Reported(Option<String>),
    /// The data of an event does not follow the API.
    #[error("an event that is no {expected} ({problem}): {found}")]
    NoEvent {
        /// Expected kind of data.
        expected: &'static str,
        /// The parser's message.
        problem: String,
        /// First words of the data.
        found: String,
    },
    /// An event of the responses API has no type.
    #[error("an event without a type: {0}")]
    NoType(String),
    /// An event is longer than the limit.
    #[error(transparent)]
    TooLong(#[from] EventTooLong),
    /// There are more calls in one answer than this limit.
    #[error("more than {0} function calls")]
    Calls(usize),
    /// The calls of one answer have more bytes than this limit.
    #[error("more than {0} bytes of function calls")]
    CallBytes(usize),
    /// A call ended before its function was named.
    #[error("a function call without the function's name")]
    NamelessCall,
}

impl AnswerError {
    /// Makes the error for `data` that is not what was `expected`.
    pub(super) fn no_event(expected: &'static str, problem: &serde_json::Error, data: &[u8]) -> Self {
        Self::NoEvent { expected, problem: problem.to_string(), found: first_words(data) }
    }
}

impl From<AnswerError> for CallError {
    fn from(error: AnswerError) -> Self {
        Self::Broken(error.to_string())
    }
}
