//! A client's way in: append messages → decoder → uplink → VAD stage → the audio for STT.

use antiphon::door::audio::AudioFormat;
use antiphon::door::edge::inbound::uplink::Uplink;
use antiphon::door::limits::PENDING_SAMPLES_MAX;
use antiphon::door::message::{
    AudioIn, CommitId, Envelope, Moment, SPEECH_FRAME_SAMPLES, SpeechItem, UtteranceId, VadEvent, VadMode,
    VadSettings,
};
use antiphon::door::model::fake::EnergyVad;
use antiphon::door::protocol::{Decoded, Decoder};
use antiphon::door::stage::{Deadlines, Stage, VadStage};
use antiphon::door::unit::{UnitLease, UnitSlab};
use axum::extract::ws::Utf8Bytes;

use crate::signal::to_wire;

/// One utterance, as VAD reports it and passes it on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Turn {
    /// `None` if the client committed without a detector.
    pub(crate) start_ms: Option<u32>,
    pub(crate) end_ms: Option<u32>,
    /// `None` if not committed yet.
    pub(crate) audio_ms: Option<u32>,
    /// Audio for STT, 16 kHz.
    pub(crate) pcm: Vec<i16>,
}

/// One client and its unit.
pub(crate) struct HearingRig {
    slab: &'static UnitSlab,
    lease: UnitLease,
    stage: VadStage,
    deadlines: Deadlines,
    decoder: Decoder,
    uplink: Uplink,
    turns: Vec<(UtteranceId, Turn)>,
    /// Lengths of audio in the refusals of commits.
    pub(crate) refused_ms: Vec<u32>,
    commits: u32,
}

impl HearingRig {
    pub(crate) fn new(slab: &'static UnitSlab, format: AudioFormat) -> Self {
        let lease = UnitLease::claim(slab).expect("a free unit");
        Self {
            slab,
            stage: VadStage::new(Box::new(EnergyVad::new(1))),
            deadlines: Deadlines::new(slab.len()),
            decoder: Decoder::new(),
            uplink: Uplink::new(format, lease.epoch()),
            lease,
            turns: Vec::new(),
            refused_ms: Vec::new(),
            commits: 0,
        }
    }

    /// Turns the detector off, so that turns end with the client's commits.
    pub(crate) fn without_detector(mut self) -> Self {
        self.set_mode(VadMode::Off);
        self
    }

    pub(crate) fn set_mode(&mut self, mode: VadMode) {
        self.uplink.control(AudioIn::Settings(VadSettings { mode }), &mut self.lease.port().audio_in);
        self.settle();
    }

    pub(crate) fn set_format(&mut self, format: AudioFormat) {
        self.uplink.format = format;
    }

    /// Sends one append of `samples`, in the client's format.
    pub(crate) fn hear(&mut self, samples: &[i16]) {
        let audio = base64_simd::STANDARD.encode_to_string(to_wire(samples, self.uplink.format));
        let message = Utf8Bytes::from(format!(r#"{{"type":"input_audio_buffer.append","audio":"{audio}"}}"#));
        let Ok(Decoded::Append(append)) = self.decoder.decode(message.as_str()) else { panic!("an append") };
        self.uplink.append(&message, append, &mut self.lease.port().audio_in).expect("whole samples");
        self.settle();
    }

    /// Sends an append that must be refused; returns the error's code. `audio` is the text in the JSON.
    pub(crate) fn hear_nothing(&mut self, audio: &str) -> &'static str {
        let message = Utf8Bytes::from(format!(r#"{{"type":"input_audio_buffer.append","audio":"{audio}"}}"#));
        let Ok(Decoded::Append(append)) = self.decoder.decode(message.as_str()) else { panic!("an append") };
        let result = self.uplink.append(&message, append, &mut self.lease.port().audio_in);
        assert!(!self.uplink.is_waiting(), "nothing of {audio:?} waits");
        self.settle();
        result.expect_err("bad audio").fault().code().expect("a code")
    }

    pub(crate) fn commit(&mut self) {
        let commit = CommitId(self.commits);
        self.commits += 1;
        self.uplink.control(AudioIn::Commit(commit), &mut self.lease.port().audio_in);
        self.settle();
    }

    pub(crate) fn clear(&mut self) {
        let commit = CommitId(self.commits);
        self.commits += 1;
        self.uplink.control(AudioIn::Clear(commit), &mut self.lease.port().audio_in);
        self.settle();
    }

    /// Returns the turns so far.
    pub(crate) fn turns(&self) -> Vec<Turn> {
        self.turns.iter().map(|(_, turn)| turn.clone()).collect()
    }

    /// Returns the only turn.
    pub(crate) fn only_turn(&self) -> Turn {
        let [(_, turn)] = &self.turns[..] else { panic!("{} turns, expected one", self.turns.len()) };
        turn.clone()
    }

    /// Lets the stage work until it has no work left.
    fn settle(&mut self) {
        loop {
            let unit = self.lease.id();
            if self.stage.prepare(self.slab, unit, Moment::default(), &mut self.deadlines).is_some() {
                self.stage.call(self.slab, &[unit]);
            }
            self.collect();
            if self.uplink.is_waiting() {
                self.uplink.resume(&mut self.lease.port().audio_in);
                continue;
            }
            let port = self.lease.unit().vad.borrow();
            assert_eq!(port.state.pending.capacity(), PENDING_SAMPLES_MAX, "the stage has not allocated");
            if port.audio_in.is_empty() && port.state.pending.len() < SPEECH_FRAME_SAMPLES {
                return;
            }
        }
    }

    fn collect(&mut self) {
        while let Some(Envelope::Item { item, .. }) = self.lease.port().vad_events.pop() {
            match item {
                VadEvent::SpeechStarted { utterance, start_ms } => {
                    self.turn(utterance).start_ms = Some(start_ms);
                }
                VadEvent::SpeechStopped { utterance, end_ms } => {
                    self.turn(utterance).end_ms = Some(end_ms);
                }
                VadEvent::Committed { utterance, audio_ms, .. } => {
                    self.turn(utterance).audio_ms = Some(audio_ms);
                }
                VadEvent::CommitRefused { audio_ms, .. } => self.refused_ms.push(audio_ms),
                VadEvent::Cleared { .. } => {}
            }
        }
        let mut port = self.lease.unit().stt.borrow();
        while let Some(Envelope::Item { stamp, item }) = port.speech.pop() {
            match item {
                SpeechItem::Start(utterance) => {
                    find(&mut self.turns, utterance);
                    port.open = Some((stamp, utterance));
                }
                SpeechItem::Frame(frame) => {
                    let (_, utterance) = port.open.expect("audio of an utterance");
                    let samples = &frame.samples[..usize::from(frame.len)];
                    find(&mut self.turns, utterance).pcm.extend_from_slice(samples);
                }
                SpeechItem::Abort(utterance) => self.turns.retain(|(other, _)| *other != utterance),
                SpeechItem::End(_) | SpeechItem::Hints(_) => {}
            }
        }
    }

    fn turn(&mut self, utterance: UtteranceId) -> &mut Turn {
        find(&mut self.turns, utterance)
    }
}

fn find(turns: &mut Vec<(UtteranceId, Turn)>, utterance: UtteranceId) -> &mut Turn {
    let at = turns.iter().position(|(other, _)| *other == utterance).unwrap_or_else(|| {
        turns.push((utterance, Turn::default()));
        turns.len() - 1
    });
    &mut turns[at].1
}
