//! The outputs of a session, in order.

use std::collections::VecDeque;

use crate::protocol::{AudioDelta, ServerEvent};

use super::{Command, Output};

/// Events and commands, oldest first.
#[derive(Debug, Default)]
pub(super) struct Outbox(VecDeque<Output>);

impl Outbox {
    pub(super) fn send(&mut self, event: ServerEvent) {
        self.0.push_back(Output::Send(event));
    }

    pub(super) fn audio(&mut self, delta: AudioDelta) {
        self.0.push_back(Output::Audio(delta));
    }

    pub(super) fn command(&mut self, command: Command) {
        self.0.push_back(Output::Command(command));
    }

    pub(super) fn pop(&mut self) -> Option<Output> {
        self.0.pop_front()
    }
}
