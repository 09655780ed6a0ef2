//! Ring `speech`: VAD → STT.

use super::envelope::{RingItem, assert_fits};
use super::hint::SpeechHints;
use super::ids::{Epoch, UtteranceId};

/// Samples of one frame from VAD to STT: one detector window, 32 ms at 16 kHz.
pub const SPEECH_FRAME_SAMPLES: usize = 512;

/// Up to one detector window, mono, signed 16 bit, 16 kHz.
#[derive(Clone, Copy, Debug)]
pub struct SpeechFrame {
    /// Samples in use, `0..=SPEECH_FRAME_SAMPLES`.
    pub len: u16,
    /// The samples.
    pub samples: [i16; SPEECH_FRAME_SAMPLES],
}

/// Utterances. Each is a `Start`, any number of `Frame`, then `End` or `Abort`.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a ring slot has one size; boxing would put a heap call on the audio path"
)]
pub enum SpeechItem {
    /// Start of an utterance.
    Start(UtteranceId),
    /// Audio of the open utterance.
    Frame(SpeechFrame),
    /// End of the open utterance, which STT transcribes now.
    End(UtteranceId),
    /// Hints for the open utterance and all later ones.
    Hints(SpeechHints),
    /// End of the open utterance without a transcript: the client has cleared its audio.
    Abort(UtteranceId),
}

impl RingItem for SpeechItem {
    type Stamp = Epoch;
}

const _: () = assert_fits::<SpeechItem>(1_040);
