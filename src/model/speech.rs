//! A clause on its way from text to sound.

use crate::audio::SampleRate;

/// Origin of the samples of a clause.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SpeechSource {
    /// The model makes the samples, piece by piece.
    Model,
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

/// A clause on its way from text to sound. Lives in the unit, so that the clauses of several callers are under way at
/// once, whichever worker makes their next piece.
#[derive(Debug)]
pub struct Speech {
    /// Text of the clause; once the model has begun, the rest in the model's own notation.
    pub text: String,
    /// Work of the model that is not sound yet: latent frames, or samples. The capacity is fixed at start.
    pub made: Vec<f32>,
    /// Latent frames, or samples, of `made` that have become sound.
    pub taken: usize,
    /// Length of the sounds, as a multiple of the voice's own.
    pub stretch: f32,
    /// True once the clause has made a sound: silence before the first one is left out.
    pub has_sound: bool,
    /// Rate of the samples.
    pub rate: SampleRate,
    /// Origin of the samples.
    pub source: SpeechSource,
}

impl Speech {
    /// Creates an empty clause with room for `text_bytes` of text and `made` numbers of the model.
    #[must_use]
    pub fn new(text_bytes: usize, made: usize, rate: SampleRate) -> Self {
        Self {
            text: String::with_capacity(text_bytes),
            made: Vec::with_capacity(made),
            taken: 0,
            stretch: 1.0,
            has_sound: false,
            rate,
            source: SpeechSource::Model,
        }
    }

    /// Drops the clause.
    pub fn clear(&mut self) {
        self.text.clear();
        self.drop_made();
        self.has_sound = false;
        self.source = SpeechSource::Model;
    }

    /// Drops the work of the model that is not sound yet.
    pub fn drop_made(&mut self) {
        self.made.clear();
        self.taken = 0;
    }
}
