//! What can be wrong with what a client sends, and how that is said on the wire.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::limits::APPEND_BYTES_MAX;

/// Longest piece of the client's own text that an error message repeats, bytes.
const QUOTE_BYTES_MAX: usize = 80;

/// What is wrong. The text is the wire's `message`; [`Fault::code`], [`Fault::kind`] and [`Fault::param`] are
/// the rest.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Not JSON, or nested deeper than the parser goes.
    #[error("the message is not valid JSON: {detail}")]
    NotJson {
        /// What the parser said.
        detail: String,
    },
    /// More punctuation than a message may have.
    #[error("the message has {found} structural characters, at most {allowed} are allowed")]
    TooComplex {
        /// Commas, colons and opening brackets.
        found: usize,
        /// How many may be.
        allowed: usize,
    },
    /// An event other than an append that is larger than one of its type may be.
    #[error("the event has {found} bytes, at most {allowed} are allowed for this event")]
    EventTooLarge {
        /// Bytes of the message.
        found: usize,
        /// Bytes allowed.
        allowed: usize,
    },
    /// JSON, but not an object.
    #[error("the message is {found}, expected an object with a 'type'")]
    NotAnObject {
        /// What it is.
        found: &'static str,
    },
    /// A binary WebSocket message.
    #[error("found a binary message, expected JSON text")]
    BinaryMessage,
    /// A field that must be there is not.
    #[error("missing required parameter '{param}'")]
    Missing {
        /// Path of the field.
        param: String,
    },
    /// A field has the wrong JSON type.
    #[error("'{param}' is {found}, expected {expected}")]
    WrongType {
        /// Path of the field.
        param: String,
        /// JSON type found.
        found: &'static str,
        /// What is accepted.
        expected: &'static str,
    },
    /// A field has the right type and a value that is not accepted.
    #[error("'{param}' is {found}, expected {expected}")]
    WrongValue {
        /// Path of the field.
        param: String,
        /// The value, shortened.
        found: String,
        /// What is accepted.
        expected: String,
    },
    /// A text is longer than allowed.
    #[error("'{param}' has {found} bytes, at most {allowed} are allowed")]
    TooLong {
        /// Path of the field.
        param: String,
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        allowed: usize,
    },
    /// Part of the reference, not of this version.
    #[error("{feature} is not implemented; supported: {supported}")]
    NotImplemented {
        /// Path of the field.
        param: String,
        /// What was asked for.
        feature: String,
        /// What can be had instead.
        supported: &'static str,
    },
    /// The audio of an append is not base64.
    #[error("'audio' is not valid base64 (standard alphabet, with padding, no white space)")]
    BadBase64,
    /// The audio of an append ends in the middle of a sample.
    #[error("'audio' holds {found} bytes, expected an even number: samples of 'audio/pcm' have 16 bits")]
    OddBytes {
        /// Bytes after decoding.
        found: usize,
    },
    /// The audio of an append is larger than allowed.
    #[error("'audio' holds {found} bytes, at most {APPEND_BYTES_MAX} are allowed in one append")]
    AppendTooLarge {
        /// Bytes after decoding.
        found: usize,
    },
    /// A commit of too little audio.
    #[error("the input audio buffer holds {audio_ms} ms of audio, too little to commit")]
    CommitEmpty {
        /// Audio in the buffer.
        audio_ms: u32,
    },
    /// A second response while one is running.
    #[error("response {active} is in progress; wait until it is done or cancel it")]
    ActiveResponse {
        /// The running response.
        active: String,
    },
    /// A cancel with nothing to cancel.
    #[error("Cancellation failed: no active response found; {found}")]
    NothingToCancel {
        /// Which response was asked for, and which is running.
        found: String,
    },
    /// An item that is not in the conversation.
    #[error("item {found} is not in the conversation")]
    ItemNotFound {
        /// `error.code`: clients know one for each event.
        code: &'static str,
        /// Path of the field.
        param: String,
        /// The id, in quotes, shortened.
        found: String,
    },
    /// A truncate of an item that is no spoken answer, or not one yet.
    #[error("item {found} is {what}, expected an answer that was spoken and has ended")]
    NotSpoken {
        /// The id, in quotes, shortened.
        found: String,
        /// What it is.
        what: &'static str,
    },
    /// A truncate beyond the audio that was sent.
    #[error("'audio_end_ms' is {found_ms}, but only {sent_ms} ms of audio have been sent for the item")]
    NotSent {
        /// What was asked for.
        found_ms: u32,
        /// What there is.
        sent_ms: u32,
    },
    /// An event for connections on which the server plays the audio.
    #[error(
        "'output_audio_buffer.clear' is for WebRTC and SIP, where the server holds back audio; on a WebSocket the client does: \
         stop playing, then send 'response.cancel' and 'conversation.item.truncate'"
    )]
    NotOnWebSocket,
    /// The output of a call that the conversation does not have.
    #[error("no whole function call {found} is in the conversation")]
    CallNotFound {
        /// Path of the field.
        param: String,
        /// The call's name, in quotes, shortened.
        found: String,
    },
    /// A second output of a call, or a second call of one name.
    #[error("function call {found} has {what} already")]
    CallTaken {
        /// The call's name, in quotes, shortened.
        found: String,
        /// What it has.
        what: &'static str,
    },
    /// A picture, and the language model has no eyes.
    #[error("the language model of this server sees no images")]
    ImagesNotSeen {
        /// Path of the field.
        param: &'static str,
    },
    /// The address of a picture instead of the picture.
    #[error("addresses of images are not fetched; send the image itself as 'data:image/png;base64,…'")]
    ImageAddress {
        /// Path of the field.
        param: &'static str,
    },
    /// Audio of an item while other audio is not committed.
    #[error("audio of an item can not be heard while the user is speaking, or has audio in the buffer")]
    Speaking,
    /// Audio of an item that ends in the middle of a sample, or is none.
    #[error("'audio' holds {found} bytes, expected whole samples of {sample_bytes} bytes")]
    ItemSamples {
        /// Bytes after decoding.
        found: usize,
        /// Bytes of a sample in the session's format.
        sample_bytes: usize,
    },
    /// More responses at once than a session may have.
    #[error("{running} responses out of band are running, at most {running} are allowed")]
    TooManyResponses {
        /// How many are running.
        running: usize,
    },
    /// A response in a session that has none.
    #[error("a session of type 'transcription' has no responses")]
    NoResponses,
    /// Another type of session after the session has begun.
    #[error("the session is of type '{current}' and cannot change that any more")]
    KindFixed {
        /// The type.
        current: &'static str,
    },
    /// An item id that is taken.
    #[error("item {found} is in the conversation already")]
    ItemExists {
        /// The id, in quotes, shortened.
        found: String,
    },
    /// Another voice after the first audio.
    #[error("the voice is '{current}' and cannot become {asked} after the first audio of the session")]
    VoiceFixed {
        /// The voice of the session.
        current: String,
        /// The voice asked for, in quotes, shortened.
        asked: String,
        /// Path of the field.
        param: &'static str,
    },
    /// The pool has no free unit.
    #[error("all {units} session slots are in use; close one and try again")]
    SessionLimit {
        /// Size of the pool.
        units: usize,
    },
    /// The session has lasted as long as it may.
    #[error("the session has reached its maximum length of {seconds} s")]
    SessionExpired {
        /// The maximum.
        seconds: u64,
    },
    /// The server is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// The client does not read what it is sent.
    #[error("the client reads too slowly: the backlog of unsent events is full")]
    SlowReader,
}

