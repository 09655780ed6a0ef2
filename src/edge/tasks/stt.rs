//! Utterance → recognition server → transcript, if `--stt-url` names a server. One task per unit, for the unit's whole
//! life.
//!
//! The task owns the unit's STT port. Utterances that end while a request is under way wait in order. The end of the
//! session drops them and the request, which closes the socket at once.

use std::collections::VecDeque;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::edge::dispatcher::Wakers;
use crate::edge::outbound::speech::{Recogniser, Recognition};
use crate::limits::UTTERANCE_SAMPLES_MAX;
use crate::message::{FailureCode, SpeechHints, UnitId};
use crate::sync::PortGuard;
use crate::unit::{Piece, Stamp, SttPort, SttWork, UnitCounters, UnitSlab, UnitStatus, push_transcript};

/// Most samples of speech that wait for a request: 2 min at 16 kHz. Then the ring `speech` fills, and the socket is
/// read no further.
const WAITING_SAMPLES_MAX: usize = 4 * UTTERANCE_SAMPLES_MAX;

/// Has the utterances of `unit` recognised until the runtime ends.
pub async fn attend(slab: &'static UnitSlab, unit: UnitId, wakers: Arc<Wakers>, recogniser: Arc<Recogniser>) {
    let mut task = SttTask {
        unit: &slab.unit(unit).status,
        id: unit,
        recogniser,
        port: slab.unit(unit).stt.borrow(),
        waiting: VecDeque::new(),
        call: None,
    };
    loop {
        task.collect();
        task.begin();
        tokio::select! {
            biased;
            () = wakers.stt(unit).notified() => {}
            outcome = task.outcome() => task.deliver(outcome),
        }
    }
}

/// Speech that waits for a request.
struct Waiting {
    piece: Piece,
    audio: Vec<i16>,
    hints: SpeechHints,
}

/// The request under way.
struct Call {
    piece: Piece,
    outcome: Pin<Box<dyn Future<Output = Result<Recognition, FailureCode>> + Send>>,
}

struct SttTask {
    unit: &'static UnitStatus,
    id: UnitId,
    recogniser: Arc<Recogniser>,
    port: PortGuard<'static, SttPort>,
    waiting: VecDeque<Waiting>,
    call: Option<Call>,
}

impl SttTask {
    /// Drops stale speech, and takes new speech from the port.
    fn collect(&mut self) {
        let unit = self.unit;
        if self.call.take_if(|call| call.piece.epoch.is_stale(unit)).is_some() {
            UnitCounters::count(&unit.counters.stale_items);
        }
        self.waiting.retain(|waiting| !waiting.piece.epoch.is_stale(unit));
        while self.waiting.iter().map(|waiting| waiting.audio.len()).sum::<usize>() < WAITING_SAMPLES_MAX
            && let Some(work) = self.port.next_work(unit)
        {
            let piece = match work {
                SttWork::Transcribe(piece) => piece,
                SttWork::EndSession(epoch) => {
                    // Dropped first, so that nothing of the session follows its marker.
                    self.call = None;
                    self.waiting.clear();
                    self.port.end_session(epoch);
                    continue;
                }
            };
            let audio = self.port.audio[..piece.samples].to_vec();
            self.port.forget(piece);
            self.waiting.push_back(Waiting { piece, audio, hints: self.port.hints });
        }
    }

    /// Sends the next request if none is under way and there is room for its outcome. The room stays, since only this
    /// task pushes.
    fn begin(&mut self) {
        if self.call.is_some() || self.waiting.is_empty() || !self.port.has_room_for_transcript_or_ring() {
            return;
        }
        let Some(Waiting { piece, audio, hints }) = self.waiting.pop_front() else { return };
        let recogniser = Arc::clone(&self.recogniser);
        let unit = self.id;
        let transcript = async move { recogniser.transcribe(&audio, hints).await };
        let outcome = AssertUnwindSafe(transcript).catch_unwind().map(move |outcome| match outcome {
            Ok(Ok(recognition)) => Ok(recognition),
            Ok(Err(error)) => {
                tracing::warn!(%unit, %error, "speech recognition");
                Err(FailureCode::SttFailed)
            }
            Err(_) => {
                tracing::error!(%unit, "speech recognition task panicked, its utterance fails");
                Err(FailureCode::StagePanicked)
            }
        });
        self.call = Some(Call { piece, outcome: Box::pin(outcome) });
    }

    /// Waits for the request under way; for ever if there is none. Cancel safe.
    async fn outcome(&mut self) -> Result<Recognition, FailureCode> {
        match &mut self.call {
            Some(call) => call.outcome.as_mut().await,
            None => std::future::pending().await,
        }
    }

    fn deliver(&mut self, outcome: Result<Recognition, FailureCode>) {
        let Some(Call { piece, .. }) = self.call.take() else { return };
        if piece.epoch.is_stale(self.unit) {
            return UnitCounters::count(&self.unit.counters.stale_items);
        }
        match outcome {
            Ok(Recognition { text, language }) => {
                push_transcript(&mut self.port.events, piece, &text, language);
            }
            Err(code) => {
                // The other pieces of the utterance are of no use.
                self.waiting.retain(|waiting| waiting.piece.utterance != piece.utterance);
                self.port.fail(piece.epoch, piece.utterance, code);
            }
        }
    }
}
