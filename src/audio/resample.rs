//! Streaming conversion between sample rates.
//!
//! *Thread:* the owner of the stream · *Never:* blocks, and no heap call after construction.
//!
//! A polyphase filter: for a ratio `L / M` in lowest terms there are `L` sets of coefficients, one per
//! position that an output sample can have between two input samples. The sets are exact (no interpolation
//! between them). The position is a pair of integers, which does not drift. Each output sample is one scalar
//! product over the input around it. So a result depends on the samples only, bit for bit, and never on the
//! caller's chunks.
//!
//! The coefficients and the vectorised scalar product are rubato's. Its complete resamplers are not used:
//! each has its own table (up to 80 kB for 22.05 kHz) and works in fixed chunks, which adds a chunk of
//! delay. Here all streams of the process share the table of a pair of [`RATES`], and the state of a stream
//! is 2.4 kB.
//!
//! # Delay
//! Output sample `n` stands at the same time as input sample `n · from / to`. To compute that output the
//! filter needs 24 samples of the lower of the two rates beyond that point: 1.5 ms for 24 → 16 kHz, 1.1 ms
//! for 22.05 → 24 kHz, 3 ms for conversions from or to 8 kHz. Nothing else is held back.

use std::fmt;
use std::sync::{Arc, OnceLock};

use rubato::WindowFunction;
use rubato::sinc_interpolator::{AnyInterpolator, SincInterpolator, make_interpolator};

use super::pcm::Sample;
use super::quantity::SampleRate;

/// Errors of a pair of rates that has no resampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResampleError {
    /// The ratio has so many positions that its table would be unreasonably large.
    #[error("{from} Hz to {to} Hz needs {phases} sets of coefficients, at most {PHASES_MAX} are allowed")]
    Ratio {
        /// Rate of the input, Hz.
        from: u32,
        /// Rate of the output, Hz.
        to: u32,
        /// Sets of coefficients: the output rate divided by the greatest common divisor of both rates.
        phases: u32,
    },
}

/// The state of one stream that is converted from one rate to another.
pub struct Resampler {
    /// `None` if both rates are equal, so that samples pass through.
    filter: Option<Arc<Filter>>,
    from: SampleRate,
    to: SampleRate,
    /// Input that is still needed, from the oldest sample that the next output depends on.
    window: [f32; WINDOW_SAMPLES],
    /// Samples of `window` in use.
    filled: usize,
    /// Index in `window` of the last sample at or before the next output's position.
    position: usize,
    /// Distance of the next output's position beyond that sample, in `0..phases`.
    phase: usize,
    /// Samples taken since the last reset.
    taken: u64,
    /// Samples given since the last reset.
    given: u64,
}

impl Resampler {
    /// Creates a resampler for mono audio. The first one of a pair of rates computes that pair's table.
    ///
    /// # Errors
    /// Returns [`ResampleError::Ratio`] for rates without a large common divisor. No pair of the rates that
    /// [`SampleRate`] names is refused.
    pub fn new(from: SampleRate, to: SampleRate) -> Result<Self, ResampleError> {
        let mut resampler = Self {
            filter: Filter::shared(from, to)?,
            from,
            to,
            window: [0.0; WINDOW_SAMPLES],
            filled: 0,
            position: 0,
            phase: 0,
            taken: 0,
            given: 0,
        };
        resampler.reset();
        Ok(resampler)
    }

    /// Changes the rates and starts a new stream. Makes no heap call if [`SampleRate`] names both rates and a
    /// stream of the process has used the pair before.
    ///
    /// # Errors
    /// As for [`Resampler::new`]; the resampler is then unchanged.
    pub fn set_rates(&mut self, from: SampleRate, to: SampleRate) -> Result<(), ResampleError> {
        if (from, to) != (self.from, self.to) {
            self.filter = Filter::shared(from, to)?;
            (self.from, self.to) = (from, to);
        }
        self.reset();
        Ok(())
    }

