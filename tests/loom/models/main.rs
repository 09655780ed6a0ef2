//! Every interleaving, up to a bound, of the small races that the engine's promises rest on.
//!
//! Each model is proved by a mutant in `mutants/`: the engine with one ordering, compare-and-swap or order of steps
//! weakened, which the model must catch. `.ci/loom` runs the models, `.ci/loom --mutants` the proof.

mod bell;
mod free;
mod generation;
mod lease;
mod ring;
mod slot;

use std::sync::Arc;

use loom::thread::{Builder, JoinHandle};

/// Switches from a thread that could go on, per execution. Most bugs need one or two.
const PREEMPTIONS: usize = 3;

/// Stack of a modelled thread, in words: building a unit moves more than loom's default holds.
const STACK_WORDS: usize = 64 * 1_024;

/// Runs `model` in every interleaving. A thread that nobody wakes is a failure.
fn explore(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(PREEMPTIONS);
    builder.max_branches = 20_000;
    let model = Arc::new(model);
    builder.check(move || {
        let model = Arc::clone(&model);
        spawn(move || model()).join().expect("loom passes panics on");
    });
}

/// A modelled thread.
fn spawn<T: Send + 'static>(body: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    Builder::new().stack_size(STACK_WORDS).spawn(body).expect("a modelled thread")
}
