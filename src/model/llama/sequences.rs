//! The tokens in the context, and the sessions that may go on from them.
//!
//! The beginning of a prompt is not read again if its tokens are in the context already. The client receives their
//! number (`cached_tokens`), and the time to the first token reveals it. So a completion may begin only with tokens
//! that its caller knows: the server's own instructions, which are read once for all callers, and those of its own
//! session. The same unit in another epoch is another session, and its first completion removes the former session's
//! tokens.
//!
//! All sequences live in one buffer of llama.cpp (`kv_unified`). Only there can two sequences share a part; elsewhere
//! llama.cpp aborts the process. The shared part is kept once. The price: every token is compared with all tokens that
//! are kept, so the tokens of idle sequences are bounded ([`KEPT_TOKENS_MAX`]).

use llama_cpp_2::token::LlamaToken;

use crate::message::{Caller, Epoch, Rank, UnitId};

/// Most tokens of all idle sequences together. Beyond that the least recently used sequence is forgotten. Each thousand
/// tokens slow every token down by some 3 % (135 million parameters; measured with 8 slots of 350 tokens).
const KEPT_TOKENS_MAX: usize = 16 * 512;

/// Fewest tokens that one sequence takes over from another. Fewer tokens cost less to read again than to manage.
const SHARED_TOKENS_MIN: usize = 8;

/// The keys and values of all sequences, held by llama.cpp.
pub(super) trait Cells {
    /// Removes all positions of `sequence` from `tokens` on. Returns false, and removes nothing, if the model cannot do
    /// that. Every model can remove all positions from 0 on.
    fn trim(&mut self, sequence: usize, tokens: usize) -> bool;
    /// Makes the empty sequence `to` share the first `tokens` positions of `from`.
    fn copy(&mut self, from: usize, to: usize, tokens: usize);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Holder {
    Nobody,
    /// All callers: the server's own instructions.
    Everybody,
    /// A session, from one completion of its conversation to the next.
    Session((UnitId, Epoch)),
    /// A completion; `rests` is true while others have their turn.
    Work {
        id: u64,
        session: Option<(UnitId, Epoch)>,
        rests: bool,
    },
}

#[derive(Debug)]
struct Sequence {
    holder: Holder,
    /// Tokens whose keys and values are in the context, at positions `0..`.
    kept: Vec<LlamaToken>,
    /// Value of [`Sequences::uses`] when this sequence was used last.
    used: u64,
}

impl Sequence {
    const fn new(holder: Holder) -> Self {
        Self { holder, kept: Vec::new(), used: 0 }
    }

    /// Returns true if the sequence may be forgotten in favour of another one: no completion runs in it.
    const fn is_idle(&self) -> bool {
        matches!(self.holder, Holder::Session(_) | Holder::Work { rests: true, .. })
    }

    fn is_readable_for(&self, session: Option<(UnitId, Epoch)>) -> bool {
        match self.holder {
            Holder::Nobody => false,
            Holder::Everybody => true,
            Holder::Session(owner) => Some(owner) == session,
            Holder::Work { session: owner, .. } => owner.is_some() && owner == session,
        }
    }
}

/// All sequences of a context.
#[derive(Debug)]
pub(super) struct Sequences {
    all: Vec<Sequence>,
    /// Most tokens of all sequences together.
    room: usize,
    /// True if parts of sequences can be removed and shared (false for recurrent models).
    divisible: bool,
    /// Uses of all sequences so far.
    uses: u64,
}

impl Sequences {
    /// Sequence of the server's own instructions.
    pub(super) const INSTRUCTIONS: usize = 0;

    /// Makes `count` empty sequences, more than the number of completions that can run; `room` is in tokens.
    pub(super) fn new(count: usize, room: usize, divisible: bool) -> Self {
        let mut all: Vec<_> = (0..count).map(|_| Sequence::new(Holder::Nobody)).collect();
        all[Self::INSTRUCTIONS].holder = Holder::Everybody;
        Self { all, room, divisible, uses: 0 }
    }

