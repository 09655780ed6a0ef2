//! A question as a recording: a WAV file made mono at the rate of the session, with the end of its speech.

use std::path::{Path, PathBuf};

use rubato::audioadapter_buffers::direct::InterleavedSlice;
use rubato::{Fft, FixedSync, Resampler};

use crate::audio::{SampleRate, pcm};

/// Block in which the level is measured to find the end of speech, milliseconds.
const LEVEL_BLOCK_MS: u32 = 10;

/// Least level of a block of speech, as a part of the loudest block's: −40 dB.
const SPEECH_LEVEL_RATIO: f64 = 0.01;

/// Rates that are converted: up to the highest of studio converters. The filter grows with the numbers in the ratio of
/// the rates, so a nonsense rate must not reach it.
const RATES_HZ: std::ops::RangeInclusive<u32> = 1_000..=768_000;

/// Input samples per resampler step; only the speed depends on it.
const RESAMPLER_CHUNK: usize = 1_024;

/// Errors of reading a recording and of storing an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordingError {
    /// Not a readable WAV file.
    #[error("{path}: not a readable WAV file: {source}")]
    Unreadable {
        /// The recording.
        path: PathBuf,
        /// Error of the WAV reader.
        source: hound::Error,
    },
    /// No sample, or nothing but zeros.
    #[error("{path}: {seconds:.2} s of silence, expected speech")]
    Silent {
        /// The recording.
        path: PathBuf,
        /// Length of the recording.
        seconds: f64,
    },
    /// A rate that no sound is recorded at.
    #[error(
        "{path}: sample rate {hz} Hz, expected {}..={} Hz", RATES_HZ.start(), RATES_HZ.end()
    )]
    Rate {
        /// The recording.
        path: PathBuf,
        /// Rate in the file's header.
        hz: u32,
    },
    /// The answer cannot be stored.
    #[error("{path}: cannot be written: {source}")]
    Unwritable {
        /// File for the answer.
        path: PathBuf,
        /// Error of the WAV writer.
        source: hound::Error,
    },
}

/// Speech of a user, mono, signed 16 bit.
#[derive(Clone, Debug)]
pub struct Recording {
    rate: SampleRate,
    samples: Vec<i16>,
    speech_end: usize,
}

impl Recording {
    /// Reads a WAV file of any rate, channel count and sample format, and converts it to `rate`; channels are averaged.
    ///
    /// # Errors
    /// Returns [`RecordingError`] if the file is no WAV, holds no sound, or its rate cannot be converted.
    pub fn load(path: &Path, rate: SampleRate) -> Result<Self, RecordingError> {
        let unreadable = |source| RecordingError::Unreadable { path: path.to_owned(), source };
        let mut reader = hound::WavReader::open(path).map_err(unreadable)?;
        let spec = reader.spec();
        if !RATES_HZ.contains(&spec.sample_rate) {
            return Err(RecordingError::Rate { path: path.to_owned(), hz: spec.sample_rate });
        }
        let interleaved: Vec<f32> = match spec.sample_format {
            hound::SampleFormat::Float => {
                reader.samples::<f32>().collect::<Result<_, _>>().map_err(unreadable)?
            }
            hound::SampleFormat::Int => {
                let full_scale = f64::from(spec.bits_per_sample.saturating_sub(1)).exp2();
                #[expect(clippy::cast_possible_truncation, reason = "the nearest float is what is meant")]
                let scaled = |sample: i32| (f64::from(sample) / full_scale) as f32;
                reader
                    .samples::<i32>()
                    .map(|s| s.map(scaled))
                    .collect::<Result<_, _>>()
                    .map_err(unreadable)?
            }
        };
        let channels = usize::from(spec.channels.max(1));
        let mono: Vec<f32> = interleaved
            .chunks_exact(channels)
            .map(|frame| frame.iter().sum::<f32>() / channels as f32)
            .collect();
        let samples = converted(&mono, spec.sample_rate, rate);
        Self::from_samples(samples, rate).ok_or_else(|| RecordingError::Silent {
            path: path.to_owned(),
            seconds: mono.len() as f64 / f64::from(spec.sample_rate),
        })
    }

