//! The order in which completions run when there are more of them than slots.
//!
//! A better rank goes first. If no slot is free, a completion of a better rank takes the slot of the worst one. Within
//! a rank, sessions take turns of [`TURN_TOKENS`]. When a completion begins its turn, the others of its session go to
//! the end of the queue. So sessions of equal demand get equal shares, however many completions each of them has, and
//! no completion waits for the end of a long one. All callers without a session count as one session.
//!
//! No slot is reserved. An interrupted completion loses nothing while its tokens stay in the context, so an
//! interruption costs little. A reserved slot would be idle most of the time, and a single slot cannot be reserved.

use std::collections::VecDeque;

use crate::message::{Caller, Epoch, Rank, UnitId};

/// Tokens of an answer in one turn: a quarter of a minute of speech. The listener of an answer hears no gap while the
/// others have their turns.
const TURN_TOKENS: u32 = 64;

/// A completion in the queue.
#[derive(Debug)]
pub(super) struct QueueEntry<T> {
    /// The session that asks; `None` for a caller without a session.
    pub(super) caller: Option<Caller>,
    /// Tokens made in this turn, written by the engine.
    pub(super) turn: u32,
    /// The completion.
    pub(super) work: T,
}

impl<T> QueueEntry<T> {
    pub(super) fn rank(&self) -> Rank {
        self.caller.map_or(Rank::Aside, |caller| caller.rank)
    }

    fn session(&self) -> Option<(UnitId, Epoch)> {
        self.caller.map(Caller::session)
    }
}

/// Completions that run, at most one for each slot, and completions that wait.
#[derive(Debug)]
pub(super) struct Queue<T> {
    /// Number of slots, `1..`.
    slots: usize,
    /// Sorted by the beginning of their turns.
    running: Vec<QueueEntry<T>>,
    waiting: VecDeque<QueueEntry<T>>,
}

impl<T> Queue<T> {
    /// Makes an empty queue; `slots` is at least 1.
    pub(super) const fn new(slots: usize) -> Self {
        Self { slots, running: Vec::new(), waiting: VecDeque::new() }
    }

    /// Adds a completion to the end of the queue.
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

