//! Faults of a client's messages, and their form on the wire.

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::limits::APPEND_BYTES_MAX;

/// Longest piece of the client's own text that an error message repeats, bytes.
const QUOTE_BYTES_MAX: usize = 80;

/// A fault of a client's message, or a reason to refuse it. The text is the wire's `message`; [`Fault::code`],
/// [`Fault::kind`] and [`Fault::param`] are its other members.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// Not JSON, or nested deeper than the parser goes.
    #[error("the message is not valid JSON: {detail}")]
    NotJson {
        /// The parser's message.
        detail: String,
    },
    /// More structural characters than a message may have.
    #[error("the message has {found} structural characters, at most {allowed} are allowed")]
    TooComplex {
        /// Commas, colons and opening brackets.
        found: usize,
        /// Structural characters allowed.
        allowed: usize,
    },
    /// An event other than an append, larger than its type may be.
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
        /// JSON type found.
        found: &'static str,
    },
    /// A binary WebSocket message.
    #[error("found a binary message, expected JSON text")]
    BinaryMessage,
    /// A required field that is missing.
    #[error("missing required parameter '{param}'")]
    Missing {
        /// Path of the field.
        param: String,
    },
    /// A field of the wrong JSON type.
    #[error("'{param}' is {found}, expected {expected}")]
    WrongType {
        /// Path of the field.
        param: String,
        /// JSON type found.
        found: &'static str,
        /// Accepted types or values.
        expected: &'static str,
    },
    /// A field of the right type whose value is not accepted.
    #[error("'{param}' is {found}, expected {expected}")]
    WrongValue {
        /// Path of the field.
        param: String,
        /// The value, shortened.
        found: String,
        /// Accepted types or values.
        expected: String,
    },
    /// A text that is longer than allowed.
    #[error("'{param}' has {found} bytes, at most {allowed} are allowed")]
    TooLong {
        /// Path of the field.
        param: String,
        /// Bytes found.
        found: usize,
        /// Bytes allowed.
        allowed: usize,
    },
    /// A part of the reference that this version lacks.
    #[error("{feature} is not implemented; supported: {supported}")]
    NotImplemented {
        /// Path of the field.
        param: String,
        /// Feature that the client asked for.
        feature: String,
        /// Feature to use instead.
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
    /// A second response while another one is running.
    #[error("response {active} is in progress; wait until it is done or cancel it")]
    ActiveResponse {
        /// Id of the running response.
        active: String,
    },
    /// A cancel with nothing to cancel.
    #[error("Cancellation failed: no active response found; {found}")]
    NothingToCancel {
        /// The response that the client named, and the running one.
        found: String,
    },
    /// An item that is not in the conversation.
    #[error("item {found} is not in the conversation")]
    ItemNotFound {
        /// The wire's `error.code`, which depends on the event.
        code: &'static str,
        /// Path of the field.
        param: String,
        /// The id, in quotes, shortened.
        found: String,
    },
    /// A truncate of an item that is no spoken answer.
    #[error("item {found} is no spoken answer, and only these can be truncated")]
    NotSpoken {
        /// The id, in quotes, shortened.
        found: String,
    },
    /// A truncate beyond the audio that was sent, or that the last truncate has left.
    #[error("'audio_end_ms' is {found_ms}, but the item has only {sent_ms} ms of audio")]
    NotSent {
        /// Length that the client asked for, milliseconds.
        found_ms: u32,
        /// Audio of the item, milliseconds.
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
        /// The call's id, in quotes, shortened.
        found: String,
    },
    /// A second output of a call, or a second call of one name.
    #[error("function call {found} has {what} already")]
    CallTaken {
        /// The call's id, in quotes, shortened.
        found: String,
        /// The thing that the call has already.
        what: &'static str,
    },
    /// A picture for a language model that reads none.
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
    /// Audio of an item that is empty, or ends in the middle of a sample.
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
        /// Number of running responses.
        running: usize,
    },
    /// A response in a session of type `transcription`.
    #[error("a session of type 'transcription' has no responses")]
    NoResponses,
    /// Another type of session after the session has begun.
    #[error("the session is of type '{current}' and cannot change that any more")]
    KindFixed {
        /// Type of the session.
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
    /// A connection while no unit is free.
    #[error("all {units} session slots are in use; close one and try again")]
    SessionLimit {
        /// Number of units.
        units: usize,
    },
    /// The session has reached its maximum length.
    #[error("the session has reached its maximum length of {seconds} s")]
    SessionExpired {
        /// Maximum length, seconds.
        seconds: u64,
    },
    /// The server is going down.
    #[error("the server is shutting down")]
    ShuttingDown,
}

