//! Typed events → compact JSON in the caller's buffer.

use std::fmt::Write as _;
use std::io;

use base64_simd::STANDARD;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::json;

use crate::audio::AudioFormat;
use crate::message::RateLimits;

use super::error::ProtocolError;
use super::id::{EventId, ItemId, ResponseId};
use super::output::Modality;
use super::server_event::{Part, ServerEvent};

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
    out.push_str(r#"","output_index":"#);
    match delta.output_index {
        // Almost every answer: formatting would cost a sixth of the delta.
        0 => out.push('0'),
        index => write!(out, "{index}").expect("a String takes everything"),
    }
    out.push_str(r#","content_index":0,"delta":""#);
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
            Self::TimeoutTriggered { .. } => "input_audio_buffer.timeout_triggered",
            Self::Committed { .. } => "input_audio_buffer.committed",
            Self::Cleared => "input_audio_buffer.cleared",
            Self::ItemAdded { .. } => "conversation.item.added",
            Self::ItemDone { .. } => "conversation.item.done",
            Self::ItemRetrieved { .. } => "conversation.item.retrieved",
            Self::ItemDeleted { .. } => "conversation.item.deleted",
            Self::ItemTruncated { .. } => "conversation.item.truncated",
            Self::TranscriptionDelta { .. } => "conversation.item.input_audio_transcription.delta",
            Self::TranscriptionSegment { .. } => "conversation.item.input_audio_transcription.segment",
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
            Self::ArgumentsDelta { .. } => "response.function_call_arguments.delta",
            Self::ArgumentsDone { .. } => "response.function_call_arguments.done",
            Self::RateLimitsUpdated(_) => "rate_limits.updated",
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
        self.event.write(&mut map)?;
        map.end()
    }
}

