//! Client → unit: the base64 of an append, decoded straight into the slots of `audio_in`.

mod base64;
mod item;

use std::collections::VecDeque;
use std::ops::Range;

use axum::extract::ws::Utf8Bytes;
use base64_simd::STANDARD;

use crate::audio::AudioFormat;
use crate::limits::APPEND_BYTES_MAX;
use crate::message::{AudioFrame, AudioIn, CommitId, Envelope, Epoch, FRAME_SAMPLES};
use crate::protocol::{Append, Fault, ProtocolError};
use crate::unit::Producer;

use base64::{BadBase64, decode_law, decode_pcm, frame_characters};
use item::ItemAudio;

/// The rest of an append, which waits while `audio_in` is full.
#[derive(Debug)]
enum Rest {
    Nothing,
    /// A range of the client's message.
    Borrowed(Utf8Bytes, Range<usize>),
    /// A range of base64 that held an escape in the message.
    Owned(String, Range<usize>),
}

/// The uplink of one client.
#[derive(Debug)]
pub struct Uplink {
    /// Format of the client's audio. The format changes between appends only: no message is read while an append waits.
    pub format: AudioFormat,
    epoch: Epoch,
    /// Envelope that each frame is decoded into and then copied from: to build the envelope of each frame anew would clear
    /// and copy the frame twice.
    frame: Envelope<AudioIn>,
    rest: Rest,
    /// Items behind the rest. No message is read meanwhile, so there are few.
    queue: VecDeque<Queued>,
}

/// Items for the ring other than appended audio, in the order of the messages.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a control is the rule, an item the exception")]
enum Queued {
    /// A commit, a clear or settings.
    Control(AudioIn),
    /// Audio of an item.
    Item(Box<ItemAudio>),
}

impl Uplink {
    /// Makes the uplink of the session `epoch`, whose audio is in `format`.
    #[must_use]
    pub fn new(format: AudioFormat, epoch: Epoch) -> Self {
        let item = AudioIn::Audio(AudioFrame::empty(format.rate()));
        let frame = Envelope::Item { stamp: epoch, item };
        Self { format, epoch, frame, rest: Rest::Nothing, queue: VecDeque::new() }
    }