impl Fault {
    /// `error.type` on the wire.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            // The reference has no name for it. Source: huggingface/speech-to-speech 9f59bc7, `websocket_router.py`.
            Self::SessionLimit { .. } => "session_limit_reached",
            Self::ShuttingDown => "server_error",
            _ => "invalid_request_error",
        }
    }

    /// `error.code` on the wire. Names of the OpenAI API where it has one.
    #[must_use]
    pub const fn code(&self) -> Option<&'static str> {
        Some(match self {
            Self::NotJson { .. } => "invalid_json",
            Self::TooComplex { .. } | Self::EventTooLarge { .. } => "event_too_large",
            Self::NotAnObject { .. } | Self::BinaryMessage => "invalid_event",
            Self::Missing { .. } => "missing_required_parameter",
            Self::WrongType { .. } => "invalid_type",
            Self::WrongValue { .. } | Self::NotSpoken { .. } | Self::NotSent { .. } => "invalid_value",
            Self::NotOnWebSocket => "not_on_websocket",
            Self::TooLong { .. } => "string_above_max_length",
            Self::NotImplemented { .. } => "not_implemented",
            Self::BadBase64 => "invalid_base64",
            Self::OddBytes { .. } => "invalid_audio_length",
            Self::AppendTooLarge { .. } => "append_too_large",
            Self::CommitEmpty { .. } => "input_audio_buffer_commit_empty",
            Self::ActiveResponse { .. } => "conversation_already_has_active_response",
            Self::NothingToCancel { .. } => "response_cancel_not_active",
            Self::ItemNotFound { code, .. } => code,
            Self::CallNotFound { .. } => "invalid_tool_call_id",
            Self::CallTaken { .. } => "tool_call_already_exists",
            Self::ImagesNotSeen { .. } => "image_not_supported",
            Self::ImageAddress { .. } => "image_url_not_allowed",
            Self::Speaking => "input_audio_busy",
            Self::ItemSamples { .. } => "invalid_audio_length",
            Self::TooManyResponses { .. } => "too_many_responses",
            Self::NoResponses => "invalid_session_type",
            Self::KindFixed { .. } => "cannot_update_session_type",
            Self::ItemExists { .. } => "item_create_duplicate_item_id",
            Self::VoiceFixed { .. } => "cannot_update_voice",
            Self::SessionLimit { .. } => return None,
            Self::SessionExpired { .. } => "session_expired",
            Self::ShuttingDown => "server_shutting_down",
            Self::SlowReader => "slow_reader",
        })
    }

    /// `error.param` on the wire: the path of the field that is wrong.
    #[must_use]
    pub fn param(&self) -> Option<&str> {
        match self {
            Self::Missing { param }
            | Self::WrongType { param, .. }
            | Self::WrongValue { param, .. }
            | Self::TooLong { param, .. }
            | Self::NotImplemented { param, .. }
            | Self::CallNotFound { param, .. }
            | Self::ItemNotFound { param, .. } => Some(param),
            Self::BadBase64 | Self::OddBytes { .. } | Self::AppendTooLarge { .. } => Some("audio"),
            Self::ItemExists { .. } => Some("item.id"),
            Self::CallTaken { .. } => Some("item.call_id"),
            Self::ImagesNotSeen { param } | Self::ImageAddress { param } => Some(param),
            Self::Speaking | Self::ItemSamples { .. } => Some("item.content"),
            Self::NoResponses => Some("type"),
            Self::KindFixed { .. } => Some("session.type"),
            Self::NotSpoken { .. } => Some("item_id"),
            Self::NotSent { .. } => Some("audio_end_ms"),
            Self::NotOnWebSocket => Some("type"),
            Self::VoiceFixed { param, .. } => Some(param),
            Self::NothingToCancel { .. } => Some("response_id"),
            _ => None,
        }
    }
}