    /// Returns the sequence of the completion `id`, if it has one.
    pub(super) fn of(&self, id: u64) -> Option<usize> {
        self.all
            .iter()
            .position(|sequence| matches!(sequence.holder, Holder::Work { id: held, .. } if held == id))
    }

    /// Returns the tokens of a sequence that are in the context.
    pub(super) fn kept(&self, sequence: usize) -> &[LlamaToken] {
        &self.all[sequence].kept
    }

    /// Appends `token` to a sequence and returns its position; the caller decodes it.
    pub(super) fn append(&mut self, sequence: usize, token: LlamaToken) -> usize {
        let kept = &mut self.all[sequence].kept;
        kept.push(token);
        kept.len() - 1
    }

    /// Returns the sequence of the completion `id`. A completion without one gets a sequence that begins with as many
    /// of `tokens` as are in the context and open to the caller. The last token is always read: its logits choose the
    /// next one.
    pub(super) fn seat(
        &mut self,
        cells: &mut impl Cells,
        id: u64,
        caller: Option<Caller>,
        tokens: &[LlamaToken],
    ) -> usize {
        let session = caller.map(Caller::session);
        let holder = Holder::Work { id, session, rests: false };
        let seat = match self.of(id) {
            Some(seat) => seat,
            None => {
                self.forget_former(cells, session);
                let known = &tokens[..tokens.len() - 1];
                self.continue_own(cells, caller, known).unwrap_or_else(|| self.begin(cells, session, known))
            }
        };
        self.all[seat].holder = holder;
        self.touch(seat);
        seat
    }

    /// Marks the sequence of the completion `id` as idle: the completion waits for its turn.
    pub(super) fn rest(&mut self, id: u64) {
        if let Some(at) = self.of(id)
            && let Holder::Work { rests, .. } = &mut self.all[at].holder
        {
            *rests = true;
        }
    }

    /// Ends the completion `id`. The sequence of a completion of the conversation stays for the session, in place of
    /// the sequence that was kept before.
    pub(super) fn release(&mut self, cells: &mut impl Cells, id: u64, caller: Option<Caller>) {
        let Some(at) = self.of(id) else { return };
        let Some(session) = conversation(caller) else {
            self.forget(cells, at);
            return;
        };
        self.forget_kept_of(cells, session);
        self.all[at].holder = Holder::Session(session);
    }

    /// Forgets the sequence of the completion `id`, after a failure.
    pub(super) fn discard(&mut self, cells: &mut impl Cells, id: u64) {
        if let Some(at) = self.of(id) {
            self.forget(cells, at);
        }
    }

    /// Forgets idle sequences, the least recently used first, until `tokens` more have room.
    pub(super) fn make_room(&mut self, cells: &mut impl Cells, tokens: usize) {
        while self.tokens(Sequence::is_idle) > KEPT_TOKENS_MAX || self.tokens(|_| true) + tokens > self.room {
            let Some(idle) = self.least_used(|sequence| sequence.is_idle() && !sequence.kept.is_empty())
            else {
                return;
            };
            self.forget(cells, idle);
        }
    }

    /// Counts the tokens of the sequences for which `counts` returns true.
    fn tokens(&self, counts: impl Fn(&Sequence) -> bool) -> usize {
        self.all.iter().filter(|sequence| counts(sequence)).map(|sequence| sequence.kept.len()).sum()
    }

    /// Takes the sequence that is kept for the session, if the completion belongs to the conversation and no other
    /// sequence has more of `known`.
    fn continue_own(
        &mut self,
        cells: &mut impl Cells,
        caller: Option<Caller>,
        known: &[LlamaToken],
    ) -> Option<usize> {
        let session = conversation(caller)?;
        let own = self.all.iter().position(|sequence| sequence.holder == Holder::Session(session))?;
        let shared = common_prefix(&self.all[own].kept, known);
        let best = self.lender(Some(session), known).map_or(0, |(_, best)| best);
        if shared > 0 && shared >= best && (shared == self.all[own].kept.len() || cells.trim(own, shared)) {
            self.all[own].kept.truncate(shared);
            return Some(own);
        }
        None
    }

