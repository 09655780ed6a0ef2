//! Messages that wait for a client's socket.

use std::collections::VecDeque;

use axum::extract::ws::Message;
use bytes::Bytes;

/// Number of messages at which a backlog is full.
const MESSAGES_MAX: usize = 256;

/// Bytes at which a backlog is full. The answer to a client's message may repeat its megabyte.
const BYTES_MAX: usize = 1_024 * 1_024;

/// Messages that have not been handed to the socket, oldest first; of audio at most one delta.
///
/// A full backlog takes more messages, but the connection reads nothing from the client while the backlog is full.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    messages: VecDeque<Message>,
    /// Bytes of text in `messages`.
    bytes: usize,
}

impl Backlog {
    /// Appends a text message.
    pub(super) fn push(&mut self, text: String) {
        self.bytes += text.len();
        self.messages.push_back(Message::Text(text.into()));
    }

    /// Appends a ping without a payload.
    pub(super) fn push_ping(&mut self) {
        self.messages.push_back(Message::Ping(Bytes::new()));
    }

    /// Takes the oldest message.
    pub(super) fn pop(&mut self) -> Option<Message> {
        let message = self.messages.pop_front()?;
        if let Message::Text(text) = &message {
            self.bytes -= text.len();
        }
        Some(message)
    }

    /// Returns true if no message waits.
    pub(super) fn is_empty(&self) -> bool {
        self.messages.is_empty()
    }

    /// Returns true if the client's own messages should wait.
    pub(super) fn is_full(&self) -> bool {
        self.messages.len() >= MESSAGES_MAX || self.bytes >= BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backlog_is_full_of_messages_or_of_bytes_until_they_are_taken() {
        let mut backlog = Backlog::default();
        for _ in 1..MESSAGES_MAX {
            backlog.push("x".to_owned());
        }
        assert!(!backlog.is_full());
        backlog.push_ping();
        assert!(backlog.is_full());
        while backlog.pop().is_some() {}
        assert!(backlog.is_empty() && !backlog.is_full());
        backlog.push("x".repeat(BYTES_MAX));
        assert!(backlog.is_full());
        assert!(matches!(backlog.pop(), Some(Message::Text(_))));
        assert!(!backlog.is_full());
    }
}
