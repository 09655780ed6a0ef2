//! The client's timer, which wakes at absolute moments to some ten microseconds. Tokio's own timers count in
//! milliseconds.

use std::time::Duration;

use antiphon::door::clock;
use antiphon::door::message::Moment;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::net::unix::pipe::Receiver;

/// One timer of the kernel, for one task. To Tokio the timer is a descriptor that becomes readable, as a pipe does.
#[derive(Debug)]
pub(crate) struct Pacer(Receiver);

impl Pacer {
    /// Creates a timer that is not set.
    pub(crate) fn new() -> std::io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self(Receiver::from_owned_fd_unchecked(timer)?))
    }

    /// Waits until `at`; returns the lateness of the wake-up. Even if `at` is past, the other tasks get their turn.
    pub(crate) async fn until(&self, at: Moment) -> std::io::Result<Duration> {
        if clock::now() >= at {
            tokio::task::yield_now().await;
            return Ok(clock::now().since(at));
        }
        let nanos = at.nanos();
        let value = Timespec {
            tv_sec: (nanos / 1_000_000_000)
                .try_into()
                .expect("the clock counts from the start of the machine"),
            tv_nsec: (nanos % 1_000_000_000).try_into().expect("less than a second"),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(&self.0, TimerfdTimerFlags::ABSTIME, &once)?;
        loop {
            self.0.readable().await?;
            let mut expirations = [0; 8];
            match self.0.try_read(&mut expirations) {
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                read => return read.map(|_| clock::now().since(at)),
            }
        }
    }
}
