//! The units for which a bell has been rung.

use crate::message::UnitId;
use crate::sync::{AtomicU64, Ordering};

/// Units in one word of a [`ReadySet`].
pub(super) const WORD: usize = 64;

/// A set of units, one bit each.
#[derive(Debug)]
pub(super) struct ReadySet(Box<[AtomicU64]>);

impl ReadySet {
    /// Creates an empty set for `units` units.
    pub(super) fn new(units: usize) -> Self {
        Self((0..units.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect())
    }

    /// Returns the number of words of the set.
    pub(super) fn words(&self) -> usize {
        self.0.len()
    }

    /// Adds `unit`.
    pub(super) fn insert(&self, unit: UnitId) {
        // ORDERING: Release: the thread that takes the bit sees all writes before the bit was set.
        self.0[unit.index() / WORD].fetch_or(1 << (unit.index() % WORD), Ordering::Release);
    }

    /// Takes the lowest unit out of `word` whose bit is set in `among`.
    pub(super) fn take_from(&self, word: usize, among: u64) -> Option<UnitId> {
        loop {
            // ORDERING: Relaxed: a guess that the `fetch_and` checks.
            let bits = self.0[word].load(Ordering::Relaxed) & among;
            if bits == 0 {
                return None;
            }
            let bit = bits & bits.wrapping_neg();
            // ORDERING: Acquire pairs with the Release in `insert`.
            if self.0[word].fetch_and(!bit, Ordering::Acquire) & bit != 0 {
                let index = word * WORD + bit.trailing_zeros() as usize;
                return Some(UnitId::new(
                    u16::try_from(index).expect("the slab holds at most u16::MAX units"),
                ));
            }
        }
    }

    /// Returns true if no unit is in the set. The result may be old at once.
    pub(super) fn is_empty(&self) -> bool {
        // ORDERING: Relaxed: before a sleep, the fence of the sleeper orders these loads.
        self.0.iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }
}
