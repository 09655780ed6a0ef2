//! A synthesised clause on its way out.

use crate::audio::SampleRate;

/// How the samples of a [`Speech`] come to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpeechSource {
    /// They are in [`Speech::pcm`].
    Pcm,
    /// Fake stages only: `remaining` samples of one value, at the session's own rate.
    Constant {
        /// The value.
        value: i16,
        /// Samples still to come.
        remaining: u64,
        /// Release at this multiple of real time; 0: at once.
        pace: f32,
        /// Overwrite the first 8 bytes of each frame with `CLOCK_MONOTONIC` in nanoseconds, little endian.
        stamp: bool,
    },
}

/// One synthesised clause on its way out. Belongs to the unit, so that a worker never waits for a slow reader.
#[derive(Debug)]
pub struct Speech {
    /// Samples `-1.0..=1.0`; the capacity is fixed at start ([`crate::limits::CLAUSE_SAMPLES_MAX`]).
    pub pcm: Vec<f32>,
    /// Rate of `pcm`.
    pub rate: SampleRate,
    /// Where the samples come from.
    pub source: SpeechSource,
}
