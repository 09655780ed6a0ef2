//! Typed events → compact JSON in the caller's buffer.

use std::fmt::Write as _;
use std::io;

use base64_simd::STANDARD;
use serde::Serialize;

use crate::audio::AudioFormat;

use super::id::{EventId, ItemId, ResponseId};
use super::server_event::ServerEvent;

/// Place and format of the samples of one `response.output_audio.delta`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AudioDelta {
    /// Id of the response.
    pub response: ResponseId,
    /// Id of the item in the response.
    pub item: ItemId,
    /// Index of the item in the response, from 0.
    pub output_index: u32,
    /// Format of the samples on the wire.
    pub format: AudioFormat,
}

const _: () =
    assert!(cfg!(target_endian = "little"), "the wire's samples are little-endian, and are sent as they lie");

/// Samples that are companded at once. A multiple of 3, so that pieces are whole base64 quanta.
const COMPANDED_SAMPLES: usize = 480;

/// Most bytes of an audio delta around its base64: names and ids.
const AROUND_BYTES_MAX: usize = 350;

/// Appends one `response.output_audio.delta` with these samples (mono, at the format's rate) to `out`.
///
/// The function makes one pass over the samples, and one heap call at most: none if `out` has room. The only
/// intermediate buffer is 480 bytes on the stack, for G.711.
pub fn encode_audio_delta(delta: &AudioDelta, event_id: EventId, samples: &[i16], out: &mut String) {
    out.reserve(AROUND_BYTES_MAX + (samples.len() * delta.format.sample_bytes()).div_ceil(3) * 4);
    out.push_str(r#"{"type":"response.output_audio.delta","event_id":""#);
    write!(out, "{event_id}").expect("a String takes everything");
    out.push_str(r#"","response_id":""#);
    out.push_str(delta.response.as_str());
    out.push_str(r#"","item_id":""#);
    // The server made both ids: letters, digits and underscores, nothing to escape.
    out.push_str(delta.item.as_str());
    out.push_str(r#"","output_index":"#);
    match delta.output_index {
        // The index of almost every answer; formatting would cost a sixth of the delta.
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
    /// Appends the event to `out` as one line of JSON.
    pub fn encode(&self, event_id: EventId, out: &mut String) {
        serde_json::to_writer(Appender(out), &Stamped { name: self.name(), event_id, members: self })
            .expect("a String takes everything and no map has a key that is not a string");
    }
}

#[derive(Serialize)]
struct Stamped<'a> {
    #[serde(rename = "type")]
    name: &'static str,
    event_id: EventId,
    #[serde(flatten)]
    members: &'a ServerEvent,
}

/// Writer that appends to a `String`. serde_json writes text only, each piece whole characters.
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::server_event::{ItemPlace, OnlyPart};
    use super::*;
    use crate::protocol::EventIds;

    #[test]
    fn an_audio_delta_is_the_json_that_the_serialiser_would_write() {
        let (response, item, event_id) = (ResponseId::fresh(), ItemId::fresh(), EventIds::new().fresh());
        let samples: Vec<i16> = (-240..240).map(|n| n * 130).collect();
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let mut out = String::from("kept ");
        encode_audio_delta(
            &AudioDelta {
                response: response.clone(),
                item: item.clone(),
                output_index: 0,
                format: AudioFormat::DEFAULT,
            },
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

    /// RC-028, RC-068: one byte per sample in G.711, also in a delta that is companded in several pieces.
    #[test]
    fn an_audio_delta_is_in_the_format_that_it_names() {
        let (response, item) = (ResponseId::fresh(), ItemId::fresh());
        let samples: Vec<i16> = (-480..481).map(|n| n * 68).collect();
        let encoded = |format| {
            let (response, item) = (response.clone(), item.clone());
            let delta = AudioDelta { response, item, output_index: u32::MAX, format };
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
        let place = ItemPlace { response_id: ResponseId::fresh(), item_id: ItemId::fresh(), output_index: 0 };
        let delta = "é \"q\" \\ \n \0 \u{2028}🚀".to_owned();
        let mut out = String::new();
        ServerEvent::TextDelta { place, content_index: OnlyPart, delta: delta.clone() }
            .encode(EventIds::new().fresh(), &mut out);
        let value: serde_json::Value = serde_json::from_str(&out).expect("JSON");
        assert_eq!(value["delta"], delta);
        assert_eq!(value["type"], "response.output_text.delta");
        assert!(out.contains('é') && out.contains('🚀') && !out.contains('\n') && !out.contains(": "));
    }
}
