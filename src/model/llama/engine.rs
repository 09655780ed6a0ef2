//! The engine: several callers' completions, step by step, in one context.
//!
//! A step is one call of llama.cpp. It takes one token for every answer under way and a bounded number of tokens of
//! the prompts being read, so a long prompt delays an answer by one chunk and not by its whole length.
//!
//! All sequences live in one buffer (`kv_unified`). Only there may a part of one sequence be shared with another;
//! elsewhere llama.cpp aborts the process. So a caller whose prompt begins like another's, with the same instructions
//! for instance, does not read that part again, and the shared part is kept once. The price: every token is compared
//! with all that is kept, so what idle slots keep is bounded ([`KEPT_TOKENS_MAX`]).

use std::num::NonZeroU32;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use super::batch::shares;
use super::prompt::Weights;
use super::slot::{Active, Completion, End, Slot, count};
use crate::limits::LLM_SLOTS_MAX;
use crate::model::ModelError;

/// Prompt tokens read in one step, all slots together, while no answer is under way. It bounds how long a new caller
/// or a cancel waits. Larger chunks read hardly faster (12.5 against 12.1 ms of one core for a token, measured with 64
/// and 128).
const PROMPT_TOKENS_ALONE: usize = 64;

/// The same while answers are under way: each of them waits this long for its next token. It costs a fifth more for
/// each prompt token, and leaves answers at the pace of speech: some 7 tokens a second on two cores.
const PROMPT_TOKENS_BESIDE: usize = 16;

/// Tokens that idle slots may keep together. Beyond that the least recently used is forgotten. Each thousand slows
/// every token down by some 3 % (135 million parameters; measured with 8 slots of 350 tokens).
const KEPT_TOKENS_MAX: usize = 16 * 512;

/// A shared beginning shorter than this is read again; it costs less than looking after it.
const SHARED_TOKENS_MIN: usize = 8;

/// Size of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// Callers served at once, `1..=`[`LLM_SLOTS_MAX`].
    pub slots: u16,
    /// Tokens of prompt and answer together, per slot. The memory is `slots × context` times the size of one token's
    /// keys and values, 22.5 KiB for a model of 135 million parameters.
    pub context: u32,
    /// Threads of one step.
    pub threads: u16,
}

/// Several completions in one context. Owned by one thread.
pub struct Engine {
    weights: &'static Weights,
    context: LlamaContext<'static>,
    batch: LlamaBatch<'static>,
    slots: Vec<Slot>,
    /// Tokens of one slot.
    slot_tokens: usize,
    /// Parts of sequences can be removed and shared (not so in recurrent models).
    divisible: bool,
    /// Completions begun so far; tells which slot was used last.
    begun: u64,
}

