//! The engine: several callers' completions, step by step, in one context.
//!
//! A step is one call of llama.cpp, with one token of every answer under way and a bounded number of tokens of the
//! prompts being read. So a long prompt delays an answer by one chunk and not by its whole length.
//!
//! A completion runs while it has a slot, and any slot will do. The [queue](super::queue) decides which completions
//! run; the [sequences](super::sequences) keep the tokens that need not be read again.

use std::num::NonZeroU32;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::context::params::LlamaContextParams;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use super::batch::{Need, PROMPT_TOKENS_ALONE, portions};
use super::completion::{Completion, End, Work, count};
use super::prompt::Weights;
use super::queue::{Queue, QueueEntry};
use super::sequences::{Cells, Sequences};
use crate::limits::LLM_SLOTS_MAX;
use crate::model::ModelError;

/// Sequences that one context can have. Source: `LLAMA_MAX_SEQ` of llama.cpp's `llama-cparams.h`.
const SEQUENCES_MAX: usize = 256;

/// Steps from one sign of life of a waiting completion to the next.
const SIGN_STEPS: u64 = 8;

/// Size of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineSettings {
    /// Completions that run at once, `1..=`[`LLM_SLOTS_MAX`].
    pub slots: u16,
    /// Tokens of prompt and answer together, per completion. The memory is `slots × context` times the size of one
    /// token's keys and values, 22.5 KiB for a model of 135 million parameters.
    pub context: u32,
    /// Threads of one step.
    pub threads: u16,
}

/// The engine of several completions in one context. Owned by one thread.
pub struct Engine {
    weights: &'static Weights,
    context: LlamaContext<'static>,
    batch: LlamaBatch<'static>,
    queue: Queue<Work>,
    sequences: Sequences,
    /// Tokens of prompt and answer together, per completion.
    slot_tokens: usize,
    /// Completions taken so far.
    submitted: u64,
    steps: u64,
}

impl Engine {
    /// Makes the context and reads `instructions` into it. A prompt of any caller that begins with the same tokens is
    /// read only from there on. The weights are borrowed for ever, because an engine lives as long as its process.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if llama.cpp cannot make the context or read the instructions, mostly for want of
    /// memory.
    pub fn new(
        weights: &'static Weights,
        settings: EngineSettings,
        instructions: &[LlamaToken],
    ) -> Result<Self, ModelError> {
        let slots = usize::from(settings.slots.clamp(1, LLM_SLOTS_MAX));
        let slot_tokens = settings.context as usize;
        let instructions = if instructions.len() < slot_tokens { instructions } else { &[] };
        let room = slot_tokens.saturating_mul(slots).saturating_add(instructions.len());
        // One for each slot, as many again for sessions at rest, and one for the instructions.
        let sequences = (2 * slots + 1).min(SEQUENCES_MAX);
        let step_tokens = PROMPT_TOKENS_ALONE + slots;
        let params = LlamaContextParams::default()
            .with_n_ctx(NonZeroU32::new(count(room)))
            .with_n_seq_max(count(sequences))
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
        let divisible = !weights.model.is_recurrent() && !weights.model.is_hybrid();
        let mut engine = Self {
            weights,
            context,
            batch: LlamaBatch::new(step_tokens, 1),
            queue: Queue::new(slots),
            sequences: Sequences::new(sequences, room, divisible),
            slot_tokens,
            submitted: 0,
            steps: 0,
        };
        engine.read(instructions)?;
        Ok(engine)
    }

    /// Reads the instructions into their sequence.
    fn read(&mut self, instructions: &[LlamaToken]) -> Result<(), ModelError> {
        for chunk in instructions.chunks(PROMPT_TOKENS_ALONE) {
            self.batch.clear();
            for &token in chunk {
                self.append(Sequences::INSTRUCTIONS, token, false);
            }
            self.context.decode(&mut self.batch).map_err(|error| ModelError::Runtime {
                context: "instructions of the language model",
                message: error.to_string(),
            })?;
        }
        Ok(())
    }

    /// Puts a completion into the queue. Fails the completion if its prompt is empty or does not fit into a slot.
    pub fn submit(&mut self, mut completion: Completion) {
        if completion.prompt.is_empty() || completion.prompt.len() >= self.slot_tokens {
            completion.sink.failed("the prompt does not fit into the context");
            return;
        }
        self.submitted += 1;
        let caller = completion.caller;
        if let Some(work) = Work::new(self.submitted, completion, &self.weights.model) {
            self.queue.push(caller, work);
        }
    }

