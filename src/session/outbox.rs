//! What a session wants done, in order.

use std::collections::VecDeque;

use crate::protocol::ServerEvent;

use super::{Command, Output};

/// Events and commands, oldest first.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<Output>);

impl Outbox {
    pub(super) fn send(&mut self, event: ServerEvent) {
        self.0.push_back(Output::Send(event));
    }

    pub(super) fn command(&mut self, command: Command) {
        self.0.push_back(Output::Command(command));
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.0.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
