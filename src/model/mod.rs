//! Networks and their weights, one trait per kind of model, one file per model.
//!
//! A model knows tensors and samples; it knows no ring, no session and no turn. Each stage worker owns its own
//! instance, the weights behind it may be shared. State that belongs to a caller is passed in, never kept.

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

/// Why a model could not be loaded or run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// A file that is not there.
    #[error("{path}: not found ({expected})")]
    Missing {
        /// Where it was looked for.
        path: std::path::PathBuf,
        /// What should be there.
        expected: String,
    },
    /// A file that is not what it should be.
    #[error("{path}: found {found}, expected {expected}")]
    Wrong {
        /// The file.
        path: std::path::PathBuf,
        /// What it holds.
        found: String,
        /// What it should hold.
        expected: String,
    },
    /// The inference library refused or failed.
    #[error("{context}: {message}")]
    Runtime {
        /// What was being done.
        context: &'static str,
        /// What the library said.
        message: String,
    },
    /// The work was given up because nobody waits for it.
    #[error("stale")]
    Stale,
}

/// Voice activity: the probability of speech for each window of 512 samples at 16 kHz.
///
/// Rows are independent, so windows of different callers go through the network together.
/// Call `load` for rows `0..n`, then `run(n)`, then `store` for the same rows.
pub trait VadModel: Send {
    /// Rows that fit one call of [`VadModel::run`].
    fn rows_max(&self) -> usize;
    /// Puts a window and the state of its stream into row `row`.
    fn load(&mut self, row: usize, stream: &DetectorStream, window: &[i16; DETECTOR_WINDOW]);
    /// Scores rows `0..rows`. No heap call on the Rust side.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails; the streams are unchanged.
    fn run(&mut self, rows: usize) -> Result<(), ModelError>;
    /// Takes row `row`'s new state out and returns the probability of speech, `0.0..=1.0`.
    fn store(&self, row: usize, stream: &mut DetectorStream) -> f32;
}

/// Speech recognition of one utterance.
pub trait SttModel: Send {
    /// Longest utterance in samples at 16 kHz that the model takes in one call.
    fn samples_max(&self) -> usize;
    /// Writes what was said in `audio` (mono, 16 kHz) into `transcript`, which is cleared first. Speech-free audio
    /// may give an empty transcript. `stale` is asked between decoder steps. Returns the language that it was in, if the
    /// model can tell.
    ///
    /// # Errors
    /// [`ModelError::Stale`] when `stale` said so, [`ModelError::Runtime`] if the library fails.
    fn transcribe(
        &mut self,
        audio: &[i16],
        stale: &dyn Fn() -> bool,
        transcript: &mut String,
    ) -> Result<Option<Language>, ModelError>;
}

/// Speech synthesis of one clause.
pub trait TtsModel: Send {
    /// Speaks `text` into `speech`, whose `pcm` is cleared first and must not grow beyond its capacity.
    /// `speed` is 1.0 for the voice's own pace; `session_rate` is for models without a rate of their own (the fake).
    /// Text without anything to speak gives no samples and no error.
    ///
    /// # Errors
    /// [`ModelError::Stale`] when `stale` said so, [`ModelError::Runtime`] if the library fails.
    fn synthesise(
        &mut self,
        text: &str,
        speed: f32,
        session_rate: SampleRate,
        stale: &dyn Fn() -> bool,
        speech: &mut Speech,
    ) -> Result<(), ModelError>;
}

/// End of turn: how likely it is that the speaker is done. Loaded and tried at start; no stage asks it yet.
pub trait TurnModel: Send {
    /// Probability, `0.0..=1.0`, that `audio` (mono, 16 kHz, the last 8 s count) is a complete turn.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    fn completion(&mut self, audio: &[i16]) -> Result<f32, ModelError>;
}
