//! Typed events → compact JSON in the caller's buffer.

use std::fmt::Write as _;
use std::io;

use base64_simd::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::json;

use crate::audio::AudioFormat;

use super::client_event::{MaxTokens, Modality, Speaker};
use super::error::ProtocolError;
use super::id::{EventId, ItemId, ResponseId};
use super::server_event::{
    Content, Item, ItemStatus, Part, ResponseObject, ResponseStatus, ServerEvent, SessionObject,
    TranscriptionUsage, Usage,
};
use super::session_update::TurnDetection;

/// Where the samples of one `response.output_audio.delta` belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AudioDelta<'a> {
    /// The response.
    pub response: &'a ResponseId,
    /// Its item.
    pub item: &'a ItemId,
    /// Which of the response's items, counted from 0.
    pub output_index: u32,
    /// What the samples become.
    pub format: AudioFormat,
}

const _: () =
    assert!(cfg!(target_endian = "little"), "the wire's samples are little-endian, and are sent as they lie");

/// Samples that are companded at once. A multiple of 3, so that pieces are whole base64 quanta.
const COMPANDED_SAMPLES: usize = 480;

/// Bytes of an audio delta around its base64, at most: names and ids.
const AROUND_BYTES_MAX: usize = 350;

/// Appends one `response.output_audio.delta` with these samples (mono, at the format's rate) to `out`.
///
/// One pass, no intermediate buffer but 480 bytes on the stack for G.711; one heap call at most, none if
/// `out` has room.
pub fn encode_audio_delta(delta: &AudioDelta<'_>, event_id: EventId, samples: &[i16], out: &mut String) {
    out.reserve(AROUND_BYTES_MAX + (samples.len() * delta.format.sample_bytes()).div_ceil(3) * 4);
    out.push_str(r#"{"type":"response.output_audio.delta","event_id":""#);
    write!(out, "{event_id}").expect("a String takes everything");
    out.push_str(r#"","response_id":""#);
    out.push_str(delta.response.as_str());
    out.push_str(r#"","item_id":""#);
    // Both ids were made here: letters, digits and underscores, nothing to escape.
    out.push_str(delta.item.as_str());
    write!(out, r#"","output_index":{},"content_index":0,"delta":""#, delta.output_index)
        .expect("a String takes everything");
    match delta.format.law() {
        None => STANDARD.encode_append(bytemuck::cast_slice::<i16, u8>(samples), out),
        Some(law) => {
            let mut bytes = [0; COMPANDED_SAMPLES];
            for piece in samples.chunks(COMPANDED_SAMPLES) {
                law.compress(piece, &mut bytes);
                STANDARD.encode_append(&bytes[..piece.len()], out);
            }
        }
    }
    out.push_str("\"}");
}

impl ServerEvent {
    /// The wire's `type`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::SessionCreated(_) => "session.created",
            Self::SessionUpdated(_) => "session.updated",
            Self::Error(_) => "error",
            Self::SpeechStarted { .. } => "input_audio_buffer.speech_started",
            Self::SpeechStopped { .. } => "input_audio_buffer.speech_stopped",
            Self::Committed { .. } => "input_audio_buffer.committed",
            Self::Cleared => "input_audio_buffer.cleared",
            Self::ItemAdded { .. } => "conversation.item.added",
            Self::ItemDone { .. } => "conversation.item.done",
            Self::ItemRetrieved { .. } => "conversation.item.retrieved",
            Self::ItemDeleted { .. } => "conversation.item.deleted",
            Self::ItemTruncated { .. } => "conversation.item.truncated",
            Self::TranscriptionCompleted { .. } => "conversation.item.input_audio_transcription.completed",
            Self::TranscriptionFailed { .. } => "conversation.item.input_audio_transcription.failed",
            Self::ResponseCreated(_) => "response.created",
            Self::OutputItemAdded { .. } => "response.output_item.added",
            Self::OutputItemDone { .. } => "response.output_item.done",
            Self::ContentPartAdded { .. } => "response.content_part.added",
            Self::ContentPartDone { .. } => "response.content_part.done",
            Self::AudioDone { .. } => "response.output_audio.done",
            Self::TextDelta { kind: Modality::Audio, .. } => "response.output_audio_transcript.delta",
            Self::TextDelta { kind: Modality::Text, .. } => "response.output_text.delta",
            Self::TextDone { kind: Modality::Audio, .. } => "response.output_audio_transcript.done",
            Self::TextDone { kind: Modality::Text, .. } => "response.output_text.done",
            Self::ResponseDone(_) => "response.done",
        }
    }

    /// Appends the event to `out` as one line of JSON.
    pub fn encode(&self, event_id: EventId, out: &mut String) {
        serde_json::to_writer(Appender(out), &Stamped { event: self, event_id })
            .expect("a String takes everything and no map has a key that is not a string");
    }
}

/// serde_json writes text only, each piece whole characters.
struct Appender<'a>(&'a mut String);

impl io::Write for Appender<'_> {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        self.0.push_str(std::str::from_utf8(piece).map_err(io::Error::other)?);
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Stamped<'a> {
    event: &'a ServerEvent,
    event_id: EventId,
}

