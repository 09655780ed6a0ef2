//! The port of a unit in VAD: its ring ends, and all that VAD remembers of the caller.

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
    /// `text_events`, VAD's half.
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
    /// Its number.
    pub utterance: UtteranceId,
    /// First sample, 16 kHz, since the session began.
    pub start: u64,
    /// Whether the client has been told that speech started.
    pub announced: bool,
}

/// Audio of an item that is coming in.
#[derive(Clone, Copy, Debug)]
pub enum ItemHearing {
    /// On its way to STT.
    Passed {
        /// As this utterance.
        utterance: UtteranceId,
        /// Samples so far, 16 kHz.
        samples: u64,
    },
    /// Dropped: an utterance is open, and STT takes one at a time.
    Refused,
}

/// State of VAD for one caller.
#[derive(Debug)]
pub struct VadState {
    /// The client's rate to 16 kHz.
    pub resampler: Resampler,
    /// The network's recurrent state.
    pub stream: DetectorStream,
    /// When speech begins and ends.
    pub endpointer: Endpointer,
    /// The last windows, oldest overwritten; window `n` is at `n % HISTORY_WINDOWS`.
    pub history: Box<[[i16; SPEECH_FRAME_SAMPLES]]>,
    /// 16 kHz samples that do not fill a window yet, and what a frame adds at once.
    pub pending: Vec<i16>,
    /// Start, in 16 kHz samples since the session began, of each window is `base + n * 512`; where the next one begins.
    pub position: u64,
    /// Windows written to `history` since the last cut; older ones belong to an utterance that is gone.
    pub windows: u64,
    /// The utterance that is open.
    pub open: Option<OpenUtterance>,
    /// Audio of an item that is coming in.
    pub item: Option<ItemHearing>,
    /// Number of the next utterance.
    pub next_utterance: u32,
    /// Session of the newest item.
    pub epoch: Epoch,
    /// How turns are detected, from this point of the audio on.
    pub mode: VadMode,
}

impl VadState {
    fn new() -> Self {
        Self {
            resampler: Resampler::new(SampleRate::HZ_24K, SampleRate::HZ_16K)
                .expect("rates that SampleRate names have a resampler"),
            stream: DetectorStream::new(),
            endpointer: Endpointer::new(),
            history: vec![[0; SPEECH_FRAME_SAMPLES]; HISTORY_WINDOWS].into_boxed_slice(),
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

    /// Forgets the caller; what follows is heard as by a fresh unit.
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