/// One `error` event: what is wrong, and with which client event.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct ProtocolError {
    fault: Box<Fault>,
    event_id: Option<Box<str>>,
}

impl ProtocolError {
    /// The audio of an append is not base64.
    #[must_use]
    pub fn bad_base64() -> Self {
        Fault::BadBase64.into()
    }

    /// The audio of an append has `found` bytes, an odd number.
    #[must_use]
    pub fn odd_bytes(found: usize) -> Self {
        Fault::OddBytes { found }.into()
    }

    /// The audio of an append has `found` bytes, more than [`APPEND_BYTES_MAX`].
    #[must_use]
    pub fn append_too_large(found: usize) -> Self {
        Fault::AppendTooLarge { found }.into()
    }

    /// A binary WebSocket message.
    #[must_use]
    pub fn binary_message() -> Self {
        Fault::BinaryMessage.into()
    }

    /// All `units` units of the pool are claimed.
    #[must_use]
    pub fn session_limit_reached(units: usize) -> Self {
        Fault::SessionLimit { units }.into()
    }

    /// The server is going down.
    #[must_use]
    pub fn server_shutting_down() -> Self {
        Fault::ShuttingDown.into()
    }

    /// The client does not read.
    #[must_use]
    pub fn slow_reader() -> Self {
        Fault::SlowReader.into()
    }

