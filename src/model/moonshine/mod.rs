//! Moonshine tiny: English speech to text.
//!
//! *Thread:* an `stt` worker · *Never:* blocks; calls the heap on the Rust side after `load`, except where the caller's
//! transcript grows.
//!
//! The encoder takes the samples as they are. The decoder gives one token per run; its intermediate results
//! are values that go from one run into the next. Cost is about proportional to the length of the audio.
//!
//! # Source
//! moonshine-voice 0.0.73, `assets/tiny-en/` (`encoder_model.ort`, `decoder_model_merged.ort`,
//! `tokenizer.bin`).

use std::path::Path;
use std::sync::Arc;

use super::graph::{self, ANY, PortSpec, index_of};
use super::ort::{ElementType, Graph, GraphOptions, Library, Port, Tensor, Terminate, Value, length_of};
use super::{ModelError, SttModel};
use crate::audio::pcm;
use crate::language::Language;
use crate::limits::UTTERANCE_SAMPLES_MAX;

mod tokens;

use tokens::Tokens;

/// Paths of the three files of the model.
#[derive(Clone, Copy, Debug)]
pub struct MoonshinePaths<'a> {
    /// The encoder, `encoder_model.ort`.
    pub encoder: &'a Path,
    /// The decoder, `decoder_model_merged.ort`.
    pub decoder: &'a Path,
    /// The vocabulary, `tokenizer.bin`.
    pub tokenizer: &'a Path,
}

/// Moonshine with its buffers; one per worker.
#[derive(Debug)]
pub struct Moonshine {
    weights: Arc<MoonshineGraphs>,
    terminate: Terminate,
    /// `[1, samples]`.
    audio: Tensor<f32>,
    /// `[1, samples]`, all ones. The decoder requires the length of the *audio*, not that of the encoder's
    /// output.
    mask: Tensor<i64>,
    /// `[1, 1]`: the previous token.
    token: Tensor<i64>,
    /// `[1]`: true if the caches hold anything.
    cached: Tensor<bool>,
    /// `[1, 8, 0, 36]`: a cache that holds nothing.
    empty: Tensor<f32>,
    /// The encoder's output.
    encoded: [Option<Value>; 1],
    /// Keys and values of all tokens so far, and of the audio, in the order of [`MoonshineGraphs::caches`].
    caches: [Option<Value>; CACHES],
    /// The decoder's last output.
    outputs: [Option<Value>; CACHES + 1],
    /// UTF-8 of the tokens so far.
    text: Vec<u8>,
}

/// The networks and facts about their ports; shared by all workers.
#[derive(Debug)]
struct MoonshineGraphs {
    encoder: Arc<Graph>,
    decoder: Arc<Graph>,
    tokens: Tokens,
    /// True if the encoder's first input is the mask.
    mask_first: bool,
    /// Meanings of the decoder's inputs, in the order of the model file.
    inputs: [DecoderInput; CACHES + 4],
    /// Index of the logits among the decoder's outputs.
    logits: usize,
    /// The decoder's caches, in the order of [`cache_name`].
    caches: [KvCache; CACHES],
}

/// An input of the decoder.
#[derive(Clone, Copy, Debug)]
enum DecoderInput {
    Mask,
    Token,
    Encoded,
    Cached,
    Cache(usize),
}

/// A cache of the decoder: keys or values of one layer.
#[derive(Clone, Copy, Debug)]
struct KvCache {
    /// Index among the outputs.
    output: usize,
    /// True if the cache grows with each token. The other caches describe the audio: the first run computes
    /// them, and later runs return them empty.
    grows: bool,
}

