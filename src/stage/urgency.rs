//! The order of model calls.

use crate::message::Moment;

/// Reason for a model call, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CallClass {
    /// The user is speaking, or may be: a window for the detector.
    Window,
    /// An answer whose first sound somebody waits for.
    FirstSound,
    /// An utterance that has ended: its answer waits for the words.
    Transcript,
    /// More of an answer that somebody listens to.
    Voice,
}

/// Place of a model call in the order: by class, then by moment.
///
/// The moment is the time of the request where somebody waits from then on, so that equals are served in turn. For
/// [`CallClass::Voice`] the moment is the one at which the listener runs out of audio, so that whoever has less left comes
/// first, and an answer that is far ahead of its listener gives way to all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Urgency {
    class: CallClass,
    moment: Moment,
}

impl Urgency {
    /// Creates the place of a call of `class` at `moment`.
    #[must_use]
    pub const fn new(class: CallClass, moment: Moment) -> Self {
        Self { class, moment }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_class_decides_and_then_the_moment() {
        let at = |class, seconds: u64| Urgency::new(class, Moment::from_nanos(seconds * 1_000_000_000));
        let mut calls = [
            at(CallClass::Voice, 1),
            at(CallClass::Transcript, 9),
            at(CallClass::Voice, 0),
            at(CallClass::FirstSound, 8),
            at(CallClass::Window, 9),
            at(CallClass::FirstSound, 7),
        ];
        calls.sort_unstable();
        let expected = [
            at(CallClass::Window, 9),
            at(CallClass::FirstSound, 7),
            at(CallClass::FirstSound, 8),
            at(CallClass::Transcript, 9),
            at(CallClass::Voice, 0),
            at(CallClass::Voice, 1),
        ];
        assert_eq!(calls, expected);
    }
}
