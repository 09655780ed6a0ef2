//! The thread that owns the engine.
#![expect(clippy::disallowed_methods, reason = "the language model's own process has no stage threads")]
#![expect(clippy::disallowed_types, reason = "the language model's own process has no stage threads")]

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

use tokio::sync::{mpsc, oneshot};

use crate::model::ModelError;
use crate::model::llama::{
    Completion, CompletionSink, CompletionUsage, End, Engine, Limit, Sampling, Weights,
};

/// Events of a completion, sent by the engine.
#[derive(Debug)]
pub(super) enum CompletionEvent {
    Text(String),
    /// The completion waits for its next turn.
    Waiting,
    Done(End, CompletionUsage),
    Failed(String),
}

/// The sink of a completion that is read by an HTTP response.
pub(super) struct CompletionEventSink(mpsc::Sender<CompletionEvent>);

impl CompletionEventSink {
    /// Creates a sink and its reader. The channel has room for a completion of `tokens_max` tokens, so the engine never
    /// waits for a slow reader.
    pub(super) fn channel(tokens_max: usize) -> (Self, mpsc::Receiver<CompletionEvent>) {
        // At most one text for each token, one `Waiting`, and the end.
        let (sender, receiver) = mpsc::channel(tokens_max + 2);
        (Self(sender), receiver)
    }

    fn send(&self, event: CompletionEvent) {
        // Fails only if the reader is gone; the engine checks for that in the next step.
        let _ = self.0.try_send(event);
    }
}

impl CompletionSink for CompletionEventSink {
    fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    fn text(&mut self, text: String) {
        self.send(CompletionEvent::Text(text));
    }

    fn waiting(&mut self) {
        // One unread `Waiting` is enough.
        if self.0.capacity() == self.0.max_capacity() {
            self.send(CompletionEvent::Waiting);
        }
    }

    fn done(&mut self, end: End, usage: CompletionUsage) {
        self.send(CompletionEvent::Done(end, usage));
    }

    fn failed(&mut self, message: &str) {
        self.send(CompletionEvent::Failed(message.to_owned()));
    }
}

/// The handle of the engine's thread.
pub(super) struct EngineThread {
    handle: JoinHandle<()>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
}

impl EngineThread {
    /// Resolves when the thread has ended; while senders exist, only a panic ends it. Must be called only once.
    pub(super) async fn ended(&self) {
        let ended = self.ended.lock().ok().and_then(|mut ended| ended.take());
        if let Some(ended) = ended {
            // The thread sends nothing; it drops its sender.
            let _ = ended.await;
        }
    }

    /// Waits for the end of the current step. All senders must be gone.
    pub(super) fn join(self) {
        // A panic has been reported by the hook, and the caller's outcome contains it.
        let _ = self.handle.join();
    }
}

/// Starts the thread, which ends when all senders are gone.
pub(super) fn start(engine: Engine) -> std::io::Result<(Sender<Completion>, EngineThread)> {
    // Not bounded here: a session may have nine answers under way, and the routes limit the callers without a session.
    let (sender, requests) = channel();
    let (alive, ended) = oneshot::channel();
    let handle = std::thread::Builder::new().name("llm-engine".to_owned()).spawn(move || {
        work(engine, &requests);
        drop::<oneshot::Sender<()>>(alive);
    })?;
    Ok((sender, EngineThread { handle, ended: Mutex::new(Some(ended)) }))
}

fn work(mut engine: Engine, requests: &Receiver<Completion>) {
    loop {
        if engine.is_idle() {
            // Sleeps: an idle process uses no time.
            match requests.recv() {
                Ok(completion) => engine.submit(completion),
                Err(_) => return,
            }
        }
        loop {
            match requests.try_recv() {
                Ok(completion) => engine.submit(completion),
                Err(TryRecvError::Empty) => break,
                Err(TryRecvError::Disconnected) => return,
            }
        }
        engine.step();
    }
}

/// Runs every part of the model once.
pub(super) fn warm_up(engine: &mut Engine, weights: &Weights) -> Result<(), ModelError> {
    let failure = Arc::new(Mutex::new(None));
    let completion = Completion {
        caller: None,
        prompt: weights.prompt([("user", "Hello.")])?,
        sampling: Sampling::default(),
        grammar: None,
        limit: Limit { hard: 4, soft: None },
        sink: Box::new(WarmUpSink { failure: Arc::clone(&failure) }),
    };
    engine.submit(completion);
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

    fn waiting(&mut self) {}

    fn done(&mut self, _: End, _: CompletionUsage) {}

    fn failed(&mut self, message: &str) {
        if let Ok(mut failure) = self.failure.lock() {
            *failure = Some(message.to_owned());
        }
    }
}
