//! Conversions between 16-bit samples and `-1.0..=1.0` floats.
//!
//! Full scale is 32,768 in both directions, so that a 16-bit sample comes back as itself.

/// The value of full scale: `i16::MIN` is exactly `-1.0`, `i16::MAX` is one step below `1.0`.
const FULL_SCALE: f32 = 32_768.0;

/// One PCM value of either format.
pub trait Sample: Copy {
    /// Returns the sample as a float: `-1.0..=1.0` for every `i16`, unchanged for a float.
    fn to_f32(self) -> f32;
}

impl Sample for i16 {
    #[inline]
    fn to_f32(self) -> f32 {
        f32::from(self) * (1.0 / FULL_SCALE)
    }
}

impl Sample for f32 {
    #[inline]
    fn to_f32(self) -> f32 {
        self
    }
}

/// Returns the nearest 16-bit sample (halves away from zero). Values beyond full scale are clamped, NaN becomes 0.
#[inline]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "a cast from a float saturates, which is the clamping")]
pub fn to_i16(sample: f32) -> i16 {
    // The cast truncates; `f32::round` would be a library call on plain x86-64.
    (sample * FULL_SCALE + 0.5_f32.copysign(sample)) as i16
}

/// Appends `from` to `to`; no heap call while there is capacity.
pub fn append_i16(to: &mut Vec<i16>, from: &[f32]) {
    to.extend(from.iter().map(|sample| to_i16(*sample)));
}

/// Converts `from` into the first `from.len()` places of `to`.
///
/// # Panics
/// If `to` is shorter than `from`.
pub fn write_f32(from: &[i16], to: &mut [f32]) {
    for (to, from) in to[..from.len()].iter_mut().zip(from) {
        *to = from.to_f32();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_16_bit_sample_comes_back_as_itself() {
        for sample in i16::MIN..=i16::MAX {
            assert_eq!(to_i16(sample.to_f32()), sample);
        }
    }

    #[test]
    fn what_is_too_loud_is_clamped_and_never_wraps() {
        assert_eq!(to_i16(1.0), i16::MAX);
        assert_eq!(to_i16(37.5), i16::MAX);
        assert_eq!(to_i16(f32::INFINITY), i16::MAX);
        assert_eq!(to_i16(-1.0), i16::MIN);
        assert_eq!(to_i16(-37.5), i16::MIN);
        assert_eq!(to_i16(f32::NAN), 0);
    }

    #[test]
    fn the_nearest_sample_is_taken_on_both_sides_of_zero() {
        let step = 1.0 / FULL_SCALE;
        let mut samples = vec![7];
        append_i16(&mut samples, &[0.4 * step, 0.6 * step, -0.4 * step, -0.6 * step]);
        assert_eq!(samples, [7, 0, 1, 0, -1]);
        let mut floats = [9.0; 3];
        write_f32(&[-32_768, 16_384], &mut floats);
        assert_eq!(floats, [-1.0, 0.5, 9.0]);
    }
}
