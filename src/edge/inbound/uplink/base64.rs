//! Base64 of one frame of audio → samples, in each format.

use base64_simd::{Out, STANDARD};

use crate::audio::{AudioFormat, Law};
use crate::message::FRAME_SAMPLES;

const _: () = assert!(FRAME_SAMPLES.is_multiple_of(3), "a full frame is whole base64 quanta in every format");

/// Returns the base64 characters of one full frame.
pub(super) const fn frame_characters(format: AudioFormat) -> usize {
    FRAME_SAMPLES * format.sample_bytes() / 3 * 4
}

/// The error for text that is no base64.
#[derive(Debug)]
pub(super) struct BadBase64;

/// Decodes base64 of up to one frame; returns the number of samples.
pub(super) fn decode_frame(
    piece: &[u8],
    format: AudioFormat,
    samples: &mut [i16; FRAME_SAMPLES],
) -> Result<usize, BadBase64> {
    match format.law() {
        None => decode_pcm(piece, samples),
        Some(law) => decode_law(law, piece, samples),
    }
}

/// Decodes base64 of up to one frame of 16-bit little-endian samples; returns their number.
pub(super) fn decode_pcm(piece: &[u8], samples: &mut [i16; FRAME_SAMPLES]) -> Result<usize, BadBase64> {
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(samples);
    Ok(STANDARD.decode(piece, Out::from_slice(bytes)).map_err(|_| BadBase64)?.len() / 2)
}

/// Decodes base64 of up to one frame that is companded by `law`; returns the number of samples.
#[inline]
pub(super) fn decode_law(
    law: Law,
    piece: &[u8],
    samples: &mut [i16; FRAME_SAMPLES],
) -> Result<usize, BadBase64> {
    let mut bytes = [0; FRAME_SAMPLES];
    let decoded = STANDARD.decode(piece, Out::from_slice(&mut bytes)).map_err(|_| BadBase64)?;
    law.expand(decoded, samples);
    Ok(decoded.len())
}
