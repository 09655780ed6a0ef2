//! One text message of the client → one event, or one error.

use std::borrow::Cow;
use std::fmt;

use simd_json::{Buffers, INPUT_PADDING, Tape, tape};

use super::bound::EVENT_ID_BYTES_MAX;
use super::client_event::{ClientEvent, ClientEventKind, SUPPORTED};
use super::error::{Fault, ProtocolError, quoted};
use super::field::{Field, Fields};
use super::shallow;

/// Deepest nesting of arrays and objects. The limit is ours; JSON schemas of tools stay below 20.
const DEPTH_MAX: usize = 64;

/// Most commas, colons and opening brackets of a message. One parsed value takes 24 bytes, so the parser allocates at
/// most 1.5 MiB beyond the message's own length. Base64 has none of these characters.
const STRUCTURAL_CHARACTERS_MAX: usize = 65_536;

/// Largest event other than an append and an item, bytes.
const EVENT_BYTES_MAX: usize = 1_024 * 1_024;

/// Largest `conversation.item.create`, bytes: a picture of 6 MiB, or two minutes of audio at 24 kHz.
const ITEM_EVENT_BYTES_MAX: usize = 8 * 1_024 * 1_024;

/// Largest buffer that is kept after a message, bytes.
const KEPT_BYTES_MAX: usize = 64 * 1_024;

/// A decoded message.
#[derive(Debug, PartialEq)]
pub enum Decoded<'a> {
    /// The event `input_audio_buffer.append`.
    Append(Append<'a>),
    /// Any other event.
    Event(ClientEvent),
}

/// The event `input_audio_buffer.append`, its base64 not checked yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Append<'a> {
    /// Base64 of mono audio in the session's input format; borrowed from the message unless it held an escape.
    pub audio: Cow<'a, str>,
    /// The client's name for the event, at most 512 bytes.
    pub event_id: Option<Cow<'a, str>>,
}

/// Decoder of messages, which keeps the parser's buffers between them.
///
/// The append event as clients send it costs one pass over the message and no heap call. Everything else goes
/// through simd-json. Buffers shrink again after an unusually large message.
pub struct Decoder {
    /// Copy of the message, which the parser unescapes in place, and its padding.
    input: Vec<u8>,
    buffers: Buffers,
    tape: Tape<'static>,
}

impl Decoder {
    /// Makes a decoder with small buffers.
    #[must_use]
    pub fn new() -> Self {
        Self { input: Vec::new(), buffers: Buffers::with_max_depth(0, DEPTH_MAX), tape: Tape(Vec::new()) }
    }

    /// Decodes one message.
    ///
    /// Half a surrogate pair in a string becomes U+FFFD; of a repeated member the last one counts; unknown members are
    /// ignored.
    ///
    /// # Errors
    /// Returns the fault of the message, tied to the client's `event_id` if that can be read. The message had no effect
    /// then.
    pub fn decode<'a>(&mut self, text: &'a str) -> Result<Decoded<'a>, ProtocolError> {
        if let Some(append) = shallow::flat_append(text) {
            return Ok(Decoded::Append(Append {
                audio: Cow::Borrowed(append.audio),
                event_id: append.event_id.map(Cow::Borrowed),
            }));
        }
        self.parse(text)
    }

    /// Decodes any message with the parser.
    fn parse<'a>(&mut self, text: &str) -> Result<Decoded<'a>, ProtocolError> {
        // A short message cannot have too many.
        let found =
            if text.len() > STRUCTURAL_CHARACTERS_MAX { shallow::structural_characters(text) } else { 0 };
        if found > STRUCTURAL_CHARACTERS_MAX {
            return Err(unparsed(Fault::TooComplex { found, allowed: STRUCTURAL_CHARACTERS_MAX }, text));
        }
        let decoded = self.parse_bounded(text);
        self.give_back_large_buffers();
        decoded
    }

    fn parse_bounded<'a>(&mut self, text: &str) -> Result<Decoded<'a>, ProtocolError> {
        self.load(text);
        let fault = match self.read_input(text.len()) {
            Ok(outcome) => return outcome,
            Err(parser_error) => Fault::NotJson { detail: parser_error.to_string() },
        };
        self.load(text);
        if shallow::mend_surrogates(&mut self.input[..text.len()])
            && let Ok(outcome) = self.read_input(text.len())
        {
            return outcome;
        }
        Err(unparsed(fault, text))
    }

    /// Copies the message into the buffer, which the parser may write to.
    fn load(&mut self, text: &str) {
        self.input.clear();
        self.input.reserve(text.len() + INPUT_PADDING);
        self.input.extend_from_slice(text.as_bytes());
        self.input.resize(text.len() + INPUT_PADDING, 0);
    }

    /// Parses and reads the loaded message of `len` bytes.
    ///
    /// # Errors
    /// Returns the outer error if the message is not JSON, and the inner one if the message is JSON but no event.
    fn read_input<'a>(&mut self, len: usize) -> Result<Result<Decoded<'a>, ProtocolError>, simd_json::Error> {
        let mut tape = std::mem::replace(&mut self.tape, Tape(Vec::new())).reset();
        let outcome = simd_json::fill_tape_padded(&mut self.input, len, &mut self.buffers, &mut tape)
            .map(|()| read_event(tape.as_value(), len));
        // An empty tape borrows nothing, and keeps its memory for the next message.
        self.tape = tape.reset();
        outcome
    }

    fn give_back_large_buffers(&mut self) {
        if self.input.capacity() > KEPT_BYTES_MAX
            || self.tape.0.capacity() * size_of::<tape::Node<'_>>() > KEPT_BYTES_MAX
        {
            *self = Self::new();
        }
    }
}

