//! The choice of the next token.

use llama_cpp_2::GrammarError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

/// Parameters of the choice of the next token. The defaults suit a model of some hundred million parameters: cool
/// enough to stay on the subject (13 right answers of 16 at 0.2, 9 at 0.5), with a penalty against the loops that
/// such models fall into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Divisor of the logits, `0.0..=2.0`; at 0 the likeliest token is always chosen.
    pub temperature: f32,
    /// Total probability of the candidates, the smallest such set, `0.0..=1.0`.
    pub top_p: f32,
    /// Fraction of the likeliest token's probability below which tokens are left out, `0.0..=1.0`.
    pub min_p: f32,
    /// Divisor of the logits of tokens among the last 64; `1.0` for no penalty.
    pub repeat_penalty: f32,
    /// Subtracted from the logit of a token for each time it occurs among those, `-2.0..=2.0`.
    pub frequency_penalty: f32,
    /// Subtracted from the logit of a token that occurs among those, `-2.0..=2.0`.
    pub presence_penalty: f32,
    /// Seed of the random numbers; `None` for another seed each time.
    pub seed: Option<u32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self {
            temperature: 0.2,
            top_p: 0.9,
            min_p: 0.05,
            repeat_penalty: 1.1,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            seed: None,
        }
    }
}

impl Sampling {
    /// Builds the sampler of one completion, for a model with this vocabulary.
    pub(super) fn sampler(&self, model: &LlamaModel, grammar: Option<&str>) -> Result<Sampler, GrammarError> {
        let penalties = LlamaSampler::penalties(
            model.n_vocab(),
            PENALTY_TOKENS,
            self.repeat_penalty,
            self.frequency_penalty,
            self.presence_penalty,
        );
        let chain = if self.temperature <= 0.0 {
            LlamaSampler::chain([penalties, LlamaSampler::greedy()], true)
        } else {
            let chain = [
                penalties,
                // Cuts the vocabulary down first, so that the next two sort 40 tokens instead of all.
                LlamaSampler::top_k(TOP_K),
                LlamaSampler::top_p(self.top_p, 1),
                LlamaSampler::min_p(self.min_p, 1),
                LlamaSampler::temp(self.temperature),
                LlamaSampler::dist(self.seed.unwrap_or(RANDOM_SEED)),
            ];
            LlamaSampler::chain(chain, true)
        };
        let grammar = grammar.map(|grammar| LlamaSampler::grammar(model, grammar, "root")).transpose()?;
        Ok(Sampler { chain, grammar })
    }
}

/// Chooses the tokens of one completion. Keeps the chosen tokens and the position in the grammar.
#[derive(Debug)]
pub(super) struct Sampler {
    chain: LlamaSampler,
    grammar: Option<LlamaSampler>,
}

impl Sampler {
    /// Chooses the next token from a row of the last batch; `None` if the grammar allows none.
    pub(super) fn choose(&mut self, context: &LlamaContext<'_>, row: i32) -> Option<LlamaToken> {
        let Some(grammar) = &mut self.grammar else { return Some(self.chain.sample(context, row)) };
        let mut all: Vec<_> = context.candidates_ith(row).collect();
        // A grammar spells every token that it is given, so it gets the whole vocabulary only if no likely token
        // fits.
        let likely = GRAMMAR_TOP_K.min(all.len() - 1);
        all.select_nth_unstable_by(likely, |a, b| b.logit().total_cmp(&a.logit()));
        let mut allowed = allow(grammar, all[..likely].to_vec());
        if allowed.data.is_empty() {
            allowed = allow(grammar, all);
        }
        if allowed.data.is_empty() {
            return None;
        }
        allowed.apply_sampler(&mut self.chain);
        let token = allowed.selected_token()?;
        grammar.accept(token);
        self.chain.accept(token);
        Some(token)
    }
}

/// Returns those of `tokens` that the grammar allows next.
fn allow(grammar: &mut LlamaSampler, tokens: Vec<LlamaTokenData>) -> LlamaTokenDataArray {
    let mut tokens = LlamaTokenDataArray::new(tokens, false);
    tokens.apply_sampler(grammar);
    tokens.data.retain(|token| token.logit() > f32::NEG_INFINITY);
    tokens
}

/// Likeliest tokens that a grammar is given first.
const GRAMMAR_TOP_K: usize = 128;

/// Tokens of the completion within which a repetition counts: some two spoken sentences.
const PENALTY_TOKENS: i32 = 64;

/// Candidates that remain before the other cuts; llama.cpp's own default.
const TOP_K: i32 = 40;

/// `LLAMA_DEFAULT_SEED` of llama.h: selects a random seed.
const RANDOM_SEED: u32 = u32::MAX;
