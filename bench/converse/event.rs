//! A server's event as far as a client that measures must understand it: no copy of the audio, no tree of
//! values.

use std::borrow::Cow;
use std::fmt;

use anyhow::Context;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// One event; what its type does not have is empty.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Event<'a> {
    #[serde(rename = "type", borrow)]
    kind: Text<'a>,
    /// Base64 of an audio delta, text of a text delta.
    #[serde(borrow, default)]
    pub(crate) delta: Text<'a>,
    #[serde(borrow, default)]
    response_id: Text<'a>,
    /// What the user is understood to have said.
    #[serde(borrow, default)]
    pub(crate) transcript: Text<'a>,
    /// Where in the session's audio speech began, ms.
    pub(crate) audio_start_ms: Option<u64>,
    /// Where in the session's audio speech ended, ms.
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

/// The inside of an `error` event.
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
    /// # Errors
    /// If it is no JSON object with a `type`.
    pub(crate) fn parse(text: &'a str) -> anyhow::Result<Self> {
        serde_json::from_str(text).with_context(|| format!("not an event: {text:.200}"))
    }

    pub(crate) fn kind(&self) -> &str {
        &self.kind
    }

    /// The response that it is about; empty if it is about none.
    pub(crate) fn response_id(&self) -> &str {
        match &self.response {
            Some(response) => &response.id,
            None => &self.response_id,
        }
    }

    /// `response.status` of a `response.done`.
    pub(crate) fn status(&self) -> &str {
        self.response.as_ref().map_or("", |response| &response.status)
    }

    /// Whether it carries audio: under the name of the GA reference, or the older one of the beta.
    pub(crate) fn is_audio(&self) -> bool {
        matches!(self.kind(), "response.output_audio.delta" | "response.audio.delta")
    }

    /// Samples in an audio delta, counted without decoding it.
    pub(crate) fn samples(&self) -> u64 {
        let padding = self.delta.bytes().rev().take_while(|&byte| byte == b'=').count();
        ((self.delta.len() / 4 * 3 - padding) / 2) as u64
    }

    /// The samples of an audio delta, into `samples`.
    ///
    /// # Errors
    /// If it is not base64 of whole samples.
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

/// Decoded audio; one of it serves a whole session.
#[derive(Debug, Default)]
pub(crate) struct Samples {
    bytes: Vec<u8>,
}

impl Samples {
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = i16> {
        self.bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]))
    }

    /// The first eight bytes of each frame of this many samples, as a number; a frame too short for that has
    /// none.
    pub(crate) fn stamps(&self, frame_samples: usize) -> impl Iterator<Item = u64> {
        let frames = self.bytes.chunks(2 * frame_samples);
        frames.filter_map(|frame| Some(u64::from_le_bytes(frame.get(..8)?.try_into().ok()?)))
    }
}

/// A string, borrowed from the message unless something in it is escaped; `null` is empty.
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