impl Moonshine {
    /// Loads the model and runs it once.
    ///
    /// # Errors
    /// [`ModelError::Missing`], [`ModelError::Wrong`] or [`ModelError::Runtime`], as [`graph::load`].
    pub fn load(
        library: &Arc<Library>,
        paths: MoonshinePaths<'_>,
        options: &GraphOptions,
    ) -> Result<Self, ModelError> {
        let tokens = Tokens::load(paths.tokenizer)?;
        let encoder = graph::load(
            library,
            paths.encoder,
            options,
            &[
                PortSpec::new("input_values", ElementType::F32, &[ANY, ANY]),
                PortSpec::new("attention_mask", ElementType::I64, &[ANY, ANY]),
            ],
            &[PortSpec::new("last_hidden_state", ElementType::F32, &[ANY, ANY, WIDTH])],
        )?;
        let (mut inputs, mut outputs) = (
            vec![
                PortSpec::new("encoder_attention_mask", ElementType::I64, &[ANY, ANY]),
                PortSpec::new("input_ids", ElementType::I64, &[ANY, ANY]),
                PortSpec::new("encoder_hidden_states", ElementType::F32, &[ANY, ANY, WIDTH]),
                PortSpec::new("use_cache_branch", ElementType::Bool, &[1]),
            ],
            vec![PortSpec::new("logits", ElementType::F32, &LOGITS_SHAPE)],
        );
        let cache =
            |name: String| PortSpec { name: name.into(), element: ElementType::F32, shape: &CACHE_SHAPE };
        for n in 0..CACHES {
            inputs.push(cache(past_name(n)));
            outputs.push(cache(present_name(n)));
        }
        let decoder = graph::load(library, paths.decoder, options, &inputs, &outputs)?;
        let weights = MoonshineGraphs {
            inputs: std::array::from_fn(|index| DecoderInput::of(&decoder.inputs()[index])),
            mask_first: index_of(encoder.inputs(), "attention_mask") == 0,
            logits: index_of(decoder.outputs(), "logits"),
            caches: std::array::from_fn(|n| KvCache {
                output: index_of(decoder.outputs(), &present_name(n)),
                grows: present_name(n).contains("decoder"),
            }),
            encoder,
            decoder,
            tokens,
        };
        Self::on(Arc::new(weights))
    }

    /// Creates another instance for another worker, with the same weights and its own buffers (about 6 MB).
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    pub fn share(&self) -> Result<Self, ModelError> {
        Self::on(Arc::clone(&self.weights))
    }

    /// Returns a handle that ends a transcription in another thread.
    #[must_use]
    pub fn terminate(&self) -> Terminate {
        self.terminate.clone()
    }

    fn on(weights: Arc<MoonshineGraphs>) -> Result<Self, ModelError> {
        let library = weights.encoder.library();
        let mut mask = Tensor::new(library, INPUT_SAMPLES_MAX, &[1, length_of(INPUT_SAMPLES_MAX)])?;
        mask.data_mut().fill(1);
        let mut moonshine = Self {
            terminate: Terminate::new(library)?,
            audio: Tensor::new(library, INPUT_SAMPLES_MAX, &[1, length_of(INPUT_SAMPLES_MAX)])?,
            mask,
            token: Tensor::new(library, 1, &[1, 1])?,
            cached: Tensor::new(library, 1, &[1])?,
            empty: Tensor::new(library, 0, &[1, CACHE_SHAPE[1], 0, CACHE_SHAPE[3]])?,
            encoded: [const { None }; 1],
            caches: [const { None }; CACHES],
            outputs: [const { None }; CACHES + 1],
            text: Vec::with_capacity(token_cap(PIECE_SAMPLES) * tokens::BYTES_MAX),
            weights,
        };
        moonshine.transcribe(&[0; 16_000], &|| false, &mut String::new())?;
        Ok(moonshine)
    }

    /// Writes the text of `piece`, which is not longer than [`PIECE_SAMPLES`], into `text`.
    fn decode(&mut self, piece: &[i16], stale: &dyn Fn() -> bool) -> Result<(), ModelError> {
        self.text.clear();
        let weights = Arc::clone(&self.weights);
        self.encode(&weights, piece, stale)?;
        self.caches.fill_with(|| None);
        let mut token = tokens::START;
        for step in 0..token_cap(piece.len()) {
            token = self.step(&weights, token, step > 0, stale)?;
            if token == tokens::END {
                break;
            }
            weights.tokens.write(token, &mut self.text);
        }
        Ok(())
    }