    /// Creates a recording from mono samples at `rate`; `None` if there is no sound in them.
    #[must_use]
    pub fn from_samples(samples: Vec<i16>, rate: SampleRate) -> Option<Self> {
        let speech_end = end_of_speech(&samples, rate)?;
        Some(Self { rate, samples, speech_end })
    }

    /// Returns the samples per second.
    #[must_use]
    pub const fn rate(&self) -> SampleRate {
        self.rate
    }

    /// Returns the samples, mono.
    #[must_use]
    pub fn samples(&self) -> &[i16] {
        &self.samples
    }

    /// Returns the end of the speech, in samples from the start. Latency counts from there, not from the end of the
    /// file.
    ///
    /// The speech ends with the last 10 ms block whose level (root mean square) is above −40 dB of the loudest block's.
    #[must_use]
    pub const fn speech_end(&self) -> usize {
        self.speech_end
    }
}

/// Writes mono samples at `rate` as a 16-bit WAV file.
///
/// # Errors
/// Returns [`RecordingError::Unwritable`] if the file cannot be created or written.
pub fn store(path: &Path, samples: &[i16], rate: SampleRate) -> Result<(), RecordingError> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: rate.hz(),
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let write = || -> Result<(), hound::Error> {
        let mut writer = hound::WavWriter::create(path, spec)?;
        for &sample in samples {
            writer.write_sample(sample)?;
        }
        writer.finalize()
    };
    write().map_err(|source| RecordingError::Unwritable { path: path.to_owned(), source })
}

/// Converts a whole recording at once, so the filter's delay is cut off and its tail is kept.
fn converted(mono: &[f32], hz: u32, rate: SampleRate) -> Vec<i16> {
    let to_pcm = |samples: &[f32]| samples.iter().map(|sample| pcm::to_i16(*sample)).collect();
    if hz == rate.hz() || mono.is_empty() {
        return to_pcm(mono);
    }
    let input = InterleavedSlice::new(mono, 1, mono.len()).expect("one channel of as many frames as samples");
    let mut resampler =
        Fft::<f32>::new(hz as usize, rate.hz() as usize, RESAMPLER_CHUNK, 1, FixedSync::Input)
            .expect("rates and chunk are not zero");
    let output =
        resampler.process_all(&input, mono.len(), None).expect("the output is sized by the resampler");
    to_pcm(&output.take_data())
}

