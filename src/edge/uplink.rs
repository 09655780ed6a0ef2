//! Client → unit: the base64 of an append, decoded straight into the slots of `audio_in`.

use std::collections::VecDeque;
use std::ops::Range;

use axum::extract::ws::Utf8Bytes;
use base64_simd::{Out, STANDARD};

use crate::audio::{AudioFormat, SampleRate};
use crate::limits::APPEND_BYTES_MAX;
use crate::message::{AudioFrame, AudioIn, FRAME_SAMPLES, Stamp};
use crate::protocol::{Append, ProtocolError};
use crate::unit::Producer;

/// Base64 characters of one full frame: 960 bytes, a multiple of 3, so that frames cut no quantum.
const FRAME_CHARACTERS: usize = FRAME_SAMPLES * 2 / 3 * 4;

const _: () = assert!((FRAME_SAMPLES * 2).is_multiple_of(3), "a full frame is whole base64 quanta");

/// The append at hand, while `audio_in` is full.
#[derive(Debug)]
enum Rest {
    Nothing,
    /// Part of the client's message.
    Borrowed(Utf8Bytes, Range<usize>),
    /// Base64 that held an escape.
    Owned(String, Range<usize>),
}

/// One client's way in.
#[derive(Debug)]
pub struct Uplink {
    /// Format of the client's audio.
    pub format: AudioFormat,
    rest: Rest,
    /// Commits and clears behind it. No message is read meanwhile, so there are few.
    controls: VecDeque<AudioIn>,
}

impl Uplink {
    /// For audio in `format`.
    #[must_use]
    pub fn new(format: AudioFormat) -> Self {
        Self { format, rest: Rest::Nothing, controls: VecDeque::new() }
    }

    /// Whether part of an append still waits for room. Until it is in, no further message is read: TCP pushes back.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !matches!(self.rest, Rest::Nothing) || !self.controls.is_empty()
    }

    /// Takes a whole append or nothing of it; what does not fit goes in by [`Uplink::resume`]. Returns its samples.
    ///
    /// # Errors
    /// Bad base64, half a sample, or too much; nothing has been appended then.
    pub fn append(
        &mut self,
        message: &Utf8Bytes,
        append: Append<'_>,
        stamp: Stamp,
        audio_in: &mut Producer<AudioIn>,
    ) -> Result<usize, ProtocolError> {
        debug_assert!(!self.is_waiting(), "one append at a time");
        let text: &str = &append.audio;
        let samples = samples_of(text).map_err(|error| error.with_event_id(append.event_id.as_deref()))?;
        let bad = || ProtocolError::bad_base64().with_event_id(append.event_id.as_deref());
        if samples.div_ceil(FRAME_SAMPLES) <= audio_in.room() {
            // The usual case: decoding is the check, and an error publishes nothing.
            write(text, stamp, self.format.rate(), audio_in).map_err(|BadBase64| bad())?;
            return Ok(samples);
        }
        STANDARD.check(text.as_bytes()).map_err(|_| bad())?;
        self.rest = match append.audio {
            std::borrow::Cow::Borrowed(audio) => {
                let start = audio.as_ptr() as usize - message.as_str().as_ptr() as usize;
                Rest::Borrowed(message.clone(), start..start + audio.len())
            }
            std::borrow::Cow::Owned(audio) => {
                let all = 0..audio.len();
                Rest::Owned(audio, all)
            }
        };
        self.resume(stamp, audio_in);
        Ok(samples)
    }

    /// Puts a commit or a clear behind all audio.
    pub fn control(&mut self, item: AudioIn, audio_in: &mut Producer<AudioIn>) {
        self.controls.push_back(item);
        self.push_controls(audio_in);
    }

    fn push_controls(&mut self, audio_in: &mut Producer<AudioIn>) {
        while matches!(self.rest, Rest::Nothing) && audio_in.has_room_or_ring(1) {
            let Some(item) = self.controls.pop_front() else { return };
            audio_in.push(item).expect("there is room");
        }
    }

    /// Puts as much of the waiting append into the ring as there is room for.
    pub fn resume(&mut self, stamp: Stamp, audio_in: &mut Producer<AudioIn>) {
        self.resume_audio(stamp, audio_in);
        self.push_controls(audio_in);
    }

    fn resume_audio(&mut self, stamp: Stamp, audio_in: &mut Producer<AudioIn>) {
        let (text, range) = match &mut self.rest {
            Rest::Nothing => return,
            Rest::Borrowed(message, range) => (message.as_str(), range),
            Rest::Owned(text, range) => (text.as_str(), range),
        };
        loop {
            let characters = range.len().min(audio_in.room() * FRAME_CHARACTERS);
            let piece = &text[range.start..range.start + characters];
            write(piece, stamp, self.format.rate(), audio_in)
                .expect("checked as a whole, and pieces are whole quanta");
            range.start += characters;
            if range.start == range.end {
                break;
            }
            if audio_in.room() == 0 && !audio_in.has_room_or_ring(1) {
                return;
            }
        }
        self.rest = Rest::Nothing;
    }
}