    /// Takes an empty sequence and shares with it the longest beginning of `known` that another sequence has.
    fn begin(
        &mut self,
        cells: &mut impl Cells,
        session: Option<(UnitId, Epoch)>,
        known: &[LlamaToken],
    ) -> usize {
        let lender = self.lender(session, known).filter(|_| self.divisible);
        let free = self.all.iter().position(|sequence| sequence.holder == Holder::Nobody);
        let is_lender = |at| lender.is_some_and(|(lender, _)| lender == at);
        let seat = free
            .or_else(|| self.least_used_at(|at, sequence| sequence.is_idle() && !is_lender(at)))
            .or_else(|| self.least_used(Sequence::is_idle))
            .expect("there are more sequences than completions that run");
        self.forget(cells, seat);
        if let Some((lender, shared)) =
            lender.filter(|&(lender, shared)| lender != seat && shared >= SHARED_TOKENS_MIN)
        {
            cells.copy(lender, seat, shared);
            self.all[seat].kept.extend_from_slice(&known[..shared]);
        }
        seat
    }

    /// Returns the sequence with the longest beginning of `known` among those that the session may read, and the length
    /// of that beginning.
    fn lender(&self, session: Option<(UnitId, Epoch)>, known: &[LlamaToken]) -> Option<(usize, usize)> {
        let readable = self.all.iter().enumerate().filter(|(_, sequence)| sequence.is_readable_for(session));
        readable
            .map(|(at, sequence)| (at, common_prefix(&sequence.kept, known)))
            .max_by_key(|&(_, shared)| shared)
    }

    /// Forgets the sequences of the sessions that had the unit before.
    fn forget_former(&mut self, cells: &mut impl Cells, session: Option<(UnitId, Epoch)>) {
        let Some((unit, epoch)) = session else { return };
        for at in 0..self.all.len() {
            if matches!(self.all[at].holder, Holder::Session((owner, since)) if owner == unit && since != epoch)
            {
                self.forget(cells, at);
            }
        }
    }

    fn forget_kept_of(&mut self, cells: &mut impl Cells, session: (UnitId, Epoch)) {
        for at in 0..self.all.len() {
            if self.all[at].holder == Holder::Session(session) {
                self.forget(cells, at);
            }
        }
    }

    fn forget(&mut self, cells: &mut impl Cells, at: usize) {
        cells.trim(at, 0);
        let used = self.all[at].used;
        self.all[at] = Sequence { used, ..Sequence::new(Holder::Nobody) };
    }

    fn least_used(&self, may: impl Fn(&Sequence) -> bool) -> Option<usize> {
        self.least_used_at(|_, sequence| may(sequence))
    }

    fn least_used_at(&self, may: impl Fn(usize, &Sequence) -> bool) -> Option<usize> {
        let candidates = (0..self.all.len()).filter(|&at| may(at, &self.all[at]));
        candidates.min_by_key(|&at| self.all[at].used)
    }

