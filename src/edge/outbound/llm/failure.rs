//! Failed calls of a language model as failures of an answer.

use crate::edge::outbound::http::CallError;
use crate::message::{AnswerEvent, FailureCode, TextChunk};

/// Returns the code of the failure, as sent through a ring.
#[must_use]
pub fn failure_code(error: &CallError) -> FailureCode {
    match error {
        CallError::Setup(_) | CallError::Unreachable(_) => FailureCode::LlmUnreachable,
        CallError::Status { status, .. } => FailureCode::LlmStatus(*status),
        CallError::Timeout(_) => FailureCode::LlmFirstTokenTimeout,
        CallError::Stalled(_) => FailureCode::LlmStalled,
        CallError::Broken(_) => FailureCode::LlmBrokenStream,
    }
}

/// Returns the first words of the server's own message, for the client; without one, a description of the failure.
#[must_use]
pub fn failure_detail(error: &CallError) -> String {
    match error {
        CallError::Setup(message) | CallError::Broken(message) | CallError::Status { message, .. } => {
            message.clone()
        }
        CallError::Unreachable(_) => "the language model server cannot be reached".to_owned(),
        CallError::Timeout(limit) => {
            format!("the language model sent no token within {} ms", limit.as_millis())
        }
        CallError::Stalled(limit) => {
            format!("the language model stopped: no token for {} ms", limit.as_millis())
        }
    }
}

/// Makes the event that ends the answer.
#[must_use]
pub fn failure_event(error: &CallError) -> AnswerEvent {
    AnswerEvent::Failed { code: failure_code(error), detail: TextChunk::split(&failure_detail(error)).0 }
}
