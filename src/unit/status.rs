//! The words of a unit that every thread reads: its claim, its generation, its counters.

use super::generation::GenerationCounter;
use super::slot::SlotWord;
use crate::message::{AnswerStamp, Epoch};
use crate::sync::{AtomicU64, Ordering};

/// The shared words of a unit.
#[derive(Debug, Default)]
pub struct UnitStatus {
    /// State and epoch of the unit.
    pub slot: SlotWord,
    /// Generation of the answers in the unit.
    pub generation: GenerationCounter,
    /// Statistics of the unit.
    pub counters: UnitCounters,
}

/// Stamp of the items in a ring. Its type chooses the rule by which they go stale.
pub trait Stamp: Copy {
    /// Returns true if items with this stamp are stale. Once true, the result stays true.
    fn is_stale(self, unit: &UnitStatus) -> bool;
}

/// The user's arm (audio, utterance, transcript) goes stale when its session ends. A cancelled answer does not take the
/// user's words with it.
impl Stamp for Epoch {
    fn is_stale(self, unit: &UnitStatus) -> bool {
        !unit.slot.is_claimed_by(self)
    }
}

/// The answer's arm (prompt, text, audio) goes stale when the answer is cancelled or the session ends.
impl Stamp for AnswerStamp {
    fn is_stale(self, unit: &UnitStatus) -> bool {
        unit.generation.is_stale(self.generation)
    }
}

/// Counters of a unit, for `/v1/pool` and the metrics. Relaxed: each number stands for itself.
#[derive(Debug, Default)]
pub struct UnitCounters {
    /// Claims so far.
    pub claims: AtomicU64,
    /// Items that were dropped because they were stale.
    pub stale_items: AtomicU64,
    /// Panics of a stage while it worked on this unit.
    pub stage_panics: AtomicU64,
}

impl UnitCounters {
    /// Adds one to `counter`.
    pub fn count(counter: &AtomicU64) {
        // ORDERING: Relaxed: a statistic, publishes nothing.
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Sums of [`UnitCounters`] over the slab.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CounterTotals {
    /// Claims so far.
    pub claims: u64,
    /// Items that were dropped because they were stale.
    pub stale_items: u64,
    /// Panics of a stage, per unit that was in it.
    pub stage_panics: u64,
}

impl CounterTotals {
    /// Adds the counters of one unit.
    pub fn add(&mut self, counters: &UnitCounters) {
        // ORDERING: Relaxed: statistics, publish nothing.
        self.claims += counters.claims.load(Ordering::Relaxed);
        self.stale_items += counters.stale_items.load(Ordering::Relaxed);
        self.stage_panics += counters.stage_panics.load(Ordering::Relaxed);
    }
}
