//! Sounds as functions of time, so that they are the same at every rate, and measurements of sounds.

use std::f64::consts::TAU;
use std::ops::Range;

use antiphon::door::audio::{AudioFormat, SampleRate};

/// Formats that a client may send and ask for.
pub(crate) const FORMATS: [AudioFormat; 6] = [
    AudioFormat::Pcm(SampleRate::HZ_8K),
    AudioFormat::Pcm(SampleRate::HZ_16K),
    AudioFormat::Pcm(SampleRate::HZ_24K),
    AudioFormat::Pcm(SampleRate::HZ_48K),
    AudioFormat::Pcmu,
    AudioFormat::Pcma,
];

/// Spans of the recording's utterances, milliseconds.
pub(crate) const UTTERANCES_MS: [Range<u32>; 4] = [700..3_800, 5_500..8_600, 10_300..13_400, 15_100..18_200];

/// Length of the recording, milliseconds.
pub(crate) const RECORDING_MS: u32 = 19_900;

/// Level of each utterance.
const LEVELS: [f64; 4] = [0.1, 0.27, 0.15, 0.45];

/// Time in which an utterance fades in and out, milliseconds.
const FADE_MS: f64 = 10.0;

/// Returns the recording at time `t` in seconds, `-1.0..1.0`: four utterances of three tones below 2 kHz, and between
/// them a hum below the threshold of the energy detector.
pub(crate) fn recording_at(t: f64) -> f64 {
    let tone = |hz: f64| (TAU * hz * t).sin();
    let voice = (tone(220.0) + 0.5 * tone(710.0) + 0.3 * tone(1_630.0)) / 1.8 * (0.8 + 0.2 * tone(3.0));
    let fade = |ms: f64| 0.5 - 0.5 * (std::f64::consts::PI * (ms / FADE_MS).clamp(0.0, 1.0)).cos();
    let envelope = |(range, level): (&Range<u32>, f64)| {
        level * fade(t * 1e3 - f64::from(range.start)) * fade(f64::from(range.end) - t * 1e3)
    };
    0.001 * tone(100.0) + UTTERANCES_MS.iter().zip(LEVELS).map(envelope).sum::<f64>() * voice
}

/// Returns 1 kHz at −12 dBFS (RC-027) at time `t` in seconds.
pub(crate) fn sine_at(t: f64) -> f64 {
    0.25 * (TAU * 1_000.0 * t).sin()
}

/// Returns the samples of `sound` in a span of time, at `rate`.
pub(crate) fn sampled(sound: fn(f64) -> f64, rate: SampleRate, ms: Range<u32>) -> Vec<i16> {
    #[expect(clippy::cast_possible_truncation, reason = "a cast from a float ends at full scale")]
    let at = |n: u64| (sound(n as f64 / f64::from(rate.hz())) * 32_768.0).round() as i16;
    (rate.samples_in(ms.start)..rate.samples_in(ms.end)).map(at).collect()
}

/// Converts samples to bytes of `format`.
pub(crate) fn to_wire(samples: &[i16], format: AudioFormat) -> Vec<u8> {
    let Some(law) = format.law() else {
        return samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    };
    let mut bytes = vec![0; samples.len()];
    law.compress(samples, &mut bytes);
    bytes
}

/// Converts bytes of `format` to samples.
pub(crate) fn from_wire(bytes: &[u8], format: AudioFormat) -> Vec<i16> {
    assert!(bytes.len().is_multiple_of(format.sample_bytes()), "{} bytes are no whole samples", bytes.len());
    let Some(law) = format.law() else {
        return bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    };
    let mut samples = vec![0; bytes.len()];
    law.expand(bytes, &mut samples);
    samples
}

/// Returns the power of `expected` over the power of the difference to `found`, decibels.
pub(crate) fn signal_to_noise_db(found: &[i16], expected: &[i16]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let power = |samples: &mut dyn Iterator<Item = f64>| samples.map(|sample| sample * sample).sum::<f64>();
    let signal = power(&mut expected.iter().map(|sample| f64::from(*sample)));
    let pairs = found.iter().zip(expected);
    let noise = power(&mut pairs.map(|(found, expected)| f64::from(*found) - f64::from(*expected)));
    10.0 * (signal / noise.max(1e-9)).log10()
}

/// Returns the largest difference, decibels of full scale.
pub(crate) fn largest_difference_dbfs(found: &[i16], expected: &[i16]) -> f64 {
    assert_eq!(found.len(), expected.len());
    let pairs = found.iter().zip(expected);
    let largest = pairs.map(|(found, expected)| found.abs_diff(*expected)).max().unwrap_or(0);
    20.0 * (f64::from(largest) / 32_768.0).max(1e-9).log10()
}

/// Returns the amplitude of one line of the spectrum, decibels of full scale.
pub(crate) fn line_dbfs(samples: &[i16], hz: f64, rate: SampleRate) -> f64 {
    let count = samples.len() as f64;
    let (mut re, mut im) = (0.0, 0.0);
    for (n, sample) in samples.iter().enumerate() {
        // A Hann window, so that the loud tone does not leak into the measured line.
        let weight = 1.0 - (TAU * n as f64 / count).cos();
        let (sin, cos) = (TAU * hz * n as f64 / f64::from(rate.hz())).sin_cos();
        re += f64::from(*sample) / 32_768.0 * weight * cos;
        im += f64::from(*sample) / 32_768.0 * weight * sin;
    }
    20.0 * (2.0 * re.hypot(im) / count).max(1e-9).log10()
}
