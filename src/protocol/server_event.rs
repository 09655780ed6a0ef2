//! Events of the server and the objects in them, as values; [`super::encode`] writes them.

use crate::message::RateLimits;

use super::error::ProtocolError;
use super::id::{ItemId, ResponseId};
use super::item::Item;
use super::output::Modality;
use super::response_object::{ErrorObject, ResponseObject, TranscriptionUsage};
use super::session_object::SessionObject;

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
    /// `input_audio_buffer.timeout_triggered`.
    TimeoutTriggered { item: ItemId, audio_start_ms: u32, audio_end_ms: u32 },
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
    /// `conversation.item.input_audio_transcription.delta`.
    TranscriptionDelta { item: ItemId, delta: String },
    /// `conversation.item.input_audio_transcription.segment`. The whole utterance: one caller, one microphone.
    TranscriptionSegment { item: ItemId, id: String, text: String, audio_ms: u32 },
    /// `conversation.item.input_audio_transcription.completed`.
    TranscriptionCompleted { item: ItemId, transcript: String, usage: TranscriptionUsage },
    /// `conversation.item.input_audio_transcription.failed`.
    TranscriptionFailed { item: ItemId, error: ErrorObject },
    /// `response.created`.
    ResponseCreated(Box<ResponseObject>),
    /// `response.output_item.added`.
    OutputItemAdded { response: ResponseId, output_index: u32, item: Box<Item> },
    /// `response.output_item.done`.
    OutputItemDone { response: ResponseId, output_index: u32, item: Box<Item> },
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
    /// `response.function_call_arguments.delta`.
    ArgumentsDelta { part: Part, call_id: String, delta: String },
    /// `response.function_call_arguments.done`.
    ArgumentsDone { part: Part, call_id: String, name: String, arguments: String },
    /// `rate_limits.updated`.
    RateLimitsUpdated(RateLimits),
    /// `response.done`.
    ResponseDone(Box<ResponseObject>),
}

/// Where a delta belongs. A message of an answer has one part: `content_index` is 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The response.
    pub response: ResponseId,
    /// Its item.
    pub item: ItemId,
    /// Which of the response's items, counted from 0.
    pub output_index: u32,
}
