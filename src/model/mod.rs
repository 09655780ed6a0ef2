//! Networks and their weights: one module per model, one trait per kind of model (the language model has none).
//!
//! The traits work on samples and text, never on rings or units. Each stage worker owns its own instance, and instances
//! may share their weights. The state of a caller is an argument of each call and is not kept.

mod detector;
pub mod espeak;
pub mod fake;
pub mod graph;
#[cfg(feature = "builtin-llm")]
pub mod llama;
pub mod moonshine;
pub mod ort;
pub mod piper;
pub mod silero_vad;
pub mod smart_turn;
mod speech;

use crate::audio::SampleRate;
use crate::language::Language;

pub use detector::{DETECTOR_CONTEXT, DETECTOR_STATE, DETECTOR_WINDOW, DetectorStream};
pub use speech::{Speech, SpeechSource};

/// Errors of loading or running a model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file that does not exist.
    #[error("{path}: not found ({expected})")]
    Missing {
        /// Path that was tried.
        path: std::path::PathBuf,
        /// Description of the expected file.
        expected: String,
    },
    /// A file with other contents than expected.
    #[error("{path}: found {found}, expected {expected}")]
    Wrong {
        /// Path of the file.
        path: std::path::PathBuf,
        /// Description of the actual contents.
        found: String,
        /// Description of the expected contents.
        expected: String,
    },
    /// The inference library refused or failed.
    #[error("{context}: {message}")]
    Runtime {
        /// Operation that failed.
        context: &'static str,
        /// Text from the library.
        message: String,
    },
    /// The work was given up because its result is no longer needed.
    #[error("stale")]
    Stale,
}

/// Voice activity: the probability of speech for each window of 512 samples at 16 kHz.
///
/// Rows are independent, so windows of different callers go through the network together.
/// Call `load` for rows `0..n`, then `run(n)`, then `store` for the same rows.
pub trait VadModel: Send {
    /// Returns the number of rows that fit one call of [`VadModel::run`].
    fn rows_max(&self) -> usize;
    /// Copies a window and the state of its stream into row `row`.
    fn load(&mut self, row: usize, stream: &DetectorStream, window: &[i16; DETECTOR_WINDOW]);
    /// Scores rows `0..rows`. No heap call on the Rust side.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails; the streams are unchanged.
    fn run(&mut self, rows: usize) -> Result<(), ModelError>;
    /// Writes the new state of row `row` into `stream` and returns the probability of speech, `0.0..=1.0`.
    fn store(&self, row: usize, stream: &mut DetectorStream) -> f32;
}

/// Speech recognition of one utterance.
pub trait SttModel: Send {
    /// Returns the length of the longest utterance that one call takes, in samples at 16 kHz.
    fn samples_max(&self) -> usize;
    /// Writes the words spoken in `audio` (mono, 16 kHz) into `transcript`, which is cleared first. Audio without
    /// speech may give an empty transcript. `stale` is called before each step of the decoder. Returns the language of
    /// the utterance if the model can determine it.
    ///
    /// # Errors
    /// [`ModelError::Stale`] if `stale` returns true, [`ModelError::Runtime`] if the library fails.
    fn transcribe(
        &mut self,
        audio: &[i16],
        stale: &dyn Fn() -> bool,
        transcript: &mut String,
    ) -> Result<Option<Language>, ModelError>;
}

/// Speech synthesis of a clause, piece by piece, so that the first sound is there before the clause is done, and so that
/// a worker serves several callers in turn.
///
/// The state of the clause is in `speech` and not in the model: another instance may make the next piece.
pub trait TtsModel: Send {
    /// Begins the clause whose text is in `speech.text`. A `speed` of 1.0 is the voice's own pace. `session_rate` is for
    /// models without a rate of their own (the fake). Text without anything to speak is no error.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    fn begin(&mut self, speed: f32, session_rate: SampleRate, speech: &mut Speech) -> Result<(), ModelError>;

    /// Makes the next piece of the clause and passes its samples, at most
    /// [`PIECE_SAMPLES_MAX`](crate::limits::PIECE_SAMPLES_MAX) at `speech.rate`, to `sink`. Returns true while more pieces
    /// follow. `speech.made` must not grow beyond its capacity.
    ///
    /// # Errors
    /// [`ModelError::Stale`] if `stale` returns true, [`ModelError::Runtime`] if the library fails.
    fn proceed(
        &mut self,
        stale: &dyn Fn() -> bool,
        speech: &mut Speech,
        sink: &mut dyn FnMut(&[f32]),
    ) -> Result<bool, ModelError>;
}

/// End of turn: the probability that the speaker is done. Loaded and tried at start; no stage uses such a model yet.
pub trait TurnModel: Send {
    /// Returns the probability, `0.0..=1.0`, that `audio` (mono, 16 kHz, the last 8 s count) is a complete turn.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    fn completion(&mut self, audio: &[i16]) -> Result<f32, ModelError>;
}
