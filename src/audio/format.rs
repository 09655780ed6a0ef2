//! Formats of samples on the wire.

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
    /// PCM at the rate of the reference.
    pub const DEFAULT: Self = Self::Pcm(SampleRate::HZ_24K);

    /// Rates of `audio/pcm`.
    pub const PCM_RATES: [SampleRate; 4] =
        [SampleRate::HZ_8K, SampleRate::HZ_16K, SampleRate::HZ_24K, SampleRate::HZ_48K];

    /// Returns the samples per second.
    #[must_use]
    pub const fn rate(self) -> SampleRate {
        match self {
            Self::Pcm(rate) => rate,
            Self::Pcmu | Self::Pcma => SampleRate::HZ_8K,
        }
    }

    /// Returns the bytes of one sample.
    #[must_use]
    pub const fn sample_bytes(self) -> usize {
        match self {
            Self::Pcm(_) => 2,
            Self::Pcmu | Self::Pcma => 1,
        }
    }

    /// Returns the law by which the bytes are companded; `None` for PCM.
    #[must_use]
    pub const fn law(self) -> Option<Law> {
        match self {
            Self::Pcm(_) => None,
            Self::Pcmu => Some(Law::Mu),
            Self::Pcma => Some(Law::A),
        }
    }

    /// Returns the `type` of the format on the wire.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pcm(_) => "audio/pcm",
            Self::Pcmu => "audio/pcmu",
            Self::Pcma => "audio/pcma",
        }
    }
}

/// Reads a rate of `audio/pcm` from the command line, Hz.
///
/// # Errors
/// Returns a message with the possible rates if `text` is none of [`AudioFormat::PCM_RATES`].
pub fn pcm_rate(text: &str) -> Result<SampleRate, String> {
    let rates = AudioFormat::PCM_RATES;
    rates.into_iter().find(|rate| rate.hz().to_string() == text).ok_or_else(|| {
        let names = rates.map(|rate| rate.hz().to_string());
        format!("expected one of {}", names.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_one_of_four_numbers() {
        assert_eq!(pcm_rate("16000"), Ok(SampleRate::HZ_16K));
        for text in ["", "22050", "16000.0", "+16000", "16 kHz"] {
            assert_eq!(
                pcm_rate(text),
                Err("expected one of 8000, 16000, 24000, 48000".to_owned()),
                "{text:?}"
            );
        }
    }
}
