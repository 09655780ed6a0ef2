//! The state of one stream in a voice activity detector with the shape of Silero's.

/// New samples per window: 32 ms at 16 kHz. Source: silero-vad 6.2.3, `silero_vad_op18_ifless.onnx`.
pub const DETECTOR_WINDOW: usize = 512;

/// Samples of the previous window that the network sees again. Same source.
pub const DETECTOR_CONTEXT: usize = 64;

/// Length of the recurrent state, `[2, 1, 128]`. Same source.
pub const DETECTOR_STATE: usize = 256;

/// State of one stream between two windows. Plain data; lives in the unit.
#[derive(Clone, Debug)]
pub struct DetectorStream {
    /// The last [`DETECTOR_CONTEXT`] samples, `-1.0..=1.0`.
    pub context: [f32; DETECTOR_CONTEXT],
    /// The recurrent state.
    pub state: [f32; DETECTOR_STATE],
}

impl DetectorStream {
    /// Creates the state of a stream that has had no window yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { context: [0.0; DETECTOR_CONTEXT], state: [0.0; DETECTOR_STATE] }
    }

    /// Resets the state; the next window is scored as in a fresh process.
    pub fn reset(&mut self) {
        *self = Self::new();
    }
}

impl Default for DetectorStream {
    fn default() -> Self {
        Self::new()
    }
}