    /// Computes the tables of all pairs of the rates that [`SampleRate`] names, so that no stream computes them
    /// later. Takes about 1 MB and some tens of milliseconds, once per process.
    pub fn prepare() {
        for from in RATES {
            for to in RATES {
                Filter::shared(from, to).expect("every pair of the named rates has a large common divisor");
            }
        }
    }

    /// Takes `input` and passes all output that can be computed to `sink`, in order, in slices of at most 256
    /// samples.
    ///
    /// # Real-time
    /// No heap call, no lock.
    pub fn push<S: Sample>(&mut self, mut input: &[S], sink: &mut impl FnMut(&[f32])) {
        self.taken += input.len() as u64;
        let Some(filter) = self.filter.clone() else {
            return pass(input, &mut self.given, sink);
        };
        while !input.is_empty() {
            // One place stays free: the scalar product's bounds check requires a sample beyond its last.
            let room = WINDOW_SAMPLES - 1 - self.filled;
            let (now, later) = input.split_at(room.min(input.len()));
            for (place, sample) in self.window[self.filled..].iter_mut().zip(now) {
                *place = sample.to_f32();
            }
            self.filled += now.len();
            self.drain(&filter, u64::MAX, sink);
            input = later;
        }
    }

    /// Passes the rest of the stream to `sink` as if silence followed, and starts a new stream. The stream's
    /// output then has the length of its input times the ratio, rounded up.
    ///
    /// # Real-time
    /// No heap call, no lock.
    pub fn finish(&mut self, sink: &mut impl FnMut(&[f32])) {
        if let Some(filter) = self.filter.clone() {
            let owed = self.given + self.held();
            while self.given < owed {
                let end = WINDOW_SAMPLES - 1;
                self.window[self.filled..end].fill(0.0);
                self.filled = end;
                self.drain(&filter, owed, sink);
            }
        }
        self.reset();
    }

    /// Drops the stream and starts a new one.
    pub fn reset(&mut self) {
        let before = self.filter.as_ref().map_or(0, |filter| filter.taps() / 2);
        self.window[..before].fill(0.0);
        self.filled = before;
        self.position = before;
        self.phase = 0;
        self.taken = 0;
        self.given = 0;
    }

    /// Returns the number of output samples that [`Resampler::finish`] would pass on.
    #[must_use]
    pub fn held(&self) -> u64 {
        (self.taken * u64::from(self.to.hz())).div_ceil(u64::from(self.from.hz())) - self.given
    }

    /// Returns the rate of the input.
    #[must_use]
    pub fn from(&self) -> SampleRate {
        self.from
    }

    /// Returns the rate of the output.
    #[must_use]
    pub fn to(&self) -> SampleRate {
        self.to
    }

    /// Computes all output that the window allows, until `given` reaches `owed`, and drops input that no later
    /// output needs.
    fn drain(&mut self, filter: &Filter, owed: u64, sink: &mut impl FnMut(&[f32])) {
        let (taps, table) = (filter.taps(), &filter.table);
        let mut block = [0.0; BLOCK_SAMPLES];
        let mut used = 0;
        while self.given < owed {
            // rubato's set `s` reads at `start + taps / 2 - 1 + (s + 1) / phases`.
            let (start, set) = match self.phase {
                0 => (self.position - taps / 2, filter.phases - 1),
                phase => (self.position - taps / 2 + 1, phase - 1),
            };
            if start + taps > self.filled {
                break;
            }
            block[used] = table.get_sinc_interpolated(&self.window, start, set);
            used += 1;
            self.given += 1;
            self.position += filter.step.whole;
            self.phase += filter.step.phases;
            if self.phase >= filter.phases {
                self.phase -= filter.phases;
                self.position += 1;
            }
            if used == block.len() {
                sink(&block);
                used = 0;
            }
        }
        if used > 0 {
            sink(&block[..used]);
        }
        let stale = (self.position - taps / 2).min(self.filled);
        self.window.copy_within(stale..self.filled, 0);
        self.filled -= stale;
        self.position -= stale;
    }
}

impl fmt::Debug for Resampler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Resampler")
            .field("from", &self.from)
            .field("to", &self.to)
            .field("taken", &self.taken)
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