impl Serialize for Stamped<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.event.name())?;
        map.serialize_entry("event_id", &self.event_id)?;
        match self.event {
            ServerEvent::SessionCreated(session) | ServerEvent::SessionUpdated(session) => {
                map.serialize_entry("session", session)?;
            }
            ServerEvent::Error(error) => map.serialize_entry("error", &Flat(error))?,
            ServerEvent::SpeechStarted { item, audio_start_ms } => {
                map.serialize_entry("audio_start_ms", audio_start_ms)?;
                map.serialize_entry("item_id", item)?;
            }
            ServerEvent::SpeechStopped { item, audio_end_ms } => {
                map.serialize_entry("audio_end_ms", audio_end_ms)?;
                map.serialize_entry("item_id", item)?;
            }
            ServerEvent::Committed { item, previous } => {
                map.serialize_entry("previous_item_id", previous)?;
                map.serialize_entry("item_id", item)?;
            }
            ServerEvent::Cleared => {}
            ServerEvent::ItemAdded { item, previous } | ServerEvent::ItemDone { item, previous } => {
                map.serialize_entry("previous_item_id", previous)?;
                map.serialize_entry("item", item)?;
            }
            ServerEvent::ItemRetrieved { item } => map.serialize_entry("item", item)?,
            ServerEvent::ItemDeleted { item } => map.serialize_entry("item_id", item)?,
            ServerEvent::ItemTruncated { item, audio_end_ms } => {
                only_part_of(item, &mut map)?;
                map.serialize_entry("audio_end_ms", audio_end_ms)?;
            }
            ServerEvent::TranscriptionCompleted { item, transcript, usage } => {
                only_part_of(item, &mut map)?;
                map.serialize_entry("transcript", transcript)?;
                map.serialize_entry("usage", usage)?;
            }
            ServerEvent::TranscriptionFailed { item, error } => {
                only_part_of(item, &mut map)?;
                map.serialize_entry("error", error)?;
            }
            ServerEvent::ResponseCreated(response) | ServerEvent::ResponseDone(response) => {
                map.serialize_entry("response", response)?;
            }
            ServerEvent::OutputItemAdded { response, item }
            | ServerEvent::OutputItemDone { response, item } => {
                map.serialize_entry("response_id", response)?;
                map.serialize_entry("output_index", &0)?;
                map.serialize_entry("item", item)?;
            }
            ServerEvent::ContentPartAdded { part, kind } => part.write_with(*kind, "", &mut map)?,
            ServerEvent::ContentPartDone { part, kind, text } => part.write_with(*kind, text, &mut map)?,
            ServerEvent::AudioDone { part } => part.write(&mut map)?,
            ServerEvent::TextDelta { part, delta, .. } => {
                part.write(&mut map)?;
                map.serialize_entry("delta", delta)?;
            }
            ServerEvent::TextDone { part, kind, text } => {
                part.write(&mut map)?;
                let name = match kind {
                    Modality::Audio => "transcript",
                    Modality::Text => "text",
                };
                map.serialize_entry(name, text)?;
            }
        }
        map.end()
    }
}

impl Part {
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("response_id", &self.response)?;
        map.serialize_entry("item_id", &self.item)?;
        map.serialize_entry("output_index", &0)?;
        map.serialize_entry("content_index", &0)
    }

    fn write_with<M: SerializeMap>(&self, kind: Modality, text: &str, map: &mut M) -> Result<(), M::Error> {
        self.write(map)?;
        map.serialize_entry("part", &part_content(kind, text))
    }
}

