//! How the next token is chosen.

use llama_cpp_2::GrammarError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::token::data::LlamaTokenData;
use llama_cpp_2::token::data_array::LlamaTokenDataArray;

/// How the next token is chosen. The defaults suit a model of some hundred million parameters: cool enough to stay
/// on the subject (13 right answers of 16 at 0.2, 9 at 0.5), with a penalty against the loops that such models fall
/// into.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits, `0.0..=2.0`; 0 takes the likeliest token always.
    pub temperature: f32,
    /// Smallest set of tokens whose probabilities sum up to this, `0.0..=1.0`.
    pub top_p: f32,
    /// Tokens less likely than this fraction of the likeliest are left out, `0.0..=1.0`.
    pub min_p: f32,
    /// Divides the logits of tokens among the last 64, `1.0` for none.
    pub repeat_penalty: f32,
    /// Taken off the logit of a token for each time it occurs among those, `-2.0..=2.0`.
    pub frequency_penalty: f32,
    /// Taken off the logit of a token that occurs among those, `-2.0..=2.0`.
    pub presence_penalty: f32,
    /// Seed of the random numbers; `None`: another one each time.
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
    /// What chooses the tokens of one completion, in a model with this vocabulary.
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

/// Chooses tokens; remembers those of one completion, and where in its grammar it stands.
#[derive(Debug)]
pub(super) struct Sampler {
    chain: LlamaSampler,
    grammar: Option<LlamaSampler>,
}

impl Sampler {
    /// The next token, from a row of the last batch; `None` if the grammar allows none.
    pub(super) fn choose(&mut self, context: &LlamaContext<'_>, row: i32) -> Option<LlamaToken> {
        let Some(grammar) = &mut self.grammar else { return Some(self.chain.sample(context, row)) };
        let mut all: Vec<_> = context.candidates_ith(row).collect();
        // A grammar spells every token it is shown: of the whole vocabulary only where the likely ones do not fit.
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

/// Those of `tokens` that the grammar allows next.
fn allow(grammar: &mut LlamaSampler, tokens: Vec<LlamaTokenData>) -> LlamaTokenDataArray {
    let mut tokens = LlamaTokenDataArray::new(tokens, false);
    tokens.apply_sampler(grammar);
    tokens.data.retain(|token| token.logit() > f32::NEG_INFINITY);
    tokens
}

/// Likeliest tokens that a grammar is shown first.
const GRAMMAR_TOP_K: usize = 128;

/// How far back a repetition counts: some two spoken sentences, tokens of the completion only.
const PENALTY_TOKENS: i32 = 64;

/// llama.cpp's own default.
const TOP_K: i32 = 40;

/// `LLAMA_DEFAULT_SEED` of llama.h: take a random seed.
const RANDOM_SEED: u32 = u32::MAX;