impl Fault {
    /// Returns the wire's `error.type`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        self.on_wire().kind
    }

    /// Returns the wire's `error.code`: the name of the OpenAI API if there is one.
    #[must_use]
    pub fn code(&self) -> Option<&'static str> {
        self.on_wire().code
    }

    /// Returns the wire's `error.param`: the path of the field that is wrong.
    #[must_use]
    pub fn param(&self) -> Option<&str> {
        self.on_wire().param
    }

    fn on_wire(&self) -> OnWire<'_> {
        match self {
            Self::NotJson { .. } => invalid("invalid_json", None),
            Self::TooComplex { .. } | Self::EventTooLarge { .. } => invalid("event_too_large", None),
            Self::NotAnObject { .. } | Self::BinaryMessage => invalid("invalid_event", None),
            Self::Missing { param } => invalid("missing_required_parameter", Some(param)),
            Self::WrongType { param, .. } => invalid("invalid_type", Some(param)),
            Self::WrongValue { param, .. } => invalid("invalid_value", Some(param)),
            Self::TooLong { param, .. } => invalid("string_above_max_length", Some(param)),
            Self::NotImplemented { param, .. } => invalid("not_implemented", Some(param)),
            Self::BadBase64 => invalid("invalid_base64", Some("audio")),
            Self::OddBytes { .. } => invalid("invalid_audio_length", Some("audio")),
            Self::AppendTooLarge { .. } => invalid("append_too_large", Some("audio")),
            Self::CommitEmpty { .. } => invalid("input_audio_buffer_commit_empty", None),
            Self::ActiveResponse { .. } => invalid("conversation_already_has_active_response", None),
            Self::NothingToCancel { .. } => invalid("response_cancel_not_active", Some("response_id")),
            Self::ItemNotFound { code, param, .. } => invalid(code, Some(param)),
            Self::NotSpoken { .. } => invalid("invalid_value", Some("item_id")),
            Self::NotSent { .. } => invalid("invalid_value", Some("audio_end_ms")),
            Self::NotOnWebSocket => invalid("not_on_websocket", Some("type")),
            Self::CallNotFound { param, .. } => invalid("invalid_tool_call_id", Some(param)),
            Self::CallTaken { .. } => invalid("tool_call_already_exists", Some("item.call_id")),
            Self::ImagesNotSeen { param } => invalid("image_not_supported", Some(param)),
            Self::ImageAddress { param } => invalid("image_url_not_allowed", Some(param)),
            Self::Speaking => invalid("input_audio_busy", Some("item.content")),
            Self::ItemSamples { .. } => invalid("invalid_audio_length", Some("item.content")),
            Self::TooManyResponses { .. } => invalid("too_many_responses", None),
            Self::NoResponses => invalid("invalid_session_type", Some("type")),
            Self::KindFixed { .. } => invalid("cannot_update_session_type", Some("session.type")),
            Self::ItemExists { .. } => invalid("item_create_duplicate_item_id", Some("item.id")),
            Self::VoiceFixed { param, .. } => invalid("cannot_update_voice", Some(param)),
            // The reference has no code for this fault.
            // Source: huggingface/speech-to-speech 9f59bc7, `websocket_router.py`.
            Self::SessionLimit { .. } => OnWire { kind: "session_limit_reached", code: None, param: None },
            Self::SessionExpired { .. } => invalid("session_expired", None),
            Self::ShuttingDown => {
                OnWire { kind: "server_error", code: Some("server_shutting_down"), param: None }
            }
        }
    }
}

/// Members of the wire's `error` beside its `message`.
struct OnWire<'a> {
    kind: &'static str,
    code: Option<&'static str>,
    param: Option<&'a str>,
}

/// Makes an `invalid_request_error`, the kind of almost every fault.
const fn invalid<'a>(code: &'static str, param: Option<&'a str>) -> OnWire<'a> {
    OnWire { kind: "invalid_request_error", code: Some(code), param }
}

/// One `error` event: the fault, and the client event that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault}")]
pub struct ProtocolError {
    fault: Box<Fault>,
    event_id: Option<Box<str>>,
}

impl ProtocolError {
    /// Ties the error to the client event with this id.
    #[must_use]
    pub fn with_event_id(mut self, event_id: Option<&str>) -> Self {
        self.event_id = event_id.map(Into::into);
        self
    }

    /// Returns the fault.
    #[must_use]
    pub const fn fault(&self) -> &Fault {
        &self.fault
    }

    /// Returns the id that the client gave the event; `None` without a readable one.
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

/// Writes the wire's `error`.
impl Serialize for ProtocolError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let OnWire { kind, code, param } = self.fault.on_wire();
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("type", kind)?;
        map.serialize_entry("code", &code)?;
        map.serialize_entry("message", &self.fault.to_string())?;
        map.serialize_entry("param", &param)?;
        map.serialize_entry("event_id", &self.event_id)?;
        map.end()
    }
}

/// Quotes a piece of the client's own text, cut short for an error message.
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
        for (fault, kind, code, param) in [
            (Fault::BadBase64, "invalid_request_error", Some("invalid_base64"), Some("audio")),
            (
                Fault::OddBytes { found: 481 },
                "invalid_request_error",
                Some("invalid_audio_length"),
                Some("audio"),
            ),
            (
                Fault::AppendTooLarge { found: 1 },
                "invalid_request_error",
                Some("append_too_large"),
                Some("audio"),
            ),
            (Fault::BinaryMessage, "invalid_request_error", Some("invalid_event"), None),
            (Fault::SessionLimit { units: 4 }, "session_limit_reached", None, None),
            (Fault::ShuttingDown, "server_error", Some("server_shutting_down"), None),
        ] {
            assert_eq!((fault.kind(), fault.code(), fault.param()), (kind, code, param));
            assert!(!fault.to_string().ends_with('.'));
        }
        assert!(Fault::SessionLimit { units: 4 }.to_string().contains("all 4"));
    }

    #[test]
    fn the_clients_text_is_repeated_only_in_part() {
        assert_eq!(quoted("pcm16"), "'pcm16'");
        let long = quoted(&"é".repeat(1_000));
        assert!(long.len() < 120 && long.ends_with("(2000 bytes)"), "{long}");
    }
}
