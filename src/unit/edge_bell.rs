//! The doorbell of the edge. One dispatcher sleeps on the bell, for all tasks.

use super::ready_set::ReadySet;
use crate::message::UnitId;
use crate::sync::{Alarm, AlarmReader, AtomicBool, Ordering, fence};

/// The task of a unit to wake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeSignal {
    /// The connection, or the drain: something to read, or room to write.
    Session = 0,
    /// The language model task: something to read, or room to write.
    Llm = 1,
    /// The recognition task, if a server recognises speech: something to read, or room to write.
    Stt = 2,
    /// The synthesis task, if a server synthesises speech: something to read, or room to write.
    Tts = 3,
}

impl EdgeSignal {
    /// All signals, in the order of their numbers.
    const ALL: [Self; 4] = [Self::Session, Self::Llm, Self::Stt, Self::Tts];
}

/// The doorbell of the edge. Stage threads ring it without a lock: they set a bit, and write a byte into a pipe if the
/// edge's dispatcher sleeps.
#[derive(Debug)]
pub struct EdgeBell {
    ready: [ReadySet; EdgeSignal::ALL.len()],
    asleep: AtomicBool,
    alarm: Alarm,
}

impl EdgeBell {
    /// Creates a bell for `units` units, and the reader for its dispatcher. The reader becomes readable when the bell
    /// is rung while the dispatcher sleeps.
    ///
    /// # Errors
    /// Returns an error if the system gives no pipe.
    pub fn new(units: usize) -> std::io::Result<(Self, AlarmReader)> {
        let (alarm, reader) = Alarm::new()?;
        let ready = EdgeSignal::ALL.map(|_| ReadySet::new(units));
        Ok((Self { ready, asleep: AtomicBool::new(false), alarm }, reader))
    }

    /// Rings for `unit`.
    pub fn ring(&self, signal: EdgeSignal, unit: UnitId) {
        self.ready[signal as usize].insert(unit);
        // ORDERING: `ring` sets the bit, then a fence, then reads `asleep`, as in `StageBell::wake_one`; the other side
        // is `may_sleep`. The plain load first keeps the line shared while the dispatcher is awake.
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            self.alarm.sound();
        }
    }

    /// Calls `f` for every unit that was rung for since the last call.
    pub fn take_all(&self, mut f: impl FnMut(EdgeSignal, UnitId)) {
        for (set, signal) in self.ready.iter().zip(EdgeSignal::ALL) {
            for word in 0..set.words() {
                while let Some(unit) = set.take_from(word, u64::MAX) {
                    f(signal, unit);
                }
            }
        }
    }

    /// Announces that the dispatcher is about to sleep. Returns false if the bell has been rung meanwhile: the
    /// dispatcher must not sleep then.
    #[must_use]
    pub fn may_sleep(&self) -> bool {
        // ORDERING: see `ring`.
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.ready.iter().all(ReadySet::is_empty)
    }

    /// Announces that the dispatcher is awake again.
    pub fn woken(&self) {
        // ORDERING: Relaxed: a ring that reads the old value sounds the alarm once too often.
        self.asleep.store(false, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
