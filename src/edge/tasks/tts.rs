//! Clause → synthesis server → audio, if `--tts-url` names a server. One task per unit, for the unit's whole life.
//!
//! The task owns the unit's TTS port. Audio is passed on as it arrives. A cancel drops the request, which closes the
//! socket at once.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use tokio::sync::Notify;

use super::Stale;
use crate::edge::dispatcher::Wakers;
use crate::edge::outbound::http::CallError;
use crate::edge::outbound::speech::Synthesiser;
use crate::language::Language;
use crate::limits::RESAMPLE_SAMPLES;
use crate::message::{AnswerStamp, FRAME_SAMPLES, FailureCode, UnitId};
use crate::sync::PortGuard;
use crate::unit::{Stamp, TtsPort, UnitCounters, UnitSlab, UnitStatus, resample};

/// Has the clauses of `unit` spoken until the runtime ends.
pub async fn attend(
    slab: &'static UnitSlab,
    unit: UnitId,
    wakers: Arc<Wakers>,
    synthesiser: Arc<Synthesiser>,
) {
    let mut task = TtsTask {
        unit: &slab.unit(unit).status,
        id: unit,
        wakers,
        synthesiser,
        port: slab.unit(unit).tts.borrow(),
        failed: None,
        language: None,
    };
    loop {
        let Some(answer) = task.port.next_clause(task.unit) else {
            task.wakers.tts(unit).notified().await;
            continue;
        };
        // On the heap, so that an idle unit does not keep the future.
        let speaking = Box::pin(AssertUnwindSafe(task.speak_clause(answer)).catch_unwind());
        let outcome = match speaking.await {
            Ok(outcome) => outcome,
            // The task continues: without the task the unit would never speak again, nor become free.
            Err(_) => {
                tracing::error!(%unit, "speech synthesis task panicked, its response fails");
                task.fail(answer, FailureCode::StagePanicked, "").await
            }
        };
        if let Err(Stale) = outcome {
            UnitCounters::count(&task.unit.counters.stale_items);
            task.port.state.reset();
        }
    }
}

struct TtsTask {
    unit: &'static UnitStatus,
    id: UnitId,
    wakers: Arc<Wakers>,
    synthesiser: Arc<Synthesiser>,
    port: PortGuard<'static, TtsPort>,
    /// The last answer that failed; its other clauses are skipped.
    failed: Option<AnswerStamp>,
    /// An answer, and the last language that was found in its text.
    language: Option<(AnswerStamp, Language)>,
}

impl TtsTask {
    /// Speaks the clause that the port holds.
    async fn speak_clause(&mut self, answer: AnswerStamp) -> Result<(), Stale> {
        let text = self.port.state.speech.text.clone();
        self.port.state.speech.clear();
        self.port.state.collecting = None;
        if self.failed == Some(answer) || text.trim().is_empty() {
            return Ok(());
        }
        let Err(error) = self.speak(answer, &text).await? else { return Ok(()) };
        tracing::warn!(unit = %self.id, %error, "speech synthesis");
        self.fail(answer, FailureCode::TtsFailed, &detail(&error)).await
    }

    /// Has `text` spoken and pushes its audio as it arrives.
    async fn speak(&mut self, answer: AnswerStamp, text: &str) -> Result<Result<(), CallError>, Stale> {
        let speed = self.port.state.settings.speed;
        let language = self.language_of(answer, text);
        let synthesiser = Arc::clone(&self.synthesiser);
        let asked = synthesiser.speak(text, speed, language);
        let mut stream = match unless_stale(self.unit, answer, self.wakers.tts(self.id), asked).await? {
            Ok(stream) => stream,
            Err(error) => return Ok(Err(error)),
        };
        loop {
            let (samples, rate) =
                match unless_stale(self.unit, answer, self.wakers.tts(self.id), stream.next()).await? {
                    Ok(Some(samples)) => samples,
                    Ok(None) => break,
                    Err(error) => return Ok(Err(error)),
                };
            if let Err(error) = self.port.set_voice_rate(rate) {
                return Ok(Err(CallError::Broken(error.to_string())));
            }
            for samples in samples.chunks(RESAMPLE_SAMPLES) {
                let state = &mut self.port.state;
                resample(&mut state.resampler, samples, &mut state.ready);
                while self.port.state.ready.len() >= FRAME_SAMPLES {
                    self.push_frame(answer).await?;
                }
            }
        }
        // The last frame may be short, so that nothing else in the ring comes before its audio.
        while !self.port.state.ready.is_empty() {
            self.push_frame(answer).await?;
        }
        Ok(Ok(()))
    }

    /// Returns the language of `text`: the one found in the text, else that of the text before, else the user's. `None`
    /// if the server has one voice for all languages.
    fn language_of(&mut self, answer: AnswerStamp, text: &str) -> Option<Language> {
        if !self.synthesiser.depends_on_language() {
            return None;
        }
        let users = self.port.state.settings.language;
        if let Some(shown) = Language::of_text(text) {
            // A text does not show its region, but the user's language may have one.
            let language = users.filter(|users| users.is_like(&shown)).unwrap_or(shown);
            self.language = Some((answer, language));
        }
        let before = self.language.filter(|(of, _)| *of == answer).map(|(_, language)| language);
        before.or(users)
    }

    /// Sends a frame as soon as there is room.
    async fn push_frame(&mut self, answer: AnswerStamp) -> Result<(), Stale> {
        while !self.port.answer_out.has_room_or_ring(1) {
            self.wakers.tts(self.id).notified().await;
            self.check(answer)?;
        }
        self.check(answer)?;
        self.port.push_frame(answer, None);
        Ok(())
    }

    /// Sends the audio that was made before the failure, then the failure.
    async fn fail(&mut self, answer: AnswerStamp, code: FailureCode, detail: &str) -> Result<(), Stale> {
        while !self.port.has_room_to_fail_or_ring() {
            self.wakers.tts(self.id).notified().await;
            self.check(answer)?;
        }
        self.check(answer)?;
        self.failed = Some(answer);
        self.port.finish_audio(answer);
        self.port.fail(answer, code, detail);
        Ok(())
    }

    fn check(&self, answer: AnswerStamp) -> Result<(), Stale> {
        if answer.is_stale(self.unit) { Err(Stale) } else { Ok(()) }
    }
}

/// Describes the error for the client. The causes of a missing connection stay in the log.
fn detail(error: &CallError) -> String {
    match error {
        CallError::Unreachable(_) => "the server cannot be reached".to_owned(),
        error => error.to_string(),
    }
}

/// Waits for `work`, unless the answer becomes stale before. The stamp is checked whenever the task is woken.
async fn unless_stale<T>(
    unit: &UnitStatus,
    answer: AnswerStamp,
    woken: &Notify,
    work: impl Future<Output = T>,
) -> Result<T, Stale> {
    let mut work = pin!(work);
    loop {
        if answer.is_stale(unit) {
            return Err(Stale);
        }
        tokio::select! {
            biased;
            () = woken.notified() => {}
            done = &mut work => return Ok(done),
        }
    }
}
