//! The response as the server shows it, and the usage of responses and transcriptions.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use crate::audio::AudioFormat;
use crate::message::TokenUsage;

use super::audio_format::ShownFormat;
use super::id::{ConversationId, ResponseId};
use super::item::{Item, ItemStatus};
use super::output::{MaxTokens, Modality};
use super::wire::seconds;

/// State of a response at one moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseObject {
    /// Id of the response.
    pub id: ResponseId,
    /// Conversation that the answer becomes part of; `None`: none.
    pub conversation: Option<ConversationId>,
    /// Status of the response.
    pub status: ResponseStatus,
    /// Items of the response so far.
    pub output: Vec<Item>,
    /// Form of the answer.
    pub modality: Modality,
    /// Limit of the answer, tokens.
    pub tokens_max: MaxTokens,
    /// Format of the answer's audio.
    pub format: AudioFormat,
    /// Name of the voice.
    pub voice: String,
    /// The client's own data, from its request.
    pub metadata: Option<Map<String, Value>>,
    /// Usage of the response; `None` until its end.
    pub usage: Option<Usage>,
}

/// Status of a response with its details. Every response ends in exactly one of the last four.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseStatus {
    /// The response is running.
    InProgress,
    /// The model has finished its answer.
    Completed,
    /// The user's voice or the client stopped the response.
    Cancelled(StatusDetails),
    /// A limit or a filter stopped the response.
    Incomplete(StatusDetails),
    /// A fault stopped the response.
    Failed(ErrorObject),
}

/// Reason for an incomplete response: `status_details.reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusDetails {
    /// The user began to speak.
    TurnDetected,
    /// The client cancelled the response.
    ClientCancelled,
    /// `max_output_tokens` was reached.
    MaxOutputTokens,
    /// The model server's content filter cut the answer.
    ContentFilter,
}

/// An error inside another event.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ErrorObject {
    /// The wire's `error.type`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The wire's `error.code`.
    pub code: &'static str,
    /// Description of the error.
    pub message: String,
}

/// Tokens of a response. The model server counts those of text; those of audio follow from its length. The model reads
/// text only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of text.
    pub tokens: TokenUsage,
    /// Milliseconds of the user's audio that the response is the first to answer.
    pub audio_in_ms: u32,
    /// Milliseconds of audio in the answer.
    pub audio_out_ms: u32,
}

/// Cost of a transcription: the length of the audio.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(tag = "type", rename = "duration")]
pub struct TranscriptionUsage {
    /// Milliseconds of audio.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub audio_ms: u32,
}

impl Serialize for ResponseStatus {
    /// Writes the word alone; `status_details` is a member of its own.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl ResponseStatus {
    /// Returns the wire's `status`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Cancelled(_) => "cancelled",
            Self::Incomplete(_) => "incomplete",
            Self::Failed(_) => "failed",
        }
    }

    /// Returns the state in which the response leaves its item.
    #[must_use]
    pub const fn item_status(&self) -> ItemStatus {
        match self {
            Self::InProgress => ItemStatus::InProgress,
            Self::Completed => ItemStatus::Completed,
            Self::Cancelled(_) | Self::Incomplete(_) | Self::Failed(_) => ItemStatus::Incomplete,
        }
    }

    fn details(&self) -> Option<serde_json::Value> {
        match self {
            Self::InProgress | Self::Completed => None,
            Self::Cancelled(reason) | Self::Incomplete(reason) => {
                Some(json!({"type": self.as_str(), "reason": reason}))
            }
            Self::Failed(error) => Some(json!({"type": self.as_str(), "error": error})),
        }
    }
}

impl Serialize for ResponseObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(11))?;
        map.serialize_entry("object", "realtime.response")?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("status_details", &self.status.details())?;
        map.serialize_entry("output", &self.output)?;
        map.serialize_entry("conversation_id", &self.conversation)?;
        map.serialize_entry("output_modalities", &self.modality.on_wire())?;
        map.serialize_entry("max_output_tokens", &self.tokens_max)?;
        map.serialize_entry(
            "audio",
            &json!({"output": {"format": ShownFormat(self.format), "voice": self.voice}}),
        )?;
        map.serialize_entry("usage", &self.usage)?;
        map.serialize_entry("metadata", &self.metadata)?;
        map.end()
    }
}

/// Returns the tokens that the length of audio stands for: one per 100 ms of the user's, one per 50 ms of the model's.
///
/// # Source
/// OpenAI, "Managing costs" of the Realtime API guide.
const fn audio_tokens(ms: u32, per_ms: u32) -> u32 {
    ms.div_ceil(per_ms)
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (heard, spoken) = (audio_tokens(self.audio_in_ms, 100), audio_tokens(self.audio_out_ms, 50));
        let TokenUsage { input: read, input_cached, output: written } = self.tokens;
        let (input, output) = (read.saturating_add(heard), written.saturating_add(spoken));
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("total_tokens", &(u64::from(input) + u64::from(output)))?;
        map.serialize_entry("input_tokens", &input)?;
        map.serialize_entry("output_tokens", &output)?;
        let cached = json!({"text_tokens": input_cached, "audio_tokens": 0, "image_tokens": 0});
        map.serialize_entry(
            "input_token_details",
            &json!({
                "text_tokens": read, "audio_tokens": heard, "image_tokens": 0,
                "cached_tokens": input_cached, "cached_tokens_details": cached,
            }),
        )?;
        let details = json!({"text_tokens": written, "audio_tokens": spoken});
        map.serialize_entry("output_token_details", &details)?;
        map.end()
    }
}
