//! Audio formats on the wire.

use serde::ser::{Serialize, Serializer};
use serde_json::json;

use crate::audio::{AudioFormat, SampleRate};

use super::error::Fault;
use super::field::Field;

const FORMATS: &str = "'audio/pcm', 'audio/pcmu' or 'audio/pcma'";

/// A format as a client names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedFormat {
    /// `audio/pcm`; `None` if the client names no rate.
    Pcm(Option<SampleRate>),
    /// `audio/pcmu`: G.711 μ-law, 8 kHz.
    Pcmu,
    /// `audio/pcma`: G.711 A-law, 8 kHz.
    Pcma,
}

impl NamedFormat {
    /// Returns the format; PCM without a rate gets `default_rate`.
    #[must_use]
    pub fn at(self, default_rate: SampleRate) -> AudioFormat {
        match self {
            Self::Pcm(rate) => AudioFormat::Pcm(rate.unwrap_or(default_rate)),
            Self::Pcmu => AudioFormat::Pcmu,
            Self::Pcma => AudioFormat::Pcma,
        }
    }

    /// Reads a `format`. An absent type stands for PCM.
    ///
    /// # Source
    /// `realtime_audio_formats.py`, openai 3.57.0, which has PCM at 24000 Hz only. The other rates are ours.
    pub(super) fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        let fields = field.fields()?;
        let kind = fields.optional("type", |kind| match kind.text()? {
            "audio/pcm" => Ok(Self::Pcm(None)),
            "audio/pcmu" => Ok(Self::Pcmu),
            "audio/pcma" => Ok(Self::Pcma),
            other => Err(kind.wrong_word(other, FORMATS)),
        })?;
        let kind = kind.unwrap_or(Self::Pcm(None));
        let allowed = match kind {
            Self::Pcm(_) => &AudioFormat::PCM_RATES[..],
            Self::Pcmu | Self::Pcma => &[SampleRate::HZ_8K],
        };
        let rate = fields.optional("rate", |rate| {
            let hz = rate.integer(0..=u32::MAX)?;
            allowed.iter().copied().find(|allowed| allowed.hz() == hz).ok_or_else(|| {
                let names: Vec<_> = allowed.iter().map(|rate| rate.hz().to_string()).collect();
                rate.wrong_value(hz.to_string(), names.join(", "))
            })
        })?;
        Ok(if let Self::Pcm(_) = kind { Self::Pcm(rate) } else { kind })
    }
}

/// A format as the wire shows it.
pub(super) struct ShownFormat(pub(super) AudioFormat);

impl Serialize for ShownFormat {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            AudioFormat::Pcm(rate) => json!({"type": "audio/pcm", "rate": rate.hz()}),
            AudioFormat::Pcmu | AudioFormat::Pcma => json!({"type": self.0.name()}),
        }
        .serialize(serializer)
    }
}
