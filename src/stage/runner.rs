//! The body of a worker thread: take ready units, work, give them back, sleep until rung.
//!
//! *Thread:* one per worker. *Never:* polls. A panic of a stage is caught here, and nowhere else.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::Stage;
use crate::message::{Moment, UnitId};
use crate::rt::alloc::{AllocPhase, HeapCalls};
use crate::rt::thread::{StageThread, ThreadSpec, spawn};
use crate::unit::{StageBell, UnitCounters, UnitSlab};

const NEVER: Moment = Moment::from_nanos(u64::MAX);

/// When a worker shall look at a unit again although nobody rings: only the fake voice paces its audio.
#[derive(Debug)]
pub struct Deadlines {
    /// Per unit.
    due: Box<[Moment]>,
    next: Moment,
}

impl Deadlines {
    /// Nothing is due.
    #[must_use]
    pub fn new(units: usize) -> Self {
        Self { due: vec![NEVER; units].into_boxed_slice(), next: NEVER }
    }

    /// Rings for `unit` at `at`, unless an earlier moment is set for it.
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

/// Which worker of which bell.
#[derive(Clone, Debug)]
pub struct WorkerSpec {
    /// Name and priority.
    pub thread: ThreadSpec,
    /// The stage's doorbell.
    pub bell: &'static StageBell,
    /// Number among the stage's workers, from 0.
    pub worker: usize,
}

/// Starts a worker. It ends when the bell is stopped.
///
/// # Errors
/// When the system has no more threads.
pub fn spawn_worker(
    spec: WorkerSpec,
    slab: &'static UnitSlab,
    mut stage: impl Stage + 'static,
) -> std::io::Result<StageThread> {
    let WorkerSpec { thread, bell, worker } = spec;
    spawn(thread, move |heap_calls| run((bell, worker), heap_calls, slab, &mut stage))
}

#[expect(clippy::disallowed_methods, reason = "this is the place that the ban on catch_unwind points to")]
fn run(
    (bell, worker): (&'static StageBell, usize),
    heap_calls: &'static HeapCalls,
    slab: &'static UnitSlab,
    stage: &mut impl Stage,
) {
    bell.attend(worker);
    let mut deadlines = Deadlines::new(slab.len());
    let mut batch = vec![UnitId::new(0); stage.units_max()].into_boxed_slice();
    let mut cursor = 0;
    AllocPhase::transition_from_init_to_static(heap_calls);
    while !bell.is_stopping() {
        let taken = bell.take(&mut cursor, &mut batch);
        let now = crate::clock::now();
        let units = &batch[..taken];
        if units.is_empty() {
            deadlines.ring_due(now, bell);
            let timeout = (deadlines.next != NEVER).then(|| deadlines.next.since(now));
            bell.sleep(worker, timeout);
            continue;
        }
        let work = AssertUnwindSafe(|| stage.work(slab, units, now, &mut deadlines));
        if catch_unwind(work).is_err() {
            // The port guards were dropped while unwinding, the ring ends are whole: the unit goes on.
            units.iter().for_each(|unit| UnitCounters::count(&slab.unit(*unit).status.counters.stage_panics));
            stage.recover(slab, units);
        }
        units.iter().for_each(|unit| bell.put_back(*unit));
        deadlines.ring_due(now, bell);
    }
}
