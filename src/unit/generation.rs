//! The cancel counter of a unit.

use crate::message::Generation;
use crate::sync::{AtomicU64, Ordering};

/// Number of cancels of a unit. A barge-in, a cancel or a release raises the number. Nothing resets it, not even a
/// release.
#[derive(Debug, Default)]
pub struct GenerationCounter(AtomicU64);

impl GenerationCounter {
    /// Creates a counter at zero.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Makes everything stale that was stamped before, and returns the new generation.
    pub fn bump(&self) -> Generation {
        // ORDERING: Release pairs with the Acquire in `current`: a thread that sees the bump sees all writes before it.
        Generation(self.0.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// Returns the present generation.
    #[must_use]
    pub fn current(&self) -> Generation {
        // ORDERING: Acquire pairs with the Release in `bump`.
        Generation(self.0.load(Ordering::Acquire))
    }

    /// Returns true if items stamped with `generation` are stale. Once true, the result stays true.
    #[must_use]
    pub fn is_stale(&self, generation: Generation) -> bool {
        self.current() > generation
    }
}
