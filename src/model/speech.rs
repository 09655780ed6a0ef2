//! A synthesised clause on its way out.

use crate::audio::SampleRate;

/// Origin of the samples of a [`Speech`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpeechSource {
    /// The samples are in [`Speech::pcm`].
    Pcm,
    /// Fake stages only: `remaining` samples of one value, at the session's own rate.
    Constant {
        /// Value of every sample.
        value: i16,
        /// Samples still to come.
        remaining: u64,
        /// Multiple of real time at which the samples are released; 0: at once.
        pace: f32,
        /// If true, the first 8 bytes of each frame are `CLOCK_MONOTONIC` in nanoseconds, little endian.
        stamp: bool,
    },
}

/// A synthesised clause on its way out. Lives in the unit, so that a worker never waits for a slow reader.
#[derive(Debug)]
pub struct Speech {
    /// Samples `-1.0..=1.0`; the capacity is fixed at start ([`crate::limits::CLAUSE_SAMPLES_MAX`]).
    pub pcm: Vec<f32>,
    /// Rate of `pcm`.
    pub rate: SampleRate,
    /// Origin of the samples.
    pub source: SpeechSource,
}