    fn encode(
        &mut self,
        weights: &MoonshineGraphs,
        piece: &[i16],
        stale: &dyn Fn() -> bool,
    ) -> Result<(), ModelError> {
        let shape = [1, length_of(piece.len() + 2 * PADDING_SAMPLES)];
        self.audio.reshape(&shape)?;
        self.mask.reshape(&shape)?;
        let audio = self.audio.data_mut();
        let end = PADDING_SAMPLES + piece.len();
        audio[..PADDING_SAMPLES].fill(0.0);
        pcm::write_f32(piece, &mut audio[PADDING_SAMPLES..]);
        audio[end..].fill(0.0);
        let mut inputs = [self.audio.value(), self.mask.value()];
        if weights.mask_first {
            inputs.reverse();
        }
        weights.encoder.run_unless_stale(&self.terminate, stale, &inputs, &mut self.encoded)
    }

    /// Runs the decoder once; returns the token that follows `token`.
    fn step(
        &mut self,
        weights: &MoonshineGraphs,
        token: usize,
        cached: bool,
        stale: &dyn Fn() -> bool,
    ) -> Result<usize, ModelError> {
        self.token.data_mut()[0] = i64::try_from(token).expect("tokens are numbers below `tokens::COUNT`");
        self.cached.data_mut()[0] = cached;
        let inputs: [&Value; CACHES + 4] = std::array::from_fn(|index| match weights.inputs[index] {
            DecoderInput::Mask => self.mask.value(),
            DecoderInput::Token => self.token.value(),
            DecoderInput::Encoded => self.encoded[0].as_ref().expect("the encoder ran before"),
            DecoderInput::Cached => self.cached.value(),
            DecoderInput::Cache(n) => self.caches[n].as_ref().unwrap_or(self.empty.value()),
        });
        weights.decoder.run_unless_stale(&self.terminate, stale, &inputs, &mut self.outputs)?;
        for (cache, KvCache { output, grows }) in self.caches.iter_mut().zip(weights.caches) {
            if grows || !cached {
                *cache = self.outputs[output].take();
            }
        }
        let logits = self.outputs[weights.logits].as_ref().expect("a run that succeeded has all outputs");
        Ok(index_of_largest(logits.data()?))
    }
}

impl SttModel for Moonshine {
    /// The longest utterance that a unit keeps. Audio longer than 15 s goes through the network in pieces,
    /// cut at the quietest places.
    fn samples_max(&self) -> usize {
        UTTERANCE_SAMPLES_MAX
    }

    fn transcribe(
        &mut self,
        audio: &[i16],
        stale: &dyn Fn() -> bool,
        transcript: &mut String,
    ) -> Result<Option<Language>, ModelError> {
        transcript.clear();
        let mut rest = audio;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(piece_length(rest));
            rest = later;
            self.decode(piece, stale)?;
            let text = String::from_utf8_lossy(&self.text);
            let text = text.trim();
            if !transcript.is_empty() && !text.is_empty() {
                transcript.push(' ');
            }
            transcript.push_str(text);
        }
        Ok(Some(Language::english()))
    }
}

impl DecoderInput {
    fn of(port: &Port) -> Self {
        match port.name.as_str() {
            "encoder_attention_mask" => Self::Mask,
            "input_ids" => Self::Token,
            "encoder_hidden_states" => Self::Encoded,
            "use_cache_branch" => Self::Cached,
            name => Self::Cache((0..CACHES).find(|&n| past_name(n) == name).expect("checked at load")),
        }
    }
}

/// Returns the name of cache `n` as an input.
fn past_name(n: usize) -> String {
    format!("past_key_values.{}", cache_name(n))
}

/// Returns the name of cache `n` as an output.
fn present_name(n: usize) -> String {
    format!("present.{}", cache_name(n))
}

fn cache_name(n: usize) -> String {
    let (layer, kind) = (n / 4, ["decoder.key", "decoder.value", "encoder.key", "encoder.value"][n % 4]);
    format!("{layer}.{kind}")
}

