//! Settings of the stages.

use crate::audio::SampleRate;
use crate::language::Language;

/// How turns are detected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VadMode {
    /// The client commits by itself.
    Off,
    /// Silence ends a turn.
    Server {
        /// Speech probability at which speech begins, `0.0..=1.0`.
        threshold: f32,
        /// Audio kept before the onset.
        prefix_ms: u32,
        /// Silence that ends the utterance.
        silence_ms: u32,
    },
    /// What was said sounds complete: the turn model decides at a short silence.
    Semantic {
        /// Silence that ends an utterance that does not sound complete.
        patience_ms: u32,
    },
}

/// Session → VAD, in `audio_in`: they hold from their place in the audio on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VadSettings {
    /// How turns are detected.
    pub mode: VadMode,
}

impl Default for VadSettings {
    /// The defaults of the OpenAI Realtime reference.
    fn default() -> Self {
        Self { mode: VadMode::Server { threshold: 0.5, prefix_ms: 300, silence_ms: 500 } }
    }
}

/// Session → TTS, by triple buffer: the latest value wins, and holds for answers whose first clause comes after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TtsSettings {
    /// Rate of the audio that the client wants.
    pub rate: SampleRate,
    /// Speed of speech, `0.25..=4.0`.
    pub speed: f32,
    /// The language that the user speaks, for text that does not show its own; `None`: it is not known.
    pub language: Option<Language>,
}

impl Default for TtsSettings {
    fn default() -> Self {
        Self { rate: SampleRate::HZ_24K, speed: 1.0, language: None }
    }
}
