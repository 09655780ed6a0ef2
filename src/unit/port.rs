//! The ports of a unit: the ring ends of one stage, and all state that this stage keeps for the caller.

use super::ring::{Consumer, Producer};
use crate::audio::{Endpointer, Resampler, SampleRate};
use crate::limits::{
    CLAUSE_BYTES_MAX, CLAUSE_SAMPLES_MAX, HISTORY_WINDOWS, PENDING_SAMPLES_MAX, READY_SAMPLES_MAX,
    TRANSCRIPT_BYTES_MAX, UTTERANCE_SAMPLES_MAX,
};
use crate::message::{
    AudioIn, ClauseItem, Moment, ResponseKey, SPEECH_FRAME_SAMPLES, SpeechHints, SpeechItem, SpeechOut,
    Spent, Stamp, SttEvent, TextPrompt, TtsSettings, UtteranceId, VadEvent, VadMode, VadSettings,
};
use crate::model::{DetectorStream, Speech, SpeechSource};

/// The edge's ends. Borrowed by the lease for as long as it lives, then by the drainer.
#[derive(Debug)]
pub struct EdgePort {
    /// Audio of the client, to VAD.
    pub audio_in: Producer<AudioIn>,
    /// What the language model shall answer.
    pub text_prompts: Producer<TextPrompt>,
    /// `text_events`, VAD's half.
    pub vad_events: Consumer<VadEvent>,
    /// `text_events`, STT's half.
    pub stt_events: Consumer<SttEvent>,
    /// The answer: audio and its events in order.
    pub audio_out: Consumer<SpeechOut>,
    /// Latest settings for TTS.
    pub tts_settings: triple_buffer::Input<TtsSettings>,
    /// What the last answer has cost.
    pub spent: triple_buffer::Output<Spent>,
}

/// VAD's ends and state.
#[derive(Debug)]
pub struct VadPort {
    /// Audio of the client.
    pub audio_in: Consumer<AudioIn>,
    /// Utterances, to STT.
    pub speech: Producer<SpeechItem>,
    /// `text_events`, VAD's half.
    pub events: Producer<VadEvent>,
    /// What VAD remembers of this caller.
    pub state: VadState,
}

/// An utterance that is open, as VAD sees it.
#[derive(Clone, Copy, Debug)]
pub struct OpenUtterance {
    /// Which.
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

/// What VAD remembers of one caller.
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
    /// Stamp of the newest audio.
    pub stamp: Stamp,
    /// How turns are detected, from this point of the audio on.
    pub mode: VadMode,
}