/// Returns the number of samples of `audio` that go through the model at once: all, or those up to the
/// quietest tenth of a second in the second half of the longest possible piece. A cut there hardly ever goes
/// through a word.
fn piece_length(audio: &[i16]) -> usize {
    if audio.len() <= PIECE_SAMPLES {
        return audio.len();
    }
    let energy = |start: usize| -> u64 {
        audio[start..start + QUIET_SAMPLES]
            .iter()
            .map(|&sample| u64::from(sample.unsigned_abs()).pow(2))
            .sum()
    };
    let starts = (PIECE_SAMPLES / 2..=PIECE_SAMPLES - QUIET_SAMPLES).step_by(QUIET_SAMPLES / 4);
    starts.min_by_key(|&start| energy(start)).map_or(PIECE_SAMPLES, |start| start + QUIET_SAMPLES / 2)
}

/// Returns the most tokens of a piece of this length. Speech has up to about 4.5 per second; the bound stops
/// a model that repeats itself. Source: moonshine-voice 0.0.73 uses 6.5 per second; the constant is for very
/// short utterances.
fn token_cap(samples: usize) -> usize {
    samples * 13 / (2 * 16_000) + 6
}

fn index_of_largest(values: &[f32]) -> usize {
    // In two passes, the first of which is vectorised.
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    values.iter().position(|&value| value == largest).unwrap_or(tokens::END)
}

/// Decoder layers times keys and values of text and audio. Source: the model file.
const CACHES: usize = 6 * 4;

/// `[batch, heads, length, width of a head]`. Source: the model file.
const CACHE_SHAPE: [i64; 4] = [ANY, 8, ANY, 36];

/// `[batch, length, token]`. Source: the model file.
const LOGITS_SHAPE: [i64; 3] = [ANY, ANY, length_of(tokens::COUNT)];

/// Width of the encoder's output. Source: the model file.
const WIDTH: i64 = 288;

/// Silence before and after the audio, 100 ms at 16 kHz: without it some very short utterances come out
/// empty.
const PADDING_SAMPLES: usize = 1_600;

/// Longest audio that goes through the model at once: 15 s. The model also takes 30 s with the same accuracy,
/// but attention costs the square of the length (30 s in one piece take 1.5 times as long as in pieces) and
/// the library keeps the memory (90 MB).
const PIECE_SAMPLES: usize = 15 * 16_000;

/// Samples of a piece and its padding.
const INPUT_SAMPLES_MAX: usize = PIECE_SAMPLES + 2 * PADDING_SAMPLES;

/// Length of the quiet around a cut, samples: a tenth of a second.
const QUIET_SAMPLES: usize = 1_600;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_utterance_is_cut_where_it_is_quiet() {
        let mut audio = vec![1_000; 2 * PIECE_SAMPLES];
        assert_eq!(piece_length(&audio[..PIECE_SAMPLES]), PIECE_SAMPLES);
        // Quiet places: one too early, one at the right distance, one too late.
        for start in [PIECE_SAMPLES / 3, PIECE_SAMPLES * 3 / 4, PIECE_SAMPLES + 100] {
            audio[start..start + 4_000].fill(0);
        }
        let cut = piece_length(&audio);
        assert!((PIECE_SAMPLES * 3 / 4..PIECE_SAMPLES * 3 / 4 + 4_000).contains(&cut), "{cut}");
        // Without any quiet place the pieces are still short enough.
        assert!((PIECE_SAMPLES / 2..=PIECE_SAMPLES).contains(&piece_length(&[i16::MIN; PIECE_SAMPLES + 1])));
    }

    #[test]
    fn the_largest_value_wins() {
        assert_eq!(index_of_largest(&[-3.0, 5.0, 4.0, 5.0]), 1);
        assert_eq!(index_of_largest(&[f32::NAN; 3]), tokens::END);
    }

    #[test]
    fn tokens_are_bounded_by_the_length() {
        assert_eq!((token_cap(0), token_cap(16_000), token_cap(160_000)), (6, 12, 71));
    }
}
