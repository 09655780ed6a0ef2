//! Why a completion failed.

use std::time::Duration;

use serde_json::Value;

use crate::message::FailureCode;

/// Longest message of a server that is passed on, characters.
const MESSAGE_CHARS_MAX: usize = 200;

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

/// The server's own words in the body of an error response: `error.message`, `error`, `message` or `detail` of a JSON
/// object, or the first words of anything else; `None` for an empty body.
pub(in crate::edge) fn error_message(body: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => error_text(value.get("error").unwrap_or(&value)).or_else(|| error_text(&value)),
        Err(_) => Some(first_words(body)).filter(|words| !words.is_empty()),
    }
}

/// The message of an error object, or the object itself if it is a string.
pub(super) fn error_text(error: &Value) -> Option<String> {
    let text = error
        .as_str()
        .or_else(|| ["message", "detail"].iter().find_map(|name| error.get(name).and_then(Value::as_str)))?;
    Some(first_words(text.as_bytes())).filter(|words| !words.is_empty())
}

/// The first characters of `text` on one line.
pub(super) fn first_words(text: &[u8]) -> String {
    let start = &text[..text.len().min(4 * MESSAGE_CHARS_MAX)];
    let line = String::from_utf8_lossy(start).split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MESSAGE_CHARS_MAX) {
        Some((cut, _)) => format!("{}…", &line[..cut]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_bodies_of_many_servers() {
        for (body, expected) in [
            (r#"{"error":{"message":"no such model","type":"x"}}"#, Some("no such model")),
            (r#"{"error":"model not found"}"#, Some("model not found")),
            (r#"{"object":"error","message":"too long"}"#, Some("too long")),
            (r#"{"detail":"Unauthorized"}"#, Some("Unauthorized")),
            ("upstream\r\n  timed out\n", Some("upstream timed out")),
            ("", None),
            ("{}", None),
        ] {
            assert_eq!(error_message(body.as_bytes()).as_deref(), expected, "{body}");
        }
        let long = error_message("é".repeat(5_000).as_bytes()).expect("words");
        assert_eq!(long.chars().count(), MESSAGE_CHARS_MAX + 1);
    }
}
