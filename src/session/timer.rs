//! All timers of a session: one enum, one table.

use crate::message::Moment;

/// A timer of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Timer {
    /// The session has lasted as long as it may.
    SessionEnd,
    /// Speech is open and the client has stopped sending audio.
    MicrophoneGap,
    /// The user and the model have been silent since the last answer was played.
    Idle,
}

impl Timer {
    const COUNT: usize = 3;
    const ALL: [Self; Self::COUNT] = [Self::SessionEnd, Self::MicrophoneGap, Self::Idle];
}

/// The moments at which the timers are due.
#[derive(Clone, Debug, Default)]
pub(super) struct Timers {
    due: [Option<Moment>; Timer::COUNT],
}

impl Timers {
    /// Sets `timer` to `due`, or moves it there.
    pub(super) const fn set(&mut self, timer: Timer, due: Moment) {
        self.due[timer as usize] = Some(due);
    }

    pub(super) const fn stop(&mut self, timer: Timer) {
        self.due[timer as usize] = None;
    }

    /// Returns the earliest moment at which a timer is due.
    pub(super) fn next(&self) -> Option<Moment> {
        self.due.iter().flatten().min().copied()
    }

    /// Stops and returns one timer that is due at `now`.
    pub(super) fn take_due(&mut self, now: Moment) -> Option<Timer> {
        let timer =
            Timer::ALL.into_iter().find(|&timer| self.due[timer as usize].is_some_and(|due| due <= now))?;
        self.stop(timer);
        Some(timer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_timer_is_next_and_each_comes_once() {
        let mut timers = Timers::default();
        assert_eq!(timers.next(), None);
        timers.set(Timer::SessionEnd, Moment::from_nanos(9));
        timers.set(Timer::MicrophoneGap, Moment::from_nanos(5));
        assert_eq!(timers.next(), Some(Moment::from_nanos(5)));
        assert_eq!(timers.take_due(Moment::from_nanos(4)), None);
        assert_eq!(timers.take_due(Moment::from_nanos(5)), Some(Timer::MicrophoneGap));
        assert_eq!(timers.take_due(Moment::from_nanos(5)), None);
        timers.stop(Timer::SessionEnd);
        assert_eq!(timers.next(), None);
    }
}
