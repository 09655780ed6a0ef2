//! The engine alone, step by step: who gets what when.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use antiphon::door::model::llama::{
    Completion, CompletionSink, CompletionUsage, End, Engine, EngineSettings, Limit, Sampling, Weights,
};

use antiphon::door::message::{Caller, Rank};

use crate::builtin::{gguf, spoken};

/// What a sink has seen.
#[derive(Default)]
struct Seen {
    closed: AtomicBool,
    pieces: AtomicUsize,
    text: Mutex<String>,
    /// Signs of life while it waited.
    signs: AtomicUsize,
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
        self.0.text.lock().expect("no panic").push_str(&text);
    }

    fn waiting(&mut self) {
        self.0.signs.fetch_add(1, Ordering::Relaxed);
    }

    fn done(&mut self, end: End, usage: CompletionUsage) {
        *self.0.end.lock().expect("no panic") = Some(Ok((end, usage)));
    }

    fn failed(&mut self, message: &str) {
        *self.0.end.lock().expect("no panic") = Some(Err(message.to_owned()));
    }
}

fn completion(weights: &Weights, caller: Option<Caller>, text: &str, hard: u32) -> (Completion, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let completion = Completion {
        caller,
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

fn end(seen: &Seen) -> Option<Result<(End, CompletionUsage), String>> {
    seen.end.lock().expect("no panic").clone()
}

fn run_to_end(engine: &mut Engine) {
    while !engine.is_idle() {
        engine.step();
    }
}

/// One test: llama.cpp's backend can be made once in a process.
#[test]
fn steps_are_fair_and_end_when_nobody_reads() {
    let weights: &'static Weights = Box::leak(Box::new(Weights::load(&gguf()).expect("a model")));
    let settings = EngineSettings { slots: 2, context: 512, threads: 1 };
    let mut engine = Engine::new(weights, settings, &[]).expect("memory");
    assert!(engine.is_idle());
    a_long_prompt_delays_no_answer(&mut engine, weights);
    an_interrupted_answer_goes_on_where_it_stopped(&mut engine, weights);
    an_answer_that_fills_its_context_ends_there(&mut engine, weights);
    a_lent_beginning_counts_like_one_that_was_read(weights);
}

fn a_long_prompt_delays_no_answer(engine: &mut Engine, weights: &Weights) {
    // An answer under way gets a token in every step while a long prompt is being read beside it.
    let (counting, counted) = completion(weights, spoken(0, 1), "Count from one to fifty, in words.", 200);
    engine.submit(counting);
    while pieces(&counted) == 0 {
        engine.step();
    }
    let (reading, read) = completion(weights, spoken(1, 1), &"The cat sat on the mat. ".repeat(40), 4);
    let prompt_tokens = reading.prompt.len();
    engine.submit(reading);
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
    assert!(end(&counted).is_none(), "a closed sink hears nothing more");
}

const ECHO: &str =
    "The old sailor told the children a story about seven green parrots and a very small island";

/// A completion that says again what it is told, as turns before have shown: what it reads decides every word.
fn echo(weights: &Weights, caller: Option<Caller>) -> (Completion, Arc<Seen>) {
    let (mut completion, seen) = completion(weights, caller, "", 60);
    let words = ["blue table", "the river is deep", "a yellow bird sings in the garden", ECHO];
    let turns = words.map(|words| [("user", format!("Say: {words}")), ("assistant", words.to_owned())]);
    let turns = turns.as_flattened();
    let turns = turns[..turns.len() - 1].iter().map(|(role, words)| (*role, words.as_str()));
    completion.prompt = weights.prompt(turns).expect("a template");
    (completion, seen)
}

/// Three that want two slots: nobody is refused, and the least urgent goes on later where it was interrupted, while it
/// read its prompt or while it answered.
fn an_interrupted_answer_goes_on_where_it_stopped(engine: &mut Engine, weights: &Weights) {
    let aside = spoken(0, 1).map(|caller| Caller { rank: Rank::Aside, ..caller });
    for pieces_before in [0, 10] {
        let (interrupted, heard) = echo(weights, aside);
        engine.submit(interrupted);
        engine.step();
        while pieces(&heard) < pieces_before {
            engine.step();
        }
        let urgent = [1, 2].map(|unit| {
            let (answer, seen) = completion(weights, spoken(unit, 1), "Tell me a long story.", 40);
            engine.submit(answer);
            seen
        });
        while urgent.iter().all(|seen| end(seen).is_none()) {
            assert_eq!(pieces(&heard), pieces_before, "it has no slot");
            engine.step();
        }
        run_to_end(engine);
        assert_eq!(heard.signs.load(Ordering::Relaxed) > 0, pieces_before > 0, "a sign that it goes on");
        let text = heard.text.lock().expect("no panic").clone();
        assert!(text.trim_end_matches('.').ends_with(ECHO), "{text:?} after {pieces_before} pieces");
        assert!(text.len() < ECHO.len() + 4, "{text:?} after {pieces_before} pieces");
    }
}

/// An answer after a beginning that another sequence lends is the same as one that has read all of its prompt.
fn a_lent_beginning_counts_like_one_that_was_read(weights: &'static Weights) {
    const INSTRUCTIONS: &str = "You are a helpful assistant. Answer in one short sentence.";
    let instructions = weights.shared_beginning(INSTRUCTIONS).expect("a template");
    assert!(instructions.len() > 8);
    let settings = EngineSettings { slots: 1, context: 512, threads: 1 };
    for shared in [instructions.as_slice(), &[]] {
        let mut engine = Engine::new(weights, settings, shared).expect("memory");
        let (mut answer, seen) = completion(weights, None, "", 20);
        let messages = [("system", INSTRUCTIONS), ("user", "What is the capital of France?")];
        answer.prompt = weights.prompt(messages).expect("a template");
        engine.submit(answer);
        run_to_end(&mut engine);
        let cached = end(&seen).expect("ended").expect("no failure").1.cached;
        assert_eq!(usize::try_from(cached).expect("small"), shared.len());
        let text = seen.text.lock().expect("no panic").clone();
        assert!(text.contains("Paris"), "{text:?} with {} lent tokens", shared.len());
    }
}

fn an_answer_that_fills_its_context_ends_there(engine: &mut Engine, weights: &Weights) {
    let (filling, filled) = completion(weights, None, &"word ".repeat(500), 4_000);
    assert!(filling.prompt.len() < 512, "{} tokens", filling.prompt.len());
    let room = 512 - filling.prompt.len();
    engine.submit(filling);
    run_to_end(engine);
    let (_, usage) = end(&filled).expect("ended").expect("no failure");
    assert!(usize::try_from(usage.output).expect("small") <= room, "{usage:?} with room for {room}");
}