    /// Removes the completions that are over and returns them.
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
        while let Some(next) = self.next() {
            if self.running.len() < self.slots {
                self.begin_turn(next);
                continue;
            }
            let Some(last) = self.last() else { return };
            if self.running[last].rank() <= self.waiting[next].rank() {
                return;
            }
            let interrupted = self.running.remove(last);
            self.begin_turn(next);
            // The interrupted completion has the rest of its turn before the others have theirs.
            self.waiting.push_front(interrupted);
        }
    }

    /// Returns the index of the waiting completion whose turn is next.
    fn next(&self) -> Option<usize> {
        (0..self.waiting.len()).min_by_key(|&at| self.waiting[at].rank())
    }

    /// Returns the index of the running completion that gives way first: of the worst rank, the one whose turn began
    /// last.
    fn last(&self) -> Option<usize> {
        (0..self.running.len()).max_by_key(|&at| self.running[at].rank())
    }

    fn begin_turn(&mut self, at: usize) {
        let Some(entry) = self.waiting.remove(at) else { return };
        let session = entry.session();
        self.running.push(entry);
        // Stable: the others keep their order.
        self.waiting.make_contiguous().sort_by_key(|other| other.session() == session);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn caller(unit: u16, rank: Rank) -> Option<Caller> {
        Some(Caller { unit: UnitId::new(unit), epoch: Epoch::new(1), rank })
    }

    fn running(queue: &mut Queue<&'static str>) -> Vec<&'static str> {
        queue.settle();
        queue.running().iter().map(|entry| entry.work).collect()
    }

    /// Ends the turns of all running completions.
    fn end_turns(queue: &mut Queue<&'static str>) {
        queue.running_mut().iter_mut().for_each(|entry| entry.turn = TURN_TOKENS);
    }

    #[test]
    fn more_sessions_than_places_take_turns() {
        let mut queue = Queue::new(2);
        for (unit, work) in [(0, "a"), (1, "b"), (2, "c")] {
            queue.push(caller(unit, Rank::Spoken), work);
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
        queue.push(caller(0, Rank::Aside), "a");
        running(&mut queue);
        end_turns(&mut queue);
        assert_eq!(running(&mut queue), ["a"]);
    }

    #[test]
    fn a_spoken_answer_takes_the_place_of_the_least_urgent() {
        let mut queue = Queue::new(3);
        queue.push(caller(0, Rank::Aside), "aside");
        queue.push(None, "guest");
        queue.push(caller(1, Rank::Written), "written");
        assert_eq!(running(&mut queue), ["written", "aside", "guest"]);
        queue.push(caller(2, Rank::Spoken), "spoken");
        assert_eq!(running(&mut queue), ["written", "aside", "spoken"]);
        queue.push(caller(3, Rank::Written), "more");
        assert_eq!(running(&mut queue), ["written", "spoken", "more"]);
        queue.push(caller(4, Rank::Spoken), "urgent");
        assert_eq!(running(&mut queue), ["written", "spoken", "urgent"]);
        queue.push(caller(5, Rank::Written), "late");
        assert_eq!(running(&mut queue), ["written", "spoken", "urgent"], "an equal waits");
        end_turns(&mut queue);
        assert_eq!(running(&mut queue), ["spoken", "urgent", "more"], "what was interrupted comes first");
        queue.take(|&work| ["spoken", "urgent"].contains(&work));
        assert_eq!(running(&mut queue), ["more", "late", "written"]);
        queue.take(|&work| ["more", "written", "late"].contains(&work));
        assert_eq!(running(&mut queue), ["aside", "guest"]);
    }

    #[test]
    fn many_completions_of_one_session_are_one_among_others() {
        let mut queue = Queue::new(4);
        for work in ["a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8"] {
            queue.push(caller(0, Rank::Aside), work);
        }
        assert_eq!(running(&mut queue), ["a1", "a2", "a3", "a4"], "places are not left empty");
        for work in ["b1", "b2", "b3"] {
            queue.push(caller(1, Rank::Aside), work);
        }
        end_turns(&mut queue);
        let now = running(&mut queue);
        assert_eq!(now.iter().filter(|work| work.starts_with('b')).count(), 2, "{now:?}");
        queue.push(caller(2, Rank::Aside), "c");
        end_turns(&mut queue);
        assert!(running(&mut queue).contains(&"c"), "one turn is all that it waits");
    }

    #[derive(Clone, Debug)]
    enum Step {
        Push(u16, Rank),
        Work(u32),
        End(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        let rank = prop_oneof![Just(Rank::Spoken), Just(Rank::Written), Just(Rank::Aside)];
        prop_oneof![
            (0_u16..4, rank).prop_map(|(unit, rank)| Step::Push(unit, rank)),
            (0..2 * TURN_TOKENS).prop_map(Step::Work),
            (0_usize..8).prop_map(Step::End),
        ]
    }

    proptest! {
        #[test]
        fn places_are_filled_by_rank_and_nothing_is_lost(places in 1_usize..5, steps in prop::collection::vec(step(), 1..60)) {
            let mut queue = Queue::new(places);
            let mut alive = std::collections::BTreeSet::new();
            for (id, step) in steps.into_iter().enumerate() {
                match step {
                    // Unit 0 stands for callers without a session.
                    Step::Push(unit, rank) => {
                        queue.push((unit > 0).then(|| caller(unit, rank)).flatten(), id);
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
                let worst = queue.running().iter().map(QueueEntry::rank).max();
                let best = queue.waiting.iter().map(QueueEntry::rank).min();
                prop_assert!(best.is_none() || worst <= best, "{worst:?} runs while {best:?} waits");
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
                    queue.push(caller(u16::try_from(unit).expect("few"), Rank::Aside), unit);
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
            // Of two sessions that both always have a completion waiting, none is ahead by more than one turn.
            let hungry: Vec<_> = (0..wanted.len()).filter(|&unit| wanted[unit] > places).collect();
            for (&a, &b) in hungry.iter().flat_map(|a| hungry.iter().map(move |b| (a, b))) {
                prop_assert!(turns[a] <= turns[b] + 1, "{turns:?} of {wanted:?} in {places} places");
            }
        }
    }
}