/// Samples in a piece of base64, by its length alone.
fn samples_of(text: &str) -> Result<usize, ProtocolError> {
    let padding = text.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
    if !text.len().is_multiple_of(4) {
        return Err(ProtocolError::bad_base64());
    }
    let bytes = text.len() / 4 * 3 - if text.is_empty() { 0 } else { padding };
    if bytes > APPEND_BYTES_MAX {
        return Err(ProtocolError::append_too_large(bytes));
    }
    if !bytes.is_multiple_of(2) {
        // Only if it is base64 at all is the odd byte what is wrong with it.
        STANDARD.check(text.as_bytes()).map_err(|_| ProtocolError::bad_base64())?;
        return Err(ProtocolError::odd_bytes(bytes));
    }
    Ok(bytes / 2)
}

#[derive(Debug)]
struct BadBase64;

/// Decodes `text` into the slots of as many frames as it takes; there is room for them. All or nothing.
fn write(
    text: &str,
    stamp: Stamp,
    rate: SampleRate,
    audio_in: &mut Producer<AudioIn>,
) -> Result<(), BadBase64> {
    let frames = text.len().div_ceil(FRAME_CHARACTERS);
    audio_in.write_with(frames, |first, second| {
        let mut pieces = text.as_bytes().chunks(FRAME_CHARACTERS).peekable();
        for slot in first.iter_mut().chain(second) {
            let Some(piece) = pieces.next() else { break };
            *slot = AudioIn::Audio { stamp, frame: AudioFrame::empty(rate) };
            let AudioIn::Audio { frame, .. } = slot else { unreachable!("just written") };
            let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut frame.samples);
            let decoded = STANDARD.decode(piece, Out::from_slice(bytes)).map_err(|_| BadBase64)?.len();
            // Padding ends the whole, not a piece of it.
            if pieces.peek().is_some() && decoded != 2 * FRAME_SAMPLES {
                return Err(BadBase64);
            }
            frame.len = u16::try_from(decoded / 2).expect("at most a frame");
        }
        Ok(frames)
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::UnitId;
    use crate::unit::{Ringer, StageBell, ring};

    /// What comes of an append of `audio`: samples in the ring, or the error's code.
    fn appended(audio: &str) -> Result<usize, Option<&'static str>> {
        let bell: &'static StageBell = Box::leak(Box::new(StageBell::new(1, 1)));
        let ringer = Ringer::Stage(bell, UnitId::new(0));
        let (mut audio_in, mut consumer) = ring::<AudioIn>(8, ringer, ringer);
        let append = Append { audio: audio.into(), event_id: None };
        let message = Utf8Bytes::from(audio);
        Uplink::new(AudioFormat::DEFAULT)
            .append(&message, append, Stamp::default(), &mut audio_in)
            .map_err(|error| error.fault().code())?;
        let frames = std::iter::from_fn(|| consumer.pop());
        Ok(frames
            .map(|item| if let AudioIn::Audio { frame, .. } = item { frame.used().len() } else { 0 })
            .sum())
    }

    #[test]
    fn padding_is_for_the_end_of_the_whole() {
        let frame = "A".repeat(FRAME_CHARACTERS);
        let padded = |padding: &str| "A".repeat(FRAME_CHARACTERS - padding.len()) + padding;
        assert_eq!(appended(&(frame.clone() + "AAA=")), Ok(FRAME_SAMPLES + 1));
        assert_eq!(appended(&(frame.clone() + &frame)), Ok(2 * FRAME_SAMPLES));
        for padding in ["=", "=="] {
            assert_eq!(appended(&(padded(padding) + &frame)), Err(Some("invalid_base64")), "{padding}");
            assert_eq!(appended(&(padded(padding) + "AAA=")), Err(Some("invalid_base64")), "{padding}");
        }
    }
}