    /// Returns true if there is nothing to do before the next [`Engine::submit`].
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty()
    }

    /// Makes one step of all completions that run. A failure of llama.cpp fails these completions, not the engine.
    pub fn step(&mut self) {
        self.steps += 1;
        self.drop_over();
        self.queue.settle();
        for entry in self.queue.waiting_mut() {
            self.sequences.rest(entry.work.id);
            if entry.work.usage.output > 0 && self.steps.is_multiple_of(SIGN_STEPS) {
                entry.work.sink.waiting();
            }
        }
        let seats = self.seat();
        let rows = self.fill_batch(&seats);
        if self.batch.n_tokens() == 0 {
            return;
        }
        if let Err(error) = self.context.decode(&mut self.batch) {
            self.fail_batch(&format!("llama.cpp: {error}"));
        } else {
            for (index, row) in rows {
                self.choose(index, row);
            }
        }
        self.drop_over();
    }

    fn drop_over(&mut self) {
        for QueueEntry { caller, work, .. } in self.queue.take(Work::is_over) {
            self.sequences.release(&mut self.context, work.id, caller);
        }
    }

    /// Gives a sequence to each running completion that has none; returns the sequences in the order of the queue.
    fn seat(&mut self) -> Vec<usize> {
        let Self { queue, sequences, context, .. } = self;
        let seats = queue.running_mut().iter_mut().map(|QueueEntry { caller, work, .. }| {
            let is_new = sequences.of(work.id).is_none();
            let seat = sequences.seat(context, work.id, *caller, &work.tokens);
            if is_new && work.usage.output == 0 {
                work.usage.cached = count(sequences.kept(seat).len());
            }
            seat
        });
        seats.collect()
    }

    /// Fills the batch. Returns pairs of a running completion and the row of the batch that chooses its next token.
    fn fill_batch(&mut self, seats: &[usize]) -> Vec<(usize, i32)> {
        self.batch.clear();
        let needs = self.queue.running().iter().zip(seats).map(|(entry, &seat)| Need {
            rank: entry.rank(),
            tokens: entry.work.tokens.len() - self.sequences.kept(seat).len(),
        });
        let needs: Vec<_> = needs.collect();
        let portions = portions(&needs);
        self.sequences.make_room(&mut self.context, portions.iter().sum());
        let mut rows = Vec::with_capacity(seats.len());
        for (index, (&seat, &portion)) in seats.iter().zip(&portions).enumerate() {
            for offset in 1..=portion {
                let token = self.queue.running()[index].work.tokens[self.sequences.kept(seat).len()];
                let is_last = offset == needs[index].tokens;
                if is_last {
                    rows.push((index, self.batch.n_tokens()));
                }
                self.append(seat, token, is_last);
            }
        }
        rows
    }

    fn append(&mut self, seat: usize, token: LlamaToken, wants_logits: bool) {
        let position = self.sequences.append(seat, token);
        let position = i32::try_from(position).expect("a completion is far shorter than 2^31 tokens");
        self.batch
            .add(token, position, &[sequence(seat)], wants_logits)
            .expect("a batch holds one token of each slot and a step's share of prompts");
    }

    fn fail_batch(&mut self, message: &str) {
        for entry in self.queue.running_mut() {
            entry.work.fail(message);
            self.sequences.discard(&mut self.context, entry.work.id);
        }
    }

    /// Chooses the next token of a running completion from a row of the batch.
    fn choose(&mut self, index: usize, row: i32) {
        let entry = &mut self.queue.running_mut()[index];
        let work = &mut entry.work;
        let Some(token) = work.sampler.choose(&self.context, row) else {
            work.fail("the grammar allows no token");
            return;
        };
        entry.turn += 1;
        work.usage.output += 1;
        let vocabulary = self.weights.model.vocab();
        let end = if vocabulary.is_eog(token) {
            Some(End::Stop)
        } else {
            let end = work.push(|buffer| vocabulary.token_to_piece_into(token, buffer, false, None));
            // The chosen token needs one more position.
            end.or_else(|| (work.tokens.len() + 1 >= self.slot_tokens).then_some(End::Length))
        };
        match end {
            Some(end) => work.end(end),
            None => work.tokens.push(token),
        }
    }
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine")
            .field("model", &self.weights.name())
            .field("slot_tokens", &self.slot_tokens)
            .finish_non_exhaustive()
    }
}

impl Cells for LlamaContext<'_> {
    fn trim(&mut self, sequence: usize, tokens: usize) -> bool {
        let from = (tokens > 0).then(|| count(tokens));
        self.clear_kv_cache_seq(Some(count(sequence)), from, None).expect("positions are far below 2^31")
    }

    fn copy(&mut self, from: usize, to: usize, tokens: usize) {
        self.copy_kv_cache_seq(sequence(from), sequence(to), Some(0), Some(count(tokens)))
            .expect("positions are far below 2^31");
    }
}

/// Converts the index of a sequence to llama.cpp's type.
fn sequence(index: usize) -> i32 {
    i32::try_from(index).expect("sequences are at most SEQUENCES_MAX")
}
