//! The port of a unit in VAD: its ring ends, and VAD's state of the caller.

use super::ring::{Consumer, Producer};
use crate::audio::{Endpointer, Resampler, SampleRate};
use crate::limits::{HISTORY_WINDOWS, PENDING_SAMPLES_MAX};
use crate::message::{
    AudioIn, Epoch, SPEECH_FRAME_SAMPLES, SpeechItem, UtteranceId, VadEvent, VadMode, VadSettings,
};
use crate::model::DetectorStream;

/// VAD's ends and state.
#[derive(Debug)]
pub struct VadPort {
    /// Audio of the client.
    pub audio_in: Consumer<AudioIn>,
    /// Utterances, to STT.
    pub speech: Producer<SpeechItem>,
    /// VAD's half of `text_events`.
    pub events: Producer<VadEvent>,
    /// State of VAD for this caller.
    pub state: VadState,
}

impl VadPort {
    pub(super) fn new(
        audio_in: Consumer<AudioIn>,
        speech: Producer<SpeechItem>,
        events: Producer<VadEvent>,
    ) -> Self {
        Self { audio_in, speech, events, state: VadState::new() }
    }
}

/// An utterance that is open, as VAD sees it.
#[derive(Clone, Copy, Debug)]
pub struct OpenUtterance {
    /// Number of the utterance.
    pub utterance: UtteranceId,
    /// First sample, at 16 kHz since the session began.
    pub start: u64,
    /// True if [`VadEvent::SpeechStarted`] has been sent.
    pub announced: bool,
}

/// Audio of an item of the client, while it arrives.
#[derive(Clone, Copy, Debug)]
pub enum ItemHearing {
    /// The audio goes on to STT.
    Passed {
        /// Utterance that STT sees.
        utterance: UtteranceId,
        /// Samples so far, at 16 kHz.
        samples: u64,
    },
    /// The audio is dropped: an utterance is open, and STT takes one at a time.
    Refused,
}

/// State of VAD for one caller.
#[derive(Debug)]
pub struct VadState {
    /// Resampler from the client's rate to 16 kHz.
    pub resampler: Resampler,
    /// The network's recurrent state.
    pub stream: DetectorStream,
    /// Detector of the beginning and end of speech.
    pub endpointer: Endpointer,
    /// The last windows, oldest overwritten; window `n` is at `n % HISTORY_WINDOWS`.
    pub history: Box<[[i16; SPEECH_FRAME_SAMPLES]]>,
    /// Samples at 16 kHz that do not fill a window yet, and those that a frame adds at once.
    pub pending: Vec<i16>,
    /// Start of the next window, in 16 kHz samples since the session began.
    pub position: u64,
    /// Windows written to `history` since the last cut. Older windows belong to an utterance that has ended.
    pub windows: u64,
    /// The utterance that is open.
    pub open: Option<OpenUtterance>,
    /// Audio of an item of the client, while it arrives.
    pub item: Option<ItemHearing>,
    /// Number of the next utterance.
    pub next_utterance: u32,
    /// Session of the newest item.
    pub epoch: Epoch,
    /// Turn detection from this point of the audio on.
    pub mode: VadMode,
}

impl VadState {
    fn new() -> Self {
        Self {
            resampler: Resampler::new(SampleRate::HZ_24K, SampleRate::HZ_16K)
                .expect("rates that SampleRate names have a resampler"),
            stream: DetectorStream::new(),
            endpointer: Endpointer::new(),
            // Zeroed by the allocator: an idle unit has written none of these pages.
            history: bytemuck::zeroed_slice_box(HISTORY_WINDOWS),
            pending: Vec::with_capacity(PENDING_SAMPLES_MAX),
            position: 0,
            windows: 0,
            open: None,
            item: None,
            next_utterance: 0,
            epoch: Epoch::default(),
            mode: VadSettings::default().mode,
        }
    }

    /// Resets all state of the caller.
    pub fn reset(&mut self) {
        self.resampler.reset();
        self.stream.reset();
        self.endpointer.reset();
        self.pending.clear();
        (self.position, self.windows) = (0, 0);
        self.open = None;
        self.item = None;
        self.next_utterance = 0;
        self.mode = VadSettings::default().mode;
    }
}