/// The only part of `item`: items of this version have one.
fn only_part_of<M: SerializeMap>(item: &ItemId, map: &mut M) -> Result<(), M::Error> {
    map.serialize_entry("item_id", item)?;
    map.serialize_entry("content_index", &0)
}

/// `part` of the content part events; its types have no prefix, other than those of an item's content.
fn part_content(kind: Modality, text: &str) -> serde_json::Value {
    match kind {
        Modality::Audio => json!({"type": "audio", "transcript": text}),
        Modality::Text => json!({"type": "text", "text": text}),
    }
}

struct Flat<'a>(&'a ProtocolError);

impl Serialize for Flat<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let fault = self.0.fault();
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("type", fault.kind())?;
        map.serialize_entry("code", &fault.code())?;
        map.serialize_entry("message", &fault.to_string())?;
        map.serialize_entry("param", &fault.param())?;
        map.serialize_entry("event_id", &self.0.event_id())?;
        map.end()
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(6))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("object", "realtime.item")?;
        map.serialize_entry("type", "message")?;
        map.serialize_entry("status", &self.status)?;
        map.serialize_entry("role", self.speaker.as_str())?;
        map.serialize_entry("content", &self.content.on_wire(self.speaker))?;
        map.end()
    }
}

impl Speaker {
    /// The wire's `role`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

impl Content {
    fn on_wire(&self, speaker: Speaker) -> serde_json::Value {
        match self {
            Self::Empty => json!([]),
            Self::Text(parts) => {
                let kind = if speaker == Speaker::Assistant { "output_text" } else { "input_text" };
                parts.iter().map(|text| json!({"type": kind, "text": text})).collect()
            }
            Self::UserAudio(transcript) => json!([{"type": "input_audio", "transcript": transcript}]),
            Self::AssistantAudio(transcript) => json!([{"type": "output_audio", "transcript": transcript}]),
        }
    }
}

impl Modality {
    const fn on_wire(self) -> [&'static str; 1] {
        match self {
            Self::Audio => ["audio"],
            Self::Text => ["text"],
        }
    }
}

impl Serialize for MaxTokens {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unlimited => serializer.serialize_str("inf"),
            Self::AtMost(tokens) => serializer.serialize_u32(*tokens),
        }
    }
}

fn format_on_wire() -> serde_json::Value {
    json!({"type": "audio/pcm", "rate": 24_000})
}

/// The shortest decimal that is this `f32`: 0.8 and not 0.800000011920929.
fn decimal(number: f32) -> serde_json::Value {
    number.to_string().parse::<f64>().map_or(serde_json::Value::Null, Into::into)
}

impl Serialize for TurnDetection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("type", "server_vad")?;
        map.serialize_entry("threshold", &decimal(self.threshold))?;
        map.serialize_entry("prefix_padding_ms", &self.prefix_ms)?;
        map.serialize_entry("silence_duration_ms", &self.silence_ms)?;
        map.serialize_entry("idle_timeout_ms", &None::<u32>)?;
        map.serialize_entry("create_response", &self.create_response)?;
        map.serialize_entry("interrupt_response", &self.interrupt_response)?;
        map.end()
    }
}

impl Serialize for SessionObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(10))?;
        map.serialize_entry("type", "realtime")?;
        map.serialize_entry("object", "realtime.session")?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("output_modalities", &self.output_modality.on_wire())?;
        map.serialize_entry("instructions", &self.instructions)?;
        map.serialize_entry("tools", &self.tools)?;
        map.serialize_entry("tool_choice", &self.tool_choice)?;
        map.serialize_entry("max_output_tokens", &self.tokens_max)?;
        let audio = json!({
            "input": {
                "format": format_on_wire(),
                "transcription": self.transcription,
                "noise_reduction": self.noise_reduction,
                "turn_detection": self.turn_detection,
            },
            "output": {"format": format_on_wire(), "voice": self.voice, "speed": decimal(self.speed)},
        });
        map.serialize_entry("audio", &audio)?;
        map.end()
    }
}

impl Serialize for ResponseStatus {
    /// The word alone; `status_details` is a member of its own.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl ResponseStatus {
    /// The wire's `status`.
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

