//! llama.cpp: the built-in language model.
//!
//! *Thread:* one, the engine's, which owns the context; [`Weights`] are shared with the threads that make prompts.
//! *Never:* in the process of the server. llama.cpp aborts on errors that other libraries return, so all of this runs
//! in a child.
//!
//! # Source
//! llama-cpp-2 0.1.160, which carries llama.cpp in llama-cpp-sys-2 0.1.161.

mod batch;
mod completion;
mod engine;
mod prompt;
mod queue;
mod sampling;
mod sequences;
mod text;

pub use completion::{Completion, CompletionSink, CompletionUsage, End, Limit};
pub use engine::{Engine, EngineSettings};
pub use prompt::Weights;
pub use sampling::Sampling;
