//! Errors of calls to other servers.

use std::time::Duration;

use serde_json::Value;

/// Longest message of a server that is passed on, characters.
const MESSAGE_CHARS_MAX: usize = 200;

/// Errors of a call. Each variant describes what was found, and never holds the key or the address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The client cannot be made, or the request cannot be written.
    #[error("{0}")]
    Setup(String),
    /// There is no connection within the time-out, or it is refused, or the certificate is not trusted.
    #[error("the server cannot be reached: {0}")]
    Unreachable(String),
    /// An HTTP status other than 200.
    #[error("the server answered {status}: {message}")]
    Status {
        /// HTTP status.
        status: u16,
        /// The server's own words, or the status's name.
        message: String,
    },
    /// Nothing came within the time-out.
    #[error("the server sent nothing within {} ms", .0.as_millis())]
    Timeout(Duration),
    /// Something came, and nothing more within the time-out.
    #[error("the server stopped: nothing for {} ms", .0.as_millis())]
    Stalled(Duration),
    /// The answer ended early, or does not follow the API.
    #[error("the server's answer broke off or is wrong: {0}")]
    Broken(String),
}

/// Finds the server's own words in the body of an error response: `error.message`, `error`, `message` or `detail` of a JSON
/// object, or the first words of anything else; `None` for an empty body.
pub(super) fn error_message(body: &[u8]) -> Option<String> {
    match serde_json::from_slice::<Value>(body) {
        Ok(value) => error_text(value.get("error").unwrap_or(&value)).or_else(|| error_text(&value)),
        Err(_) => Some(first_words(body)).filter(|words| !words.is_empty()),
    }
}

/// Finds the message of an error object, or the object itself if it is a string.
pub(in crate::edge::outbound) fn error_text(error: &Value) -> Option<String> {
    let text = error
        .as_str()
        .or_else(|| ["message", "detail"].iter().find_map(|name| error.get(name).and_then(Value::as_str)))?;
    Some(first_words(text.as_bytes())).filter(|words| !words.is_empty())
}

/// Cuts the first characters out of `text`, on one line.
pub(in crate::edge::outbound) fn first_words(text: &[u8]) -> String {
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
