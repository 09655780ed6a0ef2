//! Silero VAD: detects speech every 32 ms, for many callers in one call of the network.
//!
//! *Thread:* a `vad` worker · *Never:* blocks; calls the heap after `load` · *Budget:* `endpoint_wait_ms_p99` of
//! the profile.
//!
//! # Source
//! silero-vad 6.2.3, `silero_vad_op18_ifless.onnx` (the variant without branches; same results as
//! `silero_vad.onnx` to 2e-6). At 16 kHz the network takes **576** samples: the last 64 of the window before
//! and 512 new ones. The network also accepts 512 samples without an error, but then it detects almost no
//! speech.

use std::path::Path;
use std::sync::Arc;

use super::graph::{self, ANY, PortSpec};
use super::ort::{Bound, Dim, ElementType, Graph, GraphOptions, Library, length_of};
use super::{DETECTOR_CONTEXT, DETECTOR_STATE, DETECTOR_WINDOW, DetectorStream, ModelError, VadModel};
use crate::audio::pcm;

/// Silero VAD with its buffers; one per worker.
#[derive(Debug)]
pub struct SileroVad {
    bound: Bound,
    /// States of the rows, one after the other, in the layout of the trait. The network has the first layers
    /// of all rows first, at an offset that depends on the number of rows.
    states: Box<[[f32; DETECTOR_STATE]]>,
    /// Rows of the last run.
    rows: usize,
}

impl SileroVad {
    /// Loads the model and runs it once for every number of rows up to `rows_max`.
    ///
    /// # Errors
    /// [`ModelError::Missing`], [`ModelError::Wrong`] or [`ModelError::Runtime`], as [`graph::load`].
    pub fn load(
        library: &Arc<Library>,
        path: &Path,
        options: &GraphOptions,
        rows_max: usize,
    ) -> Result<Self, ModelError> {
        let options = GraphOptions { shapes_recur: true, ..options.clone() };
        let graph = graph::load(
            library,
            path,
            &options,
            &[
                PortSpec::new("input", ElementType::F32, &INPUT_SHAPE),
                PortSpec::new("sr", ElementType::I64, &[]),
                PortSpec::new("state", ElementType::F32, &STATE_SHAPE),
            ],
            &[
                PortSpec::new("output", ElementType::F32, &[ANY, 1]),
                PortSpec::new("stateN", ElementType::F32, &STATE_SHAPE),
            ],
        )?;
        Self::on(&graph, rows_max)
    }

    /// Creates another instance for another worker, with the same weights and its own buffers.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    pub fn share(&self) -> Result<Self, ModelError> {
        Self::on(self.bound.graph(), self.bound.rows_max())
    }

    fn on(graph: &Arc<Graph>, rows_max: usize) -> Result<Self, ModelError> {
        let state = [Dim::Is(LAYERS), Dim::Rows, Dim::Is(LAYER)];
        let mut bound = Bound::new(
            graph,
            rows_max,
            &[("input", &[Dim::Rows, Dim::Is(ROW)]), ("state", &state), ("sr", &[])],
            &[("output", &[Dim::Rows, Dim::Is(1)]), ("stateN", &state)],
        )?;
        bound.input_mut::<i64>(RATE)[0] = 16_000;
        let mut vad = Self { bound, states: vec![[0.0; DETECTOR_STATE]; rows_max].into(), rows: 0 };
        for rows in 1..=rows_max {
            vad.run(rows)?;
        }
        Ok(vad)
    }
}

impl VadModel for SileroVad {
    fn rows_max(&self) -> usize {
        self.bound.rows_max()
    }

    fn load(&mut self, row: usize, stream: &DetectorStream, window: &[i16; DETECTOR_WINDOW]) {
        let input = &mut self.bound.input_mut::<f32>(INPUT)[row * ROW..][..ROW];
        let (context, new) = input.split_at_mut(DETECTOR_CONTEXT);
        context.copy_from_slice(&stream.context);
        pcm::write_f32(window, new);
        self.states[row] = stream.state;
    }

    fn run(&mut self, rows: usize) -> Result<(), ModelError> {
        let state = self.bound.input_mut::<f32>(STATE);
        for (row, halves) in self.states[..rows].iter().enumerate() {
            for (layer, half) in halves.chunks_exact(LAYER).enumerate() {
                state[(layer * rows + row) * LAYER..][..LAYER].copy_from_slice(half);
            }
        }
        self.bound.run(rows)?;
        self.rows = rows;
        Ok(())
    }

    fn store(&self, row: usize, stream: &mut DetectorStream) -> f32 {
        assert!(row < self.rows, "row {row}, the last run had {}", self.rows);
        let state = self.bound.output::<f32>(NEW_STATE);
        for (layer, half) in stream.state.chunks_exact_mut(LAYER).enumerate() {
            half.copy_from_slice(&state[(layer * self.rows + row) * LAYER..][..LAYER]);
        }
        stream.context.copy_from_slice(
            &self.bound.input::<f32>(INPUT)[(row + 1) * ROW - DETECTOR_CONTEXT..][..DETECTOR_CONTEXT],
        );
        self.bound.output::<f32>(OUTPUT)[row]
    }
}

/// Samples of one row: context and window.
const ROW: usize = DETECTOR_CONTEXT + DETECTOR_WINDOW;

/// Number of recurrent layers, and the width of one.
const LAYERS: usize = 2;
const LAYER: usize = DETECTOR_STATE / LAYERS;

/// `[rows, samples]` of the audio and `[layer, rows, width]` of the state, as the model file has them.
const INPUT_SHAPE: [i64; 2] = [ANY, length_of(ROW)];
const STATE_SHAPE: [i64; 3] = [length_of(LAYERS), ANY, length_of(LAYER)];

/// Indices of the bound inputs and outputs.
const INPUT: usize = 0;
const STATE: usize = 1;
const RATE: usize = 2;
const OUTPUT: usize = 0;
const NEW_STATE: usize = 1;
