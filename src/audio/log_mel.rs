//! The log-mel features that Smart Turn takes: those of Whisper, over the last eight seconds.
//!
//! *Thread:* a stage worker · *Never:* blocks, and no heap call after construction.
//!
//! # Source
//! Parameters and order of steps: pipecat-ai 1.14.0, `pipecat/audio/turn/smart_turn/_whisper_features.py`
//! and `local_smart_turn_v3.py`. The code is ours; the test compares with numbers that came from those files.

use std::fmt;
use std::sync::Arc;

use realfft::num_complex::Complex32;
use realfft::{RealFftPlanner, RealToComplex};

use super::pcm::Sample;

/// Frames of the features: one per hop of 10 ms, eight seconds.
pub const FRAMES: usize = 800;

/// Mel bands.
pub const BANDS: usize = 80;

/// Samples that the features cover: eight seconds at 16 kHz.
const SAMPLES: usize = FRAMES * HOP;

/// The tables and buffers that compute the features.
pub struct LogMel {
    fft: Arc<dyn RealToComplex<f32>>,
    /// Periodic Hann window.
    window: [f32; FFT],
    bands: Box<[MelBand; BANDS]>,
    /// The normalised signal with [`MARGIN`] reflected samples on either side.
    signal: Box<[f32]>,
    frame: Box<[f32]>,
    spectrum: Box<[Complex32]>,
    scratch: Box<[Complex32]>,
}

impl LogMel {
    /// Builds the tables.
    #[must_use]
    pub fn new() -> Self {
        let fft = RealFftPlanner::new().plan_fft_forward(FFT);
        let window = std::array::from_fn(|n| {
            let angle = std::f64::consts::TAU * n as f64 / FFT as f64;
            nearest(0.5 - 0.5 * angle.cos())
        });
        Self {
            window,
            bands: Box::new(std::array::from_fn(MelBand::new)),
            signal: vec![0.0; SAMPLES + 2 * MARGIN].into(),
            frame: fft.make_input_vec().into(),
            spectrum: fft.make_output_vec().into(),
            scratch: fft.make_scratch_vec().into(),
            fft,
        }
    }

    /// Writes the features of the last eight seconds of `audio` (mono, 16 kHz). Silence is put before shorter audio.
    ///
    /// # Shapes
    /// - `features`: `[80, 800]` f32, band by band, about `-1.0..=1.0`
    ///
    /// # Real-time
    /// No heap call, no lock.
    ///
    /// # Panics
    /// If `features` does not have [`BANDS`] × [`FRAMES`] places.
    pub fn compute(&mut self, audio: &[i16], features: &mut [f32]) {
        assert_eq!(features.len(), BANDS * FRAMES, "one place per band and frame");
        let silence = self.normalise(audio);
        // Frames of the leading silence alone are all alike.
        let alike = silence.saturating_sub(MARGIN) / HOP;
        let mut loudest = f32::NEG_INFINITY;
        for t in 0..FRAMES {
            if t > 0 && t <= alike {
                for band in features.chunks_exact_mut(FRAMES) {
                    band[t] = band[0];
                }
                continue;
            }
            let power = self.power(t);
            for (filter, band) in self.bands.iter().zip(features.chunks_exact_mut(FRAMES)) {
                let mel = filter.apply(&power).max(MEL_FLOOR).log10();
                loudest = loudest.max(mel);
                band[t] = mel;
            }
        }
        for feature in features {
            *feature = (feature.max(loudest - 8.0) + 4.0) / 4.0;
        }
    }

    /// Fills `signal` with the last of `audio` at zero mean and unit variance; returns the samples of silence before.
    fn normalise(&mut self, audio: &[i16]) -> usize {
        let audio = &audio[audio.len().saturating_sub(SAMPLES)..];
        let silence = SAMPLES - audio.len();
        let count = SAMPLES as f64;
        let mean = audio.iter().map(|sample| f64::from(sample.to_f32())).sum::<f64>() / count;
        let square = audio.iter().map(|sample| f64::from(sample.to_f32()).powi(2)).sum::<f64>() / count;
        let scale = ((square - mean * mean).max(0.0) + VARIANCE_FLOOR).sqrt().recip();
        let (mean, scale) = (nearest(mean), nearest(scale));
        let (quiet, loud) = self.signal[MARGIN..MARGIN + SAMPLES].split_at_mut(silence);
        quiet.fill(-mean * scale);
        for (place, sample) in loud.iter_mut().zip(audio) {
            *place = (sample.to_f32() - mean) * scale;
        }
        // The edges are mirrored around the first and the last sample.
        for n in 1..=MARGIN {
            self.signal[MARGIN - n] = self.signal[MARGIN + n];
            self.signal[MARGIN + SAMPLES - 1 + n] = self.signal[MARGIN + SAMPLES - 1 - n];
        }
        silence
    }

    /// Returns the power spectrum of frame `t`.
    fn power(&mut self, t: usize) -> [f32; BINS] {
        let signal = &self.signal[t * HOP..][..FFT];
        for ((place, sample), weight) in self.frame.iter_mut().zip(signal).zip(&self.window) {
            *place = sample * weight;
        }
        self.fft
            .process_with_scratch(&mut self.frame, &mut self.spectrum, &mut self.scratch)
            .expect("buffers were made by this transform");
        std::array::from_fn(|bin| self.spectrum[bin].norm_sqr())
    }
}

