//! The doorbell of a stage: its workers sleep on it, and take the units that have been rung for.

use std::sync::OnceLock;

use super::ready_set::{ReadySet, WORD};
use crate::limits::WORKERS_MAX;
use crate::message::UnitId;
use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

const _: () = assert!(WORKERS_MAX as usize <= u64::BITS as usize, "one word says who sleeps");

/// Something was pushed for the unit since it was last taken.
const PENDING: u8 = 1;
/// A worker holds the unit.
const RUNNING: u8 = 2;

/// The doorbell of one stage, shared by its workers. A unit is with one worker at a time; a ring while it is being
/// worked on is not lost, the unit goes round again.
#[derive(Debug)]
pub struct StageBell {
    /// [`PENDING`] and [`RUNNING`] of each unit.
    units: Box<[AtomicU8]>,
    /// Units that are pending and not running.
    ready: ReadySet,
    /// Bit `w`: worker `w` sleeps or is about to.
    sleepers: AtomicU64,
    workers: Box<[OnceLock<Thread>]>,
    stopping: AtomicBool,
}

impl StageBell {
    /// A bell for `units` units and `workers` workers.
    ///
    /// # Panics
    /// With more than [`WORKERS_MAX`] workers.
    #[must_use]
    pub fn new(units: usize, workers: usize) -> Self {
        assert!(workers <= usize::from(WORKERS_MAX), "{workers} workers of one stage, at most {WORKERS_MAX}");
        Self {
            units: (0..units).map(|_| AtomicU8::new(0)).collect(),
            ready: ReadySet::new(units),
            sleepers: AtomicU64::new(0),
            workers: (0..workers).map(|_| OnceLock::new()).collect(),
            stopping: AtomicBool::new(false),
        }
    }

    /// Names the calling thread as worker `worker`; before its first [`StageBell::sleep`].
    pub fn attend(&self, worker: usize) {
        self.workers[worker].get_or_init(thread::current);
    }

    /// Something is there for `unit`.
    pub fn ring(&self, unit: UnitId) {
        // ORDERING: AcqRel: the pushes before the ring are visible to the worker that takes the unit (`take`, or `put_back`
        // when it finds PENDING).
        if self.units[unit.index()].fetch_or(PENDING, Ordering::AcqRel) == 0 {
            self.ready.insert(unit);
            self.wake_one();
        }
    }

    fn wake_one(&self) {
        // ORDERING: a unit's bit was set, a fence, then the look who sleeps; `sleep` says that it sleeps, a fence, then
        // looks at the bits. One of the two sees the other.
        fence(Ordering::SeqCst);
        loop {
            // ORDERING: Relaxed: after the fence; a guess that the `fetch_and` checks.
            let sleepers = self.sleepers.load(Ordering::Relaxed);
            if sleepers == 0 {
                return;
            }
            let bit = sleepers & sleepers.wrapping_neg();
            // ORDERING: Release: the worker that finds its bit gone sees the unit that it was woken for.
            if self.sleepers.fetch_and(!bit, Ordering::Release) & bit != 0 {
                if let Some(thread) = self.workers[bit.trailing_zeros() as usize].get() {
                    thread.unpark();
                }
                return;
            }
        }
    }

    /// Takes up to `out.len()` ready units, beginning with unit number `cursor` and once round, so that none starves
    /// however often the others are ready again; returns how many, and leaves `cursor` behind the last. They are the
    /// caller's until [`StageBell::put_back`].
    pub fn take(&self, cursor: &mut usize, out: &mut [UnitId]) -> usize {
        let mut taken = 0;
        let words = self.ready.words();
        let (first, behind) = (*cursor / WORD % words, u64::MAX << (*cursor % WORD));
        // The word of the cursor comes twice: what is behind the cursor first, what is before it last.
        for step in 0..=words {
            let word = (first + step) % words;
            let among = match step {
                0 => behind,
                step if step == words => !behind,
                _ => u64::MAX,
            };
            while taken < out.len() && among != 0 {
                let Some(unit) = self.ready.take_from(word, among) else { break };
                // ORDERING: Acquire pairs with the Release of the `ring` whose pushes this worker will read.
                self.units[unit.index()].swap(RUNNING, Ordering::AcqRel);
                out[taken] = unit;
                taken += 1;
                *cursor = unit.index() + 1;
            }
        }
        taken
    }

