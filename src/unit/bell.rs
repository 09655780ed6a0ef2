//! Doorbells: who pushes wakes who reads, at once, and for one atomic operation when the reader is awake.

use std::sync::OnceLock;

use crate::limits::WORKERS_MAX;
use crate::message::UnitId;
use crate::sync::thread::{self, Thread};
use crate::sync::{Alarm, AlarmReader, AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

const WORD: usize = 64;

const _: () = assert!(WORKERS_MAX as usize <= WORD, "one word says who sleeps");

/// A set of units, one bit each.
#[derive(Debug)]
struct ReadySet(Box<[AtomicU64]>);

impl ReadySet {
    fn new(units: usize) -> Self {
        Self((0..units.div_ceil(WORD)).map(|_| AtomicU64::new(0)).collect())
    }

    fn insert(&self, unit: UnitId) {
        // ORDERING: Release: who takes the bit sees what was done before it was set.
        self.0[unit.index() / WORD].fetch_or(1 << (unit.index() % WORD), Ordering::Release);
    }

    /// Takes one unit out of a word: the lowest of those that `among` names.
    fn take_from(&self, word: usize, among: u64) -> Option<UnitId> {
        loop {
            // ORDERING: Relaxed: a guess that the `fetch_and` checks.
            let bits = self.0[word].load(Ordering::Relaxed) & among;
            if bits == 0 {
                return None;
            }
            let bit = bits & bits.wrapping_neg();
            // ORDERING: Acquire pairs with the Release in `insert`.
            if self.0[word].fetch_and(!bit, Ordering::Acquire) & bit != 0 {
                let index = word * WORD + bit.trailing_zeros() as usize;
                return Some(UnitId::new(
                    u16::try_from(index).expect("the slab holds at most u16::MAX units"),
                ));
            }
        }
    }

    fn is_empty(&self) -> bool {
        // ORDERING: Relaxed: before a sleep the fence of the sleeper makes it good.
        self.0.iter().all(|word| word.load(Ordering::Relaxed) == 0)
    }
}

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
        let words = self.ready.0.len();
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

/// What happened for a unit, as the edge sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeSignal {
    /// For the connection (or the drainer): something to read, or room to write.
    Session = 0,
    /// For the unit's language model task: something to read, or room to write.
    Llm = 1,
    /// For the unit's recognition task, where recognition is done by a server: as above.
    Stt = 2,
    /// For the unit's synthesis task, where synthesis is done by a server: as above.
    Tts = 3,
}

impl EdgeSignal {
    /// All, in the order of their numbers.
    const ALL: [Self; 4] = [Self::Session, Self::Llm, Self::Stt, Self::Tts];
}

/// The doorbell of the edge. Stage threads ring it without a lock: a bit, and a byte into a pipe when the edge's
/// dispatcher sleeps.
#[derive(Debug)]
pub struct EdgeBell {
    ready: [ReadySet; EdgeSignal::ALL.len()],
    asleep: AtomicBool,
    alarm: Alarm,
}

impl EdgeBell {
    /// A bell for `units` units, and what its dispatcher waits on: readable when it is rung while it sleeps.
    ///
    /// # Errors
    /// When the system gives no pipe.
    pub fn new(units: usize) -> std::io::Result<(Self, AlarmReader)> {
        let (alarm, reader) = Alarm::new()?;
        let ready = EdgeSignal::ALL.map(|_| ReadySet::new(units));
        Ok((Self { ready, asleep: AtomicBool::new(false), alarm }, reader))
    }

    /// Something is there for `unit`.
    pub fn ring(&self, signal: EdgeSignal, unit: UnitId) {
        self.ready[signal as usize].insert(unit);
        // ORDERING: the bit, a fence, then the look who sleeps, as in `StageBell::wake_one`; the other side is
        // `may_sleep`. The plain load first keeps the line shared while the dispatcher is awake.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.alarm.sound();
        }
    }

    /// Calls `f` for every unit that was rung since the last call.
    pub fn take_all(&self, mut f: impl FnMut(EdgeSignal, UnitId)) {
        for (set, signal) in self.ready.iter().zip(EdgeSignal::ALL) {
            for word in 0..set.0.len() {
                while let Some(unit) = set.take_from(word, u64::MAX) {
                    f(signal, unit);
                }
            }
        }
    }

    /// The dispatcher is about to sleep: true if it may, false if something has been rung meanwhile.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        // ORDERING: see `ring`.
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.ready.iter().all(ReadySet::is_empty)
    }

    /// The dispatcher is awake again.
    pub fn woken(&self) {
        // ORDERING: Relaxed: a ring that still sees it asleep sounds the alarm once too often.
        self.asleep.store(false, Ordering::Relaxed);
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

    #[test]
    fn the_edge_is_rung_once_while_it_sleeps() {
        let (bell, reader) = EdgeBell::new(65).expect("a pipe");
        let mut pipe = std::fs::File::from(std::os::fd::OwnedFd::from(reader));
        assert!(bell.may_sleep());
        bell.ring(EdgeSignal::Session, UnitId::new(64));
        bell.ring(EdgeSignal::Llm, UnitId::new(3));
        assert!(!bell.may_sleep());
        bell.woken();
        bell.ring(EdgeSignal::Llm, UnitId::new(3));
        let mut bytes = [0; 8];
        assert_eq!(std::io::Read::read(&mut pipe, &mut bytes).expect("a byte"), 1);
        let mut seen = Vec::new();
        bell.take_all(|signal, unit| seen.push((signal, unit.index())));
        assert_eq!(seen, [(EdgeSignal::Session, 64), (EdgeSignal::Llm, 3)]);
        assert!(bell.may_sleep());
    }
}
