//! The OpenAI Realtime wire format: text in, typed events out, and back.
//!
//! Follows the published types of the `openai` Python package, 3.57.0 (`openai/types/realtime`). This module handles
//! bytes and names; [`crate::session`] handles the effect of an event. The module reads no clock, does no I/O and never
//! panics on anything that a client can send.
//!
//! - [`Decoder`]: one text message → [`Decoded`] or one [`ProtocolError`].
//! - [`ServerEvent::encode`] and [`encode_audio_delta`]: typed event → compact JSON in the caller's buffer.
//! - [`EventIds`], [`ItemId`], [`ResponseId`] …: identifiers.
#![warn(clippy::wildcard_enum_match_arm, reason = "a variant that is new is thought of everywhere")]

mod audio_format;
mod bound;
mod client_event;
mod decode;
mod encode;
mod error;
mod field;
mod id;
mod item;
mod output;
mod response_object;
mod response_request;
mod server_event;
mod session_object;
mod session_update;
mod shallow;
mod tool;
mod wire;

pub use client_event::{ClientEvent, ClientEventKind};
pub use decode::{Append, Decoded, Decoder};
pub use encode::{AudioDelta, encode_audio_delta};
pub(crate) use error::quoted;
pub use error::{Fault, ProtocolError};
pub use field::Patch;
pub use id::{ConversationId, EventIds, ItemId, ResponseId, SessionId, fresh_call_id, fresh_segment_id};
pub use item::{ClientItem, Content, Item, ItemBody, ItemStatus, Speaker};
pub use output::{MaxTokens, Modality};
pub use response_object::{
    ErrorObject, ResponseObject, ResponseStatus, StatusDetails, TranscriptionUsage, Usage,
};
pub use response_request::{InputItem, ResponseRequest};
pub use server_event::{ContentPart, ItemPlace, OnlyPart, ServerEvent};
pub use session_object::{SessionObject, Transcription};
pub use session_update::{
    Eagerness, SessionKind, SessionUpdate, TranscriptionUpdate, Truncation, TurnDetection,
    TurnDetectionUpdate, TurnMode,
};