    /// Returns true if an append or a queued item still waits for room. Meanwhile no further message is read, so TCP
    /// pushes back.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        !matches!(self.rest, Rest::Nothing) || !self.queue.is_empty()
    }

    /// Takes a whole append or nothing of it, and returns the number of its samples. [`Uplink::resume`] pushes the part
    /// for which there is no room yet.
    ///
    /// # Errors
    /// Returns an error for bad base64, half a sample or too many bytes; nothing has been appended then.
    pub fn append(
        &mut self,
        message: &Utf8Bytes,
        append: Append<'_>,
        audio_in: &mut Producer<AudioIn>,
    ) -> Result<usize, ProtocolError> {
        debug_assert!(!self.is_waiting(), "one append at a time");
        let text: &str = &append.audio;
        let refused = |fault: Fault| ProtocolError::from(fault).with_event_id(append.event_id.as_deref());
        let samples = samples_of(text, self.format).map_err(refused)?;
        if samples.div_ceil(FRAME_SAMPLES) <= audio_in.room() {
            // The usual case: decoding is the check, and an error publishes nothing.
            write(text, &mut self.frame, self.format, audio_in)
                .map_err(|BadBase64| refused(Fault::BadBase64))?;
            return Ok(samples);
        }
        STANDARD.check(text.as_bytes()).map_err(|_| refused(Fault::BadBase64))?;
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
        self.resume(audio_in);
        Ok(samples)
    }

    /// Puts a commit, a clear or settings behind all audio.
    pub fn control(&mut self, item: AudioIn, audio_in: &mut Producer<AudioIn>) {
        self.queue.push_back(Queued::Control(item));
        self.push_queue(audio_in);
    }

    /// Puts the audio of an item behind all other audio. `audio` is base64 of whole samples in the client's format.
    pub fn item(&mut self, audio: String, commit: CommitId, audio_in: &mut Producer<AudioIn>) {
        let item = ItemAudio::new(audio, self.format, self.epoch, commit);
        self.queue.push_back(Queued::Item(Box::new(item)));
        self.push_queue(audio_in);
    }

    fn push_queue(&mut self, audio_in: &mut Producer<AudioIn>) {
        while matches!(self.rest, Rest::Nothing) && audio_in.has_room_or_ring(1) {
            match self.queue.front_mut() {
                None => return,
                Some(Queued::Item(item)) => {
                    if !item.feed(audio_in) {
                        return;
                    }
                }
                Some(Queued::Control(item)) => audio_in.push(self.epoch, *item).expect("there is room"),
            }
            self.queue.pop_front();
        }
    }

    /// Pushes as much of the waiting append, and of the items behind it, as the ring has room for.
    pub fn resume(&mut self, audio_in: &mut Producer<AudioIn>) {
        self.resume_audio(audio_in);
        self.push_queue(audio_in);
    }

    fn resume_audio(&mut self, audio_in: &mut Producer<AudioIn>) {
        let (text, range) = match &mut self.rest {
            Rest::Nothing => return,
            Rest::Borrowed(message, range) => (message.as_str(), range),
            Rest::Owned(text, range) => (text.as_str(), range),
        };
        loop {
            let characters = range.len().min(audio_in.room() * frame_characters(self.format));
            let piece = &text[range.start..range.start + characters];
            write(piece, &mut self.frame, self.format, audio_in)
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

/// Returns the number of samples in a piece of base64, by its length alone.
fn samples_of(text: &str, format: AudioFormat) -> Result<usize, Fault> {
    let padding = text.bytes().rev().take(2).take_while(|byte| *byte == b'=').count();
    if !text.len().is_multiple_of(4) {
        return Err(Fault::BadBase64);
    }
    let bytes = text.len() / 4 * 3 - if text.is_empty() { 0 } else { padding };
    if bytes > APPEND_BYTES_MAX {
        return Err(Fault::AppendTooLarge { found: bytes });
    }
    if !bytes.is_multiple_of(format.sample_bytes()) {
        // The odd byte is the fault only if the text is base64 at all.
        STANDARD.check(text.as_bytes()).map_err(|_| Fault::BadBase64)?;
        return Err(Fault::OddBytes { found: bytes });
    }
    Ok(bytes / format.sample_bytes())
}

/// Decodes `text` into as many slots as it has frames, all or nothing, each by way of `envelope`. The caller has checked
/// that there is room.
#[inline]
fn write(
    text: &str,
    envelope: &mut Envelope<AudioIn>,
    format: AudioFormat,
    audio_in: &mut Producer<AudioIn>,
) -> Result<(), BadBase64> {
    frame_in(envelope).rate = format.rate();
    match format.law() {
        None => write_frames::<{ 2 * FRAME_SAMPLES }>(text, envelope, audio_in, decode_pcm),
        Some(law) => write_frames::<FRAME_SAMPLES>(text, envelope, audio_in, |piece, samples| {
            decode_law(law, piece, samples)
        }),
    }
}

/// Does the work of [`write()`]. `decode` decodes the base64 of one frame of `FRAME_BYTES` bytes and returns the number
/// of samples.
#[inline]
fn write_frames<const FRAME_BYTES: usize>(
    text: &str,
    envelope: &mut Envelope<AudioIn>,
    audio_in: &mut Producer<AudioIn>,
    decode: impl Fn(&[u8], &mut [i16; FRAME_SAMPLES]) -> Result<usize, BadBase64>,
) -> Result<(), BadBase64> {
    let characters = const { FRAME_BYTES / 3 * 4 };
    let frames = text.len().div_ceil(characters);
    audio_in.write_with(frames, |first, second| {
        let mut pieces = text.as_bytes().chunks(characters).peekable();
        for slot in first.iter_mut().chain(second) {
            let Some(piece) = pieces.next() else { break };
            let frame = frame_in(envelope);
            let samples = decode(piece, &mut frame.samples)?;
            // Padding is allowed at the end of the whole text only.
            if pieces.peek().is_some() && samples != FRAME_SAMPLES {
                return Err(BadBase64);
            }
            frame.len = u16::try_from(samples).expect("at most a frame");
            *slot = *envelope;
        }
        Ok(frames)
    })?;
    Ok(())
}

/// Returns the frame of [`Uplink::frame`].
fn frame_in(envelope: &mut Envelope<AudioIn>) -> &mut AudioFrame {
    match envelope {
        Envelope::Item { item: AudioIn::Audio(frame), .. } => frame,
        _ => unreachable!("made by Uplink::new, and only its frame is written"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::SampleRate;
    use crate::message::UnitId;
    use crate::unit::{Consumer, Ringer, StageBell, ring};

    const FORMATS: [AudioFormat; 4] =
        [AudioFormat::DEFAULT, AudioFormat::Pcm(SampleRate::HZ_48K), AudioFormat::Pcmu, AudioFormat::Pcma];

    fn small_ring() -> (Producer<AudioIn>, Consumer<AudioIn>) {
        let bell: &'static StageBell = Box::leak(Box::new(StageBell::new(1, 1)));
        let ringer = Ringer::Stage(bell, UnitId::new(0));
        ring(8, ringer, ringer)
    }

    /// Takes the samples out of the ring.
    fn taken(consumer: &mut Consumer<AudioIn>, rate: SampleRate) -> Vec<i16> {
        let mut samples = Vec::new();
        while let Some(Envelope::Item { item: AudioIn::Audio(frame), .. }) = consumer.pop() {
            assert_eq!(frame.rate, rate);
            samples.extend_from_slice(frame.used());
        }
        samples
    }

    /// Returns the result of an append of `audio`: samples, or the error's code.
    fn appended(audio: &str, format: AudioFormat) -> Result<Vec<i16>, Option<&'static str>> {
        let (mut audio_in, mut consumer) = small_ring();
        let message = Utf8Bytes::from(audio);
        let append = Append { audio: message.as_str().into(), event_id: None };
        let mut uplink = Uplink::new(format, Epoch::new(1));
        let result = uplink.append(&message, append, &mut audio_in);
        let mut samples = taken(&mut consumer, format.rate());
        assert!(result.is_ok() || samples.is_empty(), "nothing of a bad append");
        while uplink.is_waiting() {
            uplink.resume(&mut audio_in);
            samples.extend(taken(&mut consumer, format.rate()));
        }
        result.map(|_| samples).map_err(|error| error.fault().code())
    }

    /// Decodes `bytes` in `format`.
    fn heard(bytes: &[u8], format: AudioFormat) -> Vec<i16> {
        let Some(law) = format.law() else {
            return bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
        };
        let mut samples = vec![0; bytes.len()];
        law.expand(bytes, &mut samples);
        samples
    }

    #[test]
    fn padding_is_for_the_end_of_the_whole() {
        for format in FORMATS {
            let characters = frame_characters(format);
            let zeros = |samples: usize| Ok(heard(&vec![0; samples * format.sample_bytes()], format));
            let frame = "A".repeat(characters);
            let padded = |padding: &str| "A".repeat(characters - padding.len()) + padding;
            let end = if format.sample_bytes() == 2 { "AAA=" } else { "AA==" };
            assert_eq!(appended(&(frame.clone() + end), format), zeros(FRAME_SAMPLES + 1));
            assert_eq!(appended(&(frame.clone() + &frame), format), zeros(2 * FRAME_SAMPLES));
            for padding in ["=", "=="] {
                let (bad, padded) = (Err(Some("invalid_base64")), padded(padding));
                assert_eq!(appended(&(padded.clone() + &frame), format), bad, "{padding}");
                assert_eq!(appended(&(padded + end), format), bad, "{padding}");
            }
        }
    }

    /// RC-025, RC-028: every length in each format, also more than the ring holds.
    #[test]
    fn what_is_sent_is_what_is_in_the_ring() {
        let bytes: Vec<u8> = (0..=255).cycle().take(20_002).collect();
        for format in FORMATS {
            for length in (0..1_000).chain([1_919, 1_920, 1_921, 20_001, 20_002]) {
                let base64 = STANDARD.encode_to_string(&bytes[..length]);
                let found = appended(&base64, format);
                if length.is_multiple_of(format.sample_bytes()) {
                    assert_eq!(found, Ok(heard(&bytes[..length], format)), "{format:?}, {length} bytes");
                } else {
                    assert_eq!(found, Err(Some("invalid_audio_length")), "{format:?}, {length} bytes");
                }
            }
        }
    }

    #[test]
    fn an_append_is_measured_in_bytes_of_the_wire() {
        for format in FORMATS {
            let most = "A".repeat(APPEND_BYTES_MAX / 3 * 4);
            assert_eq!(samples_of(&most, format).ok(), Some(APPEND_BYTES_MAX / format.sample_bytes()));
            let error = samples_of(&(most + "AAA="), format).expect_err("too much");
            assert_eq!(error.code(), Some("append_too_large"));
        }
    }
}
