//! The cancel counter of a unit.

use crate::message::Generation;
use crate::sync::{AtomicU64, Ordering};

/// Bumped by whoever ends a response (barge-in, cancel, release), read by everyone; never reset, not by a release either.
#[derive(Debug, Default)]
pub struct GenerationCounter(AtomicU64);

impl GenerationCounter {
    /// A counter at zero.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Makes everything stale that was stamped before, and returns the new generation.
    pub fn bump(&self) -> Generation {
        // ORDERING: Release pairs with the Acquire in `current`: who sees the bump sees what was done before it.
        Generation(self.0.fetch_add(1, Ordering::AcqRel) + 1)
    }

    /// The generation now.
    #[must_use]
    pub fn current(&self) -> Generation {
        // ORDERING: Acquire pairs with the Release in `bump`.
        Generation(self.0.load(Ordering::Acquire))
    }

    /// Whether something stamped with `generation` is over. Once true it stays true.
    #[must_use]
    pub fn is_stale(&self, generation: Generation) -> bool {
        self.current() > generation
    }
}
