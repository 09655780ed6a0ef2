//! Rates, and the conversions between samples and milliseconds.

/// Samples per second of a mono stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct SampleRate(u32);

impl SampleRate {
    /// Telephone band.
    pub const HZ_8K: Self = Self(8_000);
    /// Rate of the detector, the turn model and STT.
    pub const HZ_16K: Self = Self(16_000);
    /// Rate of the Piper voices of medium quality.
    pub const HZ_22K: Self = Self(22_050);
    /// Rate of the Realtime protocol's PCM.
    pub const HZ_24K: Self = Self(24_000);
    /// Rate of common sound cards.
    pub const HZ_48K: Self = Self(48_000);

    /// Creates a rate; `None` unless `hz` is in `8_000..=48_000`.
    #[must_use]
    pub const fn new(hz: u32) -> Option<Self> {
        if hz >= 8_000 && hz <= 48_000 { Some(Self(hz)) } else { None }
    }

    /// Returns the samples per second.
    #[must_use]
    pub const fn hz(self) -> u32 {
        self.0
    }

    /// Returns the samples in `ms` milliseconds, rounded down.
    #[must_use]
    pub const fn samples_in(self, ms: u32) -> u64 {
        self.0 as u64 * ms as u64 / 1_000
    }

    /// Returns the milliseconds of `samples`, rounded down; saturates at `u32::MAX` (49 days).
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "compared with the type's end before")]
    pub const fn millis_of(self, samples: u64) -> u32 {
        let ms = samples as u128 * 1_000 / self.0 as u128;
        if ms > u32::MAX as u128 { u32::MAX } else { ms as u32 }
    }

    /// Returns the milliseconds of `samples`, rounded up; saturates at `u32::MAX`.
    #[must_use]
    pub const fn millis_around(self, samples: u64) -> u32 {
        let down = self.millis_of(samples);
        if self.samples_in(down) < samples { down.saturating_add(1) } else { down }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conversions_round_down_unless_they_say_otherwise() {
        assert_eq!(SampleRate::HZ_24K.samples_in(20), 480);
        assert_eq!(SampleRate::HZ_22K.samples_in(1), 22);
        assert_eq!(SampleRate::HZ_16K.millis_of(511), 31);
        assert_eq!(SampleRate::HZ_16K.millis_of(u64::MAX), u32::MAX);
        assert_eq!(SampleRate::new(7_999), None);
        let around = |samples| SampleRate::HZ_24K.millis_around(samples);
        assert_eq!([around(0), around(1), around(24), around(25), around(u64::MAX)], [0, 1, 1, 2, u32::MAX]);
    }
}
