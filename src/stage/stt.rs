//! Speech recognition: collects utterances and transcribes each at its end.
//!
//! *Thread:* `stt-<n>`. *Never:* blocks, locks, allocates (allocations of ONNX Runtime inside the model call aside).
//! *In:* `speech`. *Out:* `text_events`. *Budget:* `stt_ms_p99` of the hw-profile.

use super::{Deadlines, Stage};
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

    /// Transcribes one piece of speech. Returns false if nothing is left to do.
    fn step(&mut self, unit: &UnitStatus, port: &mut SttPort) -> bool {
        let piece = loop {
            match port.next_work(unit) {
                Some(SttWork::Transcribe(piece)) => break piece,
                Some(SttWork::EndSession(epoch)) => port.end_session(epoch),
                None => return false,
            }
        };
        let SttPort { audio, transcript, .. } = port;
        let stale = || piece.epoch.is_stale(unit);
        let result = foreign(|| self.model.transcribe(&audio[..piece.samples], &stale, transcript));
        port.forget(piece);
        match result {
            Ok(language) => push_transcript(&mut port.events, piece, &port.transcript, language),
            Err(ModelError::Stale) => UnitCounters::count(&unit.counters.stale_items),
            Err(_) => port.fail(piece.epoch, piece.utterance, FailureCode::SttFailed),
        }
        true
    }
}

impl Stage for SttStage {
    fn units_max(&self) -> usize {
        1
    }

    fn work(&mut self, slab: &'static UnitSlab, units: &[UnitId], _now: Moment, _deadlines: &mut Deadlines) {
        for unit in units {
            let Unit { status, stt, .. } = slab.unit(*unit);
            if self.step(status, &mut stt.borrow()) {
                slab.bells.stt.ring(*unit);
            }
        }
    }

    fn recover(&mut self, slab: &'static UnitSlab, units: &[UnitId]) {
        for unit in units {
            let mut port = slab.unit(*unit).stt.borrow();
            if let Some((epoch, utterance)) = port.open.take()
                && port.events.room() > 0
            {
                port.fail(epoch, utterance, FailureCode::StagePanicked);
            }
            port.reset();
            slab.bells.stt.ring(*unit);
        }
    }
}
