//! How the next token is chosen.

use llama_cpp_2::GrammarError;
use llama_cpp_2::model::LlamaModel;
use llama_cpp_2::sampling::LlamaSampler;

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
    /// The chain of samplers; it remembers the tokens of one completion, and where in the grammar it stands.
    pub(super) fn sampler(
        &self,
        model: &LlamaModel,
        grammar: Option<&str>,
    ) -> Result<LlamaSampler, GrammarError> {
        let penalties = LlamaSampler::penalties(
            model.n_vocab(),
            PENALTY_TOKENS,
            self.repeat_penalty,
            self.frequency_penalty,
            self.presence_penalty,
        );
        // First: of the likeliest 40 tokens the grammar may allow none.
        let grammar = grammar.map(|grammar| LlamaSampler::grammar(model, grammar, "root")).transpose()?;
        let mut chain: Vec<_> = grammar.into_iter().chain([penalties]).collect();
        if self.temperature <= 0.0 {
            chain.push(LlamaSampler::greedy());
        } else {
            chain.extend([
                // Cuts the vocabulary down first, so that the next two sort 40 tokens instead of all.
                LlamaSampler::top_k(TOP_K),
                LlamaSampler::top_p(self.top_p, 1),
                LlamaSampler::min_p(self.min_p, 1),
                LlamaSampler::temp(self.temperature),
                LlamaSampler::dist(self.seed.unwrap_or(RANDOM_SEED)),
            ]);
        }
        Ok(LlamaSampler::chain(chain, true))
    }
}

/// How far back a repetition counts: some two spoken sentences, tokens of the completion only.
const PENALTY_TOKENS: i32 = 64;

/// llama.cpp's own default.
const TOP_K: i32 = 40;

/// `LLAMA_DEFAULT_SEED` of llama.h: take a random seed.
const RANDOM_SEED: u32 = u32::MAX;
