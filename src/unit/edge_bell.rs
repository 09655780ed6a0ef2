//! The doorbell of the edge: one dispatcher sleeps on it, for all tasks.

use super::ready_set::ReadySet;
use crate::message::UnitId;
use crate::sync::{Alarm, AlarmReader, AtomicBool, Ordering, fence};

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
            for word in 0..set.words() {
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