impl VadState {
    fn new() -> Self {
        Self {
            resampler: resampler(SampleRate::HZ_24K, SampleRate::HZ_16K),
            stream: DetectorStream::new(),
            endpointer: Endpointer::new(),
            history: vec![[0; SPEECH_FRAME_SAMPLES]; HISTORY_WINDOWS].into_boxed_slice(),
            pending: Vec::with_capacity(PENDING_SAMPLES_MAX),
            position: 0,
            windows: 0,
            open: None,
            item: None,
            next_utterance: 0,
            stamp: Stamp::default(),
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

/// STT's ends and state.
#[derive(Debug)]
pub struct SttPort {
    /// Utterances.
    pub speech: Consumer<SpeechItem>,
    /// `text_events`, STT's half.
    pub events: Producer<SttEvent>,
    /// The open utterance: 16 kHz, capacity [`UTTERANCE_SAMPLES_MAX`].
    pub audio: Vec<i16>,
    /// The transcript being made, capacity [`TRANSCRIPT_BYTES_MAX`].
    pub transcript: String,
    /// Whose it is.
    pub open: Option<(Stamp, UtteranceId)>,
    /// What the client says of its speech.
    pub hints: SpeechHints,
}

impl SttPort {
    /// Forgets the open utterance.
    pub fn reset(&mut self) {
        self.audio.clear();
        self.transcript.clear();
        self.open = None;
    }
}

/// The language model task's ends.
#[derive(Debug)]
pub struct LlmPort {
    /// What to answer.
    pub text_prompts: Consumer<TextPrompt>,
    /// The answer, to TTS.
    pub clauses: Producer<ClauseItem>,
    /// What the last answer has cost.
    pub spent: triple_buffer::Input<Spent>,
}

/// TTS's ends and state.
#[derive(Debug)]
pub struct TtsPort {
    /// The answer's text.
    pub clauses: Consumer<ClauseItem>,
    /// The answer: audio and its events in order.
    pub audio_out: Producer<SpeechOut>,
    /// Latest settings.
    pub settings: triple_buffer::Output<TtsSettings>,
    /// What TTS is about for this caller.
    pub state: TtsState,
}

/// What TTS is about for one caller.
#[derive(Debug)]
pub struct TtsState {
    /// Text of the clause that is being collected, capacity [`CLAUSE_BYTES_MAX`].
    pub clause: String,
    /// The clause that is going out.
    pub speech: Speech,
    /// Samples of `speech` that have gone into the resampler.
    pub taken: usize,
    /// Whose text is in `clause`.
    pub collecting: Option<(Stamp, ResponseKey)>,
    /// Whose it is; `None`: nothing is going out.
    pub speaking: Option<(Stamp, ResponseKey)>,
    /// Whose text and audio the buffers and the resampler hold.
    pub owner: Option<(Stamp, ResponseKey)>,
    /// As they were when `owner` began: an answer has one rate.
    pub settings: TtsSettings,
    /// The voice's rate to the answer's; its state lives through the clauses of one response.
    pub resampler: Resampler,
    /// Samples at the answer's rate that wait for room or for their time.
    pub ready: Vec<i16>,
    /// Fake stages only: when the next paced frame is due.
    pub due: Moment,
}

impl TtsState {
    fn new(voice_rate: SampleRate) -> Self {
        Self {
            clause: String::with_capacity(CLAUSE_BYTES_MAX),
            speech: Speech {
                pcm: Vec::with_capacity(CLAUSE_SAMPLES_MAX),
                rate: voice_rate,
                source: SpeechSource::Pcm,
            },
            taken: 0,
            collecting: None,
            speaking: None,
            owner: None,
            settings: TtsSettings::default(),
            resampler: resampler(voice_rate, SampleRate::HZ_24K),
            ready: Vec::with_capacity(READY_SAMPLES_MAX),
            due: Moment::default(),
        }
    }

    /// Drops what is going out; the next response starts clean.
    pub fn reset(&mut self) {
        self.clause.clear();
        self.speech.pcm.clear();
        self.speech.source = SpeechSource::Pcm;
        self.taken = 0;
        self.collecting = None;
        self.speaking = None;
        self.owner = None;
        self.resampler.reset();
        self.ready.clear();
    }
}

fn resampler(from: SampleRate, to: SampleRate) -> Resampler {
    Resampler::new(from, to).expect("rates that SampleRate names have a resampler")
}

/// The ring ends, before they get their state.
pub(super) struct Ends {
    pub(super) audio_in: (Producer<AudioIn>, Consumer<AudioIn>),
    pub(super) speech: (Producer<SpeechItem>, Consumer<SpeechItem>),
    pub(super) vad_events: (Producer<VadEvent>, Consumer<VadEvent>),
    pub(super) stt_events: (Producer<SttEvent>, Consumer<SttEvent>),
    pub(super) text_prompts: (Producer<TextPrompt>, Consumer<TextPrompt>),
    pub(super) clauses: (Producer<ClauseItem>, Consumer<ClauseItem>),
    pub(super) audio_out: (Producer<SpeechOut>, Consumer<SpeechOut>),
}

impl Ends {
    pub(super) fn into_ports(self, voice_rate: SampleRate) -> (EdgePort, VadPort, SttPort, LlmPort, TtsPort) {
        let (tts_settings, tts_latest) = triple_buffer::triple_buffer(&TtsSettings::default());
        let (spend, spent) = triple_buffer::triple_buffer(&Spent::default());
        (
            EdgePort {
                audio_in: self.audio_in.0,
                text_prompts: self.text_prompts.0,
                vad_events: self.vad_events.1,
                stt_events: self.stt_events.1,
                audio_out: self.audio_out.1,
                tts_settings,
                spent,
            },
            VadPort {
                audio_in: self.audio_in.1,
                speech: self.speech.0,
                events: self.vad_events.0,
                state: VadState::new(),
            },
            SttPort {
                speech: self.speech.1,
                events: self.stt_events.0,
                audio: Vec::with_capacity(UTTERANCE_SAMPLES_MAX),
                transcript: String::with_capacity(TRANSCRIPT_BYTES_MAX),
                open: None,
                hints: SpeechHints::default(),
            },
            LlmPort { text_prompts: self.text_prompts.1, clauses: self.clauses.0, spent: spend },
            TtsPort {
                clauses: self.clauses.1,
                audio_out: self.audio_out.0,
                settings: tts_latest,
                state: TtsState::new(voice_rate),
            },
        )
    }
}
