//! The claimable word of a unit. State and epoch share one atomic, so that neither changes without the other.

use crate::message::Epoch;
use crate::sync::{AtomicU64, Ordering};

/// State of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum SlotState {
    /// No lease exists, and no item of one is left. The epoch is that of the last claim.
    Free = 0b00,
    /// A lease exists.
    Claimed = 0b01,
    /// The lease is gone, the markers are on their way.
    Draining = 0b10,
    /// The markers took too long; not claimable until they arrive.
    Quarantined = 0b11,
}

/// Bits of the word that hold the [`SlotState`]; the others hold the [`Epoch`].
const STATE_BITS: u32 = 2;
const STATE_MASK: u64 = (1 << STATE_BITS) - 1;

/// The largest epoch that the word holds: a unit that is claimed a million times a second gets there in 146,000 years.
const EPOCH_MAX: u64 = u64::MAX >> STATE_BITS;

/// All states, each at the index that its bits form.
const STATES: [SlotState; 1 << STATE_BITS] =
    [SlotState::Free, SlotState::Claimed, SlotState::Draining, SlotState::Quarantined];

const _: () = {
    let mut bits = 0;
    while bits < STATES.len() {
        assert!(STATES[bits] as usize == bits, "a state does not stand at the index of its bits");
        bits += 1;
    }
    assert!(STATE_MASK ^ (EPOCH_MAX << STATE_BITS) == u64::MAX, "state and epoch do not fill the word");
};

/// State and epoch of a unit in one atomic. Every transition is a compare-and-swap on the pair, so that an old lease
/// cannot free a unit that has a new one.
#[derive(Debug)]
pub struct SlotWord(AtomicU64);

const fn pack(state: SlotState, epoch: Epoch) -> u64 {
    assert!(state as u64 <= STATE_MASK, "a state needs more bits than it has");
    (epoch.0 << STATE_BITS) | state as u64
}

const fn unpack(word: u64) -> (SlotState, Epoch) {
    (STATES[(word & STATE_MASK) as usize], Epoch(word >> STATE_BITS))
}

impl SlotWord {
    /// Creates a free slot that has never been claimed.
    #[must_use]
    pub fn new() -> Self {
        Self(AtomicU64::new(pack(SlotState::Free, Epoch(0))))
    }

    /// Claims a free slot (`Free → Claimed`) and raises the epoch by one. Returns `None` if the slot is not free or another
    /// claim wins.
    pub fn claim(&self) -> Option<Epoch> {
        // ORDERING: Acquire pairs with the Release in `leave`: what the last drain wrote to the unit is visible here.
        let word = self.0.load(Ordering::Acquire);
        let (SlotState::Free, epoch) = unpack(word) else { return None };
        let next = Epoch(epoch.0 + 1);
        // ORDERING: as above on success; on failure nothing is read.
        self.0
            .compare_exchange(word, pack(SlotState::Claimed, next), Ordering::AcqRel, Ordering::Relaxed)
            .ok()
            .map(|_| next)
    }

    /// Begins the drain (`Claimed → Draining`). Returns false if this epoch does not hold the slot.
    pub fn begin_drain(&self, epoch: Epoch) -> bool {
        self.leave(SlotState::Claimed, SlotState::Draining, epoch)
    }

    /// Frees the slot (`Draining → Free`) after the markers of `epoch` have arrived. Returns false if the slot is not
    /// draining in this epoch.
    pub fn finish_drain(&self, epoch: Epoch) -> bool {
        self.leave(SlotState::Draining, SlotState::Free, epoch)
    }

    /// Puts the slot into quarantine (`Draining → Quarantined`) after the drain has taken too long. Returns false if the
    /// drain is over.
    pub fn quarantine(&self, epoch: Epoch) -> bool {
        self.leave(SlotState::Draining, SlotState::Quarantined, epoch)
    }

    /// Frees the slot (`Quarantined → Free`) after the markers of `epoch` have arrived late. Returns false if the slot is
    /// not in quarantine in this epoch.
    pub fn recover(&self, epoch: Epoch) -> bool {
        self.leave(SlotState::Quarantined, SlotState::Free, epoch)
    }

    fn leave(&self, from: SlotState, to: SlotState, epoch: Epoch) -> bool {
        // ORDERING: Release publishes the leaving side's writes to the unit, to the Acquire in `claim` and `load`.
        // Acquire lets the winner of a drain read the lease's writes before its drop.
        self.0
            .compare_exchange(pack(from, epoch), pack(to, epoch), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns the present state and epoch. They are old at once, unless the caller holds the lease or drains the unit.
    #[must_use]
    pub fn load(&self) -> (SlotState, Epoch) {
        // ORDERING: Acquire pairs with the Release in `leave`.
        unpack(self.0.load(Ordering::Acquire))
    }

    /// Returns true if `epoch` holds the slot. Once false, the result stays false for this epoch.
    #[must_use]
    pub fn is_claimed_by(&self, epoch: Epoch) -> bool {
        // ORDERING: Acquire as in `load`. A stale `true` only costs work: the last check is at the socket.
        self.0.load(Ordering::Acquire) == pack(SlotState::Claimed, epoch)
    }
}

impl Default for SlotWord {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn an_old_epoch_cannot_touch_a_new_claim() {
        let slot = SlotWord::new();
        let first = slot.claim().expect("free");
        assert!(slot.claim().is_none() && !slot.finish_drain(first));
        assert!(slot.begin_drain(first) && !slot.begin_drain(first) && slot.finish_drain(first));
        let second = slot.claim().expect("free again");
        assert!(second > first);
        assert!(!slot.begin_drain(first) && !slot.finish_drain(first) && !slot.recover(first));
        assert!(slot.is_claimed_by(second) && !slot.is_claimed_by(first));
        assert!(slot.begin_drain(second) && slot.quarantine(second) && slot.claim().is_none());
        assert!(slot.recover(second) && slot.claim().is_some());
    }

    proptest! {
        #[test]
        fn the_word_keeps_both_halves(state in proptest::sample::select(&STATES[..]), epoch in 0..=EPOCH_MAX) {
            prop_assert_eq!(unpack(pack(state, Epoch(epoch))), (state, Epoch(epoch)));
        }
    }
}