/// Passes `input` unchanged to `sink`.
fn pass<S: Sample>(input: &[S], given: &mut u64, sink: &mut impl FnMut(&[f32])) {
    let mut block = [0.0; BLOCK_SAMPLES];
    for piece in input.chunks(BLOCK_SAMPLES) {
        for (place, sample) in block.iter_mut().zip(piece) {
            *place = sample.to_f32();
        }
        *given += piece.len() as u64;
        sink(&block[..piece.len()]);
    }
}

/// The coefficients of one ratio. Immutable, shared by all streams.
struct Filter {
    table: AnyInterpolator<f32>,
    /// `L`: positions of an output sample between two input samples.
    phases: usize,
    /// Distance from one output sample to the next.
    step: Step,
}

/// A distance in input samples and positions between them. The division is done once, since a division takes
/// as long as the filter.
struct Step {
    whole: usize,
    phases: usize,
}

impl Filter {
    /// Returns the filter of a pair of rates, or `None` if they are equal.
    fn shared(from: SampleRate, to: SampleRate) -> Result<Option<Arc<Self>>, ResampleError> {
        /// One cell per pair of `RATES`.
        static FILTERS: [OnceLock<Arc<Filter>>; RATES.len() * RATES.len()] =
            [const { OnceLock::new() }; RATES.len() * RATES.len()];

        if from == to {
            return Ok(None);
        }
        let index = |rate| RATES.iter().position(|&known| known == rate);
        match (index(from), index(to)) {
            (Some(row), Some(column)) => {
                let cell = &FILTERS[row * RATES.len() + column];
                if let Some(filter) = cell.get() {
                    return Ok(Some(Arc::clone(filter)));
                }
                let filter = Arc::new(Self::new(from, to)?);
                Ok(Some(Arc::clone(cell.get_or_init(|| filter))))
            }
            _ => Ok(Some(Arc::new(Self::new(from, to)?))),
        }
    }

    fn new(from: SampleRate, to: SampleRate) -> Result<Self, ResampleError> {
        let (from, to) = (from.hz(), to.hz());
        let divisor = greatest_common_divisor(from, to);
        let phases = to / divisor;
        if phases > PHASES_MAX {
            return Err(ResampleError::Ratio { from, to, phases });
        }
        let ratio = f64::from(to) / f64::from(from);
        // A filter of a given steepness in Hz is as long in time for any input rate. A multiple of 8 for
        // SIMD.
        let taps = (TAPS * from).div_ceil(to).max(TAPS).next_multiple_of(8) as usize;
        let table = make_interpolator(taps, ratio, None, phases as usize, WindowFunction::Blackman);
        let step = (from / divisor) as usize;
        let phases = phases as usize;
        Ok(Self { table, phases, step: Step { whole: step / phases, phases: step % phases } })
    }

    fn taps(&self) -> usize {
        self.table.nbr_points()
    }
}

