//! The bitmap of free units: nothing is given out twice, nothing gets lost.

use antiphon_loom::unit::FreeUnits;
use std::sync::Arc;

use super::{explore, spawn};

#[test]
fn two_takes_never_get_the_same_unit() {
    explore(|| {
        let free = Arc::new(FreeUnits::full(2));
        let takers: Vec<_> = (0..2)
            .map(|_| {
                let free = Arc::clone(&free);
                spawn(move || free.take())
            })
            .collect();
        let taken: Vec<_> = takers.into_iter().map(|taker| taker.join().unwrap()).collect();
        assert!(taken[0] != taken[1], "{taken:?}");
    });
}

#[test]
fn a_unit_that_comes_back_while_the_summary_is_cleared_is_not_lost() {
    explore(|| {
        let free = Arc::new(FreeUnits::full(1));
        let unit = free.take().expect("one is free");
        let looker = spawn({
            let free = Arc::clone(&free);
            move || free.take()
        });
        free.put(unit);
        // Without a unit the looker has come too early: then it is still there.
        let taken = looker.join().unwrap();
        assert_eq!(taken.or_else(|| free.take()), Some(unit));
        assert_eq!(free.take(), None);
    });
}

#[test]
fn takes_and_puts_leave_every_unit_findable() {
    explore(|| {
        let free = Arc::new(FreeUnits::full(1));
        let users: Vec<_> = (0..2)
            .map(|_| {
                let free = Arc::clone(&free);
                spawn(move || {
                    if let Some(unit) = free.take() {
                        free.put(unit);
                    }
                })
            })
            .collect();
        users.into_iter().for_each(|user| user.join().unwrap());
        assert_eq!(free.take(), Some(0));
    });
}
