//! The clock of the engine. Stamps, deadlines and measurements of a session read the time here. Time-outs of HTTP calls
//! and of the child process use the runtime's own clock; `tests/tidy` lists these places.

use crate::message::Moment;

/// Returns the present time of the monotonic clock.
#[must_use]
pub fn now() -> Moment {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u64::try_from(time.tv_nsec).unwrap_or(0);
    Moment::from_nanos(seconds * 1_000_000_000 + nanos)
}
