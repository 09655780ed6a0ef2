//! The order in which completions run when there are more of them than slots.
//!
//! Sessions take turns of [`TURN_TOKENS`]. When a completion begins its turn, the others of its session go to the end of
//! the queue. So sessions that want the same get the same, however many completions each of them asks for, and no
//! completion waits for the end of a long one. All callers without a session count as one session.

use std::collections::VecDeque;

use crate::message::{Caller, Epoch, UnitId};

/// Tokens of an answer in one turn: a quarter of a minute of speech, so a listener of one answer hears no gap while the
/// others have their turns.
const TURN_TOKENS: u32 = 64;

/// A completion in the queue.
#[derive(Debug)]
pub(super) struct QueueEntry<T> {
    /// The session that asks; `None`: no session.
    pub(super) caller: Option<Caller>,
    /// Tokens made in this turn, written by the engine.
    pub(super) turn: u32,
    /// The completion itself.
    pub(super) work: T,
}

impl<T> QueueEntry<T> {
    fn session(&self) -> Option<(UnitId, Epoch)> {
        self.caller.map(Caller::session)
    }
}

/// Completions that run, at most one for each slot, and completions that wait.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Number of slots, `1..`.
    slots: usize,
    /// In the order in which their turns began.
    running: Vec<QueueEntry<T>>,
    waiting: VecDeque<QueueEntry<T>>,
}

impl<T> Queue<T> {
    /// Makes an empty queue; `slots` is at least 1.
    pub(super) const fn new(slots: usize) -> Self {
        Self { slots, running: Vec::new(), waiting: VecDeque::new() }
    }

    /// Adds a completion at the end.
    pub(super) fn push(&mut self, caller: Option<Caller>, work: T) {
        self.waiting.push_back(QueueEntry { caller, turn: 0, work });
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }

    pub(super) fn running(&self) -> &[QueueEntry<T>] {
        &self.running
    }

    pub(super) fn running_mut(&mut self) -> &mut [QueueEntry<T>] {
        &mut self.running
    }

    pub(super) fn waiting_mut(&mut self) -> impl Iterator<Item = &mut QueueEntry<T>> {
        self.waiting.iter_mut()
    }

    /// Takes out the completions that are over.
    pub(super) fn take(&mut self, is_over: impl Fn(&T) -> bool) -> Vec<QueueEntry<T>> {
        let mut over: Vec<_> = self.running.extract_if(.., |entry| is_over(&entry.work)).collect();
        let (gone, stay) = std::mem::take(&mut self.waiting)
            .into_iter()
            .partition::<VecDeque<_>, _>(|entry| is_over(&entry.work));
        self.waiting = stay;
        over.extend(gone);
        over
    }

