//! WAV over sockets: the header apart from the samples, and files whose length is not known yet.
//!
//! # Source
//! Microsoft, "Multimedia Programming Interface and Data Specifications 1.0", and `mmreg.h` for the format tags.
//! Programs that stream write a length of 0 or `u32::MAX`.

use super::SampleRate;

/// Bytes of the header that [`header`] writes.
const HEADER_BYTES: usize = 44;

/// Longest header that is read, bytes. Titles and the like may stand before the samples.
const HEADER_BYTES_MAX: usize = 64 * 1_024;

/// A file that is no WAV, or of a kind that is not read. The text names the contents found, and mostly those expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct WavError(String);

/// Encoding of one sample in the file, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    U8,
    I16,
    I24,
    I32,
    F32,
}

/// Format of the samples in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WavFormat {
    /// Samples per second of one channel.
    pub rate: SampleRate,
    channels: u16,
    encoding: Encoding,
}

impl WavFormat {
    /// Returns the format of signed 16-bit mono samples.
    #[must_use]
    pub const fn pcm16(rate: SampleRate) -> Self {
        Self { rate, channels: 1, encoding: Encoding::I16 }
    }

    const fn sample_bytes(self) -> usize {
        match self.encoding {
            Encoding::U8 => 1,
            Encoding::I16 => 2,
            Encoding::I24 => 3,
            Encoding::I32 | Encoding::F32 => 4,
        }
    }

    /// Returns the bytes of one sample of all channels.
    #[must_use]
    pub const fn frame_bytes(self) -> usize {
        self.sample_bytes() * self.channels as usize
    }

    /// Returns the samples of `bytes`, with the channels averaged. Bytes of an incomplete last sample are left out.
    pub fn mono(self, bytes: &[u8]) -> impl Iterator<Item = f32> {
        let channels = f32::from(self.channels);
        bytes.chunks_exact(self.frame_bytes()).map(move |frame| {
            frame.chunks_exact(self.sample_bytes()).map(|sample| self.sample(sample)).sum::<f32>() / channels
        })
    }

    fn sample(self, bytes: &[u8]) -> f32 {
        // Full scale is a power of two, so that a 16-bit sample comes back as itself.
        match (self.encoding, bytes) {
            (Encoding::U8, &[a]) => (f32::from(a) - 128.0) / 128.0,
            (Encoding::I16, &[a, b]) => f32::from(i16::from_le_bytes([a, b])) / 32_768.0,
            (Encoding::I24, &[a, b, c]) => i32::from_le_bytes([0, a, b, c]) as f32 / 2_147_483_648.0,
            (Encoding::I32, &[a, b, c, d]) => i32::from_le_bytes([a, b, c, d]) as f32 / 2_147_483_648.0,
            (Encoding::F32, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]),
            _ => unreachable!("as many bytes as sample_bytes says"),
        }
    }
}

/// The part of a file before its samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WavHeader {
    /// Format of the samples.
    pub format: WavFormat,
    /// Offset of the samples, bytes.
    pub start: usize,
    /// Length of the samples, bytes; `None` if they go on to the end of the file.
    pub len: Option<usize>,
}

impl WavHeader {
    /// Returns true if `bytes` begin like a WAV file.
    #[must_use]
    pub fn is_wav(bytes: &[u8]) -> bool {
        bytes.len() >= 12 && bytes.starts_with(b"RIFF") && &bytes[8..12] == b"WAVE"
    }

    /// Reads the header at the beginning of a file; `None` if more bytes must come first.
    ///
    /// # Errors
    /// Returns [`WavError`] if the file is no WAV, or none of a format that is read.
    pub fn parse(bytes: &[u8]) -> Result<Option<Self>, WavError> {
        if bytes.len() < 12 {
            return Ok(None);
        }
        if !Self::is_wav(bytes) {
            return Err(WavError("found no RIFF/WAVE header".to_owned()));
        }
        let (mut at, mut format) = (12, None);
        loop {
            let Some((id, len)) =
                bytes.get(at..at + 8).map(|head| (&head[..4], number(&head[4..8]) as usize))
            else {
                return unfinished(bytes);
            };
            let body = at + 8;
            if id == b"data" {
                let format = format.ok_or_else(|| WavError("found data before a format".to_owned()))?;
                let len = (len != 0 && len != u32::MAX as usize).then_some(len);
                return Ok(Some(Self { format, start: body, len }));
            }
            // Chunks begin at even places.
            let end = body.saturating_add(len).saturating_add(len % 2);
            if id == b"fmt " {
                let Some(body) = bytes.get(body..body + len.min(40)) else { return unfinished(bytes) };
                format = Some(parse_format(body)?);
            }
            if end > HEADER_BYTES_MAX {
                return Err(WavError(format!("found no samples in the first {HEADER_BYTES_MAX} bytes")));
            }
            at = end;
        }
    }
}

fn unfinished(bytes: &[u8]) -> Result<Option<WavHeader>, WavError> {
    if bytes.len() > HEADER_BYTES_MAX {
        return Err(WavError(format!("found no samples in the first {HEADER_BYTES_MAX} bytes")));
    }
    Ok(None)
}

fn number(bytes: &[u8]) -> u32 {
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u32::from(*byte))
}

