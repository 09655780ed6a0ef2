//! Liveness of a client's socket: clients that do not read, and clients that do not answer.
//!
//! Pure: time is an argument.

use std::time::Duration;

use crate::limits::{PING_MS, SLOW_READER_MS_MAX};
use crate::message::Moment;

/// Pings without any message from the client after which the client counts as dead.
const PINGS_UNANSWERED_MAX: u64 = 3;

/// Reasons to give up a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Dead {
    /// The socket has not taken a write for [`SLOW_READER_MS_MAX`].
    SlowReader,
    /// No message has come for [`PINGS_UNANSWERED_MAX`] pings.
    Silent,
}

impl Dead {
    /// Returns the reason, for the log.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::SlowReader => "client does not read",
            Self::Silent => "client is silent",
        }
    }
}

/// Result of [`Liveness::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pulse {
    /// Nothing is due.
    Steady,
    /// A ping is due.
    Ping,
    /// The connection is to be closed.
    Dead(Dead),
}

/// Times of a socket's last signs of life.
#[derive(Debug)]
pub(super) struct Liveness {
    /// Start of the write that the socket has not taken yet; `None`: all is taken.
    writing_since: Option<Moment>,
    /// Arrival of the client's last message.
    heard_at: Moment,
    /// Time of the next ping.
    ping_at: Moment,
}

impl Liveness {
    /// Makes the state of a socket that has just been opened.
    pub(super) fn new(now: Moment) -> Self {
        Self { writing_since: None, heard_at: now, ping_at: now + Duration::from_millis(PING_MS) }
    }

    /// Returns true if the socket has not taken all that was written.
    pub(super) const fn is_writing(&self) -> bool {
        self.writing_since.is_some()
    }

    /// Notes the beginning of a write. An older write that is still going on counts from its own start.
    pub(super) fn begin_write(&mut self, now: Moment) {
        self.writing_since.get_or_insert(now);
    }

    /// Notes that the socket has taken everything.
    pub(super) const fn end_write(&mut self) {
        self.writing_since = None;
    }

    /// Notes a message of the client.
    pub(super) const fn hear(&mut self, now: Moment) {
        self.heard_at = now;
    }

    /// Returns the time at which [`Liveness::check`] finds something, if nothing happens before.
    pub(super) fn next_timeout(&self) -> Moment {
        let slow_at = self.writing_since.map(|since| since + Duration::from_millis(SLOW_READER_MS_MAX));
        slow_at.map_or(self.ping_at, |slow_at| slow_at.min(self.ping_at))
    }

    /// Compares the time-outs with `now`. After [`Pulse::Ping`] the next ping is due [`PING_MS`] later.
    pub(super) fn check(&mut self, now: Moment) -> Pulse {
        let slow = Duration::from_millis(SLOW_READER_MS_MAX);
        if self.writing_since.is_some_and(|since| now.since(since) >= slow) {
            return Pulse::Dead(Dead::SlowReader);
        }
        if now < self.ping_at {
            return Pulse::Steady;
        }
        if now.since(self.heard_at) > Duration::from_millis(PINGS_UNANSWERED_MAX * PING_MS) {
            return Pulse::Dead(Dead::Silent);
        }
        self.ping_at = now + Duration::from_millis(PING_MS);
        Pulse::Ping
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Moment {
        Moment::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn a_client_that_answers_is_pinged_and_stays() {
        let mut liveness = Liveness::new(at(0));
        for ping in 1..100 {
            let due = at(ping * PING_MS);
            assert_eq!(liveness.next_timeout(), due);
            assert_eq!(liveness.check(at(ping * PING_MS - 1)), Pulse::Steady);
            assert_eq!(liveness.check(due), Pulse::Ping);
            liveness.hear(due);
        }
    }

    #[test]
    fn a_client_that_answers_no_ping_is_dead() {
        let mut liveness = Liveness::new(at(0));
        for ping in 1..=PINGS_UNANSWERED_MAX {
            assert_eq!(liveness.check(at(ping * PING_MS)), Pulse::Ping);
        }
        let next = liveness.next_timeout();
        assert_eq!(liveness.check(next), Pulse::Dead(Dead::Silent));
    }

    #[test]
    fn a_client_that_does_not_read_is_dead_and_a_later_write_gives_it_no_more_time() {
        let mut liveness = Liveness::new(at(0));
        liveness.begin_write(at(10));
        liveness.hear(at(SLOW_READER_MS_MAX));
        liveness.begin_write(at(SLOW_READER_MS_MAX));
        assert_eq!(liveness.check(at(SLOW_READER_MS_MAX + 9)), Pulse::Steady);
        assert_eq!(liveness.check(at(SLOW_READER_MS_MAX + 10)), Pulse::Dead(Dead::SlowReader));
        liveness.end_write();
        assert!(!liveness.is_writing());
        assert_eq!(liveness.check(at(SLOW_READER_MS_MAX + 10)), Pulse::Steady);
    }
}