    /// Decides which completions run until the next call.
    pub(super) fn settle(&mut self) {
        if !self.waiting.is_empty() {
            let over = self.running.extract_if(.., |entry| entry.turn >= TURN_TOKENS);
            self.waiting.extend(over.map(|entry| QueueEntry { turn: 0, ..entry }));
        }
        while self.running.len() < self.slots
            && let Some(next) = self.waiting.pop_front()
        {
            let session = next.session();
            self.running.push(next);
            // Stable: the others keep their order.
            self.waiting.make_contiguous().sort_by_key(|other| other.session() == session);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::message::Rank;

    fn caller(unit: u16) -> Option<Caller> {
        Some(Caller { unit: UnitId::new(unit), epoch: Epoch::new(1), rank: Rank::Spoken })
    }

    fn running(queue: &mut Queue<&'static str>) -> Vec<&'static str> {
        queue.settle();
        queue.running().iter().map(|entry| entry.work).collect()
    }

    /// Lets everything that runs have its whole turn.
    fn end_turns(queue: &mut Queue<&'static str>) {
        queue.running_mut().iter_mut().for_each(|entry| entry.turn = TURN_TOKENS);
    }

    #[test]
    fn more_sessions_than_places_take_turns() {
        let mut queue = Queue::new(2);
        for (unit, work) in [(0, "a"), (1, "b"), (2, "c")] {
            queue.push(caller(unit), work);
        }
        assert_eq!(running(&mut queue), ["a", "b"]);
        assert_eq!(running(&mut queue), ["a", "b"], "a turn is not cut short");
        end_turns(&mut queue);
        assert_eq!(running(&mut queue), ["c", "a"]);
        end_turns(&mut queue);
        assert_eq!(running(&mut queue), ["b", "c"]);
        queue.take(|&work| work == "c");
        assert_eq!(running(&mut queue), ["b", "a"], "a place that is free is taken at once");
    }

    #[test]
    fn nobody_gives_way_to_nobody() {
        let mut queue = Queue::new(1);
        queue.push(caller(0), "a");
        running(&mut queue);
        end_turns(&mut queue);
        assert_eq!(running(&mut queue), ["a"]);
    }

    #[test]
    fn many_completions_of_one_session_are_one_among_others() {
        let mut queue = Queue::new(4);
        for work in ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"] {
            queue.push(caller(0), work);
        }
        assert_eq!(running(&mut queue), ["a1", "a2", "a3", "a4"], "places are not left empty");
        for work in ["b1", "b2", "b3"] {
            queue.push(caller(1), work);
        }
        end_turns(&mut queue);
        let now = running(&mut queue);
        assert_eq!(now.iter().filter(|work| work.starts_with('b')).count(), 2, "{now:?}");
        queue.push(caller(2), "c");
        end_turns(&mut queue);
        assert!(running(&mut queue).contains(&"c"), "one turn is all that it waits");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u16),
        Work(u32),
        End(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            (0_u16..4).prop_map(Step::Push),
            (0..2 * TURN_TOKENS).prop_map(Step::Work),
            (0_usize..8).prop_map(Step::End),
        ]
    }

    proptest! {
        #[test]
        fn places_are_filled_and_nothing_is_lost(places in 1_usize..5, steps in prop::collection::vec(step(), 1..60)) {
            let mut queue = Queue::new(places);
            let mut alive = std::collections::BTreeSet::new();
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    // Unit 0 stands for callers without a session.
                    Step::Push(unit) => {
                        queue.push((unit > 0).then(|| caller(unit)).flatten(), id);
                        alive.insert(id);
                    }
                    Step::Work(tokens) => queue.running_mut().iter_mut().for_each(|entry| entry.turn += tokens),
                    Step::End(at) => {
                        let id = alive.iter().nth(at).copied();
                        queue.take(|&work| Some(work) == id);
                        id.map(|id| alive.remove(&id));
                    }
                }
                queue.settle();
                prop_assert_eq!(queue.running().len(), places.min(alive.len()));
                let all = queue.running.iter().chain(&queue.waiting).map(|entry| entry.work);
                prop_assert_eq!(all.collect::<std::collections::BTreeSet<_>>(), alive.clone());
            }
        }

        #[test]
        fn whoever_waits_has_a_turn_before_anybody_has_two_more(
            places in 1_usize..4, wanted in prop::collection::vec(1_usize..9, 2..6), rounds in 1_usize..40,
        ) {
            let mut queue = Queue::new(places);
            for (unit, wanted) in wanted.iter().enumerate() {
                for _ in 0..*wanted {
                    queue.push(caller(u16::try_from(unit).expect("few")), unit);
                }
            }
            let mut turns = vec![0_usize; wanted.len()];
            for _ in 0..rounds {
                queue.settle();
                for entry in queue.running_mut() {
                    turns[entry.work] += 1;
                    entry.turn = TURN_TOKENS;
                }
            }
            // Of two sessions that both always have something waiting, none is ahead by more than one turn.
            let hungry: Vec<_> = (0..wanted.len()).filter(|&unit| wanted[unit] > places).collect();
            for (&a, &b) in hungry.iter().flat_map(|a| hungry.iter().map(move |b| (a, b))) {
                prop_assert!(turns[a] <= turns[b] + 1, "{turns:?} of {wanted:?} in {places} places");
            }
        }
    }
}
