//! Speech synthesis: speaks clauses, and passes the answer's events on, all in one order.
//!
//! *Thread:* `tts-<n>`. *Never:* blocks, locks, allocates (allocations of ONNX Runtime inside the model call aside).
//! *In:* `answer_in`. *Out:* `answer_out`. *Budget:* `tts_first_audio_ms_p99` of the hw-profile.
//!
//! A call of the model makes one piece of one clause, half a second of sound at most. Between the calls the audio that is
//! ready goes out, of all units.

use std::time::Duration;

use super::{CallClass, Deadlines, Stage, Urgency};
use crate::limits::RESAMPLE_SAMPLES;
use crate::message::{AnswerStamp, FRAME_SAMPLES, FailureCode, Moment, UnitId};
use crate::model::{ModelError, SpeechSource, TtsModel};
use crate::rt::alloc::foreign;
use crate::unit::{Stamp, TtsPort, TtsProgress, Unit, UnitCounters, UnitSlab, UnitStatus, resample};

/// The TTS stage.
pub struct TtsStage {
    model: Box<dyn TtsModel>,
}

impl std::fmt::Debug for TtsStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TtsStage").finish_non_exhaustive()
    }
}

/// Reason why a clause does not go on at once.
enum Pause {
    /// There is no room: a ring follows.
    Rung,
    /// A paced frame is due later.
    Until(Moment),
    /// The model must make the next piece.
    Model,
}

impl TtsStage {
    /// Creates a worker with its own instance of the voice.
    #[must_use]
    pub fn new(model: Box<dyn TtsModel>) -> Self {
        Self { model }
    }

    /// Makes the next piece of the clause of `port`.
    fn proceed(
        &mut self,
        unit: &UnitStatus,
        port: &mut TtsPort,
        stamp: AnswerStamp,
    ) -> Result<(), ModelError> {
        let stale = || stamp.is_stale(unit);
        let settings = port.state.settings;
        if port.state.progress == TtsProgress::Begin {
            let speech = &mut port.state.speech;
            foreign(|| self.model.begin(settings.speed, settings.rate, speech))?;
            let rate = port.state.speech.rate;
            let set = port.set_voice_rate(rate);
            debug_assert!(set.is_ok(), "voices and sessions have rates that SampleRate names");
        }
        let state = &mut port.state;
        let (resampler, ready, speech) = (&mut state.resampler, &mut state.ready, &mut state.speech);
        let mut sink = |piece: &[f32]| {
            for samples in piece.chunks(RESAMPLE_SAMPLES) {
                resample(resampler, samples, ready);
            }
        };
        let has_more = foreign(|| self.model.proceed(&stale, speech, &mut sink))?;
        state.progress = if has_more { TtsProgress::More } else { TtsProgress::Made };
        Ok(())
    }
}

impl Stage for TtsStage {
    fn prepare(
        &mut self,
        slab: &'static UnitSlab,
        unit: UnitId,
        now: Moment,
        deadlines: &mut Deadlines,
    ) -> Option<Urgency> {
        let Unit { status, tts, .. } = slab.unit(unit);
        let port = &mut *tts.borrow();
        loop {
            let Some(stamp) = port.state.speaking else {
                port.next_clause(status)?;
                port.state.begin_clause(now);
                continue;
            };
            if stamp.is_stale(status) {
                UnitCounters::count(&status.counters.stale_items);
                port.state.reset();
                continue;
            }
            match emit(port, stamp, now) {
                None => port.state.end_clause(),
                Some(Pause::Rung) => return None,
                Some(Pause::Until(due)) => {
                    deadlines.set(unit, due);
                    return None;
                }
                Some(Pause::Model) => {
                    // A call that fails sends the failure.
                    return port.has_room_to_fail_or_ring().then(|| urgency(port));
                }
            }
        }
    }

    fn call(&mut self, slab: &'static UnitSlab, units: &[UnitId]) {
        for unit in units {
            let Unit { status, tts, .. } = slab.unit(*unit);
            let port = &mut *tts.borrow();
            let Some(stamp) = port.state.speaking else { continue };
            match self.proceed(status, port, stamp) {
                Ok(()) => {}
                Err(ModelError::Stale) => port.state.reset(),
                Err(_) => port.fail(stamp, FailureCode::TtsFailed, ""),
            }
            slab.bells.tts.ring(*unit);
        }
    }

    fn recover(&mut self, slab: &'static UnitSlab, unit: UnitId) {
        let mut port = slab.unit(unit).tts.borrow();
        if let Some(stamp) = port.state.speaking.or(port.state.collecting)
            && port.answer_out.room() > 0
        {
            port.fail(stamp, FailureCode::StagePanicked, "");
        }
        port.state.reset();
        slab.bells.tts.ring(unit);
    }
}

/// Returns the place of the next call for the answer of `port`.
fn urgency(port: &TtsPort) -> Urgency {
    match port.state.listener {
        None => Urgency::new(CallClass::FirstSound, port.state.clause_at),
        Some(listener) => Urgency::new(CallClass::Voice, listener.runs_dry(port.state.settings.rate)),
    }
}

/// Sends the current clause as far as there is room. Returns `None` once all of it has been sent.
fn emit(port: &mut TtsPort, stamp: AnswerStamp, now: Moment) -> Option<Pause> {
    loop {
        let is_made = fill_ready(port);
        let ready = port.state.ready.len();
        if ready < FRAME_SAMPLES && !is_made {
            return Some(Pause::Model);
        }
        if ready == 0 {
            return None;
        }
        if !port.answer_out.has_room_or_ring(1) {
            return Some(Pause::Rung);
        }
        let time_stamp = match port.state.speech.source {
            SpeechSource::Constant { pace, stamp: stamped, .. } => {
                if pace > 0.0 && port.state.due > now {
                    return Some(Pause::Until(port.state.due));
                }
                if pace > 0.0 {
                    let frame_s = FRAME_SAMPLES as f32 / port.state.settings.rate.hz() as f32;
                    let step = Duration::from_secs_f32(frame_s / pace);
                    // A voice that begins, or was held up for long, starts its beat anew.
                    let late = now.since(port.state.due) > 4 * step;
                    port.state.due = if late { now } else { port.state.due } + step;
                }
                stamped.then_some(now)
            }
            SpeechSource::Model => None,
        };
        port.state.listen(now, ready.min(FRAME_SAMPLES));
        port.push_frame(stamp, time_stamp);
    }
}

/// Fills up to a frame from a source that needs no model. Returns true once nothing of the clause is left to make.
fn fill_ready(port: &mut TtsPort) -> bool {
    let state = &mut port.state;
    if state.progress != TtsProgress::Made {
        return false;
    }
    if let SpeechSource::Constant { value, remaining, .. } = &mut state.speech.source {
        let missing = FRAME_SAMPLES.saturating_sub(state.ready.len()) as u64;
        let take = missing.min(*remaining);
        *remaining -= take;
        let end = state.ready.len() + usize::try_from(take).expect("at most a frame");
        state.ready.resize(end, *value);
    }
    true
}
