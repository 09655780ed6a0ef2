//! The doorbell of a stage. Its workers sleep on the bell, and take the units for which it has been rung.

use std::sync::OnceLock;

use super::ready_set::{ReadySet, WORD};
use crate::limits::WORKERS_MAX;
use crate::message::UnitId;
use crate::sync::thread::{self, Thread};
use crate::sync::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

const _: () = assert!(WORKERS_MAX as usize <= u64::BITS as usize, "one word says who sleeps");

/// An item was pushed for the unit since the unit was last taken.
const PENDING: u8 = 1;
/// A worker holds the unit.
const RUNNING: u8 = 2;

/// The doorbell of one stage, shared by its workers. One worker at a time holds a unit. A ring during the work is not
/// lost: the unit becomes ready again.
#[derive(Debug)]
pub struct StageBell {
    /// [`PENDING`] and [`RUNNING`] of each unit.
    units: Box<[AtomicU8]>,
    /// Units that are pending and not running.
    ready: ReadySet,
    /// Bit `w`: worker `w` sleeps or is about to sleep.
    sleepers: AtomicU64,
    workers: Box<[OnceLock<Thread>]>,
    stopping: AtomicBool,
}

impl StageBell {
    /// Creates a bell for `units` units and `workers` workers.
    ///
    /// # Panics
    /// Panics if `workers` exceeds [`WORKERS_MAX`].
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

    /// Registers the calling thread as worker `worker`. Must come before that worker's first [`StageBell::sleep`].
    pub fn attend(&self, worker: usize) {
        self.workers[worker].get_or_init(thread::current);
    }

    /// Rings for `unit`.
    pub fn ring(&self, unit: UnitId) {
        // ORDERING: AcqRel: the pushes before the ring are visible to the worker that takes the unit (`take`, or `put_back`
        // when it finds PENDING).
        if self.units[unit.index()].fetch_or(PENDING, Ordering::AcqRel) == 0 {
            self.ready.insert(unit);
            self.wake_one();
        }
    }

    fn wake_one(&self) {
        // ORDERING: the ringer sets a unit's bit, then a fence, then reads `sleepers`. `sleep` sets its bit in
        // `sleepers`, then a fence, then reads the units' bits. One of the two sees the other's write.
        fence(Ordering::SeqCst);
        loop {
            // ORDERING: Relaxed, as it follows the fence; a guess that the `fetch_and` checks.
            let sleepers = self.sleepers.load(Ordering::Relaxed);
            if sleepers == 0 {
                return;
            }
            let bit = sleepers & sleepers.wrapping_neg();
            // ORDERING: Release: the worker that finds its bit cleared sees the unit that it was woken for.
            if self.sleepers.fetch_and(!bit, Ordering::Release) & bit != 0 {
                if let Some(thread) = self.workers[bit.trailing_zeros() as usize].get() {
                    thread.unpark();
                }
                return;
            }
        }
    }

    /// Takes up to `out.len()` ready units and returns their number. The search begins with unit number `cursor` and
    /// goes once round, so that no unit starves. `cursor` is left behind the last unit taken. The caller holds the
    /// units until [`StageBell::put_back`].
    pub fn take(&self, cursor: &mut usize, out: &mut [UnitId]) -> usize {
        let mut taken = 0;
        let words = self.ready.words();
        let (first, behind) = (*cursor / WORD % words, u64::MAX << (*cursor % WORD));
        // The word of the cursor comes twice: first for the units behind the cursor, last for those before it.
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

    /// Gives a taken unit back. The unit is ready again if it was rung for meanwhile.
    pub fn put_back(&self, unit: UnitId) {
        // ORDERING: Release publishes this worker's changes of the port to the next worker that takes the unit.
        if self.units[unit.index()].fetch_and(!RUNNING, Ordering::AcqRel) & PENDING != 0 {
            self.ready.insert(unit);
            self.wake_one();
        }
    }

    /// Sleeps until a ring or `timeout`; returns at once if a unit is ready. Only worker `worker` may call it.
    pub fn sleep(&self, worker: usize, timeout: Option<std::time::Duration>) {
        let bit = 1 << worker;
        // ORDERING: Relaxed: the fence orders it; see `wake_one`.
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

    /// Asks the workers to end.
    pub fn stop(&self) {
        // ORDERING: Relaxed: an unpark is kept for a worker that is about to sleep, and it publishes the earlier store.
        self.stopping.store(true, Ordering::Relaxed);
        self.workers.iter().filter_map(OnceLock::get).for_each(Thread::unpark);
    }

    /// Returns true once the workers must end.
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
