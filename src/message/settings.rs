//! Settings of the stages.

use crate::audio::SampleRate;
use crate::language::Language;

/// Mode of turn detection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VadMode {
    /// No detection: the client commits.
    Off,
    /// Silence ends a turn.
    Server {
        /// Speech probability at which speech begins, `0.0..=1.0`.
        threshold: f32,
        /// Audio that is kept before the onset.
        prefix_ms: u32,
        /// Silence that ends the utterance.
        silence_ms: u32,
    },
    /// Speech that sounds complete ends a turn. No stage asks the turn model yet: VAD ends a turn as in the default
    /// [`VadMode::Server`].
    Semantic {
        /// Silence that ends an utterance that does not sound complete. VAD does not read it yet.
        patience_ms: u32,
    },
}

/// Settings of VAD, from the session in `audio_in`. They hold from their place in the audio on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VadSettings {
    /// Mode of turn detection.
    pub mode: VadMode,
}

impl Default for VadSettings {
    /// Returns the defaults of the OpenAI Realtime reference.
    fn default() -> Self {
        Self { mode: VadMode::Server { threshold: 0.5, prefix_ms: 300, silence_ms: 500 } }
    }
}

/// Settings of TTS, from the session by triple buffer. The latest value holds for answers whose first clause comes
/// after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TtsSettings {
    /// Rate of the client's output audio.
    pub rate: SampleRate,
    /// Speed of speech, `0.25..=4.0`.
    pub speed: f32,
    /// The language that the user speaks, for text that does not show its own; `None`: unknown.
    pub language: Option<Language>,
}

impl Default for TtsSettings {
    fn default() -> Self {
        Self { rate: SampleRate::HZ_24K, speed: 1.0, language: None }
    }
}
