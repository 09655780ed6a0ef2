//! The thread that owns the engine.
#![expect(clippy::disallowed_methods, reason = "the language model's own process has no stage threads")]
#![expect(clippy::disallowed_types, reason = "the language model's own process has no stage threads")]

use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use crate::config::DEFAULT_INSTRUCTIONS;
use crate::model::ModelError;
use crate::model::llama::{
    Completion, CompletionSink, CompletionUsage, End, Engine, Limit, Sampling, Weights,
};

/// A completion on its way to a slot.
pub(super) struct Request {
    pub(super) slot: usize,
    pub(super) completion: Completion,
}

/// What the engine says about a completion.
#[derive(Debug)]
pub(super) enum Progress {
    Text(String),
    Done(End, CompletionUsage),
    Failed(String),
}

/// The sink of a completion that is read by an HTTP response.
pub(super) struct ProgressSink(mpsc::Sender<Progress>);

impl ProgressSink {
    /// A sink and its reader. The channel holds a completion of `tokens_max` tokens, so the engine never waits for a
    /// slow reader.
    pub(super) fn channel(tokens_max: usize) -> (Self, mpsc::Receiver<Progress>) {
        // One text for each token at most, and the end.
        let (sender, receiver) = mpsc::channel(tokens_max + 1);
        (Self(sender), receiver)
    }

    fn send(&self, progress: Progress) {
        // Fails only if the reader has gone, which the next step notices.
        let _ = self.0.try_send(progress);
    }
}

impl CompletionSink for ProgressSink {
    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn text(&mut self, text: String) {
        self.send(Progress::Text(text));
    }

    fn done(&mut self, end: End, usage: CompletionUsage) {
        self.send(Progress::Done(end, usage));
    }

    fn failed(&mut self, message: &str) {
        self.send(Progress::Failed(message.to_owned()));
    }
}

/// The engine's thread, seen from outside.
pub(super) struct EngineThread {
    handle: JoinHandle<()>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl EngineThread {
    /// Resolves when the thread has ended, by a panic that is. To be called once.
    pub(super) async fn ended(&self) {
        let ended = self.ended.lock().ok().and_then(|mut ended| ended.take());
        if let Some(ended) = ended {
            // The thread never sends; it drops its end.
            let _ = ended.await;
        }
    }

    /// Waits for the end of the step under way; all senders must be gone.
    pub(super) fn join(self) {
        // A panic has been reported by the hook, and the caller's outcome says it.
        let _ = self.handle.join();
    }
}

/// Starts the thread. It ends when all senders are gone.
pub(super) fn start(engine: Engine, slots: u16) -> std::io::Result<(SyncSender<Request>, EngineThread)> {
    // Each slot has one completion under way and one that waits.
    let (sender, requests) = sync_channel(2 * usize::from(slots));
    let (alive, ended) = oneshot::channel();
    let handle = std::thread::Builder::new().name("llm-engine".to_owned()).spawn(move || {
        work(engine, &requests);
        drop::<oneshot::Sender<()>>(alive);
    })?;
    Ok((sender, EngineThread { handle, ended: Mutex::new(Some(ended)) }))
}

fn work(mut engine: Engine, requests: &Receiver<Request>) {
    loop {
        if engine.is_idle() {
            // Sleeps: an idle process uses no time.
            match requests.recv() {
                Ok(request) => engine.submit(request.slot, request.completion),
                Err(_) => return,
            }
        }
        loop {
            match requests.try_recv() {
                Ok(request) => engine.submit(request.slot, request.completion),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        engine.step();
    }
}

/// Runs every part of the model once, with the default instructions, which stay in the context: a caller who brings
/// the same does not have them read again.
pub(super) fn warm_up(engine: &mut Engine, weights: &Weights) -> Result<(), ModelError> {
    let failure = Arc::new(Mutex::new(None));
    let completion = Completion {
        prompt: weights.prompt([("system", DEFAULT_INSTRUCTIONS), ("user", "Hello.")])?,
        sampling: Sampling::default(),
        grammar: None,
        limit: Limit { hard: 4, soft: None },
        sink: Box::new(WarmUpSink { failure: Arc::clone(&failure) }),
    };
    engine.submit(0, completion);
    while !engine.is_idle() {
        engine.step();
    }
    match failure.lock().ok().and_then(|mut failure| failure.take()) {
        Some(message) => Err(ModelError::Runtime { context: "warm-up of the language model", message }),
        None => Ok(()),
    }
}

struct WarmUpSink {
    failure: Arc<Mutex<Option<String>>>,
}

impl CompletionSink for WarmUpSink {
    fn is_closed(&self) -> bool {
        false
    }

    fn text(&mut self, _: String) {}

    fn done(&mut self, _: End, _: CompletionUsage) {}

    fn failed(&mut self, message: &str) {
        if let Ok(mut failure) = self.failure.lock() {
            *failure = Some(message.to_owned());
        }
    }
}
