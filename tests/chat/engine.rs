//! The engine alone, step by step: who gets what when.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use antiphon::model::llama::{
    Completion, CompletionSink, CompletionUsage, End, Engine, EngineSettings, Limit, Sampling, Weights,
};

use crate::builtin::gguf;

/// What a sink has seen.
#[derive(Default)]
struct Seen {
    closed: AtomicBool,
    pieces: AtomicUsize,
    end: Mutex<Option<Result<(End, CompletionUsage), String>>>,
}

struct Sink(Arc<Seen>);

impl CompletionSink for Sink {
    fn is_closed(&self) -> bool {
        self.0.closed.load(Ordering::Relaxed)
    }

    fn text(&mut self, text: String) {
        assert!(!text.is_empty());
        self.0.pieces.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&mut self, end: End, usage: CompletionUsage) {
        *self.0.end.lock().expect("no panic") = Some(Ok((end, usage)));
    }

    fn failed(&mut self, message: &str) {
        *self.0.end.lock().expect("no panic") = Some(Err(message.to_owned()));
    }
}

fn completion(weights: &Weights, text: &str, hard: u32) -> (Completion, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let completion = Completion {
        prompt: weights.prompt([("user", text)]).expect("a template"),
        sampling: Sampling { temperature: 0.0, repeat_penalty: 1.0, ..Sampling::default() },
        grammar: None,
        limit: Limit { hard, soft: None },
        sink: Box::new(Sink(Arc::clone(&seen))),
    };
    (completion, seen)
}

fn pieces(seen: &Seen) -> usize {
    seen.pieces.load(Ordering::Relaxed)
}

/// One test: llama.cpp's backend can be made once in a process.
#[test]
fn steps_are_fair_and_end_when_nobody_reads() {
    let weights: &'static Weights = Box::leak(Box::new(Weights::load(&gguf()).expect("a model")));
    let settings = EngineSettings { slots: 2, context: 512, threads: 2 };
    let mut engine = Engine::new(weights, settings).expect("memory");
    assert!(engine.is_idle());

    // An answer under way gets a token in every step while a long prompt is being read beside it.
    let (counting, counted) = completion(weights, "Count from one to fifty, in words.", 200);
    engine.submit(0, counting);
    while pieces(&counted) == 0 {
        engine.step();
    }
    let (reading, read) = completion(weights, &"The cat sat on the mat. ".repeat(40), 4);
    let prompt_tokens = reading.prompt.len();
    engine.submit(1, reading);
    let before = pieces(&counted);
    let mut steps = 0;
    while pieces(&read) == 0 {
        engine.step();
        steps += 1;
    }
    assert!(steps >= prompt_tokens / 16, "{prompt_tokens} tokens in {steps} steps: the chunks are too large");
    assert_eq!(pieces(&counted) - before, steps, "the answer waited for another's prompt");

    // Nobody reads any more: the next step ends it, and the slot is free.
    counted.closed.store(true, Ordering::Relaxed);
    read.closed.store(true, Ordering::Relaxed);
    engine.step();
    assert!(engine.is_idle());
    assert!(counted.end.lock().expect("no panic").is_none(), "a closed sink hears nothing more");

    // A waiting completion begins after the one before it; a third is refused at once.
    let (first, first_seen) = completion(weights, "Hello.", 3);
    let (second, second_seen) = completion(weights, "Hello again.", 3);
    let (third, third_seen) = completion(weights, "And again.", 3);
    engine.submit(0, first);
    engine.step();
    engine.submit(0, second);
    engine.submit(0, third);
    assert!(
        matches!(&*third_seen.end.lock().expect("no panic"), Some(Err(message)) if message.contains("busy"))
    );
    while !engine.is_idle() {
        engine.step();
    }
    for seen in [first_seen, second_seen] {
        let end = seen.end.lock().expect("no panic").clone();
        assert!(matches!(end, Some(Ok((End::Length | End::Stop, usage))) if usage.output <= 3), "{end:?}");
    }

    // An answer that fills its slot ends there.
    let (filling, filled) = completion(weights, &"word ".repeat(500), 4_000);
    assert!(filling.prompt.len() < 512, "{} tokens", filling.prompt.len());
    let room = 512 - filling.prompt.len();
    engine.submit(0, filling);
    while !engine.is_idle() {
        engine.step();
    }
    let end = filled.end.lock().expect("no panic").clone().expect("ended").expect("no failure");
    assert!(usize::try_from(end.1.output).expect("small") <= room, "{end:?} with room for {room}");
}
