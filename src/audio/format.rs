//! How samples stand on the wire.

use super::g711::Law;
use super::quantity::SampleRate;

/// Format of a client's audio, mono.
///
/// # Source
/// `realtime_audio_formats.py`, openai 3.57.0; PCM at other rates than 24 kHz is an extension of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioFormat {
    /// `audio/pcm`: signed 16 bit, little-endian.
    Pcm(SampleRate),
    /// `audio/pcmu`: G.711 µ-law, 8 kHz.
    Pcmu,
    /// `audio/pcma`: G.711 A-law, 8 kHz.
    Pcma,
}

impl AudioFormat {
    /// What a session has until the client says otherwise.
    pub const DEFAULT: Self = Self::Pcm(SampleRate::HZ_24K);

    /// Samples per second.
    #[must_use]
    pub const fn rate(self) -> SampleRate {
        match self {
            Self::Pcm(rate) => rate,
            Self::Pcmu | Self::Pcma => SampleRate::HZ_8K,
        }
    }

    /// Bytes of one sample.
    #[must_use]
    pub const fn sample_bytes(self) -> usize {
        match self {
            Self::Pcm(_) => 2,
            Self::Pcmu | Self::Pcma => 1,
        }
    }

    /// How its bytes are companded; `None`: they are the samples.
    #[must_use]
    pub const fn law(self) -> Option<Law> {
        match self {
            Self::Pcm(_) => None,
            Self::Pcmu => Some(Law::Mu),
            Self::Pcma => Some(Law::A),
        }
    }

    /// The wire's `type`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcm(_) => "audio/pcm",
            Self::Pcmu => "audio/pcmu",
            Self::Pcma => "audio/pcma",
        }
    }
}