impl Default for Decoder {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Decoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoder").field("kept_bytes", &self.input.capacity()).finish_non_exhaustive()
    }
}

/// Makes the error for a message that was not parsed.
fn unparsed(fault: Fault, text: &str) -> ProtocolError {
    ProtocolError::from(fault).with_event_id(shallow::recover_event_id(text))
}

fn read_event<'a>(value: tape::Value<'_, '_>, len: usize) -> Result<Decoded<'a>, ProtocolError> {
    let event = Fields::root(value)?;
    let event_id = event.optional("event_id", |id| id.text_up_to(EVENT_ID_BYTES_MAX))?;
    read_members(&event, event_id, len).map_err(|fault| ProtocolError::from(fault).with_event_id(event_id))
}

fn read_members<'a>(
    event: &Fields<'_, '_>,
    event_id: Option<&str>,
    len: usize,
) -> Result<Decoded<'a>, Fault> {
    let kind = event.required("type", Field::text)?;
    let event_id = event_id.map(ToOwned::to_owned);
    if kind == shallow::APPEND {
        let audio = event.required("audio", Field::text)?;
        return Ok(Decoded::Append(Append {
            audio: Cow::Owned(audio.to_owned()),
            event_id: event_id.map(Cow::Owned),
        }));
    }
    let allowed = if kind == "conversation.item.create" { ITEM_EVENT_BYTES_MAX } else { EVENT_BYTES_MAX };
    if len > allowed {
        return Err(Fault::EventTooLarge { found: len, allowed });
    }
    let kind = ClientEventKind::read(kind, event).unwrap_or_else(|| {
        Err(Fault::WrongValue {
            param: "type".to_owned(),
            found: quoted(kind),
            expected: format!("one of {SUPPORTED}"),
        })
    })?;
    Ok(Decoded::Event(ClientEvent { event_id, kind }))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::item::{Content, ItemBody};
    use super::*;

    fn error_of(text: &str) -> ProtocolError {
        Decoder::new().decode(text).expect_err(text)
    }

    fn event_of(text: &str) -> ClientEvent {
        match Decoder::new().decode(text) {
            Ok(Decoded::Event(event)) => event,
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn an_append_with_escapes_means_the_same() {
        let text = r#"{"type":"input_audio_buffer.append","audio":"A\/\u0041A","event_id":"e1"}"#;
        let append = Append { audio: "A/AA".into(), event_id: Some("e1".into()) };
        assert_eq!(Decoder::new().decode(text), Ok(Decoded::Append(append)));
    }

    #[test]
    fn each_bad_message_is_one_error_with_the_event_id_that_can_be_read() {
        for (text, code, param, event_id) in [
            ("", "invalid_json", None, None),
            (" \n ", "invalid_json", None, None),
            (r#"{"event_id":"e1","type":"#, "invalid_json", None, Some("e1")),
            ("[1,2]", "invalid_event", None, None),
            ("null", "invalid_event", None, None),
            (r#"{"event_id":"e1"}"#, "missing_required_parameter", Some("type"), Some("e1")),
            (r#"{"event_id":"e1","type":7}"#, "invalid_type", Some("type"), Some("e1")),
            (r#"{"event_id":7,"type":"response.cancel"}"#, "invalid_type", Some("event_id"), None),
            (r#"{"event_id":"e1","type":"response.audio"}"#, "invalid_value", Some("type"), Some("e1")),
            (
                r#"{"event_id":"e1","type":"conversation.item.truncate"}"#,
                "missing_required_parameter",
                Some("item_id"),
                Some("e1"),
            ),
            (
                r#"{"event_id":"e1","type":"input_audio_buffer.append"}"#,
                "missing_required_parameter",
                Some("audio"),
                Some("e1"),
            ),
            (r#"{"type":"input_audio_buffer.append","audio":null}"#, "invalid_type", Some("audio"), None),
            (r#"{"type":"input_audio_buffer.append","audio":[1]}"#, "invalid_type", Some("audio"), None),
        ] {
            let error = error_of(text);
            assert_eq!((error.fault().code(), error.fault().param()), (Some(code), param), "{text}");
            assert_eq!(error.event_id(), event_id, "{text}");
        }
    }

    #[test]
    fn large_and_deep_messages_are_refused_and_nothing_large_is_kept() {
        let mut decoder = Decoder::new();
        let padding = "x".repeat(EVENT_BYTES_MAX);
        let commas = format!(r#"{{"event_id":"e1","a":[{}1]}}"#, "1,".repeat(STRUCTURAL_CHARACTERS_MAX));
        for (text, code) in [
            (format!(r#"{{"type":"response.cancel","x":"{padding}"}}"#), "event_too_large"),
            (commas, "event_too_large"),
            ("[".repeat(10_000), "invalid_json"),
            (format!("{}1{}", "[".repeat(DEPTH_MAX + 2), "]".repeat(DEPTH_MAX + 2)), "invalid_json"),
            (format!("{}{}", r#"{"a":"#.repeat(10_000), "}".repeat(10_000)), "invalid_json"),
            (" ".repeat(1_000_000), "invalid_json"),
        ] {
            let error = decoder.decode(&text).expect_err("refused");
            assert_eq!(error.fault().code(), Some(code), "{}", &text[..60]);
            assert!(decoder.input.capacity() <= KEPT_BYTES_MAX);
        }
        let audio = "A".repeat(20 * 1_024 * 1_024);
        let append = format!(r#"{{"type":"input_audio_buffer.append","audio":"{audio}","x":null}}"#);
        match decoder.decode(&append) {
            Ok(Decoded::Append(Append { audio: Cow::Owned(found), .. })) => assert!(found == audio),
            other => panic!("{:?}", other.map(|_| "not an owned append")),
        }
        assert!(decoder.input.capacity() <= KEPT_BYTES_MAX);
    }

    #[test]
    fn odd_text_is_taken_as_it_is() {
        let text = |text: &str| {
            let part = format!(r#"{{"type":"input_text","text":"{text}"}}"#);
            let item = format!(r#"{{"type":"message","role":"user","content":[{part}]}}"#);
            let json = format!(r#"{{"type":"conversation.item.create","item":{item}}}"#);
            let kind = event_of(&json).kind;
            if let ClientEventKind::ItemCreate { item, .. } = &kind
                && let ItemBody::Message { content, .. } = &item.body
                && let [Content::InputText(text)] = content.as_slice()
            {
                return text.clone();
            }
            panic!("{kind:?}");
        };
        assert_eq!(text(r"abc \ud83d"), "abc \u{fffd}");
        assert_eq!(text(r"\ud83d\ude80 \u0000 \u2028"), "🚀 \0 \u{2028}");
        assert_eq!(text("e\u{301} \u{202e}rtl"), "e\u{301} \u{202e}rtl");
    }

    #[test]
    fn of_a_repeated_member_the_last_one_counts() {
        let event = event_of(
            r#"{"type":"response.cancel","type":"input_audio_buffer.commit","event_id":"a","event_id":"b"}"#,
        );
        assert_eq!(event, ClientEvent { event_id: Some("b".into()), kind: ClientEventKind::Commit });
    }

    proptest! {
        #[test]
        fn flat_appends_mean_the_same_to_the_parser(
            members in proptest::collection::vec(
                (
                    prop_oneof![Just("type"), Just("audio"), Just("event_id"), Just("x")],
                    prop_oneof![
                        4 => Just(r#""input_audio_buffer.append""#.to_owned()),
                        4 => "[A-Za-z0-9+/=]{0,200}".prop_map(|text| format!("\"{text}\"")),
                        1 => "\\PC{0,8}",
                        1 => Just("null".to_owned()),
                    ],
                ),
                0..6,
            ),
            space in "[ \n\t]{0,3}",
            cut in proptest::option::weighted(0.1, 0_usize..200),
        ) {
            let members: Vec<_> =
                members.iter().map(|(name, value)| format!("{space}\"{name}\"{space}:{space}{value}")).collect();
            let mut text = format!("{space}{{{}{space}}}{space}", members.join(","));
            if let Some(cut) = cut {
                text.truncate(text.floor_char_boundary(cut));
            }
            let mut decoder = Decoder::new();
            let fast = decoder.decode(&text);
            prop_assert_eq!(&fast, &decoder.parse(&text));
            if let Some(flat) = shallow::flat_append(&text) {
                let Ok(Decoded::Append(append)) = fast else { panic!("flat and refused: {text}") };
                prop_assert_eq!(flat.audio, append.audio);
            }
        }

        #[test]
        fn no_message_panics(text in "\\PC{0,64}", noise in proptest::collection::vec(any::<u8>(), 0..64)) {
            let mut decoder = Decoder::new();
            let _ = decoder.decode(&text);
            let _ = decoder.decode(&String::from_utf8_lossy(&noise));
            let _ = decoder.decode(&format!(r#"{{"type":"session.update","session":{text}}}"#));
        }
    }
}
