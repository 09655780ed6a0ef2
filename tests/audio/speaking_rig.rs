//! A client's way out: clauses → TTS stage with a voice that hums → downlink → deltas.

use antiphon::door::audio::{Resampler, SampleRate, pcm};
use antiphon::door::edge::inbound::downlink::{Downlink, Pulled};
use antiphon::door::limits::{PIECE_SAMPLES_MAX, READY_SAMPLES_MAX};
use antiphon::door::message::{
    AnswerEvent, AnswerIn, AnswerStamp, FinishReason, Moment, ResponseKey, TextChunk, TokenUsage, TtsSettings,
};
use antiphon::door::model::{ModelError, Speech, TtsModel};
use antiphon::door::stage::{Deadlines, Stage, TtsStage};
use antiphon::door::unit::{UnitLease, UnitSlab};

use crate::signal::sine_at;
use crate::slab;

/// A voice whose text is three numbers: first sample of the sine, end of the samples, and rate.
struct Hum;

impl TtsModel for Hum {
    fn begin(
        &mut self,
        _speed: f32,
        _session_rate: SampleRate,
        speech: &mut Speech,
    ) -> Result<(), ModelError> {
        let [from, _, hz] = numbers(&speech.text);
        speech.rate = SampleRate::new(u32::try_from(hz).expect("a rate")).expect("a rate");
        speech.taken = from;
        Ok(())
    }

    fn proceed(
        &mut self,
        _stale: &dyn Fn() -> bool,
        speech: &mut Speech,
        sink: &mut dyn FnMut(&[f32]),
    ) -> Result<bool, ModelError> {
        let [_, to, _] = numbers(&speech.text);
        let piece = speech.taken..to.min(speech.taken + PIECE_SAMPLES_MAX);
        speech.taken = piece.end;
        sink(&hum(speech.rate, piece).collect::<Vec<_>>());
        Ok(speech.taken < to)
    }
}

fn numbers(text: &str) -> [usize; 3] {
    let numbers: Vec<_> = text.split(' ').map(|number| number.parse().expect("a number")).collect();
    numbers.try_into().expect("three numbers")
}

#[expect(clippy::cast_possible_truncation, reason = "the nearest value is what is meant")]
fn hum(rate: SampleRate, samples: std::ops::Range<usize>) -> impl Iterator<Item = f32> {
    samples.map(move |n| sine_at(n as f64 / f64::from(rate.hz())) as f32)
}

/// Returns an answer of `samples` samples of the voice, converted to `rate` in one piece.
pub(crate) fn expected(voice_rate: SampleRate, rate: SampleRate, samples: usize) -> Vec<i16> {
    let mut resampler = Resampler::new(voice_rate, rate).expect("named rates");
    let mut whole = Vec::new();
    let mut sink = |block: &[f32]| whole.extend(block.iter().map(|sample| pcm::to_i16(*sample)));
    resampler.push(&hum(voice_rate, 0..samples).collect::<Vec<_>>(), &mut sink);
    resampler.finish(&mut sink);
    whole
}

/// One audio delta.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Delta {
    pub(crate) response: ResponseKey,
    pub(crate) rate: SampleRate,
    pub(crate) samples: Vec<i16>,
}

/// One client and its unit.
pub(crate) struct SpeakingRig {
    slab: &'static UnitSlab,
    pub(crate) lease: UnitLease,
    stage: TtsStage,
    deadlines: Deadlines,
    downlink: Downlink,
    /// Rate of the clauses that begin.
    pub(crate) voice_rate: SampleRate,
    /// Steps of the stage between two reads of the socket.
    pub(crate) steps_per_read: usize,
    steps: usize,
    /// Deltas to the client.
    pub(crate) deltas: Vec<Delta>,
    ended: Vec<ResponseKey>,
}

impl SpeakingRig {
    pub(crate) fn new(voice_rate: SampleRate, rate: SampleRate) -> Self {
        let slab = slab(1, voice_rate);
        let mut rig = Self {
            slab,
            lease: UnitLease::claim(slab).expect("a free unit"),
            stage: TtsStage::new(Box::new(Hum)),
            deadlines: Deadlines::new(1),
            downlink: Downlink::new(),
            voice_rate,
            steps_per_read: 1,
            steps: 0,
            deltas: Vec::new(),
            ended: Vec::new(),
        };
        rig.set_rate(rate);
        rig
    }

    pub(crate) fn set_rate(&mut self, rate: SampleRate) {
        self.lease.port().tts_settings.write(TtsSettings { rate, speed: 1.0, language: None });
    }

    /// Speaks an answer in clauses of these lengths, to its end.
    pub(crate) fn say(&mut self, response: ResponseKey, clauses: &[usize]) -> Vec<Delta> {
        self.begin(response, clauses);
        let (finish, usage) = (FinishReason::Stop, TokenUsage::default());
        self.push(self.stamp(response), AnswerIn::Event(AnswerEvent::End { finish, usage }));
        while !self.ended.contains(&response) {
            self.step();
        }
        std::mem::take(&mut self.deltas)
    }

    /// Pushes clauses of these lengths into the ring.
    pub(crate) fn begin(&mut self, response: ResponseKey, clauses: &[usize]) {
        let (stamp, mut from) = (self.stamp(response), 0);
        for samples in clauses {
            let (chunk, _) = TextChunk::split(&format!("{from} {} {}", from + samples, self.voice_rate.hz()));
            self.push(stamp, AnswerIn::Clause { chunk, last: true });
            from += samples;
        }
    }

    fn push(&mut self, stamp: AnswerStamp, item: AnswerIn) {
        while !self.lease.unit().llm.borrow().answer_in.has_room_or_ring(1) {
            self.step();
        }
        self.lease.unit().llm.borrow().answer_in.push(stamp, item).expect("there is room");
    }

    /// Calls the stage once, and lets the socket read if its turn has come.
    pub(crate) fn step(&mut self) {
        let unit = self.lease.id();
        if self.stage.prepare(self.slab, unit, Moment::default(), &mut self.deadlines).is_some() {
            self.stage.call(self.slab, &[unit]);
        }
        let capacity = self.lease.unit().tts.borrow().state.ready.capacity();
        assert_eq!(capacity, READY_SAMPLES_MAX, "the stage has not allocated");
        self.steps += 1;
        if self.steps.is_multiple_of(self.steps_per_read) {
            self.read();
        }
    }

    /// Reads all audio that is ready.
    pub(crate) fn read(&mut self) {
        let unit = self.lease.status();
        loop {
            match self.downlink.pull(unit, self.lease.port()) {
                Pulled::Nothing => return,
                Pulled::Audio(response, rate) => {
                    self.deltas.push(Delta { response, rate, samples: self.downlink.samples().to_vec() });
                }
                Pulled::Event(response, AnswerEvent::End { .. }) => self.ended.push(response),
                Pulled::Event(_, other) => panic!("{other:?}"),
            }
        }
    }

    /// Cancels the answer that is being spoken.
    pub(crate) fn cancel(&self) {
        self.lease.cancel();
    }

    pub(crate) fn stamp(&self, response: ResponseKey) -> AnswerStamp {
        self.lease.stamp(response)
    }
}

/// Returns the samples of all deltas.
pub(crate) fn joined(deltas: &[Delta]) -> Vec<i16> {
    deltas.iter().flat_map(|delta| &delta.samples).copied().collect()
}
