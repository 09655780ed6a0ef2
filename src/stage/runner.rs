//! The body of a worker thread: take ready units, prepare them, call the model for the most urgent, sleep until a ring.
//!
//! *Thread:* one per worker. *Never:* polls. The panics of stages are caught here and in no other module.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Stage;
use crate::message::{Moment, UnitId};
use crate::rt::alloc::{AllocPhase, HeapCalls};
use crate::rt::thread::{StageThread, ThreadSpec, spawn};
use crate::unit::{StageBell, UnitCounters, UnitSlab};

const NEVER: Moment = Moment::from_nanos(u64::MAX);

/// Moments at which a worker looks at a unit without a ring. Only the fake voice sets them, to pace its audio.
#[derive(Debug)]
pub struct Deadlines {
    /// Next moment of each unit.
    due: Box<[Moment]>,
    next: Moment,
}

impl Deadlines {
    /// Creates the table for `units` units, with nothing due.
    #[must_use]
    pub fn new(units: usize) -> Self {
        Self { due: vec![NEVER; units].into_boxed_slice(), next: NEVER }
    }

    /// Rings for `unit` at `at`, unless the unit has an earlier moment.
    pub fn set(&mut self, unit: UnitId, at: Moment) {
        let due = &mut self.due[unit.index()];
        *due = (*due).min(at);
        self.next = self.next.min(at);
    }

    fn ring_due(&mut self, now: Moment, bell: &StageBell) {
        if self.next > now {
            return;
        }
        self.next = NEVER;
        for (index, due) in self.due.iter_mut().enumerate() {
            if *due <= now {
                *due = NEVER;
                bell.ring(UnitId::new(u16::try_from(index).expect("UNITS_MAX fits u16")));
            }
            self.next = self.next.min(*due);
        }
    }
}

/// Thread, bell and number of a worker.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// Name and priority of the thread.
    pub thread: ThreadSpec,
    /// The stage's doorbell.
    pub bell: &'static StageBell,
    /// Number among the stage's workers, from 0.
    pub worker: usize,
}

/// Starts a worker, which ends when the bell is stopped.
///
/// # Errors
/// Returns an error if the system has no more threads.
pub fn spawn_worker(
    spec: WorkerSpec,
    slab: &'static UnitSlab,
    mut stage: impl Stage + 'static,
) -> std::io::Result<StageThread> {
    let WorkerSpec { thread, bell, worker } = spec;
    spawn(thread, move |heap_calls| run((bell, worker), heap_calls, slab, &mut stage))
}

fn run(
    (bell, worker): (&'static StageBell, usize),
    heap_calls: &'static HeapCalls,
    slab: &'static UnitSlab,
    stage: &mut impl Stage,
) {
    bell.attend(worker);
    let mut deadlines = Deadlines::new(slab.len());
    let mut units = vec![UnitId::new(0); stage.candidates_max()].into_boxed_slice();
    let mut calls = Vec::with_capacity(units.len());
    let mut cursor = 0;
    AllocPhase::transition_from_init_to_static(heap_calls);
    while !bell.is_stopping() {
        let taken = bell.take(&mut cursor, &mut units);
        let now = crate::clock::now();
        if taken == 0 {
            deadlines.ring_due(now, bell);
            let timeout = (deadlines.next != NEVER).then(|| deadlines.next.since(now));
            bell.sleep(worker, timeout);
            continue;
        }
        calls.clear();
        for &unit in &units[..taken] {
            let prepared =
                guarded(slab, stage, &[unit], |stage| stage.prepare(slab, unit, now, &mut deadlines));
            match prepared.flatten() {
                Some(urgency) => calls.push((urgency, unit)),
                None => bell.put_back(unit),
            }
        }
        calls.sort_unstable_by_key(|(urgency, _)| *urgency);
        let rows = stage.rows_max().min(calls.len());
        for &(_, unit) in &calls[rows..] {
            bell.ring(unit);
            bell.put_back(unit);
        }
        for (place, (_, unit)) in units.iter_mut().zip(&calls[..rows]) {
            *place = *unit;
        }
        let called = &units[..rows];
        if rows > 0 {
            guarded(slab, stage, called, |stage| stage.call(slab, called));
        }
        called.iter().for_each(|unit| bell.put_back(*unit));
        deadlines.ring_due(now, bell);
    }
}

/// Does `work` on `units`; after a panic, counts it, restores the units, and returns `None`. The unwinding has dropped the
/// port guards and left the ring ends whole, so the units continue.
#[expect(clippy::disallowed_methods, reason = "this is the place that the ban on catch_unwind points to")]
fn guarded<S: Stage, R>(
    slab: &'static UnitSlab,
    stage: &mut S,
    units: &[UnitId],
    work: impl FnOnce(&mut S) -> R,
) -> Option<R> {
    let done = catch_unwind(AssertUnwindSafe(|| work(stage)));
    if done.is_err() {
        for unit in units {
            UnitCounters::count(&slab.unit(*unit).status.counters.stage_panics);
            stage.recover(slab, *unit);
        }
    }
    done.ok()
}
