//! The slot word: who gets a unit, and who can take it away.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};

use antiphon_loom::message::Epoch;
use antiphon_loom::unit::{SlotState, SlotWord};

use super::{explore, spawn};

#[test]
fn two_claims_one_winner() {
    explore(|| {
        let slot = Arc::new(SlotWord::new());
        let other = spawn({
            let slot = Arc::clone(&slot);
            move || slot.claim()
        });
        let claims = [slot.claim(), other.join().unwrap()];
        assert_eq!(claims.iter().flatten().count(), 1, "{claims:?}");
        assert_eq!(slot.load(), (SlotState::Claimed, Epoch::new(1)));
    });
}

#[test]
fn a_late_release_cannot_free_a_new_epoch() {
    explore(|| {
        let slot = Arc::new(SlotWord::new());
        let first = slot.claim().expect("free");
        assert!(slot.begin_drain(first));
        // The drain ends and is given up at the same time; a new client comes at once.
        let late = spawn({
            let slot = Arc::clone(&slot);
            move || (slot.quarantine(first), slot.recover(first))
        });
        let next = spawn({
            let slot = Arc::clone(&slot);
            move || slot.claim()
        });
        let finished = slot.finish_drain(first);
        let (quarantined, recovered) = late.join().unwrap();
        let next = next.join().unwrap();
        assert!(finished ^ quarantined, "a drain ends once");
        assert_eq!(quarantined, recovered);
        match next {
            Some(second) => assert_eq!(slot.load(), (SlotState::Claimed, second)),
            None => assert_eq!(slot.load(), (SlotState::Free, first)),
        }
    });
}

#[test]
fn a_claim_sees_what_the_last_drain_wrote() {
    explore(|| {
        let (slot, left) = (Arc::new(SlotWord::new()), Arc::new(AtomicU64::new(0)));
        let first = slot.claim().expect("free");
        let drainer = spawn({
            let (slot, left) = (Arc::clone(&slot), Arc::clone(&left));
            move || {
                assert!(slot.begin_drain(first));
                left.store(7, Ordering::Relaxed);
                assert!(slot.finish_drain(first));
            }
        });
        if slot.claim().is_some() {
            assert_eq!(left.load(Ordering::Relaxed), 7);
        }
        drainer.join().unwrap();
    });
}
