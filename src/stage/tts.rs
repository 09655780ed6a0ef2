//! Speech synthesis: speaks clauses, and passes the answer's events on, all in one order.
//!
//! *Thread:* `tts-<n>`. *Never:* blocks, locks, allocates (allocations of ONNX Runtime inside the model call aside).
//! *In:* `answer_in`. *Out:* `answer_out`. *Budget:* `tts_first_audio_ms_p99` of the hw-profile.

use std::time::Duration;

use super::{Deadlines, Stage};
use crate::limits::RESAMPLE_SAMPLES;
use crate::message::{AnswerStamp, FRAME_SAMPLES, FailureCode, Moment, UnitId};
use crate::model::{ModelError, Speech, SpeechSource, TtsModel};
use crate::rt::alloc::foreign;
use crate::unit::{Stamp, TtsPort, Unit, UnitCounters, UnitSlab, UnitStatus, resample};

/// The TTS stage.
pub struct TtsStage {
    model: Box<dyn TtsModel>,
}

impl std::fmt::Debug for TtsStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TtsStage").finish_non_exhaustive()
    }
}

/// Reason why the stage leaves a unit.
enum Pause {
    /// Nothing to do, or no room: a ring follows.
    Rung,
    /// A paced frame is due later.
    Until(Moment),
    /// One clause has been synthesised; other units may have waited.
    Yield,
}

impl TtsStage {
    /// Creates a worker with its own instance of the voice.
    #[must_use]
    pub fn new(model: Box<dyn TtsModel>) -> Self {
        Self { model }
    }

    fn step(&mut self, unit: &UnitStatus, port: &mut TtsPort, now: Moment) -> Pause {
        loop {
            if let Some(stamp) = port.state.speaking {
                if stamp.is_stale(unit) {
                    UnitCounters::count(&unit.counters.stale_items);
                    port.state.reset();
                } else if let Some(pause) = emit(port, stamp, now) {
                    return pause;
                }
                continue;
            }
            let Some(stamp) = port.next_clause(unit) else { return Pause::Rung };
            self.synthesise(unit, port, stamp);
            return Pause::Yield;
        }
    }

    fn synthesise(&mut self, unit: &UnitStatus, port: &mut TtsPort, stamp: AnswerStamp) {
        let state = &mut port.state;
        let settings = state.settings;
        state.taken = 0;
        state.speech.source = SpeechSource::Pcm;
        let stale = || stamp.is_stale(unit);
        let (text, speech) = (&state.clause, &mut state.speech);
        let result = foreign(|| self.model.synthesise(text, settings.speed, settings.rate, &stale, speech));
        state.clause.clear();
        state.collecting = None;
        match result {
            Ok(()) => {
                state.speaking = Some(stamp);
                let rate = state.speech.rate;
                let set = port.set_voice_rate(rate);
                debug_assert!(set.is_ok(), "voices and sessions have rates that SampleRate names");
            }
            Err(ModelError::Stale) => state.reset(),
            Err(_) => port.fail(stamp, FailureCode::TtsFailed, ""),
        }
    }
}

impl Stage for TtsStage {
    fn units_max(&self) -> usize {
        1
    }

    fn work(&mut self, slab: &'static UnitSlab, units: &[UnitId], now: Moment, deadlines: &mut Deadlines) {
        for unit in units {
            let Unit { status, tts, .. } = slab.unit(*unit);
            match self.step(status, &mut tts.borrow(), now) {
                Pause::Rung => {}
                Pause::Until(due) => deadlines.set(*unit, due),
                Pause::Yield => slab.bells.tts.ring(*unit),
            }
        }
    }

    fn recover(&mut self, slab: &'static UnitSlab, units: &[UnitId]) {
        for unit in units {
            let mut port = slab.unit(*unit).tts.borrow();
            if let Some(stamp) = port.state.speaking.or(port.state.collecting)
                && port.answer_out.room() > 0
            {
                port.fail(stamp, FailureCode::StagePanicked, "");
            }
            port.state.reset();
            slab.bells.tts.ring(*unit);
        }
    }
}

/// Sends the current clause as far as there is room. Returns `None` once all of it has been sent.
fn emit(port: &mut TtsPort, stamp: AnswerStamp, now: Moment) -> Option<Pause> {
    loop {
        let done = fill_ready(port);
        if port.state.ready.is_empty() {
            port.state.speaking = None;
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
            SpeechSource::Pcm => None,
        };
        debug_assert!(done || port.state.ready.len() >= FRAME_SAMPLES, "a short frame only at the end");
        port.push_frame(stamp, time_stamp);
    }
}

/// Moves samples of the clause through the resampler until a frame is full. Returns true once the clause is used up.
fn fill_ready(port: &mut TtsPort) -> bool {
    let state = &mut port.state;
    let Speech { pcm, source, .. } = &mut state.speech;
    while state.ready.len() < FRAME_SAMPLES {
        match source {
            SpeechSource::Constant { value, remaining, .. } => {
                if *remaining == 0 {
                    return true;
                }
                let missing = (FRAME_SAMPLES - state.ready.len()) as u64;
                let take = missing.min(*remaining);
                *remaining -= take;
                let end = state.ready.len() + usize::try_from(take).expect("at most a frame");
                state.ready.resize(end, *value);
            }
            SpeechSource::Pcm => {
                if state.taken == pcm.len() {
                    return true;
                }
                let end = (state.taken + RESAMPLE_SAMPLES).min(pcm.len());
                resample(&mut state.resampler, &pcm[state.taken..end], &mut state.ready);
                state.taken = end;
            }
        }
    }
    false
}