impl Engine {
    /// Makes the context. The weights are borrowed for ever: an engine lives as long as its process.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if llama.cpp cannot make it, mostly for want of memory.
    pub fn new(weights: &'static Weights, settings: EngineSettings) -> Result<Self, ModelError> {
        let slots = settings.slots.clamp(1, LLM_SLOTS_MAX);
        let tokens = settings.context.saturating_mul(u32::from(slots));
        let step_tokens = PROMPT_TOKENS_ALONE + usize::from(slots);
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(tokens))
            .with_n_seq_max(u32::from(slots))
            .with_n_batch(count(step_tokens))
            .with_n_ubatch(count(step_tokens))
            .with_n_threads(i32::from(settings.threads.max(1)))
            .with_n_threads_batch(i32::from(settings.threads.max(1)))
            .with_kv_unified(true)
            .with_no_perf(true);
        let context =
            weights.model.new_context(&weights.backend, params).map_err(|error| ModelError::Runtime {
                context: "llama.cpp context",
                message: format!("{slots} slots of {} tokens: {error}", settings.context),
            })?;
        Ok(Self {
            weights,
            context,
            batch: LlamaBatch::new(step_tokens, 1),
            slots: (0..slots).map(|_| Slot::default()).collect(),
            slot_tokens: settings.context as usize,
            divisible: !weights.model.is_recurrent() && !weights.model.is_hybrid(),
            begun: 0,
        })
    }

    /// Puts a completion into a slot; it begins when the one before it is over. One may wait; another one is refused.
    pub fn submit(&mut self, slot: usize, mut completion: Completion) {
        let Some(entry) = self.slots.get_mut(slot) else {
            completion.sink.failed("no such slot");
            return;
        };
        if completion.prompt.is_empty() || completion.prompt.len() >= self.slot_tokens {
            completion.sink.failed("the prompt does not fit into the context");
        } else if entry.pending.as_ref().is_some_and(|pending| !pending.sink.is_closed()) {
            completion.sink.failed("the slot is busy");
        } else {
            entry.pending = Some(completion);
        }
    }

    /// Whether there is nothing to do before the next [`Engine::submit`].
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.slots.iter().all(|slot| slot.active.is_none() && slot.pending.is_none())
    }

    /// One step of everything under way. A failure of llama.cpp fails the completions in the step, not the engine.
    pub fn step(&mut self) {
        for index in 0..self.slots.len() {
            self.drop_closed(index);
            self.begin_pending(index);
        }
        let rows = self.fill_batch();
        if rows.is_empty() && self.batch.n_tokens() == 0 {
            return;
        }
        if let Err(error) = self.context.decode(&mut self.batch) {
            self.fail_batch(&format!("llama.cpp: {error}"));
            return;
        }
        for (index, row) in rows {
            self.choose(index, row);
        }
    }

    fn drop_closed(&mut self, index: usize) {
        let slot = &mut self.slots[index];
        if slot.active.as_ref().is_some_and(|active| active.sink.is_closed()) {
            // What has been read stays: the next prompt most likely begins the same way.
            slot.active = None;
        }
        if slot.pending.as_ref().is_some_and(|pending| pending.sink.is_closed()) {
            slot.pending = None;
        }
    }

    /// Begins the waiting completion of a free slot: keeps, or borrows from another slot, the longest beginning of
    /// its prompt that is in the context.
    fn begin_pending(&mut self, index: usize) {
        if self.slots[index].active.is_some() {
            return;
        }
        let Some(completion) = self.slots[index].pending.take() else { return };
        // At least one token is read again: its logits choose the first token of the answer.
        let known_max = completion.prompt.len() - 1;
        let known = |slot: &Slot| common_prefix(&slot.kept, &completion.prompt[..known_max]);
        let own = known(&self.slots[index]);
        let lender =
            (0..self.slots.len()).max_by_key(|&other| known(&self.slots[other])).filter(|_| self.divisible);
        let (lender, borrowed) = lender.map_or((index, own), |other| (other, known(&self.slots[other])));
        let kept = if borrowed >= own + SHARED_TOKENS_MIN {
            self.share(lender, index, borrowed);
            borrowed
        } else if own == self.slots[index].kept.len() || self.trim(index, own) {
            own
        } else {
            self.forget(index);
            0
        };
        let slot = &mut self.slots[index];
        slot.kept.clear();
        slot.kept.extend_from_slice(&completion.prompt[..kept]);
        let Some(mut active) = Active::new(completion, &self.weights.model) else { return };
        active.usage.cached = count(kept);
        slot.active = Some(active);
        self.begun += 1;
        self.slots[index].used = self.begun;
        self.forget_idle();
    }

    /// Keeps what idle slots hold within its bound.
    fn forget_idle(&mut self) {
        loop {
            let idle = |slot: &&Slot| slot.active.is_none() && !slot.kept.is_empty();
            if self.slots.iter().filter(idle).map(|slot| slot.kept.len()).sum::<usize>() <= KEPT_TOKENS_MAX {
                return;
            }
            let oldest = self
                .slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| idle(slot))
                .min_by_key(|(_, slot)| slot.used);
            let (oldest, _) = oldest.expect("their sum is not zero");
            self.forget(oldest);
        }
    }

    /// Makes the first `tokens` positions of sequence `from` the whole of sequence `to`.
    fn share(&mut self, from: usize, to: usize, tokens: usize) {
        self.forget(to);
        self.context
            .copy_kv_cache_seq(sequence(from), sequence(to), Some(0), Some(count(tokens)))
            .expect("positions are far below 2^31");
    }

    /// Removes everything from position `tokens` on; false if the model cannot do that.
    fn trim(&mut self, index: usize, tokens: usize) -> bool {
        self.context
            .clear_kv_cache_seq(Some(count(index)), Some(count(tokens)), None)
            .expect("positions are far below 2^31")
    }

    fn forget(&mut self, index: usize) {
        self.context
            .clear_kv_cache_seq(Some(count(index)), None, None)
            .expect("slots are far fewer than 2^31");
        self.slots[index].kept.clear();
    }

    /// Fills the batch; returns which slots get their next token from which row.
    fn fill_batch(&mut self) -> Vec<(usize, i32)> {
        self.batch.clear();
        let mut rows = Vec::with_capacity(self.slots.len());
        let mut reading = Vec::new();
        for index in 0..self.slots.len() {
            let slot = &self.slots[index];
            match &slot.active {
                Some(Active { next: Some(token), .. }) => {
                    let token = *token;
                    rows.push((index, self.batch.n_tokens()));
                    self.append(index, token, true);
                }
                Some(active) => reading.push((index, active.prompt.len() - slot.kept.len())),
                None => {}
            }
        }
        let remaining: Vec<usize> = reading.iter().map(|&(_, remaining)| remaining).collect();
        let budget = if rows.is_empty() { PROMPT_TOKENS_ALONE } else { PROMPT_TOKENS_BESIDE };
        // Every prompt moves on in every step. It fits: a slot is either answering or reading.
        let budget = budget.max(reading.len());
        for (&(index, remaining), share) in reading.iter().zip(shares(budget, &remaining)) {
            for offset in 1..=share {
                let slot = &self.slots[index];
                let active = slot.active.as_ref().expect("it is reading its prompt");
                let token = active.prompt[slot.kept.len()];
                let is_last = offset == remaining;
                if is_last {
                    rows.push((index, self.batch.n_tokens()));
                }
                self.append(index, token, is_last);
            }
        }
        rows
    }

    fn append(&mut self, index: usize, token: LlamaToken, wants_logits: bool) {
        let kept = &mut self.slots[index].kept;
        let position = i32::try_from(kept.len()).expect("a slot is far shorter than 2^31 tokens");
        self.batch
            .add(token, position, &[sequence(index)], wants_logits)
            .expect("a batch holds one token of each slot and a step's share of prompts");
        kept.push(token);
    }

    fn fail_batch(&mut self, message: &str) {
        for index in 0..self.slots.len() {
            if let Some(mut active) = self.slots[index].active.take() {
                active.sink.failed(message);
                self.forget(index);
            }
        }
    }

    /// Chooses the next token of a slot from a row of the batch.
    fn choose(&mut self, index: usize, row: i32) {
        let slot = &mut self.slots[index];
        let active = slot.active.as_mut().expect("it had a row in the batch");
        let Some(token) = active.sampler.choose(&self.context, row) else {
            active.sink.failed("the grammar allows no token");
            slot.active = None;
            return;
        };
        active.usage.output += 1;
        let vocabulary = self.weights.model.vocab();
        let end = if vocabulary.is_eog(token) {
            Some(End::Stop)
        } else {
            let end = active.push(|buffer| vocabulary.token_to_piece_into(token, buffer, false, None));
            // The token itself needs one more position.
            end.or_else(|| (slot.kept.len() + 1 >= self.slot_tokens).then_some(End::Length))
        };
        match end {
            Some(end) => {
                let usage = active.usage;
                active.sink.done(end, usage);
                slot.active = None;
            }
            None => active.next = Some(token),
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("model", &self.weights.name())
            .field("slots", &self.slots.len())
            .field("slot_tokens", &self.slot_tokens)
            .finish_non_exhaustive()
    }
}

fn common_prefix(a: &[LlamaToken], b: &[LlamaToken]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

/// llama.cpp's number of a slot's sequence.
fn sequence(index: usize) -> i32 {
    i32::try_from(index).expect("slots are at most LLM_SLOTS_MAX")
}
