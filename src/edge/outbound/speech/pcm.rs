//! Bytes of a spoken answer → samples: raw PCM or WAV, cut anywhere, and nothing else.

use crate::audio::SampleRate;
use crate::audio::wav::{WavError, WavFormat, WavHeader};
use crate::edge::outbound::http::CallError;

/// Content types that are accepted; the first bytes of an answer decide between the two formats.
const AUDIO_TYPES: [&str; 7] = [
    "audio/pcm",
    "audio/x-pcm",
    "audio/wav",
    "audio/x-wav",
    "audio/wave",
    "audio/vnd.wave",
    "application/octet-stream",
];

/// First bytes of compressed audio, which some servers send in place of the format requested.
const COMPRESSED: [(&[u8], &str); 3] = [(b"ID3", "MP3"), (b"OggS", "Ogg"), (b"fLaC", "FLAC")];

/// Bytes that are needed to tell the formats apart.
const BEGINNING: usize = 12;

/// Errors of an answer without readable audio.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum PcmError {
    /// The content type is not accepted.
    #[error("found content type {0:?}, expected audio/pcm or audio/wav")]
    ContentType(String),
    /// The content type has a rate out of range.
    #[error("found a rate of {0:?}, expected 8000 to 48000")]
    Rate(String),
    /// The audio is compressed, in the format of this name.
    #[error("found {0}, expected PCM or WAV")]
    Compressed(&'static str),
    /// The header is not supported.
    #[error(transparent)]
    Wav(#[from] WavError),
    /// The answer ended within the header.
    #[error("found a WAV header without its end")]
    Header,
}

impl From<PcmError> for CallError {
    fn from(error: PcmError) -> Self {
        Self::Broken(error.to_string())
    }
}

#[derive(Debug)]
enum PcmState {
    /// Too few bytes have come to detect the format.
    Beginning,
    /// Samples; `left` is the number of bytes to come, `None`: up to the end of the answer.
    Samples { left: Option<usize> },
}

/// Reader of one answer.
#[derive(Debug)]
pub(super) struct PcmReader {
    state: PcmState,
    format: WavFormat,
    /// Bytes that have come and are no whole sample, or no whole header.
    rest: Vec<u8>,
}

impl PcmReader {
    /// Makes a reader of an answer with this content type, in lower case and without blanks. Raw PCM is 24 kHz, signed
    /// 16 bit, little-endian, mono, unless the type has a `rate`.
    ///
    /// # Errors
    /// [`PcmError::ContentType`], [`PcmError::Rate`].
    pub(super) fn new(content_type: &str) -> Result<Self, PcmError> {
        let mut parts = content_type.split(';');
        let essence = parts.next().unwrap_or_default();
        if !AUDIO_TYPES.contains(&essence) {
            return Err(PcmError::ContentType(essence.to_owned()));
        }
        let rate = match parts.find_map(|part| part.strip_prefix("rate=")) {
            None => SampleRate::HZ_24K,
            Some(text) => {
                text.parse().ok().and_then(SampleRate::new).ok_or_else(|| PcmError::Rate(text.to_owned()))?
            }
        };
        Ok(Self { state: PcmState::Beginning, format: WavFormat::pcm16(rate), rest: Vec::new() })
    }

    /// Returns the samples per second.
    pub(super) fn rate(&self) -> SampleRate {
        self.format.rate
    }

    /// Takes bytes and appends the samples that are whole by now.
    ///
    /// # Errors
    /// [`PcmError`] for bytes that are no audio.
    pub(super) fn push(&mut self, bytes: &[u8], samples: &mut Vec<f32>) -> Result<(), PcmError> {
        self.rest.extend_from_slice(bytes);
        if let PcmState::Beginning = self.state {
            if self.rest.len() < BEGINNING {
                return Ok(());
            }
            if WavHeader::is_wav(&self.rest) {
                let header = WavHeader::parse(&self.rest)?;
                let Some(header) = header else { return Ok(()) };
                self.format = header.format;
                self.rest.drain(..header.start);
                self.state = PcmState::Samples { left: header.len };
            } else {
                self.begin_raw()?;
            }
        }
        self.take(samples);
        Ok(())
    }

    /// Ends the answer. Half a sample at the end is dropped.
    ///
    /// # Errors
    /// [`PcmError`] for bytes that are no audio.
    pub(super) fn finish(&mut self, samples: &mut Vec<f32>) -> Result<(), PcmError> {
        if let PcmState::Beginning = self.state {
            if WavHeader::is_wav(&self.rest) {
                return Err(PcmError::Header);
            }
            self.begin_raw()?;
            self.take(samples);
        }
        Ok(())
    }

    fn begin_raw(&mut self) -> Result<(), PcmError> {
        if let Some((_, name)) = COMPRESSED.iter().find(|(magic, _)| self.rest.starts_with(magic)) {
            return Err(PcmError::Compressed(name));
        }
        self.state = PcmState::Samples { left: None };
        Ok(())
    }

    fn take(&mut self, samples: &mut Vec<f32>) {
        let PcmState::Samples { left } = &mut self.state else { return };
        if let Some(left) = left {
            // Bytes behind the samples are no audio.
            self.rest.truncate(*left);
        }
        let bytes = self.rest.len() - self.rest.len() % self.format.frame_bytes();
        if let Some(left) = left {
            *left -= bytes;
        }
        samples.extend(self.format.mono(&self.rest[..bytes]));
        self.rest.drain(..bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audio::wav;

    fn read(content_type: &str, pieces: &[&[u8]]) -> Result<(Vec<i32>, u32), PcmError> {
        let mut reader = PcmReader::new(content_type)?;
        let mut samples = Vec::new();
        for piece in pieces {
            reader.push(piece, &mut samples)?;
        }
        reader.finish(&mut samples)?;
        #[expect(clippy::cast_possible_truncation, reason = "full scale is far inside of the type")]
        let whole = |sample: &f32| (sample * 32_768.0) as i32;
        Ok((samples.iter().map(whole).collect(), reader.rate().hz()))
    }

    /// Returns the bytes of the samples 1, 2, ….
    fn counted(count: i16) -> Vec<u8> {
        (1..=count).flat_map(i16::to_le_bytes).collect()
    }

    #[test]
    fn where_bytes_are_cut_makes_no_difference() {
        let raw = counted(20);
        let wav = [&wav::header(SampleRate::HZ_16K, Some(40))[..], &raw].concat();
        let streamed = [&wav::header(SampleRate::HZ_16K, None)[..], &raw].concat();
        let titled = [&wav[..], b"LIST\x04\0\0\0abcd"].concat();
        let expected: Vec<i32> = (1..=20).collect();
        for (content_type, bytes, hz) in [
            ("audio/pcm", &raw, 24_000),
            ("audio/pcm;rate=8000", &raw, 8_000),
            ("audio/wav", &wav, 16_000),
            ("audio/pcm", &streamed, 16_000),
            ("application/octet-stream", &titled, 16_000),
        ] {
            for len in 1..=bytes.len() {
                let pieces: Vec<&[u8]> = bytes.chunks(len).collect();
                assert_eq!(
                    read(content_type, &pieces),
                    Ok((expected.clone(), hz)),
                    "{content_type}, {len} bytes"
                );
            }
        }
        assert_eq!(read("audio/pcm", &[]), Ok((vec![], 24_000)), "nothing is no error");
        assert_eq!(read("audio/pcm", &[&[1, 0, 2]]), Ok((vec![1], 24_000)), "half a sample at the end");
    }

    #[test]
    fn what_is_no_audio_is_none() {
        for content_type in ["", "text/html", "application/json", "audio/mpeg", "audio/pcm;rate=9"] {
            assert!(read(content_type, &[]).is_err(), "{content_type:?}");
        }
        for bytes in [&b"ID3\x04 and what follows"[..], b"OggS and what follows", b"RIFF....WAVEfmt "] {
            assert!(read("audio/pcm", &[bytes]).is_err(), "{bytes:?}");
        }
    }
}
