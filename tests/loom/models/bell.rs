//! The doorbells: a push between "found nothing" and "sleep" is never lost. Loom fails when a thread sleeps for ever.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};

use antiphon_loom::message::UnitId;
use antiphon_loom::sync::PortCell;
use antiphon_loom::unit::{EdgeBell, EdgeSignal, StageBell};

use super::{explore, spawn};

const UNIT: UnitId = UnitId::new(0);

/// Takes one unit, asleep until there is one; `None` when the bell is stopped.
fn take_one(bell: &StageBell, worker: usize) -> Option<UnitId> {
    let (mut cursor, mut out) = (0, [UNIT]);
    loop {
        if bell.take(&mut cursor, &mut out) == 1 {
            return Some(out[0]);
        }
        if bell.is_stopping() {
            return None;
        }
        bell.sleep(worker, None);
    }
}

#[test]
fn a_push_before_the_sleep_is_not_lost() {
    explore(|| {
        let (bell, pushed) = (Arc::new(StageBell::new(1, 1)), Arc::new(AtomicU64::new(0)));
        let worker = spawn({
            let (bell, pushed) = (Arc::clone(&bell), Arc::clone(&pushed));
            move || {
                bell.attend(0);
                take_one(&bell, 0).expect("rung");
                assert_eq!(pushed.load(Ordering::Relaxed), 1, "what was pushed before the ring is seen");
            }
        });
        pushed.store(1, Ordering::Relaxed);
        bell.ring(UNIT);
        worker.join().unwrap();
    });
}

#[test]
fn a_push_during_the_work_brings_the_unit_back() {
    explore(|| {
        let (bell, pushed) = (Arc::new(StageBell::new(1, 1)), Arc::new(AtomicU64::new(0)));
        let worker = spawn({
            let (bell, pushed) = (Arc::clone(&bell), Arc::clone(&pushed));
            move || {
                bell.attend(0);
                loop {
                    let unit = take_one(&bell, 0).expect("rung");
                    let seen = pushed.load(Ordering::Relaxed);
                    bell.put_back(unit);
                    if seen == 2 {
                        return;
                    }
                }
            }
        });
        for n in 1..=2 {
            pushed.store(n, Ordering::Relaxed);
            bell.ring(UNIT);
        }
        worker.join().unwrap();
    });
}

#[test]
fn a_unit_is_with_one_worker_at_a_time() {
    explore(|| {
        let (bell, port) = (Arc::new(StageBell::new(1, 2)), Arc::new(PortCell::new(0)));
        bell.ring(UNIT);
        let workers: Vec<_> = (0..2)
            .map(|_| {
                let (bell, port) = (Arc::clone(&bell), Arc::clone(&port));
                spawn(move || {
                    let (mut cursor, mut out) = (0, [UNIT]);
                    if bell.take(&mut cursor, &mut out) == 1 {
                        // Fails loudly when the other one has it.
                        *port.borrow() += 1;
                        bell.put_back(UNIT);
                    }
                })
            })
            .collect();
        bell.ring(UNIT);
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn two_units_wake_two_workers_though_the_first_never_returns() {
    explore(|| {
        let bell = Arc::new(StageBell::new(2, 2));
        let workers: Vec<_> = (0..2)
            .map(|worker| {
                let bell = Arc::clone(&bell);
                spawn(move || {
                    bell.attend(worker);
                    // At work for ever: it does not look at the bell again.
                    take_one(&bell, worker).expect("rung");
                })
            })
            .collect();
        let other = spawn({
            let bell = Arc::clone(&bell);
            move || bell.ring(UnitId::new(1))
        });
        bell.ring(UNIT);
        other.join().unwrap();
        workers.into_iter().for_each(|worker| worker.join().unwrap());
    });
}

#[test]
fn a_stop_ends_a_worker_that_goes_to_sleep() {
    explore(|| {
        let bell = Arc::new(StageBell::new(1, 1));
        bell.attend(0);
        let stopper = spawn({
            let bell = Arc::clone(&bell);
            move || bell.stop()
        });
        assert_eq!(take_one(&bell, 0), None);
        stopper.join().unwrap();
    });
}

#[test]
fn the_edge_is_woken_for_a_push_before_its_sleep() {
    explore(|| {
        let (bell, alarm) = EdgeBell::new(1).expect("no system is asked");
        let (bell, pushed) = (Arc::new(bell), Arc::new(AtomicU64::new(0)));
        let dispatcher = spawn({
            let (bell, pushed) = (Arc::clone(&bell), Arc::clone(&pushed));
            move || {
                let mut rung = false;
                loop {
                    bell.take_all(|_, _| rung = true);
                    if rung {
                        assert_eq!(
                            pushed.load(Ordering::Relaxed),
                            1,
                            "what was pushed before the ring is seen"
                        );
                        return;
                    }
                    if bell.may_sleep() {
                        alarm.wait();
                    }
                    bell.woken();
                }
            }
        });
        pushed.store(1, Ordering::Relaxed);
        bell.ring(EdgeSignal::Session, UNIT);
        dispatcher.join().unwrap();
    });
}