    /// The same error, tied to the client event with this id.
    #[must_use]
    pub fn with_event_id(mut self, event_id: Option<&str>) -> Self {
        self.event_id = event_id.map(Into::into);
        self
    }

    /// What is wrong.
    #[must_use]
    pub const fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Id that the client gave the event, if it could be read.
    #[must_use]
    pub fn event_id(&self) -> Option<&str> {
        self.event_id.as_deref()
    }
}

impl From<Fault> for ProtocolError {
    fn from(fault: Fault) -> Self {
        Self { fault: Box::new(fault), event_id: None }
    }
}

/// The wire's `error`.
impl Serialize for ProtocolError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("type", self.fault.kind())?;
        map.serialize_entry("code", &self.fault.code())?;
        map.serialize_entry("message", &self.fault.to_string())?;
        map.serialize_entry("param", &self.fault.param())?;
        map.serialize_entry("event_id", &self.event_id)?;
        map.end()
    }
}

/// A piece of the client's own text, in quotes, short enough for an error message.
pub(crate) fn quoted(text: &str) -> String {
    if text.len() <= QUOTE_BYTES_MAX {
        return format!("'{text}'");
    }
    let cut = text.floor_char_boundary(QUOTE_BYTES_MAX);
    format!("'{}…' ({} bytes)", &text[..cut], text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_edges_errors_have_their_place_on_the_wire() {
        for (error, kind, code, param) in [
            (ProtocolError::bad_base64(), "invalid_request_error", Some("invalid_base64"), Some("audio")),
            (
                ProtocolError::odd_bytes(481),
                "invalid_request_error",
                Some("invalid_audio_length"),
                Some("audio"),
            ),
            (
                ProtocolError::append_too_large(1),
                "invalid_request_error",
                Some("append_too_large"),
                Some("audio"),
            ),
            (ProtocolError::binary_message(), "invalid_request_error", Some("invalid_event"), None),
            (ProtocolError::session_limit_reached(4), "session_limit_reached", None, None),
            (ProtocolError::server_shutting_down(), "server_error", Some("server_shutting_down"), None),
            (ProtocolError::slow_reader(), "invalid_request_error", Some("slow_reader"), None),
        ] {
            assert_eq!(
                (error.fault().kind(), error.fault().code(), error.fault().param()),
                (kind, code, param)
            );
            assert!(!error.to_string().ends_with('.'));
        }
        assert!(ProtocolError::session_limit_reached(4).to_string().contains("all 4"));
    }

    #[test]
    fn the_clients_text_is_repeated_only_in_part() {
        assert_eq!(quoted("pcm16"), "'pcm16'");
        let long = quoted(&"é".repeat(1_000));
        assert!(long.len() < 120 && long.ends_with("(2000 bytes)"), "{long}");
    }
}
