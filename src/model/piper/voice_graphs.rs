//! The networks of a voice, cut into encoder and decoder if its file allows it.
//!
//! *Thread:* start-up.

use std::path::Path;
use std::sync::Arc;

use super::halves::Halves;
use super::voice_config::VoiceConfig;
use super::{CONTEXT_FRAMES, PIECE_FRAMES, PIECE_FRAMES_MAX};
use crate::limits::PIECE_SAMPLES_MAX;
use crate::model::ModelError;
use crate::model::graph::{ANY, PortSpec, check, index_of, load};
use crate::model::ort::{ElementType, Graph, GraphOptions, Library, Tensor, Terminate, length_of};

/// The networks and the description of a voice; shared by all workers.
#[derive(Debug)]
pub(super) struct VoiceGraphs {
    /// Text to latent frames; of a voice that is run whole, text to samples.
    pub(super) encoder: Arc<Graph>,
    /// Latent frames to samples; or the reason why the voice is run whole.
    pub(super) decoder: Result<VoiceDecoder, String>,
    pub(super) voice: VoiceConfig,
    /// Meanings of the encoder's inputs, in the order of the model file.
    pub(super) inputs: [VoiceInput; 3],
}

/// The second network of a voice.
#[derive(Debug)]
pub(super) struct VoiceDecoder {
    /// `[1, channels, frames]` to `[1, 1, 1, frames × samples]`.
    pub(super) graph: Arc<Graph>,
    /// Numbers of one latent frame.
    pub(super) channels: usize,
    /// Samples of one latent frame.
    pub(super) samples: usize,
}

/// Meaning of an input.
#[derive(Clone, Copy, Debug)]
pub(super) enum VoiceInput {
    Numbers,
    Length,
    Scales,
}

const INPUTS: [(&str, VoiceInput); 3] =
    [("input", VoiceInput::Numbers), ("input_lengths", VoiceInput::Length), ("scales", VoiceInput::Scales)];

impl VoiceGraphs {
    /// Loads the voice's network `model` and its `description`.
    ///
    /// # Errors
    /// [`ModelError::Missing`], [`ModelError::Wrong`] or [`ModelError::Runtime`], as [`Graph::load`].
    pub(super) fn load(
        library: &Arc<Library>,
        model: &Path,
        description: &Path,
        options: &GraphOptions,
    ) -> Result<Self, ModelError> {
        let voice = VoiceConfig::load(description)?;
        let (encoder, decoder) = match Self::cut(library, model, options) {
            Ok((encoder, decoder)) => (encoder, Ok(decoder)),
            Err(reason) => (load(library, model, options, &inputs(), &[samples()])?, Err(reason)),
        };
        let mut meanings = [VoiceInput::Numbers; 3];
        for (name, input) in INPUTS {
            meanings[index_of(encoder.inputs(), name)] = input;
        }
        Ok(Self { encoder, decoder, voice, inputs: meanings })
    }

    /// Loads the two networks of the file `model`.
    ///
    /// # Errors
    /// Returns the reason why the voice must be run whole.
    fn cut(
        library: &Arc<Library>,
        model: &Path,
        options: &GraphOptions,
    ) -> Result<(Arc<Graph>, VoiceDecoder), String> {
        let text = |error: ModelError| error.to_string();
        let halves = Halves::of(std::fs::read(model).map_err(|error| error.to_string())?)?;
        let latent =
            PortSpec { name: halves.latent.into(), element: ElementType::F32, shape: &[ANY, ANY, ANY] };
        let encoder = Graph::from_bytes(library, &halves.encoder, model, options).map_err(text)?;
        check(&encoder, &inputs(), std::slice::from_ref(&latent)).map_err(text)?;
        let graph = Graph::from_bytes(library, &halves.decoder, model, options).map_err(text)?;
        check(&graph, &[latent], &[samples()]).map_err(text)?;
        Ok((encoder, VoiceDecoder::new(graph, halves.channels)?))
    }
}

fn inputs() -> [PortSpec; 3] {
    [
        PortSpec::new(INPUTS[0].0, ElementType::I64, &[ANY, ANY]),
        PortSpec::new(INPUTS[1].0, ElementType::I64, &[ANY]),
        PortSpec::new(INPUTS[2].0, ElementType::F32, &[3]),
    ]
}

fn samples() -> PortSpec {
    PortSpec::new("output", ElementType::F32, &[ANY, 1, 1, ANY])
}

impl VoiceDecoder {
    /// Checks that pieces of the decoder's work with [`CONTEXT_FRAMES`] frames on either side are those of the whole.
    ///
    /// # Errors
    /// Returns the reason if they are not, or if a piece does not fit its room.
    fn new(graph: Arc<Graph>, channels: usize) -> Result<Self, String> {
        let (frames, from, to) =
            (PIECE_FRAMES + 4 * CONTEXT_FRAMES, 2 * CONTEXT_FRAMES, 2 * CONTEXT_FRAMES + PIECE_FRAMES);
        let whole = decode(&graph, channels, 0..frames)?;
        let samples = whole.len() / frames;
        if samples * frames != whole.len() || samples * PIECE_FRAMES_MAX > PIECE_SAMPLES_MAX {
            return Err(format!("{} samples of {frames} latent frames", whole.len()));
        }
        let piece = decode(&graph, channels, from - CONTEXT_FRAMES..to + CONTEXT_FRAMES)?;
        let (piece, whole) = (&piece[CONTEXT_FRAMES * samples..], &whole[from * samples..to * samples]);
        let difference = piece.iter().zip(whole).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max);
        if difference > DIFFERENCE_MAX {
            return Err(format!("pieces of the decoder's work differ from the whole by {difference}"));
        }
        Ok(Self { graph, channels, samples })
    }
}

/// Largest difference of a sample of a piece from the same sample of the whole, −100 dBFS.
const DIFFERENCE_MAX: f32 = 1e-5;

/// Runs the decoder on the frames `range` of a latent without meaning.
fn decode(graph: &Graph, channels: usize, range: std::ops::Range<usize>) -> Result<Vec<f32>, String> {
    let run = || -> Result<Vec<f32>, ModelError> {
        let shape = [1, length_of(channels), length_of(range.len())];
        let mut window = Tensor::new(graph.library(), channels * range.len(), &shape)?;
        for (channel, row) in window.data_mut().chunks_exact_mut(range.len()).enumerate() {
            for (number, frame) in row.iter_mut().zip(range.clone()) {
                *number = (channel as f32 * 1.7 + frame as f32 * 0.9).sin();
            }
        }
        let mut output = [None];
        graph.run(&Terminate::new(graph.library())?, &[window.value()], &mut output)?;
        Ok(output[0].as_ref().expect("a run that succeeded has all outputs").data()?.to_vec())
    };
    run().map_err(|error| error.to_string())
}