fn end_of_speech(samples: &[i16], rate: SampleRate) -> Option<usize> {
    let block = usize::try_from(rate.samples_in(LEVEL_BLOCK_MS)).expect("a block is short");
    let energy =
        |block: &[i16]| block.iter().map(|&s| f64::from(s).powi(2)).sum::<f64>() / block.len() as f64;
    let loudest = samples.chunks(block).map(energy).fold(0.0, f64::max);
    let floor = loudest * SPEECH_LEVEL_RATIO.powi(2);
    let last = samples.chunks(block).rposition(|block| energy(block) > floor)?;
    Some(((last + 1) * block).min(samples.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: u32, rate: u32, seconds: f64, amplitude: f64) -> Vec<f64> {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seconds are few and not negative"
        )]
        let length = (f64::from(rate) * seconds) as usize;
        let step = std::f64::consts::TAU * f64::from(hz) / f64::from(rate);
        (0..length).map(|n| amplitude * (step * n as f64).sin()).collect()
    }

    fn write_wav(spec: hound::WavSpec, mono: &[f64]) -> tempfile::TempPath {
        let file = tempfile::Builder::new().suffix(".wav").tempfile().expect("a temporary file");
        let mut writer = hound::WavWriter::create(file.path(), spec).expect("created");
        let full_scale = f64::from(spec.bits_per_sample - 1).exp2() - 1.0;
        for &sample in mono {
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the samples of the file, at most at full scale"
            )]
            let (float, whole) = (sample as f32, (sample * full_scale).round() as i32);
            for _ in 0..spec.channels {
                match spec.sample_format {
                    hound::SampleFormat::Float => writer.write_sample(float).expect("written"),
                    hound::SampleFormat::Int => writer.write_sample(whole).expect("written"),
                }
            }
        }
        writer.finalize().expect("finished");
        file.into_temp_path()
    }

    #[test]
    fn every_format_gives_the_same_tone_at_every_rate() {
        use hound::SampleFormat::{Float, Int};
        let formats = [
            (24_000, 1, 16, Int),
            (8_000, 1, 16, Int),
            (16_000, 2, 24, Int),
            (22_050, 1, 32, Int),
            (44_100, 2, 32, Float),
            (48_000, 1, 8, Int),
        ];
        // The step of 8 bits; on the way from 22,050 to 16,000 Hz the filter delays by a part of a sample.
        let rates = [(SampleRate::HZ_16K, 0.04), (SampleRate::HZ_24K, 0.012)];
        for (to, format) in rates.into_iter().flat_map(|to| formats.map(|format| (to, format))) {
            let ((rate, tolerance), (sample_rate, channels, bits_per_sample, sample_format)) = (to, format);
            let expected = tone(440, rate.hz(), 0.5, 0.5);
            let spec = hound::WavSpec { channels, sample_rate, bits_per_sample, sample_format };
            let path = write_wav(spec, &tone(440, sample_rate, 0.5, 0.5));
            let recording = Recording::load(&path, rate).expect("a readable tone");
            let found = recording.samples();
            assert!(found.len().abs_diff(expected.len()) <= 1, "{spec:?}: {} samples", found.len());
            // The edges ring; in between the tone must be the same, sample by sample.
            for n in 1_000..expected.len() - 1_000 {
                let difference = (f64::from(found[n]) / 32_768.0 - expected[n]).abs();
                assert!(difference < tolerance, "{spec:?}: sample {n} is off by {difference}");
            }
        }
    }

    #[test]
    fn speech_ends_where_the_level_falls_and_not_where_the_file_does() {
        #[expect(clippy::cast_possible_truncation, reason = "half of full scale at most")]
        let sample = |value: &f64| (value * 32_768.0) as i16;
        let mut samples: Vec<i16> = tone(300, 24_000, 0.4, 0.5).iter().map(sample).collect();
        samples.extend((0..12_000).map(|n| if n % 2 == 0 { 60 } else { -60 }));
        let recording = Recording::from_samples(samples, SampleRate::HZ_24K).expect("there is sound");
        assert_eq!(recording.speech_end(), 9_600);
    }

    #[test]
    fn what_is_no_speech_is_refused() {
        let spec = hound::WavSpec {
            channels: 1,
            sample_rate: 8_000,
            bits_per_sample: 16,
            sample_format: hound::SampleFormat::Int,
        };
        let silent = write_wav(spec, &[0.0; 4_000]);
        assert!(
            matches!(Recording::load(&silent, SampleRate::HZ_24K), Err(RecordingError::Silent { seconds, .. }) if seconds == 0.5)
        );
        let empty = write_wav(spec, &[]);
        assert!(matches!(Recording::load(&empty, SampleRate::HZ_24K), Err(RecordingError::Silent { .. })));
        let text = tempfile::NamedTempFile::new().expect("a temporary file");
        std::fs::write(text.path(), "no WAV at all, only text").expect("written");
        assert!(matches!(
            Recording::load(text.path(), SampleRate::HZ_24K),
            Err(RecordingError::Unreadable { .. })
        ));
        let slow = write_wav(hound::WavSpec { sample_rate: 999, ..spec }, &[0.5; 800]);
        assert!(matches!(
            Recording::load(&slow, SampleRate::HZ_24K),
            Err(RecordingError::Rate { hz: 999, .. })
        ));
    }

    #[test]
    fn a_stored_answer_reads_back_and_a_bad_path_is_an_error() {
        let samples: Vec<i16> = (0..2_400).map(|n| n * 13).collect();
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        store(file.path(), &samples, SampleRate::HZ_24K).expect("stored");
        assert_eq!(Recording::load(file.path(), SampleRate::HZ_24K).expect("read back").samples(), samples);
        let nowhere = store(Path::new("/nowhere/at/all.wav"), &samples, SampleRate::HZ_24K);
        assert!(matches!(nowhere, Err(RecordingError::Unwritable { .. })));
    }
}
