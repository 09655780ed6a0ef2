//! Events of the server and the objects in them, as values; [`super::encode`] writes them.

use serde_json::{Map, Value};

use super::client_event::{MaxTokens, Modality, Speaker};
use super::error::ProtocolError;
use super::id::{ConversationId, ItemId, ResponseId, SessionId};
use super::session_update::TurnDetection;

/// One event to a client. `response.output_audio.delta` is not here: see [`super::encode_audio_delta`].
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "the fields are those of the wire")]
pub enum ServerEvent {
    /// `session.created`.
    SessionCreated(Box<SessionObject>),
    /// `session.updated`.
    SessionUpdated(Box<SessionObject>),
    /// `error`.
    Error(ProtocolError),
    /// `input_audio_buffer.speech_started`.
    SpeechStarted { item: ItemId, audio_start_ms: u32 },
    /// `input_audio_buffer.speech_stopped`.
    SpeechStopped { item: ItemId, audio_end_ms: u32 },
    /// `input_audio_buffer.committed`.
    Committed { item: ItemId, previous: Option<ItemId> },
    /// `input_audio_buffer.cleared`.
    Cleared,
    /// `conversation.item.added`.
    ItemAdded { item: Box<Item>, previous: Option<ItemId> },
    /// `conversation.item.done`.
    ItemDone { item: Box<Item>, previous: Option<ItemId> },
    /// `conversation.item.retrieved`.
    ItemRetrieved { item: Box<Item> },
    /// `conversation.item.deleted`.
    ItemDeleted { item: ItemId },
    /// `conversation.item.truncated`.
    ItemTruncated { item: ItemId, audio_end_ms: u32 },
    /// `conversation.item.input_audio_transcription.completed`.
    TranscriptionCompleted { item: ItemId, transcript: String, usage: TranscriptionUsage },
    /// `conversation.item.input_audio_transcription.failed`.
    TranscriptionFailed { item: ItemId, error: ErrorObject },
    /// `response.created`.
    ResponseCreated(Box<ResponseObject>),
    /// `response.output_item.added`.
    OutputItemAdded { response: ResponseId, item: Box<Item> },
    /// `response.output_item.done`.
    OutputItemDone { response: ResponseId, item: Box<Item> },
    /// `response.content_part.added`.
    ContentPartAdded { part: Part, kind: Modality },
    /// `response.content_part.done`; `text` is the transcript of spoken parts.
    ContentPartDone { part: Part, kind: Modality, text: String },
    /// `response.output_audio.done`.
    AudioDone { part: Part },
    /// `response.output_audio_transcript.delta`, or `response.output_text.delta` of a text response.
    TextDelta { part: Part, kind: Modality, delta: String },
    /// `response.output_audio_transcript.done`, or `response.output_text.done` of a text response.
    TextDone { part: Part, kind: Modality, text: String },
    /// `response.done`.
    ResponseDone(Box<ResponseObject>),
}

/// Where a delta belongs. A response of this version has one item with one part: `output_index` and
/// `content_index` are 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The response.
    pub response: ResponseId,
    /// Its item.
    pub item: ItemId,
}

/// The effective configuration of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionObject {
    /// The session.
    pub id: SessionId,
    /// Name of the model, for show.
    pub model: String,
    /// Instructions to the model.
    pub instructions: String,
    /// What responses consist of.
    pub output_modality: Modality,
    /// Limit of one response.
    pub tokens_max: MaxTokens,
    /// Kept and shown; not yet offered to the model.
    pub tools: Value,
    /// Kept and shown.
    pub tool_choice: Value,
    /// Kept and shown; the server reduces no noise.
    pub noise_reduction: Option<Value>,
    /// `None`: the client does not want to see transcripts of what the user says.
    pub transcription: Option<Transcription>,
    /// `None`: the client commits.
    pub turn_detection: Option<TurnDetection>,
    /// Name of the voice; kept and shown, the server has one voice.
    pub voice: String,
    /// Speed of speech, `0.25..=1.5`.
    pub speed: f32,
}

/// Transcription of what the user says. The names are kept and shown.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Transcription {
    /// Name of the recogniser.
    pub model: String,
    /// Language hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Vocabulary hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// State of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Still being filled.
    InProgress,
    /// Whole.
    Completed,
    /// Broken off.
    Incomplete,
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its id.
    pub id: ItemId,
    /// Its state.
    pub status: ItemStatus,
    /// Who says it.
    pub speaker: Speaker,
    /// What is said.
    pub content: Content,
}

/// Content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing yet.
    Empty,
    /// `input_text` or `output_text` parts.
    Text(Vec<String>),
    /// One `input_audio` part; the transcript once it is there.
    UserAudio(Option<String>),
    /// One `output_audio` part with the text of what is spoken.
    AssistantAudio(String),
}

/// A response, as it is at that moment.
#[derive(Clone, Debug, PartialEq)]
pub struct ResponseObject {
    /// Its id.
    pub id: ResponseId,
    /// Where the answer goes; `None`: nowhere.
    pub conversation: Option<ConversationId>,
    /// How it stands.
    pub status: ResponseStatus,
    /// What it consists of so far.
    pub output: Vec<Item>,
    /// What it consists of.
    pub modality: Modality,
    /// Limit of the answer.
    pub tokens_max: MaxTokens,
    /// Name of the voice.
    pub voice: String,
    /// The client's own.
    pub metadata: Option<Map<String, Value>>,
    /// What it cost; only at the end.
    pub usage: Option<Usage>,
}

/// Status of a response with its details. Every response ends in exactly one of the last four.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResponseStatus {
    /// Running.
    InProgress,
    /// The model was done.
    Completed,
    /// Stopped by the user's voice or by the client.
    Cancelled(StatusDetails),
    /// Stopped by a limit.
    Incomplete(StatusDetails),
    /// Stopped by a fault.
    Failed(ErrorObject),
}

/// Why a response did not complete: `status_details.reason`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StatusDetails {
    /// The user began to speak.
    TurnDetected,
    /// The client asked for it.
    ClientCancelled,
    /// `max_output_tokens` was reached.
    MaxOutputTokens,
    /// The model server's filter cut it.
    ContentFilter,
}

/// An error inside another event.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct ErrorObject {
    /// `error.type`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// `error.code`.
    pub code: &'static str,
    /// In words.
    pub message: String,
}

/// Tokens of a response. The server's models see text only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Of the prompt.
    pub input: u32,
    /// Of these, from the model server's cache.
    pub input_cached: u32,
    /// Of the answer.
    pub output: u32,
}

/// Cost of a transcription: the length of the audio.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TranscriptionUsage {
    /// Milliseconds of audio.
    pub audio_ms: u32,
}
