//! Events of the server, each with its name on the wire, its variant and its members.

use serde::Serialize;
use serde::ser::Serializer;

use crate::message::RateLimits;

use super::error::ProtocolError;
use super::id::{ItemId, ResponseId};
use super::item::{Item, Speaker};
use super::output::Modality;
use super::response_object::{ErrorObject, ResponseObject, TranscriptionUsage};
use super::session_object::SessionObject;
use super::wire;

/// Defines [`ServerEvent`] and its `name` from one table, so that every event has a name.
macro_rules! server_events {
    ($($(#[$about:meta])* $name:literal => $event:ident $({ $($members:tt)* })?,)+) => {
        /// One event to a client. `response.output_audio.delta` is not here: see [`super::encode_audio_delta`].
        ///
        /// The fields are the members of the wire in the wire's order. `Serialize` writes the fields;
        /// [`ServerEvent::encode`] writes them after `type` and `event_id`.
        #[derive(Clone, Debug, Serialize)]
        #[serde(untagged)]
        #[expect(missing_docs, reason = "the fields are those of the wire")]
        pub enum ServerEvent {
            $(#[doc = concat!("`", $name, "`.")] $(#[$about])* $event $({ $($members)* })?,)+
        }

        impl ServerEvent {
            /// Returns the wire's `type`.
            #[must_use]
            pub(super) const fn name(&self) -> &'static str {
                match self {
                    $(Self::$event { .. } => $name,)+
                }
            }
        }
    };
}

server_events! {
    "session.created" => SessionCreated { session: Box<SessionObject> },
    "session.updated" => SessionUpdated { session: Box<SessionObject> },
    "error" => Error { error: ProtocolError },

    "input_audio_buffer.speech_started" => SpeechStarted { audio_start_ms: u32, item_id: ItemId },
    "input_audio_buffer.speech_stopped" => SpeechStopped { audio_end_ms: u32, item_id: ItemId },
    "input_audio_buffer.timeout_triggered" => TimeoutTriggered {
        audio_start_ms: u32,
        audio_end_ms: u32,
        item_id: ItemId,
    },
    "input_audio_buffer.committed" => Committed { previous_item_id: Option<ItemId>, item_id: ItemId },
    "input_audio_buffer.cleared" => Cleared,

    "conversation.item.added" => ItemAdded { previous_item_id: Option<ItemId>, item: Box<Item> },
    "conversation.item.done" => ItemDone { previous_item_id: Option<ItemId>, item: Box<Item> },
    "conversation.item.retrieved" => ItemRetrieved { item: Box<Item> },
    "conversation.item.deleted" => ItemDeleted { item_id: ItemId },
    "conversation.item.truncated" => ItemTruncated {
        item_id: ItemId,
        content_index: OnlyPart,
        audio_end_ms: u32,
    },
    "conversation.item.input_audio_transcription.delta" => TranscriptionDelta {
        item_id: ItemId,
        content_index: OnlyPart,
        delta: String,
    },
    /// The segment is the whole utterance, since a connection has one user and one microphone.
    "conversation.item.input_audio_transcription.segment" => TranscriptionSegment {
        item_id: ItemId,
        content_index: OnlyPart,
        id: String,
        text: String,
        speaker: Speaker,
        #[serde(rename = "start", serialize_with = "wire::seconds")]
        start_ms: u32,
        #[serde(rename = "end", serialize_with = "wire::seconds")]
        end_ms: u32,
    },
    "conversation.item.input_audio_transcription.completed" => TranscriptionCompleted {
        item_id: ItemId,
        content_index: OnlyPart,
        transcript: String,
        usage: TranscriptionUsage,
    },
    "conversation.item.input_audio_transcription.failed" => TranscriptionFailed {
        item_id: ItemId,
        content_index: OnlyPart,
        error: ErrorObject,
    },

    "response.created" => ResponseCreated { response: Box<ResponseObject> },
    "response.output_item.added" => OutputItemAdded {
        response_id: ResponseId,
        output_index: u32,
        item: Box<Item>,
    },
    "response.output_item.done" => OutputItemDone {
        response_id: ResponseId,
        output_index: u32,
        item: Box<Item>,
    },
    "response.content_part.added" => ContentPartAdded {
        #[serde(flatten)]
        place: ItemPlace,
        content_index: OnlyPart,
        part: ContentPart,
    },
    "response.content_part.done" => ContentPartDone {
        #[serde(flatten)]
        place: ItemPlace,
        content_index: OnlyPart,
        part: ContentPart,
    },
    "response.output_audio.done" => AudioDone {
        #[serde(flatten)]
        place: ItemPlace,
        content_index: OnlyPart,
    },
    "response.output_audio_transcript.delta" => TranscriptDelta {
        #[serde(flatten)]
        place: ItemPlace,
        content_index: OnlyPart,
        delta: String,
    },
    "response.output_audio_transcript.done" => TranscriptDone {
        #[serde(flatten)]
        place: ItemPlace,
        content_index: OnlyPart,
        transcript: String,
    },
    "response.output_text.delta" => TextDelta {
        #[serde(flatten)]
        place: ItemPlace,
        content_index: OnlyPart,
        delta: String,
    },
    "response.output_text.done" => TextDone {
        #[serde(flatten)]
        place: ItemPlace,
        content_index: OnlyPart,
        text: String,
    },
    "response.function_call_arguments.delta" => ArgumentsDelta {
        #[serde(flatten)]
        place: ItemPlace,
        call_id: String,
        delta: String,
    },
    "response.function_call_arguments.done" => ArgumentsDone {
        #[serde(flatten)]
        place: ItemPlace,
        call_id: String,
        name: String,
        arguments: String,
    },
    "rate_limits.updated" => RateLimitsUpdated {
        #[serde(serialize_with = "wire::rate_limits")]
        rate_limits: RateLimits,
    },
    "response.done" => ResponseDone { response: Box<ResponseObject> },
}

/// Place of an item in a response.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ItemPlace {
    /// Id of the response.
    pub response_id: ResponseId,
    /// Id of the item.
    pub item_id: ItemId,
    /// Index of the item in the response, from 0.
    pub output_index: u32,
}

/// Index of the only content part of an item, 0 on the wire. A message of an answer has one part, and so has a message
/// of the user's voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OnlyPart;

impl Serialize for OnlyPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u32(0)
    }
}

/// `part` of the content part events. Its types have no prefix, unlike those of an item's content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ContentPart {
    /// A spoken part.
    Audio { transcript: String },
    /// A written part.
    Text { text: String },
}

impl ContentPart {
    /// Makes the part of an answer that speaks or writes `text`.
    #[must_use]
    pub const fn new(modality: Modality, text: String) -> Self {
        match modality {
            Modality::Audio => Self::Audio { transcript: text },
            Modality::Text => Self::Text { text },
        }
    }
}
