//! ONNX Runtime behind safe types: the library, graphs, tensors, runs.
//!
//! *Thread:* everything is built at start; [`Graph::run`] and [`Bound::run`] are called by stage workers,
//! from any number of threads on one graph. *Never:* calls the Rust heap in a run (ONNX Runtime's own C++
//! code does allocate).
//!
//! The library is opened with dlopen, so that it is chosen at run time. onnxruntime-sys 0.0.14 describes the
//! first 170 functions of its table. The table is append-only, and later functions are reached through
//! numbered places that a test compares with ort-sys (`api.rs`).
//!
//! Words: ONNX Runtime's *session* is a [`Graph`] here, because a session is something else in this program.
//!
//! # JUSTIFICATION
//! All calls of ONNX Runtime are in this module and the files below it. The safe alternative is the crate
//! `ort`. That crate was measured with 5 to 6 heap calls per run of the detector (0 here), and has no `Send` handle
//! that ends a run of another thread and outlives that run.

#![expect(
    unsafe_code,
    reason = "the C interface of ONNX Runtime; every other model file is safe code on top of this one"
)]

mod api;
mod bound;
mod graph;
mod library;
mod telemetry;
mod tensor;
mod terminate;

pub use bound::{Bound, Dim};
pub use graph::{Graph, GraphOptions, Port, Provider};
pub use library::Library;
pub use telemetry::disable_telemetry;
pub use tensor::{ElementType, Tensor, Value, length_of};
pub use terminate::Terminate;
