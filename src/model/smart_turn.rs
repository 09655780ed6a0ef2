//! Smart Turn: estimates whether the speaker is done or only pauses.
//!
//! *Thread:* a stage worker · *Never:* calls the heap on the Rust side after `load`.
//!
//! The audio should include about 200 ms of the silence after the last word, as in the network's training.
//! The result is a hint: complete sentences are recognised in 95 % of the cases, but sentences cut in the
//! middle count as *complete* far too often to rely on the result alone.
//!
//! # Source
//! pipecat-ai 1.14.0, `pipecat/audio/turn/smart_turn/data/smart-turn-v3.2-cpu.onnx`. The output is named
//! `logits` and is already a probability.

use std::path::Path;
use std::sync::Arc;

use super::graph::{self, ANY, PortSpec};
use super::ort::{Bound, Dim, ElementType, Graph, GraphOptions, Library, length_of};
use super::{ModelError, TurnModel};
use crate::audio::log_mel::{BANDS, FRAMES, LogMel};

/// Smart Turn with its buffers; one per worker.
#[derive(Debug)]
pub struct SmartTurn {
    bound: Bound,
    log_mel: LogMel,
}

impl SmartTurn {
    /// Loads the model and runs it once.
    ///
    /// # Errors
    /// [`ModelError::Missing`], [`ModelError::Wrong`] or [`ModelError::Runtime`], as [`graph::load`].
    pub fn load(library: &Arc<Library>, path: &Path, options: &GraphOptions) -> Result<Self, ModelError> {
        let options = GraphOptions { shapes_recur: true, ..options.clone() };
        let graph = graph::load(
            library,
            path,
            &options,
            &[PortSpec::new("input_features", ElementType::F32, &INPUT_SHAPE)],
            &[PortSpec::new("logits", ElementType::F32, &[ANY, 1])],
        )?;
        Self::on(&graph)
    }

    /// Creates another instance for another worker, with the same weights and its own buffers.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    pub fn share(&self) -> Result<Self, ModelError> {
        Self::on(self.bound.graph())
    }

    fn on(graph: &Arc<Graph>) -> Result<Self, ModelError> {
        let bound = Bound::new(
            graph,
            1,
            &[("input_features", &[Dim::Rows, Dim::Is(BANDS), Dim::Is(FRAMES)])],
            &[("logits", &[Dim::Rows, Dim::Is(1)])],
        )?;
        let mut turn = Self { bound, log_mel: LogMel::new() };
        turn.completion(&[])?;
        Ok(turn)
    }
}

impl TurnModel for SmartTurn {
    fn completion(&mut self, audio: &[i16]) -> Result<f32, ModelError> {
        self.log_mel.compute(audio, self.bound.input_mut(0));
        self.bound.run(1)?;
        Ok(self.bound.output::<f32>(0)[0])
    }
}

/// `[batch, band, frame]`. Source: the model file.
const INPUT_SHAPE: [i64; 3] = [ANY, length_of(BANDS), length_of(FRAMES)];