impl ServerEvent {
    /// The members beside `type` and `event_id`.
    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::SessionCreated(session) | Self::SessionUpdated(session) => {
                map.serialize_entry("session", session)
            }
            Self::Error(error) => map.serialize_entry("error", &Flat(error)),
            Self::SpeechStarted { .. }
            | Self::SpeechStopped { .. }
            | Self::TimeoutTriggered { .. }
            | Self::Committed { .. }
            | Self::Cleared => self.write_of_buffer(map),
            Self::ItemAdded { item, previous } | Self::ItemDone { item, previous } => {
                map.serialize_entry("previous_item_id", previous)?;
                map.serialize_entry("item", item)
            }
            Self::ItemRetrieved { item } => map.serialize_entry("item", item),
            Self::ItemDeleted { item } => map.serialize_entry("item_id", item),
            Self::ItemTruncated { item, audio_end_ms } => {
                only_part_of(item, map)?;
                map.serialize_entry("audio_end_ms", audio_end_ms)
            }
            Self::TranscriptionDelta { .. }
            | Self::TranscriptionSegment { .. }
            | Self::TranscriptionCompleted { .. }
            | Self::TranscriptionFailed { .. } => self.write_of_transcription(map),
            Self::RateLimitsUpdated(limits) => map.serialize_entry("rate_limits", &rate_limits(limits)),
            Self::ResponseCreated(response) | Self::ResponseDone(response) => {
                map.serialize_entry("response", response)
            }
            _ => self.write_of_response(map),
        }
    }

    fn write_of_buffer<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::SpeechStarted { item, audio_start_ms } => {
                map.serialize_entry("audio_start_ms", audio_start_ms)?;
                map.serialize_entry("item_id", item)
            }
            Self::SpeechStopped { item, audio_end_ms } => {
                map.serialize_entry("audio_end_ms", audio_end_ms)?;
                map.serialize_entry("item_id", item)
            }
            Self::TimeoutTriggered { item, audio_start_ms, audio_end_ms } => {
                map.serialize_entry("audio_start_ms", audio_start_ms)?;
                map.serialize_entry("audio_end_ms", audio_end_ms)?;
                map.serialize_entry("item_id", item)
            }
            Self::Committed { item, previous } => {
                map.serialize_entry("previous_item_id", previous)?;
                map.serialize_entry("item_id", item)
            }
            _ => Ok(()),
        }
    }

    fn write_of_transcription<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::TranscriptionDelta { item, delta } => {
                only_part_of(item, map)?;
                map.serialize_entry("delta", delta)
            }
            Self::TranscriptionSegment { item, id, text, audio_ms } => {
                only_part_of(item, map)?;
                map.serialize_entry("id", id)?;
                map.serialize_entry("text", text)?;
                map.serialize_entry("speaker", "user")?;
                map.serialize_entry("start", &0.0)?;
                map.serialize_entry("end", &seconds(*audio_ms))
            }
            Self::TranscriptionCompleted { item, transcript, usage } => {
                only_part_of(item, map)?;
                map.serialize_entry("transcript", transcript)?;
                map.serialize_entry("usage", usage)
            }
            Self::TranscriptionFailed { item, error } => {
                only_part_of(item, map)?;
                map.serialize_entry("error", error)
            }
            _ => Ok(()),
        }
    }

    fn write_of_response<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::OutputItemAdded { response, output_index, item }
            | Self::OutputItemDone { response, output_index, item } => {
                map.serialize_entry("response_id", response)?;
                map.serialize_entry("output_index", output_index)?;
                map.serialize_entry("item", item)
            }
            Self::ContentPartAdded { part, kind } => part.write_with(*kind, "", map),
            Self::ContentPartDone { part, kind, text } => part.write_with(*kind, text, map),
            Self::AudioDone { part } => part.write(map),
            Self::TextDelta { part, delta, .. } => {
                part.write(map)?;
                map.serialize_entry("delta", delta)
            }
            Self::TextDone { part, kind, text } => {
                part.write(map)?;
                let name = match kind {
                    Modality::Audio => "transcript",
                    Modality::Text => "text",
                };
                map.serialize_entry(name, text)
            }
            Self::ArgumentsDelta { part, call_id, delta } => {
                part.write_item(map)?;
                map.serialize_entry("call_id", call_id)?;
                map.serialize_entry("delta", delta)
            }
            Self::ArgumentsDone { part, call_id, name, arguments } => {
                part.write_item(map)?;
                map.serialize_entry("call_id", call_id)?;
                map.serialize_entry("name", name)?;
                map.serialize_entry("arguments", arguments)
            }
            _ => Ok(()),
        }
    }
}

impl Part {
    fn write_item<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        map.serialize_entry("response_id", &self.response)?;
        map.serialize_entry("item_id", &self.item)?;
        map.serialize_entry("output_index", &self.output_index)
    }

    fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.write_item(map)?;
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

/// `rate_limits`: those that are known.
fn rate_limits(limits: &RateLimits) -> serde_json::Value {
    [("requests", limits.requests), ("tokens", limits.tokens)]
        .into_iter()
        .filter_map(|(name, limit)| {
            let limit = limit?;
            Some(json!({
                "name": name,
                "limit": limit.limit,
                "remaining": limit.remaining,
                "reset_seconds": seconds(limit.reset_ms),
            }))
        })
        .collect()
}

pub(super) fn seconds(ms: u32) -> f64 {
    f64::from(ms) / 1_000.0
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
        let part = Part { response: ResponseId::fresh(), item: ItemId::fresh(), output_index: 0 };
        let delta = "é \"q\" \\ \n \0 \u{2028}🚀".to_owned();
        let mut out = String::new();
        ServerEvent::TextDelta { part, kind: Modality::Text, delta: delta.clone() }
            .encode(EventIds::new().fresh(), &mut out);
        let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(value["delta"], delta);
        assert_eq!(value["type"], "response.output_text.delta");
        assert!(out.contains('é') && out.contains('🚀') && !out.contains('\n') && !out.contains(": "));
    }
}
