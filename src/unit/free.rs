//! The set of free units: one bit each, with a summary above. A claim costs the same at 1 and at 10,000 units.

use crate::sync::{AtomicU64, Ordering};

const WORD: usize = 64;

/// A concurrent bit set of the units that may be free. The set is a hint: the compare-and-swap of the slot word decides
/// a claim.
#[derive(Debug)]
pub struct FreeUnits {
    /// Bit `i`: unit `i` may be claimed.
    leaves: Box<[AtomicU64]>,
    /// Bit `w`: leaf word `w` may hold a bit. The bit may be set for an empty leaf, and is never clear for long if the
    /// leaf holds a bit.
    summary: Box<[AtomicU64]>,
}

fn words(bits: usize) -> Box<[AtomicU64]> {
    (0..bits.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect()
}

impl FreeUnits {
    /// Creates the set `0..units`.
    #[must_use]
    pub fn full(units: usize) -> Self {
        let leaves = words(units);
        let set = Self { summary: words(leaves.len()), leaves };
        (0..units).for_each(|unit| set.put(unit));
        set
    }

    /// Takes any unit out. Returns `None` if the set was empty at some moment of the call.
    pub fn take(&self) -> Option<usize> {
        for (at, summary) in self.summary.iter().enumerate() {
            loop {
                // ORDERING: Acquire pairs with the Release in `put`: a summary bit makes the bits of its leaf visible.
                let bits = summary.load(Ordering::Acquire);
                if bits == 0 {
                    break;
                }
                let word = at * WORD + bits.trailing_zeros() as usize;
                if let Some(unit) = self.take_from(word) {
                    return Some(unit);
                }
                let bit = 1 << (word % WORD);
                // ORDERING: AcqRel. A `put` sets the leaf, then the summary. Both sides change the summary by
                // read-modify-write. If this one comes second, it shows the leaf's bit to the load below. If the `put`
                // comes second, the summary bit stays.
                summary.fetch_and(!bit, Ordering::AcqRel);
                if self.leaves[word].load(Ordering::Relaxed) != 0 {
                    summary.fetch_or(bit, Ordering::Relaxed);
                }
            }
        }
        None
    }

    fn take_from(&self, word: usize) -> Option<usize> {
        let leaf = &self.leaves[word];
        loop {
            // ORDERING: Relaxed: a guess that the `fetch_and` checks.
            let bits = leaf.load(Ordering::Relaxed);
            if bits == 0 {
                return None;
            }
            let bit = bits & bits.wrapping_neg();
            // ORDERING: Acquire pairs with the Release in `put`: the thread that takes a unit sees its slot free.
            if leaf.fetch_and(!bit, Ordering::Acquire) & bit != 0 {
                return Some(word * WORD + bit.trailing_zeros() as usize);
            }
        }
    }

    /// Puts `unit` back.
    pub fn put(&self, unit: usize) {
        let (word, bit) = (unit / WORD, 1 << (unit % WORD));
        // ORDERING: Release on the leaf publishes the free slot, Release on the summary publishes the leaf; see `take`.
        self.leaves[word].fetch_or(bit, Ordering::Release);
        self.summary[word / WORD].fetch_or(1 << (word % WORD), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_unit_is_taken_once_and_can_come_back() {
        for units in [1, 63, 64, 65, 4_097] {
            let free = FreeUnits::full(units);
            let taken: BTreeSet<_> = std::iter::from_fn(|| free.take()).collect();
            assert_eq!(taken, (0..units).collect());
            free.put(units - 1);
            assert_eq!((free.take(), free.take()), (Some(units - 1), None));
        }
    }

    #[test]
    fn threads_never_hold_the_same_unit() {
        let free = FreeUnits::full(70);
        let held: Vec<_> = (0..70).map(|_| std::sync::atomic::AtomicBool::new(false)).collect();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..5_000 {
                        if let Some(unit) = free.take() {
                            assert!(!held[unit].swap(true, std::sync::atomic::Ordering::SeqCst));
                            held[unit].store(false, std::sync::atomic::Ordering::SeqCst);
                            free.put(unit);
                        }
                    }
                });
            }
        });
        assert_eq!(std::iter::from_fn(|| free.take()).count(), 70);
    }
}
