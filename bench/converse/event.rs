//! A server's event, as far as the measurements need it: no copy of the audio, no tree of values.

use std::borrow::Cow;
use std::fmt;

use anyhow::Context;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// One event. Fields that its type does not have are empty.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    /// Base64 of an audio delta, text of a text delta.
    #[serde(borrow, default)]
    pub(crate) delta: Text<'a>,
    #[serde(borrow, default)]
    response_id: Text<'a>,
    /// Transcript of the user's speech.
    #[serde(borrow, default)]
    pub(crate) transcript: Text<'a>,
    /// Onset of speech in the session's audio, ms.
    pub(crate) audio_start_ms: Option<u64>,
    /// End of speech in the session's audio, ms.
    pub(crate) audio_end_ms: Option<u64>,
    #[serde(borrow)]
    response: Option<Response<'a>>,
    #[serde(borrow)]
    pub(crate) error: Option<Fault<'a>>,
}

#[derive(Debug, serde::Deserialize)]
struct Response<'a> {
    #[serde(borrow, default)]
    id: Text<'a>,
    #[serde(borrow, default)]
    status: Text<'a>,
}

/// The object in an `error` event.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Fault<'a> {
    #[serde(rename = "type", borrow, default)]
    pub(crate) kind: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) code: Text<'a>,
    #[serde(borrow, default)]
    pub(crate) message: Text<'a>,
}

impl<'a> Event<'a> {
    /// Parses an event.
    ///
    /// # Errors
    /// If `text` is no JSON object with a `type`.
    pub(crate) fn parse(text: &'a str) -> anyhow::Result<Self> {
        serde_json::from_str(text).with_context(|| format!("not an event: {text:.200}"))
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the id of the response that the event is about; empty if there is none.
    pub(crate) fn response_id(&self) -> &str {
        match &self.response {
            Some(response) => &response.id,
            None => &self.response_id,
        }
    }

    /// Returns `response.status` of a `response.done`.
    pub(crate) fn status(&self) -> &str {
        self.response.as_ref().map_or("", |response| &response.status)
    }

    /// Returns true for an audio delta, by the name of the GA reference or the older one of the beta.
    pub(crate) fn is_audio(&self) -> bool {
        matches!(self.kind(), "response.output_audio.delta" | "response.audio.delta")
    }

    /// Returns the number of samples in an audio delta, counted without decoding.
    pub(crate) fn samples(&self) -> u64 {
        let padding = self.delta.bytes().rev().take_while(|&byte| byte == b'=').count();
        ((self.delta.len() / 4 * 3 - padding) / 2) as u64
    }

    /// Decodes the samples of an audio delta into `samples`.
    ///
    /// # Errors
    /// If the delta is not base64 of whole samples.
    pub(crate) fn decode(&self, samples: &mut Samples) -> anyhow::Result<()> {
        samples.bytes.clear();
        base64_simd::STANDARD
            .decode_append(self.delta.as_bytes(), &mut samples.bytes)
            .context("an audio delta that is not base64")?;
        anyhow::ensure!(
            samples.bytes.len().is_multiple_of(2),
            "an audio delta of {} bytes, expected whole samples",
            samples.bytes.len()
        );
        Ok(())
    }
}

impl fmt::Display for Fault<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", &*self.kind, &*self.code, &*self.message)
    }
}

/// Decoded audio. One buffer serves a whole session.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    bytes: Vec<u8>,
}

impl Samples {
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = i16> {
        self.bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
    }

    /// Returns the first eight bytes of each frame of this many samples, as a number. Shorter frames are skipped.
    pub(crate) fn stamps(&self, frame_samples: usize) -> impl Iterator<Item = u64> {
        let frames = self.bytes.chunks(2 * frame_samples);
        frames.filter_map(|frame| Some(u64::from_le_bytes(frame.get(..8)?.try_into().ok()?)))
    }
}

/// A string, borrowed from the message unless a character is escaped. `null` is read as empty.
#[derive(Debug, Default)]
pub(crate) struct Text<'a>(Cow<'a, str>);

impl std::ops::Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor).map(Self)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Cow<'de, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or null")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(""))
    }
}