    fn touch(&mut self, at: usize) {
        self.uses += 1;
        self.all[at].used = self.uses;
    }
}

/// Returns the session whose conversation the caller continues; `None` for an aside or a caller without a session.
fn conversation(caller: Option<Caller>) -> Option<(UnitId, Epoch)> {
    caller.filter(|caller| caller.rank != Rank::Aside).map(Caller::session)
}

fn common_prefix(a: &[LlamaToken], b: &[LlamaToken]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Tokens in the context, as llama.cpp would keep them.
    #[derive(Default)]
    struct FakeCells {
        held: HashMap<usize, Vec<LlamaToken>>,
        is_whole: bool,
    }

    impl Cells for FakeCells {
        fn trim(&mut self, sequence: usize, tokens: usize) -> bool {
            if tokens > 0 && self.is_whole {
                return false;
            }
            self.held.entry(sequence).or_default().truncate(tokens);
            true
        }

        fn copy(&mut self, from: usize, to: usize, tokens: usize) {
            assert!(!self.is_whole && self.held.get(&to).is_none_or(Vec::is_empty));
            let copied = self.held[&from][..tokens].to_vec();
            self.held.insert(to, copied);
        }
    }

    /// Sequences and their contents, with instructions of ten tokens.
    struct Memory {
        sequences: Sequences,
        cells: FakeCells,
        works: u64,
    }

    impl Memory {
        fn new(count: usize, room: usize, is_whole: bool) -> Self {
            let sequences = Sequences::new(count, room, !is_whole);
            let mut memory =
                Self { sequences, cells: FakeCells { is_whole, ..FakeCells::default() }, works: 0 };
            for token in prompt(&[]) {
                memory.read(Sequences::INSTRUCTIONS, token);
            }
            memory
        }

        fn read(&mut self, at: usize, token: LlamaToken) {
            let held = self.cells.held.entry(at).or_default();
            assert_eq!(self.sequences.append(at, token), held.len());
            held.push(token);
        }

        /// Begins or continues a completion and reads all of it; returns the number of tokens that were there already.
        fn work(&mut self, id: u64, caller: Option<Caller>, tokens: &[LlamaToken]) -> usize {
            let at = self.sequences.seat(&mut self.cells, id, caller, tokens);
            let known = self.sequences.kept(at).len();
            assert_eq!(self.cells.held.get(&at).map_or(&[][..], Vec::as_slice), &tokens[..known]);
            self.sequences.make_room(&mut self.cells, tokens.len() - known);
            tokens[known..].iter().for_each(|&token| self.read(at, token));
            known
        }

        /// Runs a whole completion; returns the number of tokens of its prompt that were known.
        fn complete(&mut self, caller: Option<Caller>, tokens: &[LlamaToken]) -> usize {
            self.works += 1;
            let known = self.work(self.works, caller, tokens);
            self.sequences.release(&mut self.cells, self.works, caller);
            known
        }
    }

    /// Returns ten tokens of instructions, then `words`.
    fn prompt(words: &[i32]) -> Vec<LlamaToken> {
        (0..10).chain(words.iter().copied()).map(LlamaToken).collect()
    }

    fn caller(unit: u16, epoch: u64, rank: Rank) -> Option<Caller> {
        Some(Caller { unit: UnitId::new(unit), epoch: Epoch::new(epoch), rank })
    }

    #[test]
    fn a_session_reads_only_what_is_new() {
        let mut memory = Memory::new(4, 1_000, false);
        let me = caller(0, 1, Rank::Spoken);
        assert_eq!(memory.complete(me, &prompt(&[20, 21])), 10);
        assert_eq!(memory.complete(me, &prompt(&[20, 21, 22, 23])), 12);
        assert_eq!(
            memory.complete(me, &prompt(&[20, 21, 22, 23])),
            13,
            "the last is read again for its logits"
        );
        assert_eq!(memory.complete(me, &prompt(&[20, 40])), 11, "another end");
    }

    #[test]
    fn only_the_own_conversation_and_the_instructions_are_known() {
        let mut memory = Memory::new(6, 1_000, false);
        let words = prompt(&[20, 21, 22]);
        let me = caller(0, 1, Rank::Spoken);
        memory.complete(me, &words);
        for other in [caller(1, 1, Rank::Spoken), caller(2, 1, Rank::Aside), None, None] {
            assert_eq!(memory.complete(other, &words), 10, "{other:?}");
        }
        assert_eq!(memory.complete(caller(0, 1, Rank::Aside), &words), 12, "beside the own conversation");
        assert_eq!(memory.complete(me, &words), 12, "the aside has taken nothing away");
        let next = caller(0, 2, Rank::Spoken);
        assert_eq!(memory.complete(next, &words), 10, "another session in the unit");
        assert_eq!(memory.complete(me, &words), 10, "the session before it is over");
    }

    #[test]
    fn an_aside_leaves_nothing() {
        let mut memory = Memory::new(6, 1_000, false);
        let aside = caller(0, 1, Rank::Aside);
        memory.complete(aside, &prompt(&[20, 21, 22]));
        assert_eq!(memory.complete(aside, &prompt(&[20, 21, 22])), 10);
    }

    #[test]
    fn who_rests_keeps_what_was_read_while_there_is_room() {
        let mut memory = Memory::new(4, 1_000, false);
        let (tokens, me) = (prompt(&[20, 21, 22]), caller(0, 1, Rank::Written));
        memory.work(100, me, &tokens);
        memory.sequences.rest(100);
        assert_eq!(memory.work(100, me, &tokens), 13, "nobody needed it");
        memory.sequences.rest(100);
        // All other sequences are taken by others.
        for unit in 1..4 {
            memory.work(100 + u64::from(unit), caller(unit, 1, Rank::Spoken), &prompt(&[30]));
        }
        assert_eq!(memory.sequences.of(100), None, "the least used gives way");
        memory.sequences.rest(101);
        assert_eq!(memory.work(100, me, &tokens), 10, "read again");
    }

    #[test]
    fn what_is_idle_gives_way_to_what_runs() {
        let mut memory = Memory::new(9, 100, false);
        for unit in 0..4 {
            memory.complete(caller(unit, 1, Rank::Spoken), &prompt(&[20 + i32::from(unit); 10]));
        }
        let (first, last) = (caller(0, 1, Rank::Spoken), caller(3, 1, Rank::Spoken));
        memory.work(100, caller(4, 1, Rank::Spoken), &prompt(&[30; 40]));
        assert_eq!(memory.complete(last, &prompt(&[23; 10])), 19, "the last used stays");
        assert_eq!(memory.complete(first, &prompt(&[20; 10])), 10, "the first used had to go");
    }

    #[test]
    fn a_model_whose_state_is_whole_goes_on_or_begins_again() {
        let mut memory = Memory::new(4, 1_000, true);
        let me = caller(0, 1, Rank::Spoken);
        assert_eq!(memory.complete(me, &prompt(&[20, 21])), 0);
        assert_eq!(memory.complete(me, &prompt(&[20, 21, 22])), 12);
        assert_eq!(memory.complete(me, &prompt(&[20, 40])), 0);
    }

    proptest! {
        #[test]
        fn nobody_profits_of_what_others_have_said(
            asked in prop::collection::vec((0_u16..4, 1_u64..3, 0_u8..3, prop::collection::vec(0_i32..2, 1..12)), 1..60),
            count in 3_usize..8,
            room in 60_usize..200,
        ) {
            let mut memory = Memory::new(count, room, false);
            let mut said: HashMap<(UnitId, Epoch), Vec<Vec<LlamaToken>>> = HashMap::new();
            for (unit, epoch, rank, words) in asked {
                let rank = [Rank::Spoken, Rank::Written, Rank::Aside][usize::from(rank)];
                // Unit 0 stands for callers without a session.
                let caller = (unit > 0).then(|| caller(unit, epoch, rank)).flatten();
                let tokens = prompt(&words);
                let known = memory.complete(caller, &tokens);
                let own = caller.and_then(|caller| said.get(&caller.session()));
                let own = own.into_iter().flatten().map(|before| common_prefix(before, &tokens)).max();
                prop_assert!(known <= own.unwrap_or(0).max(10).min(tokens.len() - 1), "{known} of {tokens:?}");
                prop_assert!(known >= 10, "the instructions are always there");
                if let Some(caller) = caller {
                    said.entry(caller.session()).or_default().push(tokens);
                }
                let held: usize = memory.cells.held.values().map(Vec::len).sum();
                prop_assert!(held <= room, "{held} tokens in room for {room}");
            }
        }
    }
}
