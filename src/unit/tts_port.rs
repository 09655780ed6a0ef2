//! The port of a unit in TTS, for workers and servers alike. It collects clauses, cuts samples into frames, and passes
//! on all events, in one order.

use std::time::Duration;

use super::ring::{Consumer, Producer};
use super::status::UnitStatus;
use crate::audio::{ResampleError, Resampler, Sample, SampleRate, pcm};
use crate::limits::{CLAUSE_BYTES_MAX, CLAUSE_TEXT_BYTES, MADE_MAX, READY_SAMPLES_MAX};
use crate::message::{
    AnswerEvent, AnswerIn, AnswerOut, AnswerStamp, AudioFrame, Envelope, FailureCode, Moment, TextChunk,
    TtsSettings,
};
use crate::model::Speech;

/// Room for a failure or an event that is passed on: the resampler's tail goes out before it.
const PASS_ON_ITEMS: usize = 3;

/// TTS's ends and state.
#[derive(Debug)]
pub struct TtsPort {
    /// The answer as the language model writes it.
    pub answer_in: Consumer<AnswerIn>,
    /// The answer: audio and its events in order.
    pub answer_out: Producer<AnswerOut>,
    /// Latest settings, from the session.
    pub settings: triple_buffer::Output<TtsSettings>,
    /// State of TTS for this caller.
    pub state: TtsState,
}

/// State of TTS for one caller.
#[derive(Debug)]
pub struct TtsState {
    /// The clause that is being collected, or spoken.
    pub speech: Speech,
    /// The answer whose clause is being collected.
    pub collecting: Option<AnswerStamp>,
    /// The answer whose clause is being spoken; `None`: none is.
    pub speaking: Option<AnswerStamp>,
    /// Work that is left on the clause that is being spoken.
    pub progress: TtsProgress,
    /// Moment at which the clause was complete.
    pub clause_at: Moment,
    /// The listener of `owner`; `None`: nothing of the answer has been sent.
    pub listener: Option<Listener>,
    /// The answer whose text and audio the buffers and the resampler hold.
    owner: Option<AnswerStamp>,
    /// Settings of `owner`, read at its beginning: an answer has one rate.
    pub settings: TtsSettings,
    /// The voice's rate to the answer's; its state lives through the clauses of one response.
    pub resampler: Resampler,
    /// Samples at the answer's rate that wait for room or for their time.
    pub ready: Vec<i16>,
    /// Time at which the next paced frame is due (fake voice only).
    pub due: Moment,
}

impl TtsState {
    fn new(voice_rate: SampleRate) -> Self {
        Self {
            speech: Speech::new(CLAUSE_TEXT_BYTES, MADE_MAX, voice_rate),
            collecting: None,
            speaking: None,
            progress: TtsProgress::Made,
            clause_at: Moment::default(),
            listener: None,
            owner: None,
            settings: TtsSettings::default(),
            resampler: Resampler::new(voice_rate, SampleRate::HZ_24K)
                .expect("rates that SampleRate names have a resampler"),
            ready: Vec::with_capacity(READY_SAMPLES_MAX),
            due: Moment::default(),
        }
    }

    /// Drops all text and audio of the running answer.
    pub fn reset(&mut self) {
        self.speech.clear();
        self.collecting = None;
        self.speaking = None;
        self.progress = TtsProgress::Made;
        self.listener = None;
        self.owner = None;
        self.resampler.reset();
        self.ready.clear();
    }

    /// Begins to speak the clause that has been collected, which is complete since `now`.
    pub fn begin_clause(&mut self, now: Moment) {
        self.speaking = self.collecting.take();
        self.progress = TtsProgress::Begin;
        self.clause_at = now;
    }

    /// Ends the clause that has been spoken.
    pub fn end_clause(&mut self) {
        self.speech.clear();
        self.speaking = None;
    }

    /// Counts `samples` samples of the answer that are sent at `now`.
    pub fn listen(&mut self, now: Moment, samples: usize) {
        let rate = self.settings.rate;
        let heard = self.listener.filter(|listener| listener.runs_dry(rate) > now);
        let mut listener = heard.unwrap_or(Listener { since: now, samples: 0 });
        listener.samples += samples as u64;
        self.listener = Some(listener);
    }
}

/// Work that is left on a clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TtsProgress {
    /// All of it: the model has not begun.
    Begin,
    /// More pieces.
    More,
    /// None: all samples are ready, or come from a source that needs no model.
    Made,
}

/// A listener who plays an answer as it arrives.
#[derive(Clone, Copy, Debug)]
pub struct Listener {
    /// Moment at which the listener began, or began again after a gap.
    since: Moment,
    /// Samples sent since then, at the answer's rate.
    samples: u64,
}

impl Listener {
    /// Returns the moment at which the listener has played everything, at `rate`.
    #[must_use]
    pub fn runs_dry(&self, rate: SampleRate) -> Moment {
        self.since + Duration::from_micros(self.samples * 1_000_000 / u64::from(rate.hz()))
    }
}

impl TtsPort {
    pub(super) fn new(
        answer_in: Consumer<AnswerIn>,
        answer_out: Producer<AnswerOut>,
        settings: triple_buffer::Output<TtsSettings>,
        voice_rate: SampleRate,
    ) -> Self {
        Self { answer_in, answer_out, settings, state: TtsState::new(voice_rate) }
    }