    /// Gives a taken unit back; if it was rung meanwhile it is ready again.
    pub fn put_back(&self, unit: UnitId) {
        // ORDERING: Release publishes this worker's changes of the port to the next one that takes the unit.
        if self.units[unit.index()].fetch_and(!RUNNING, Ordering::AcqRel) & PENDING != 0 {
            self.ready.insert(unit);
            self.wake_one();
        }
    }

    /// Sleeps until a ring or `timeout`; returns at once when a unit is ready. Only worker `worker` may call it.
    pub fn sleep(&self, worker: usize, timeout: Option<std::time::Duration>) {
        let bit = 1 << worker;
        // ORDERING: Relaxed, made good by the fence; see `wake_one`.
        self.sleepers.fetch_or(bit, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.ready.is_empty() && !self.is_stopping() {
            match timeout {
                Some(timeout) => thread::park_timeout(timeout),
                None => thread::park(),
            }
        }
        // ORDERING: Acquire pairs with the Release in `wake_one`.
        self.sleepers.fetch_and(!bit, Ordering::Acquire);
    }

    /// Tells the workers to end.
    pub fn stop(&self) {
        // ORDERING: Relaxed: an unpark is kept for a worker that is about to sleep, and it publishes what was stored
        // before it.
        self.stopping.store(true, Ordering::Relaxed);
        self.workers.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
    }

    /// Whether the workers shall end.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        // ORDERING: see `stop`.
        self.stopping.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_during_work_brings_the_unit_back() {
        let bell = StageBell::new(70, 1);
        let (mut cursor, mut out) = (0, [UnitId::new(0); 4]);
        bell.ring(UnitId::new(69));
        bell.ring(UnitId::new(69));
        assert_eq!(bell.take(&mut cursor, &mut out), 1);
        assert_eq!(out[0], UnitId::new(69));
        bell.ring(UnitId::new(69));
        assert_eq!(bell.take(&mut cursor, &mut out), 0, "a unit is with one worker at a time");
        bell.put_back(UnitId::new(69));
        assert_eq!(bell.take(&mut cursor, &mut out), 1);
        bell.put_back(UnitId::new(69));
        assert_eq!(bell.take(&mut cursor, &mut out), 0);
    }

    #[test]
    fn a_unit_that_is_always_ready_does_not_keep_the_others_waiting() {
        for units in [3, 64, 70, 200] {
            let bell = StageBell::new(units, 1);
            let unit = |index: usize| UnitId::new(u16::try_from(index).expect("few"));
            (0..units).for_each(|index| bell.ring(unit(index)));
            let (mut cursor, mut out, mut seen) = (0, [UnitId::new(0)], vec![0; units]);
            for _ in 0..3 * units {
                assert_eq!(bell.take(&mut cursor, &mut out), 1);
                seen[out[0].index()] += 1;
                bell.ring(out[0]);
                bell.put_back(out[0]);
            }
            assert!(seen.iter().all(|times| *times == 3), "{units} units: {seen:?}");
        }
    }

    #[test]
    fn no_ring_is_lost_between_threads() {
        let bell = StageBell::new(3, 2);
        let done = AtomicU64::new(0);
        let work: [AtomicU64; 3] = Default::default();
        std::thread::scope(|scope| {
            for worker in 0..2 {
                let (bell, done, work) = (&bell, &done, &work);
                scope.spawn(move || {
                    bell.attend(worker);
                    let (mut cursor, mut out) = (0, [UnitId::new(0); 2]);
                    while !bell.is_stopping() {
                        let taken = bell.take(&mut cursor, &mut out);
                        if taken == 0 {
                            bell.sleep(worker, None);
                        }
                        for unit in &out[..taken] {
                            done.fetch_add(work[unit.index()].swap(0, Ordering::SeqCst), Ordering::SeqCst);
                            bell.put_back(*unit);
                        }
                    }
                });
            }
            for n in 0..30_000_u16 {
                work[usize::from(n % 3)].fetch_add(1, Ordering::SeqCst);
                bell.ring(UnitId::new(n % 3));
            }
            while done.load(Ordering::SeqCst) < 30_000 {
                std::thread::yield_now();
            }
            bell.stop();
        });
    }
}
