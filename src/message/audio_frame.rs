//! Samples between the edge and the stages.

use crate::audio::SampleRate;

/// Samples of one frame between the edge and the stages: 20 ms at 24 kHz, the usual append of a Realtime client; 60 ms
/// at 8 kHz, 10 ms at 48 kHz.
pub const FRAME_SAMPLES: usize = 480;

/// Up to [`FRAME_SAMPLES`] samples, mono, signed 16 bit, at `rate`.
#[derive(Clone, Copy, Debug)]
pub struct AudioFrame {
    /// Samples in use, `0..=FRAME_SAMPLES`.
    pub len: u16,
    /// Rate of these samples.
    pub rate: SampleRate,
    /// The samples; those from `len` on are undefined (zero or old).
    pub samples: [i16; FRAME_SAMPLES],
}

impl AudioFrame {
    /// Creates an empty frame at `rate`.
    #[must_use]
    pub const fn empty(rate: SampleRate) -> Self {
        Self { len: 0, rate, samples: [0; FRAME_SAMPLES] }
    }

    /// Moves up to [`FRAME_SAMPLES`] samples from the front of `samples` into a frame at `rate`.
    #[must_use]
    pub fn cut(samples: &mut Vec<i16>, rate: SampleRate) -> Self {
        let mut frame = Self::empty(rate);
        let len = samples.len().min(FRAME_SAMPLES);
        frame.samples[..len].copy_from_slice(&samples[..len]);
        frame.len = u16::try_from(len).expect("at most a frame");
        samples.drain(..len);
        frame
    }

    /// Returns the samples in use.
    #[must_use]
    pub fn used(&self) -> &[i16] {
        &self.samples[..usize::from(self.len)]
    }
}