    /// State in which the response leaves its item.
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
        map.serialize_entry("audio", &json!({"output": {"format": format_on_wire(), "voice": self.voice}}))?;
        map.serialize_entry("usage", &self.usage)?;
        map.serialize_entry("metadata", &self.metadata)?;
        map.end()
    }
}

impl Serialize for Usage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("total_tokens", &(u64::from(self.input) + u64::from(self.output)))?;
        map.serialize_entry("input_tokens", &self.input)?;
        map.serialize_entry("output_tokens", &self.output)?;
        let cached = json!({"text_tokens": self.input_cached, "audio_tokens": 0, "image_tokens": 0});
        map.serialize_entry(
            "input_token_details",
            &json!({
                "text_tokens": self.input, "audio_tokens": 0, "image_tokens": 0,
                "cached_tokens": self.input_cached, "cached_tokens_details": cached,
            }),
        )?;
        map.serialize_entry("output_token_details", &json!({"text_tokens": self.output, "audio_tokens": 0}))?;
        map.end()
    }
}

impl Serialize for TranscriptionUsage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("type", "duration")?;
        map.serialize_entry("seconds", &(f64::from(self.audio_ms) / 1_000.0))?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::EventIds;

    #[test]
    fn an_audio_delta_is_the_json_that_the_serialiser_would_write() {
        let (response, item, event_id) = (ResponseId::fresh(), ItemId::fresh(), EventIds::new().fresh());
        let samples: Vec<i16> = (-240..240).map(|n| n * 130).collect();
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let mut out = String::from("kept ");
        encode_audio_delta(
            &AudioDelta { response: &response, item: &item, output_index: 0, format: AudioFormat::DEFAULT },
            event_id,
            &samples,
            &mut out,
        );
        let expected = json!({
            "type": "response.output_audio.delta",
            "event_id": event_id,
            "response_id": response,
            "item_id": item,
            "output_index": 0,
            "content_index": 0,
            "delta": STANDARD.encode_to_string(bytes),
        });
        assert_eq!(out, format!("kept {expected}"));
    }

    /// RC-028, RC-068: one byte per sample in G.711, also where a delta is longer than what is companded at once.
    #[test]
    fn an_audio_delta_is_in_the_format_that_it_names() {
        let (response, item) = (ResponseId::fresh(), ItemId::fresh());
        let samples: Vec<i16> = (-480..481).map(|n| n * 68).collect();
        let encoded = |format| {
            let delta = AudioDelta { response: &response, item: &item, output_index: u32::MAX, format };
            let mut out = String::new();
            encode_audio_delta(&delta, EventIds::new().fresh(), &samples, &mut out);
            let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
            let base64 = value["delta"].as_str().expect("a delta");
            assert!(
                out.len() - base64.len() <= AROUND_BYTES_MAX,
                "{} bytes around it",
                out.len() - base64.len()
            );
            STANDARD.decode_to_vec(base64).expect("base64")
        };
        let pcm = AudioFormat::Pcm(crate::audio::SampleRate::HZ_48K);
        assert_eq!(encoded(pcm), bytemuck::cast_slice::<i16, u8>(&samples));
        for format in [AudioFormat::Pcmu, AudioFormat::Pcma] {
            let mut expected = vec![0; samples.len()];
            format.law().expect("a law").compress(&samples, &mut expected);
            assert_eq!(encoded(format), expected, "{format:?}");
        }
    }

    #[test]
    fn text_is_escaped_and_not_more_than_needed() {
        let part = Part { response: ResponseId::fresh(), item: ItemId::fresh() };
        let delta = "é \"q\" \\ \n \0 \u{2028}🚀".to_owned();
        let mut out = String::new();
        ServerEvent::TextDelta { part, kind: Modality::Text, delta: delta.clone() }
            .encode(EventIds::new().fresh(), &mut out);
        let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(value["delta"], delta);
        assert_eq!(value["type"], "response.output_text.delta");
        assert!(out.contains('é') && out.contains('🚀') && !out.contains('\n') && !out.contains(": "));
    }

    #[test]
    fn decimals_are_short() {
        assert_eq!(decimal(0.8).to_string(), "0.8");
        assert_eq!(decimal(1.1).to_string(), "1.1");
        assert_eq!(decimal(1.0).to_string(), "1.0");
    }
}
