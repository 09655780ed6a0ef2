//! Why a completion failed.

use std::time::Duration;

use crate::message::FailureCode;

/// Why a completion failed. Each variant says what was found; [`ChatError::code`] is its form for a ring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChatError {
    /// The configuration of the endpoint cannot be used.
    #[error("{0}")]
    Setup(String),
    /// No connection within the time-out, refused, or no trust in the certificate.
    #[error("the language model server cannot be reached: {0}")]
    Unreachable(String),
    /// An HTTP status other than 200.
    #[error("the language model server answered {status}: {message}")]
    Status {
        /// The status.
        status: u16,
        /// The server's own words, or the status's name.
        message: String,
        /// What a `Retry-After` header in seconds asks for.
        retry_after: Option<Duration>,
    },
    /// No token within the time-out.
    #[error("the language model sent no token within {} ms", .0.as_millis())]
    FirstTokenTimeout(Duration),
    /// No further token within the time-out.
    #[error("the language model stopped: no token for {} ms", .0.as_millis())]
    Stalled(Duration),
    /// The stream ended before the answer did, or is not what the API says.
    #[error("the language model's stream broke: {0}")]
    Broken(String),
}

impl ChatError {
    /// The failure as it travels in a ring.
    #[must_use]
    pub fn code(&self) -> FailureCode {
        match self {
            Self::Setup(_) | Self::Unreachable(_) => FailureCode::LlmUnreachable,
            Self::Status { status, .. } => FailureCode::LlmStatus(*status),
            Self::FirstTokenTimeout(_) => FailureCode::LlmFirstTokenTimeout,
            Self::Stalled(_) => FailureCode::LlmStalled,
            Self::Broken(_) => FailureCode::LlmBrokenStream,
        }
    }

    /// The first words of the server's own message, for the client; where it said nothing, what happened. Never holds
    /// the key or the address.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Setup(message) | Self::Broken(message) | Self::Status { message, .. } => message.clone(),
            Self::Unreachable(_) => "the language model server cannot be reached".to_owned(),
            Self::FirstTokenTimeout(_) | Self::Stalled(_) => self.to_string(),
        }
    }
}