const fn greatest_common_divisor(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// The rates whose tables are kept.
const RATES: [SampleRate; 5] =
    [SampleRate::HZ_8K, SampleRate::HZ_16K, SampleRate::HZ_22K, SampleRate::HZ_24K, SampleRate::HZ_48K];

/// Length of the filter in samples of the lower rate. With a Blackman window the response is flat up to 0.75
/// of the half of that rate, −6 dB at 0.87 and below −70 dB from 1.0: for 16 kHz, speech up to 6 kHz is
/// untouched.
const TAPS: u32 = 48;

/// Most sets of coefficients: 22.05 → 48 kHz has 320.
const PHASES_MAX: u32 = 640;

/// Most output samples that are passed on at once.
const BLOCK_SAMPLES: usize = 256;

/// Length of the longest filter (48 → 8 kHz: six times [`TAPS`]), as much new input, and the place that stays
/// free.
const WINDOW_SAMPLES: usize = 2 * 6 * TAPS as usize + 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::cast_possible_truncation, reason = "the nearest value is what is meant")]
    fn sine(hz: f64, rate: SampleRate, samples: usize) -> Vec<f32> {
        let step = std::f64::consts::TAU * hz / f64::from(rate.hz());
        (0..samples).map(|n| (0.25 * (step * n as f64).sin()) as f32).collect()
    }

    fn whole<S: Sample>(from: SampleRate, to: SampleRate, input: &[S]) -> Vec<f32> {
        let mut resampler = Resampler::new(from, to).unwrap();
        let mut output = Vec::new();
        resampler.push(input, &mut |block: &[f32]| output.extend_from_slice(block));
        resampler.finish(&mut |block: &[f32]| output.extend_from_slice(block));
        output
    }

    fn db(value: f64) -> f64 {
        20.0 * value.max(1e-12).log10()
    }

    /// Returns the amplitude of `hz` in `signal`.
    fn amplitude(signal: &[f32], hz: f64, rate: SampleRate) -> f64 {
        let step = std::f64::consts::TAU * hz / f64::from(rate.hz());
        // A Hann window, so that the neighbouring tone does not leak into the measured line.
        let window = |n: usize| 1.0 - (std::f64::consts::TAU * n as f64 / signal.len() as f64).cos();
        let (mut re, mut im) = (0.0, 0.0);
        for (n, &sample) in signal.iter().enumerate() {
            let (sin, cos) = (step * n as f64).sin_cos();
            re += f64::from(sample) * window(n) * cos;
            im += f64::from(sample) * window(n) * sin;
        }
        2.0 * re.hypot(im) / signal.len() as f64
    }

    #[test]
    fn every_pair_has_the_right_length_and_the_right_sine() {
        for from in RATES {
            for to in RATES {
                for samples in [0, 1, 7, from.hz() as usize / 2 + 3] {
                    let output = whole(from, to, &sine(1_000.0, from, samples));
                    let expected = samples as f64 * f64::from(to.hz()) / f64::from(from.hz());
                    assert!((output.len() as f64 - expected).abs() <= 1.0, "{from:?} {to:?} {samples}");
                }
                let output = whole(from, to, &sine(1_000.0, from, from.hz() as usize));
                let expected = sine(1_000.0, to, output.len());
                let middle = output.len() / 10..output.len() * 9 / 10;
                let worst = middle.map(|n| f64::from(output[n] - expected[n]).abs()).fold(0.0, f64::max);
                assert!(db(worst) < -70.0, "{from:?} {to:?}: off by {:.1} dBFS", db(worst));
            }
        }
    }

    /// RC-027: chunk borders leave no trace, in ten seconds of sine at −12 dBFS cut into 20 ms.
    #[test]
    fn a_result_does_not_depend_on_the_chunks() {
        for (from, to) in [(8, 16), (24, 16), (22, 8), (22, 24), (24, 8), (24, 24), (48, 16)] {
            let rate = |khz| RATES.into_iter().find(|rate| rate.hz() / 1_000 == khz).unwrap();
            let (from, to) = (rate(from), rate(to));
            let input = sine(1_000.0, from, 10 * from.hz() as usize);
            let expected = whole(from, to, &input);
            for chunk in [1, 7, from.hz() as usize / 50, 5_000] {
                let mut resampler = Resampler::new(from, to).unwrap();
                let mut output = Vec::new();
                for piece in input.chunks(chunk) {
                    resampler.push(piece, &mut |block: &[f32]| output.extend_from_slice(block));
                }
                let held = expected.len() - output.len();
                assert_eq!(resampler.held(), held as u64, "{from:?} {to:?} in chunks of {chunk}");
                resampler.finish(&mut |block: &[f32]| output.extend_from_slice(block));
                assert_eq!(output, expected, "{from:?} {to:?} in chunks of {chunk}");
                assert_eq!(resampler.held(), 0);
            }
            let middle = &expected[to.hz() as usize..9 * to.hz() as usize];
            for line in [50.0, 950.0, 1_050.0] {
                let level = db(amplitude(middle, line, to));
                assert!(level < -70.0, "{from:?} {to:?}: {level:.1} dBFS at {line} Hz");
            }
            assert!((db(amplitude(middle, 1_000.0, to)) + 12.04).abs() < 0.05);
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_is_removed() {
        for (from, to, hz) in [
            (SampleRate::HZ_24K, SampleRate::HZ_16K, 8_500.0),
            (SampleRate::HZ_48K, SampleRate::HZ_8K, 4_400.0),
            (SampleRate::HZ_22K, SampleRate::HZ_8K, 9_000.0),
            (SampleRate::HZ_24K, SampleRate::HZ_22K, 11_600.0),
        ] {
            let output = whole(from, to, &sine(hz, from, from.hz() as usize));
            let middle = &output[output.len() / 10..output.len() * 9 / 10];
            let loudest = middle.iter().fold(0.0_f32, |loudest, sample| loudest.max(sample.abs()));
            assert!(db(f64::from(loudest)) < -75.0, "{from:?} {to:?}: {} dBFS", db(f64::from(loudest)));
        }
    }

    #[test]
    fn what_both_rates_can_hold_passes() {
        let output =
            whole(SampleRate::HZ_24K, SampleRate::HZ_16K, &sine(6_000.0, SampleRate::HZ_24K, 24_000));
        let level = db(amplitude(&output[1_600..14_400], 6_000.0, SampleRate::HZ_16K));
        assert!((level + 12.04).abs() < 0.2, "{level:.2} dBFS");
    }

    #[test]
    fn reset_and_finish_leave_no_trace_of_the_stream_before() {
        let (from, to) = (SampleRate::HZ_22K, SampleRate::HZ_24K);
        let input = sine(440.0, from, 3_000);
        let expected = whole(from, to, &input);
        let mut resampler = Resampler::new(from, to).unwrap();
        let mut ignore = |_: &[f32]| {};
        resampler.push(&[i16::MAX; 1_234], &mut ignore);
        resampler.reset();
        for _ in 0..2 {
            let mut output = Vec::new();
            resampler.push(&input, &mut |block: &[f32]| output.extend_from_slice(block));
            resampler.finish(&mut |block: &[f32]| output.extend_from_slice(block));
            assert_eq!(output, expected);
        }
        resampler.set_rates(SampleRate::HZ_24K, SampleRate::HZ_16K).unwrap();
        assert_eq!((resampler.from(), resampler.to()), (SampleRate::HZ_24K, SampleRate::HZ_16K));
        let mut output = Vec::new();
        resampler.push(&input, &mut |block: &[f32]| output.extend_from_slice(block));
        resampler.finish(&mut |block: &[f32]| output.extend_from_slice(block));
        assert_eq!(output, whole(SampleRate::HZ_24K, SampleRate::HZ_16K, &input));
    }

    #[test]
    fn equal_rates_pass_every_sample_unchanged() {
        let input: Vec<i16> = (0..1_000).map(|n| n * 31).collect();
        let output = whole(SampleRate::HZ_24K, SampleRate::HZ_24K, &input);
        assert_eq!(output.iter().map(|&sample| super::super::pcm::to_i16(sample)).collect::<Vec<_>>(), input);
    }

    #[test]
    fn output_waits_for_half_of_the_filter() {
        let mut resampler = Resampler::new(SampleRate::HZ_24K, SampleRate::HZ_16K).unwrap();
        assert_eq!(resampler.filter.as_ref().unwrap().taps(), 2 * 36);
        let mut given = 0;
        for n in 1..=2_400_usize {
            resampler.push(&[0_i16], &mut |block: &[f32]| given += block.len());
            let due = (n.saturating_sub(36) * 2).div_ceil(3);
            assert!(given >= due && given <= n * 2 / 3 + 1, "{n}: {given}");
        }
    }

    #[test]
    fn a_ratio_without_a_common_divisor_is_refused() {
        let (from, to) = (SampleRate::new(22_051).unwrap(), SampleRate::HZ_48K);
        let error = Resampler::new(from, to).unwrap_err();
        assert_eq!(error, ResampleError::Ratio { from: 22_051, to: 48_000, phases: 48_000 });
        assert!(Resampler::new(SampleRate::new(44_100).unwrap(), SampleRate::HZ_24K).is_ok());
    }
}
