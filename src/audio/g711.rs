//! G.711, the telephone's companding: one byte per sample, 8 kHz.
//!
//! *Thread:* any · *Never:* blocks, and no heap call.
//!
//! # Source
//! ITU-T G.711; the tests compare with values of ITU-T G.191's `ulaw` and `alaw`.

use audio_codec_algorithms::{decode_alaw, decode_ulaw, encode_alaw, encode_ulaw};

/// The two curves. Bytes of one curve are noise under the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// µ-law: North America and Japan. Silence is `0xFF`.
    Mu,
    /// A-law: elsewhere. Silence is `0xD5`: the curve has no zero, and its least level is 8.
    A,
}

impl Law {
    /// Writes the samples of `bytes` into the first `bytes.len()` places of `samples`.
    ///
    /// # Panics
    /// If `samples` is shorter than `bytes`.
    pub fn expand(self, bytes: &[u8], samples: &mut [i16]) {
        let samples = &mut samples[..bytes.len()];
        match self {
            Self::Mu => samples.iter_mut().zip(bytes).for_each(|(place, byte)| *place = decode_ulaw(*byte)),
            Self::A => samples.iter_mut().zip(bytes).for_each(|(place, byte)| *place = decode_alaw(*byte)),
        }
    }

    /// Writes the nearest bytes of `samples` into the first `samples.len()` places of `bytes`. Samples beyond the
    /// curve's loudest level (32,124 for µ-law, 32,256 for A-law) are clamped.
    ///
    /// # Panics
    /// If `bytes` is shorter than `samples`.
    pub fn compress(self, samples: &[i16], bytes: &mut [u8]) {
        let bytes = &mut bytes[..samples.len()];
        match self {
            Self::Mu => {
                bytes.iter_mut().zip(samples).for_each(|(place, sample)| *place = encode_ulaw(*sample))
            }
            Self::A => {
                bytes.iter_mut().zip(samples).for_each(|(place, sample)| *place = encode_alaw(*sample))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(law: Law, byte: u8) -> i16 {
        let mut sample = [0];
        law.expand(&[byte], &mut sample);
        sample[0]
    }

    fn compressed(law: Law, sample: i16) -> u8 {
        let mut byte = [0];
        law.compress(&[sample], &mut byte);
        byte[0]
    }

    /// Source: ITU-T G.711, tables 1 and 2, the levels at which the segments of each curve begin and end, 16 bit.
    #[test]
    fn the_curves_are_those_of_the_itu() {
        for (byte, sample) in
            [(0xFF, 0), (0x80, 32_124), (0x8F, 16_764), (0x90, 15_996), (0xF0, 120), (0xEF, 132), (0xFE, 8)]
        {
            assert_eq!(expanded(Law::Mu, byte), sample, "{byte:#X}");
            assert_eq!(expanded(Law::Mu, byte ^ 0x80), -sample, "{byte:#X}, negative");
        }
        for (byte, sample) in
            [(0xD5, 8), (0xAA, 32_256), (0xA5, 16_896), (0xBA, 16_128), (0xC5, 264), (0xDA, 248), (0xD4, 24)]
        {
            assert_eq!(expanded(Law::A, byte), sample, "{byte:#X}");
            assert_eq!(expanded(Law::A, byte ^ 0x80), -sample, "{byte:#X}, negative");
        }
    }

    #[test]
    fn every_byte_comes_back_as_itself() {
        for law in [Law::Mu, Law::A] {
            for byte in 0..=u8::MAX {
                let again = compressed(law, expanded(law, byte));
                // µ-law has two zeros; the positive one is silence.
                let expected = if (law, byte) == (Law::Mu, 0x7F) { 0xFF } else { byte };
                assert_eq!(again, expected, "{law:?} {byte:#X}");
            }
        }
    }

    /// The curve is a straight line below 256 (A-law) or about 32 (µ-law), and has 16 steps for each doubling above.
    #[test]
    fn what_comes_back_is_as_near_as_the_curve_allows() {
        for (law, finest, loudest) in [(Law::Mu, 132, 32_124), (Law::A, 256, 32_256)] {
            for sample in i16::MIN..=i16::MAX {
                let again = i32::from(expanded(law, compressed(law, sample)));
                let level = i32::from(sample).abs();
                let step = (level.min(loudest) + finest) / 16;
                let clamped = i32::from(sample).clamp(-loudest, loudest);
                assert!((again - clamped).abs() <= step / 2 + 8, "{law:?}: {sample} became {again}");
            }
        }
    }

    #[test]
    fn the_laws_are_not_the_same() {
        let differ = (0..=u8::MAX).filter(|byte| expanded(Law::Mu, *byte) != expanded(Law::A, *byte)).count();
        assert_eq!(differ, 256);
    }

    #[test]
    fn only_as_many_places_are_written_as_there_are_samples() {
        let (mut samples, mut bytes) = ([7; 3], [7; 3]);
        Law::Mu.expand(&[0xFF, 0x80], &mut samples);
        assert_eq!(samples, [0, 32_124, 7]);
        Law::A.compress(&[8, -8], &mut bytes);
        assert_eq!(bytes, [0xD5, 0x55, 7]);
    }
}