fn parse_format(body: &[u8]) -> Result<WavFormat, WavError> {
    /// Tag of a format whose real tag is in the extension.
    const EXTENSIBLE: u32 = 0xfffe;
    if body.len() < 16 {
        return Err(WavError(format!("found a format of {} bytes, expected 16", body.len())));
    }
    let tag = match number(&body[..2]) {
        EXTENSIBLE if body.len() >= 26 => number(&body[24..26]),
        tag => tag,
    };
    let (channels, hz, bits) = (number(&body[2..4]), number(&body[4..8]), number(&body[14..16]));
    let encoding = match (tag, bits) {
        (1, 8) => Encoding::U8,
        (1, 16) => Encoding::I16,
        (1, 24) => Encoding::I24,
        (1, 32) => Encoding::I32,
        (3, 32) => Encoding::F32,
        _ => {
            let problem =
                format!("found format {tag} with {bits} bits, expected PCM (1) or 32-bit float (3)");
            return Err(WavError(problem));
        }
    };
    let channels = u16::try_from(channels).ok().filter(|channels| (1..=8).contains(channels));
    let channels =
        channels.ok_or_else(|| WavError("found no channel or more than 8, expected 1 to 8".to_owned()))?;
    let rate = SampleRate::new(hz);
    let rate = rate.ok_or_else(|| WavError(format!("found a rate of {hz} Hz, expected 8000 to 48000 Hz")))?;
    Ok(WavFormat { rate, channels, encoding })
}

/// Returns the header of mono 16-bit samples at `rate`. `len` is in bytes, and `None` if not known yet.
#[must_use]
pub fn header(rate: SampleRate, len: Option<u32>) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        header[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    put(b"RIFF");
    put(&len.map_or(u32::MAX, |len| len.saturating_add(36)).to_le_bytes());
    put(b"WAVEfmt ");
    put(&16_u32.to_le_bytes());
    put(&1_u16.to_le_bytes());
    put(&1_u16.to_le_bytes());
    put(&rate.hz().to_le_bytes());
    put(&(2 * rate.hz()).to_le_bytes());
    put(&2_u16.to_le_bytes());
    put(&16_u16.to_le_bytes());
    put(b"data");
    put(&len.unwrap_or(u32::MAX).to_le_bytes());
    header
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(
        spec: hound::WavSpec,
        write: impl FnOnce(&mut hound::WavWriter<&mut std::io::Cursor<Vec<u8>>>),
    ) -> Vec<u8> {
        let mut file = std::io::Cursor::new(Vec::new());
        let mut writer = hound::WavWriter::new(&mut file, spec).expect("in memory");
        write(&mut writer);
        writer.finalize().expect("in memory");
        file.into_inner()
    }

    #[test]
    fn every_encoding_that_hound_writes_is_read() {
        let ramp = [-0.5_f32, 0.0, 0.25];
        for (bits, sample_format) in [
            (8, hound::SampleFormat::Int),
            (16, hound::SampleFormat::Int),
            (24, hound::SampleFormat::Int),
            (32, hound::SampleFormat::Int),
            (32, hound::SampleFormat::Float),
        ] {
            let spec =
                hound::WavSpec { channels: 2, sample_rate: 44_100, bits_per_sample: bits, sample_format };
            let file = written(spec, |writer| {
                for sample in ramp {
                    for channel in [sample, sample] {
                        match sample_format {
                            hound::SampleFormat::Float => writer.write_sample(channel),
                            hound::SampleFormat::Int => {
                                #[expect(
                                    clippy::cast_possible_truncation,
                                    reason = "a whole number of the file"
                                )]
                                let whole = (channel * f32::from(bits - 1).exp2()) as i32;
                                writer.write_sample(whole)
                            }
                        }
                        .expect("in memory");
                    }
                }
            });
            let header = WavHeader::parse(&file).expect("a WAV file").expect("whole");
            assert_eq!(header.format.rate.hz(), 44_100);
            assert_eq!(header.len, Some(file.len() - header.start));
            let samples: Vec<f32> = header.format.mono(&file[header.start..]).collect();
            assert_eq!(samples, ramp, "{bits} bits, {sample_format:?}");
            // A file cut anywhere in its header is unfinished, not wrong.
            for len in 0..header.start {
                assert_eq!(WavHeader::parse(&file[..len]), Ok(None), "{len} bytes");
            }
        }
    }

    #[test]
    fn the_header_that_is_written_is_read_again() {
        for (len, found) in [(Some(6), Some(6)), (None, None)] {
            let bytes = header(SampleRate::HZ_24K, len);
            let expected =
                WavHeader { format: WavFormat::pcm16(SampleRate::HZ_24K), start: HEADER_BYTES, len: found };
            assert_eq!(WavHeader::parse(&bytes), Ok(Some(expected)));
        }
        let file = [&header(SampleRate::HZ_16K, Some(4))[..], &[1, 0, 255, 255]].concat();
        let reader = hound::WavReader::new(&file[..]).expect("hound reads it");
        assert_eq!(reader.into_samples::<i16>().collect::<Result<Vec<_>, _>>().expect("whole"), [1, -1]);
    }

    #[test]
    fn what_is_no_wav_is_named() {
        let mut wrong_rate = header(SampleRate::HZ_8K, None);
        wrong_rate[24..28].copy_from_slice(&96_000_u32.to_le_bytes());
        let mut mu_law = header(SampleRate::HZ_8K, None);
        mu_law[20] = 7;
        for (bytes, found) in [
            (&b"{\"error\": 1}"[..], "found no RIFF/WAVE header"),
            (&wrong_rate, "found a rate of 96000 Hz, expected 8000 to 48000 Hz"),
            (&mu_law, "found format 7 with 16 bits, expected PCM (1) or 32-bit float (3)"),
        ] {
            assert_eq!(WavHeader::parse(bytes).expect_err("wrong").to_string(), found);
        }
        let endless = [&b"RIFF\0\0\0\0WAVEjunk"[..], &u32::MAX.to_le_bytes()].concat();
        assert!(WavHeader::parse(&endless).is_err());
    }
}
