//! The OpenAI Realtime wire format: text in, typed events out, and back.
//!
//! Follows the published types of the `openai` Python package, 3.57.0 (`openai/types/realtime`). This module
//! knows bytes and names; what an event does is the business of [`crate::session`]. It reads no clock, does
//! no I/O and never panics on anything that a client can send.
//!
//! - [`Decoder`]: one text message → [`Decoded`] or one [`ProtocolError`].
//! - [`ServerEvent::encode`] and [`encode_audio_delta`]: typed event → compact JSON in the caller's buffer.
//! - [`EventIds`], [`ItemId`], [`ResponseId`] …: identifiers.

mod client_event;
mod decode;
mod encode;
mod error;
mod field;
mod id;
mod server_event;
mod session_update;
mod shallow;

pub use client_event::{
    ClientEvent, ClientEventKind, ClientItem, InputItem, MaxTokens, Modality, ResponseRequest, Speaker,
};
pub use decode::{Append, Decoded, Decoder};
pub use encode::{AudioDelta, encode_audio_delta};
pub(crate) use error::quoted;
pub use error::{Fault, ProtocolError};
pub use id::{ConversationId, EventId, EventIds, ItemId, ResponseId, SessionId};
pub use server_event::{
    Content, ErrorObject, Item, ItemStatus, Part, ResponseObject, ResponseStatus, ServerEvent, SessionObject,
    StatusDetails, Transcription, TranscriptionUsage, Usage,
};
pub use session_update::{Patch, SessionUpdate, TranscriptionUpdate, TurnDetection, TurnDetectionUpdate};
