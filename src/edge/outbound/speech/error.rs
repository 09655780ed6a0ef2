//! Why a speech server did not do what it was asked for.

use std::time::Duration;

/// Why a transcription or a synthesis failed. Each variant says what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SpeechError {
    /// No connection within the time-out, refused, or no trust in the certificate.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// An HTTP status other than 200.
    #[error("the server answered {status}: {message}")]
    Status {
        /// The status.
        status: u16,
        /// The server's own words, or the status's name.
        message: String,
    },
    /// Nothing came within the time-out.
    #[error("the server sent nothing within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// The answer ended early or is not what the API says.
    #[error("the server's answer broke off or is wrong: {0}")]
    Broken(String),
}

impl SpeechError {
    /// The first words of the server's own message, for the client; where it said nothing, what happened. Never holds
    /// the key or the address.
    #[must_use]
    pub fn detail(&self) -> String {
        match self {
            Self::Unreachable(_) => "the server cannot be reached".to_owned(),
            Self::Status { .. } | Self::Timeout(_) | Self::Broken(_) => self.to_string(),
        }
    }
}