impl Default for LogMel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for LogMel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogMel").finish_non_exhaustive()
    }
}

/// One triangular band: the weights of the bins in which it is not zero.
struct MelBand {
    start: usize,
    weights: Vec<f32>,
}

/// Returns the nearest `f32`. Tables are computed more precisely than they are kept.
#[expect(clippy::cast_possible_truncation, reason = "the nearest value is what is meant")]
fn nearest(value: f64) -> f32 {
    value as f32
}

impl MelBand {
    /// Creates band `band`, whose area is one (Slaney's normalisation).
    fn new(band: usize) -> Self {
        let edge = |n: usize| hz_of_mel(mel_of_hz(RATE / 2.0) * n as f64 / (BANDS + 1) as f64);
        let (low, centre, high) = (edge(band), edge(band + 1), edge(band + 2));
        let weight = |bin: usize| {
            let hz = bin as f64 * RATE / FFT as f64;
            let slope = ((hz - low) / (centre - low)).min((high - hz) / (high - centre));
            nearest(slope.max(0.0) * 2.0 / (high - low))
        };
        let mut bins = (0..BINS).filter(|&bin| weight(bin) > 0.0);
        let start = bins.next().unwrap_or(0);
        let end = bins.next_back().unwrap_or(start) + 1;
        Self { start, weights: (start..end).map(weight).collect() }
    }

    fn apply(&self, power: &[f32; BINS]) -> f32 {
        self.weights.iter().zip(&power[self.start..]).map(|(weight, power)| weight * power).sum()
    }
}

/// Converts to Slaney's mel scale: linear below 1 kHz, logarithmic above.
fn mel_of_hz(hz: f64) -> f64 {
    if hz < 1_000.0 { hz * 3.0 / 200.0 } else { 15.0 + (hz / 1_000.0).ln() * 27.0 / 6.4_f64.ln() }
}

fn hz_of_mel(mel: f64) -> f64 {
    if mel < 15.0 { mel * 200.0 / 3.0 } else { 1_000.0 * ((mel - 15.0) * 6.4_f64.ln() / 27.0).exp() }
}

/// Rate of the audio, Hz.
const RATE: f64 = 16_000.0;

/// Samples of one transform, 25 ms.
const FFT: usize = 400;

/// Samples between two frames, 10 ms.
const HOP: usize = 160;

/// Frequencies of one transform.
const BINS: usize = FFT / 2 + 1;

/// Mirrored samples at either end, so that frames are centred.
const MARGIN: usize = FFT / 2;

/// Smallest power of a band.
const MEL_FLOOR: f32 = 1e-10;

/// Term added to the variance, so that silence stays silence.
const VARIANCE_FLOOR: f64 = 1e-7;

#[cfg(test)]
mod tests {
    use super::*;

    /// Places whose values were computed by the reference.
    const PLACES: [(usize, usize); 12] = [
        (0, 0),
        (0, 799),
        (3, 649),
        (3, 650),
        (10, 651),
        (20, 700),
        (40, 720),
        (60, 750),
        (79, 660),
        (79, 799),
        (33, 789),
        (70, 798),
    ];

    /// Returns a chirp in steps of loudness, a signal that Rust and Python compute alike.
    fn chirp(samples: i64) -> Vec<i16> {
        let value = |n: i64| (((n * n * 7 + n * 13) % 20_011) - 10_005).div_euclid(1 + (n / 4_000) % 5);
        (0..samples).map(|n| i16::try_from(value(n)).unwrap()).collect()
    }

    /// Source of the numbers: `compute_whisper_log_mel_features` of pipecat-ai 1.14.0 with numpy 2, for 1.5 s and 8.125
    /// s of audio.
    #[test]
    #[expect(clippy::excessive_precision, reason = "as the reference printed them")]
    fn features_are_those_of_the_reference() {
        let short = [
            0.483_987, 0.999_724, 1.013_945, 1.655_020, 1.257_588, 1.029_213, 1.202_569, 1.173_637,
            1.289_127, 1.308_898, 1.399_402, 1.336_759,
        ];
        let long = [
            0.582_121, 0.829_269, 1.302_499, 0.900_822, 1.022_202, 1.001_260, 0.965_270, 1.156_844,
            1.073_176, 0.917_391, 0.870_990, 1.086_458,
        ];
        let mut log_mel = LogMel::new();
        let mut features = vec![0.0; BANDS * FRAMES];
        for (samples, values, sum) in [(24_000, short, 27_216.906), (130_000, long, 63_755.668)] {
            log_mel.compute(&chirp(samples), &mut features);
            for ((band, frame), expected) in PLACES.into_iter().zip(values) {
                let found = features[band * FRAMES + frame];
                assert!(
                    (found - expected).abs() < 2e-4,
                    "{samples}: {band}, {frame}: {found}, not {expected}"
                );
            }
            let found: f64 = features.iter().map(|feature| f64::from(feature.abs())).sum();
            assert!((found - sum).abs() < 1.0, "{samples}: sum {found}, not {sum}");
        }
    }

    #[test]
    fn silence_gives_finite_features() {
        let mut features = vec![f32::NAN; BANDS * FRAMES];
        LogMel::new().compute(&[], &mut features);
        assert!(features.iter().all(|feature| (-1.5..=1.5).contains(feature)));
    }
}