    /// Takes items until the text of a clause is complete in [`TtsState::speech`], and passes events on. Returns `None`
    /// if there is nothing to read, or no room; TTS is rung when that changes.
    pub fn next_clause(&mut self, unit: &UnitStatus) -> Option<AnswerStamp> {
        loop {
            if !self.has_room_to_fail_or_ring() {
                return None;
            }
            match self.answer_in.next_live(unit)? {
                Envelope::SessionEnd(epoch) => {
                    self.state.reset();
                    self.answer_out.push_end(epoch);
                }
                Envelope::Item { stamp, item: AnswerIn::Clause { chunk, last } } => {
                    self.collect(stamp, &chunk);
                    if last {
                        return Some(stamp);
                    }
                }
                Envelope::Item { stamp, item: AnswerIn::Event(event) } => self.pass_on(stamp, event),
            }
        }
    }

    /// Adds `chunk` to the clause.
    fn collect(&mut self, stamp: AnswerStamp, chunk: &TextChunk) {
        let state = &mut self.state;
        // Text of another answer, cancelled in the middle of a clause, may be left.
        if state.owner != Some(stamp) {
            state.reset();
            state.owner = Some(stamp);
            state.settings = *self.settings.read();
        }
        state.collecting = Some(stamp);
        if state.speech.text.len() + chunk.as_str().len() <= CLAUSE_BYTES_MAX {
            state.speech.text.push_str(chunk.as_str());
        }
    }

    /// Passes `event` on. A call or an end first sends the resampler's tail, so that the speech before them is
    /// complete.
    fn pass_on(&mut self, stamp: AnswerStamp, event: AnswerEvent) {
        match event {
            AnswerEvent::Call(_) | AnswerEvent::End { .. } => self.finish_audio(stamp),
            AnswerEvent::Failed { .. } => self.state.reset(),
            AnswerEvent::Text(_) | AnswerEvent::RateLimits(_) => {}
        }
        self.push(stamp, AnswerOut::Event(event));
    }

    /// Sends `item`. There must be room.
    fn push(&mut self, stamp: AnswerStamp, item: AnswerOut) {
        self.answer_out.push(stamp, item).expect("room was checked before the work was taken");
    }

    /// Returns true if [`TtsPort::finish_audio`] and [`TtsPort::fail`] can be called now. If false, TTS is rung as soon
    /// as they can.
    #[must_use]
    pub fn has_room_to_fail_or_ring(&self) -> bool {
        self.answer_out.has_room_or_ring(PASS_ON_ITEMS)
    }

    /// Sets the rate of the samples that follow. If a voice changes its rate within an answer, the resampler's tail
    /// becomes ready. At most one frame may be ready before the call.
    ///
    /// # Errors
    /// Returns [`ResampleError::Ratio`] if [`SampleRate`] does not name the rate and the rate has no large common
    /// divisor with the answer's.
    pub fn set_voice_rate(&mut self, rate: SampleRate) -> Result<(), ResampleError> {
        let TtsState { resampler, ready, settings, .. } = &mut self.state;
        if (resampler.from(), resampler.to()) == (rate, settings.rate) {
            return Ok(());
        }
        resampler.finish(&mut |samples| pcm::append_i16(ready, samples));
        resampler.set_rates(rate, settings.rate)
    }

    /// Sends the resampler's tail of this answer. There must be room.
    pub fn finish_audio(&mut self, stamp: AnswerStamp) {
        let state = &mut self.state;
        // Audio of another answer, cancelled between two clauses, may be left.
        if state.owner != Some(stamp) {
            return state.reset();
        }
        let ready = &mut state.ready;
        state.resampler.finish(&mut |samples| pcm::append_i16(ready, samples));
        while !self.state.ready.is_empty() {
            self.push_frame(stamp, None);
        }
    }

    /// Ends the answer with a failure, and drops the samples that are ready. There must be room.
    pub fn fail(&mut self, stamp: AnswerStamp, code: FailureCode, detail: &str) {
        self.state.reset();
        let (detail, _) = TextChunk::split(detail);
        self.push(stamp, AnswerOut::Event(AnswerEvent::Failed { code, detail }));
    }

    /// Sends up to one frame of the ready samples. There must be room. The fake voice writes the time into a frame.
    pub fn push_frame(&mut self, stamp: AnswerStamp, time_stamp: Option<Moment>) {
        let mut frame = AudioFrame::cut(&mut self.state.ready, self.state.settings.rate);
        if let Some(moment) = time_stamp
            && frame.len >= 4
        {
            bytemuck::cast_slice_mut::<i16, u8>(&mut frame.samples)[..8]
                .copy_from_slice(&moment.nanos().to_le_bytes());
        }
        self.push(stamp, AnswerOut::Audio(frame));
    }
}

/// Resamples samples of the voice and appends them to `ready`. Takes at most
/// [`RESAMPLE_SAMPLES`](crate::limits::RESAMPLE_SAMPLES) at once. Between two frames, `ready` has room for one piece of a
/// clause ([`PIECE_SAMPLES_MAX`](crate::limits::PIECE_SAMPLES_MAX)).
pub fn resample<S: Sample>(resampler: &mut Resampler, samples: &[S], ready: &mut Vec<i16>) {
    resampler.push(samples, &mut |samples| pcm::append_i16(ready, samples));
}
