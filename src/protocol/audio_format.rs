//! Audio formats on the wire.

use serde::ser::{Serialize, Serializer};
use serde_json::json;

use crate::audio::{AudioFormat, SampleRate};

use super::error::Fault;
use super::field::Field;

const FORMATS: &str = "'audio/pcm', 'audio/pcmu' or 'audio/pcma'";

/// Rates of `audio/pcm`, Hz.
///
/// # Source
/// `realtime_audio_formats.py`, openai 3.57.0: 24000 only. The others are ours.
const PCM_RATES: [SampleRate; 4] =
    [SampleRate::HZ_8K, SampleRate::HZ_16K, SampleRate::HZ_24K, SampleRate::HZ_48K];

/// Reads a `format`. A type that is not there is PCM, a rate that is not there the type's own.
pub(super) fn audio_format(field: &Field<'_, '_>) -> Result<AudioFormat, Fault> {
    let fields = field.fields()?;
    let kind = fields.optional("type", |kind| match kind.text()? {
        "audio/pcm" => Ok(AudioFormat::DEFAULT),
        "audio/pcmu" => Ok(AudioFormat::Pcmu),
        "audio/pcma" => Ok(AudioFormat::Pcma),
        other => Err(kind.wrong_word(other, FORMATS)),
    })?;
    let format = kind.unwrap_or(AudioFormat::DEFAULT);
    let rate = fields.optional("rate", |rate| {
        let hz = rate.integer(0..=u32::MAX)?;
        let allowed = match format {
            AudioFormat::Pcm(_) => &PCM_RATES[..],
            AudioFormat::Pcmu | AudioFormat::Pcma => &PCM_RATES[..1],
        };
        allowed.iter().copied().find(|allowed| allowed.hz() == hz).ok_or_else(|| {
            let names: Vec<_> = allowed.iter().map(|rate| rate.hz().to_string()).collect();
            rate.wrong_value(hz.to_string(), names.join(", "))
        })
    })?;
    Ok(match (format, rate) {
        (AudioFormat::Pcm(_), Some(rate)) => AudioFormat::Pcm(rate),
        _ => format,
    })
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
