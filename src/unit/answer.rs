//! What TTS does with its port, whoever makes the samples: collects clauses, cuts samples into frames, and passes on
//! everything that is not spoken, in one order.

use super::port::{TtsPort, TtsState};
use super::slab::{Unit, UnitCounters};
use crate::audio::{ResampleError, Resampler, Sample, SampleRate, pcm};
use crate::limits::CLAUSE_BYTES_MAX;
use crate::message::{
    AudioFrame, ClauseItem, FRAME_SAMPLES, FailureCode, Moment, ResponseKey, SpeechOut, Stamp, TextChunk,
};

/// Room that a failure or an item that is passed on may need: the resampler's tail goes out before it.
const PASS_ON_ITEMS: usize = 3;

impl TtsPort {
    /// Takes items until a clause is whole, which stands in [`TtsState::clause`](super::TtsState::clause) then; what is
    /// not spoken goes through. `None`: there is nothing, or no room; TTS is rung when that changes.
    pub fn next_clause(&mut self, unit: &Unit) -> Option<(Stamp, ResponseKey)> {
        loop {
            if !self.has_room_to_fail_or_ring() {
                return None;
            }
            match self.clauses.pop()? {
                ClauseItem::SessionEnd { epoch } => {
                    self.state.reset();
                    let end = self.audio_out.push_marker(SpeechOut::SessionEnd { epoch });
                    debug_assert!(end.is_ok(), "a slot is kept for the marker");
                }
                item if unit.is_stale(stamp_of(&item)) => {
                    UnitCounters::count(&unit.counters.stale_items);
                    self.state.reset();
                }
                ClauseItem::Clause { stamp, response, chunk, last } => {
                    let state = &mut self.state;
                    // Of another answer, cancelled in the middle of a clause, something may be left.
                    if state.owner != Some((stamp, response)) {
                        state.reset();
                        state.owner = Some((stamp, response));
                        state.settings = *self.settings.read();
                    }
                    state.collecting = Some((stamp, response));
                    if state.clause.len() + chunk.as_str().len() <= CLAUSE_BYTES_MAX {
                        state.clause.push_str(chunk.as_str());
                    }
                    if last {
                        return Some((stamp, response));
                    }
                }
                item => self.pass_on(item),
            }
        }
    }

    /// What is not spoken goes through in order. A call and an end take the resampler's tail with them: what was said
    /// before is complete.
    fn pass_on(&mut self, item: ClauseItem) {
        match item {
            ClauseItem::Call { stamp, response, .. } | ClauseItem::End { stamp, response, .. } => {
                self.finish_audio(stamp, response);
            }
            ClauseItem::Failed { .. } => self.state.reset(),
            _ => {}
        }
        let out = item.passed_on().expect("clauses and markers were handled before");
        self.audio_out.push(out).expect("room was checked before the item was taken");
    }

    /// Whether [`TtsPort::finish_audio`] and [`TtsPort::fail`] can be called now. If not, TTS is rung as soon as they can.
    #[must_use]
    pub fn has_room_to_fail_or_ring(&self) -> bool {
        self.audio_out.has_room_or_ring(PASS_ON_ITEMS)
    }

    /// The samples that follow have this rate. Of a voice that changes its rate within an answer, what the resampler holds
    /// is ready then. At most a frame may be ready before.
    ///
    /// # Errors
    /// [`ResampleError::Ratio`] for a rate that [`SampleRate`] does not name and that has no large common divisor with the
    /// answer's.
    pub fn set_voice_rate(&mut self, rate: SampleRate) -> Result<(), ResampleError> {
        let TtsState { resampler, ready, settings, .. } = &mut self.state;
        if (resampler.from(), resampler.to()) == (rate, settings.rate) {
            return Ok(());
        }
        resampler.finish(&mut |samples| pcm::append_i16(ready, samples));
        resampler.set_rates(rate, settings.rate)
    }

    /// Sends what the resampler still holds of this answer. There must be room for it.
    pub fn finish_audio(&mut self, stamp: Stamp, response: ResponseKey) {
        let state = &mut self.state;
        // Of another answer, cancelled between two clauses, something may be left.
        if state.owner != Some((stamp, response)) {
            return state.reset();
        }
        let ready = &mut state.ready;
        state.resampler.finish(&mut |samples| pcm::append_i16(ready, samples));
        while !self.state.ready.is_empty() {
            self.push_frame(stamp, response, None);
        }
    }

    /// Says that the answer ends here, and why. There must be room for it. What is ready is dropped.
    pub fn fail(&mut self, stamp: Stamp, response: ResponseKey, code: FailureCode, detail: &str) {
        self.state.reset();
        let failed = SpeechOut::Failed { stamp, response, code, detail: TextChunk::split(detail).0 };
        self.audio_out.push(failed).expect("room was checked before the item was taken");
    }

    /// Sends up to one frame of what is ready. There must be room for it. The fake voice writes the time into a frame.
    pub fn push_frame(&mut self, stamp: Stamp, response: ResponseKey, time_stamp: Option<Moment>) {
        let mut frame = AudioFrame::empty(self.state.settings.rate);
        let len = self.state.ready.len().min(FRAME_SAMPLES);
        frame.samples[..len].copy_from_slice(&self.state.ready[..len]);
        frame.len = u16::try_from(len).expect("at most a frame");
        self.state.ready.drain(..len);
        if let Some(moment) = time_stamp
            && len >= 4
        {
            bytemuck::cast_slice_mut::<i16, u8>(&mut frame.samples)[..8]
                .copy_from_slice(&moment.nanos().to_le_bytes());
        }
        self.audio_out.push(SpeechOut::Audio { stamp, response, frame }).expect("room was checked");
    }
}

/// Puts samples of the voice through the resampler; they are ready then. At most
/// [`RESAMPLE_SAMPLES`](crate::limits::RESAMPLE_SAMPLES), and only while less than a frame is ready.
pub fn resample<S: Sample>(resampler: &mut Resampler, samples: &[S], ready: &mut Vec<i16>) {
    resampler.push(samples, &mut |samples| pcm::append_i16(ready, samples));
}

fn stamp_of(item: &ClauseItem) -> Stamp {
    match item {
        ClauseItem::Text { stamp, .. }
        | ClauseItem::Clause { stamp, .. }
        | ClauseItem::Call { stamp, .. }
        | ClauseItem::RateLimits { stamp, .. }
        | ClauseItem::End { stamp, .. }
        | ClauseItem::Failed { stamp, .. } => *stamp,
        ClauseItem::SessionEnd { .. } => unreachable!("handled before"),
    }
}
