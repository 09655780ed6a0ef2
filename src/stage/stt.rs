//! Speech recognition: collects utterances and transcribes each at its end.
//!
//! *Thread:* `stt-<n>`. *Never:* blocks, locks, allocates (allocations of ONNX Runtime inside the model call aside).
//! *In:* `speech`. *Out:* `text_events`. *Budget:* `stt_ms_p99` of the hw-profile.

use super::{CallClass, Deadlines, Stage, Urgency};
use crate::message::{FailureCode, Moment, UnitId};
use crate::model::{ModelError, SttModel};
use crate::rt::alloc::foreign;
use crate::unit::{Stamp, SttPort, SttWork, Unit, UnitCounters, UnitSlab, UnitStatus, push_transcript};

/// The STT stage.
pub struct SttStage {
    model: Box<dyn SttModel>,
}

impl std::fmt::Debug for SttStage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SttStage").finish_non_exhaustive()
    }
}

impl SttStage {
    /// Creates a worker with its own instance of the model.
    #[must_use]
    pub fn new(model: Box<dyn SttModel>) -> Self {
        Self { model }
    }
}

/// Collects speech until a piece waits for the model in [`SttPort::waiting`]. Returns `None` if there is nothing to read,
/// or no room.
fn collect(unit: &UnitStatus, port: &mut SttPort, now: Moment) -> Option<Urgency> {
    loop {
        if let Some((piece, since)) = port.waiting {
            if !piece.epoch.is_stale(unit) {
                return Some(Urgency::new(CallClass::Transcript, since));
            }
            UnitCounters::count(&unit.counters.stale_items);
            port.reset();
        }
        match port.next_work(unit)? {
            SttWork::Transcribe(piece) => port.waiting = Some((piece, now)),
            SttWork::EndSession(epoch) => port.end_session(epoch),
        }
    }
}

impl Stage for SttStage {
    fn prepare(
        &mut self,
        slab: &'static UnitSlab,
        unit: UnitId,
        now: Moment,
        _deadlines: &mut Deadlines,
    ) -> Option<Urgency> {
        let Unit { status, stt, .. } = slab.unit(unit);
        collect(status, &mut stt.borrow(), now)
    }

    fn call(&mut self, slab: &'static UnitSlab, units: &[UnitId]) {
        for unit in units {
            let Unit { status, stt, .. } = slab.unit(*unit);
            let port = &mut *stt.borrow();
            let Some((piece, _)) = port.waiting.take() else { continue };
            let SttPort { audio, transcript, .. } = port;
            let stale = || piece.epoch.is_stale(status);
            let result = foreign(|| self.model.transcribe(&audio[..piece.samples], &stale, transcript));
            port.forget(piece);
            match result {
                Ok(language) => push_transcript(&mut port.events, piece, &port.transcript, language),
                Err(ModelError::Stale) => UnitCounters::count(&status.counters.stale_items),
                Err(_) => port.fail(piece.epoch, piece.utterance, FailureCode::SttFailed),
            }
            slab.bells.stt.ring(*unit);
        }
    }

    fn recover(&mut self, slab: &'static UnitSlab, unit: UnitId) {
        let mut port = slab.unit(unit).stt.borrow();
        if let Some((epoch, utterance)) = port.open.take()
            && port.events.room() > 0
        {
            port.fail(epoch, utterance, FailureCode::StagePanicked);
        }
        port.reset();
        slab.bells.stt.ring(unit);
    }
}
