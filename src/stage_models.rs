//! The models of the stages: real ones loaded and warmed up, or fakes; one instance per worker, weights shared.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::audio::SampleRate;
use crate::config::{Detector, Phonemizer, ServeArgs, Stages};
use crate::model::espeak::Espeak;
use crate::model::fake::{EnergyVad, FakeStt, FakeTts};
use crate::model::moonshine::{Moonshine, MoonshinePaths};
use crate::model::ort::{GraphOptions, Library};
use crate::model::piper::{self, Piper};
use crate::model::silero_vad::SileroVad;
use crate::model::smart_turn::SmartTurn;
use crate::model::{ModelError, SttModel, TtsModel, TurnModel, VadModel};
use crate::profile::{Counts, Plan};
use crate::store::{Artefact, Cache, ModelSet, StoreError, WhenMissing, for_stderr};
use crate::text::{DictionaryPhonemizer, Phonemize};

/// Why the models of the stages are not there.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageModelsError {
    /// A file could not be had.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A model could not be loaded or run.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// espeak-ng keeps its state in global variables.
    #[error(
        "found {0} synthesis workers, expected 1 with --phonemizer espeak: espeak-ng serves one thread per process"
    )]
    EspeakWorkers(u16),
    /// A fake in real company.
    #[error("found --vad energy, which is a fake, expected --stages fake beside it")]
    EnergyWithRealStages,
}

/// One instance per worker.
pub struct StageModels {
    /// Voice activity.
    pub vad: Vec<Box<dyn VadModel>>,
    /// Recognition.
    pub stt: Vec<Box<dyn SttModel>>,
    /// Synthesis.
    pub tts: Vec<Box<dyn TtsModel>>,
    /// End of turn; `None` with fake stages. No stage asks it yet.
    pub turn: Option<Box<dyn TurnModel>>,
    /// Rate of the voice.
    pub voice_rate: SampleRate,
}

impl std::fmt::Debug for StageModels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageModels").field("voice_rate", &self.voice_rate).finish_non_exhaustive()
    }
}

impl StageModels {
    /// Loads what `args` ask for; fetches the files that are missing. Every model has run once when this returns.
    ///
    /// # Errors
    /// What is missing, wrong, or does not go together.
    pub fn load(args: &ServeArgs, plan: &Plan, counts: &Counts) -> Result<Self, StageModelsError> {
        match args.stages {
            Stages::Fake => Self::fake(args, plan, counts),
            Stages::Real => Self::real(args, plan, counts),
        }
    }

    fn fake(args: &ServeArgs, plan: &Plan, counts: &Counts) -> Result<Self, StageModelsError> {
        let vad = match args.detector() {
            Detector::Energy => {
                let one = || Box::new(EnergyVad::new(plan.vad_batch.value().into())) as Box<dyn VadModel>;
                (0..counts.vad_workers).map(|_| one()).collect()
            }
            Detector::Silero => {
                let cache = Cache::open(args.cache.clone())?;
                let needed = [Artefact::OnnxRuntime, Artefact::SileroVad];
                cache.fetch(&needed, &mut *for_stderr())?;
                let library = Library::open(&cache.path(Artefact::OnnxRuntime))?;
                silero(&library, &cache.path(Artefact::SileroVad), plan, counts)?
            }
        };
        Ok(Self {
            vad,
            stt: (0..counts.stt_workers).map(|_| Box::new(FakeStt::new()) as Box<dyn SttModel>).collect(),
            tts: (0..counts.tts_workers).map(|_| Box::new(FakeTts) as Box<dyn TtsModel>).collect(),
            turn: None,
            voice_rate: SampleRate::HZ_24K,
        })
    }

    fn real(args: &ServeArgs, plan: &Plan, counts: &Counts) -> Result<Self, StageModelsError> {
        if args.detector() == Detector::Energy {
            return Err(StageModelsError::EnergyWithRealStages);
        }
        let cache = Cache::open(args.cache.clone())?;
        let local = args
            .llm_gguf
            .iter()
            .map(|path| (Artefact::LanguageModel, path.clone()))
            .collect::<BTreeMap<_, _>>();
        let files = ModelSet::resolve(
            &cache,
            &local,
            args.llm_url.is_none(),
            WhenMissing::Fetch,
            &mut *for_stderr(),
        )?;
        let library = Library::open(&files.onnxruntime)?;
        let options = GraphOptions { threads: plan.onnx_intra_op.value(), ..GraphOptions::default() };
        let paths = MoonshinePaths {
            encoder: &files.moonshine_encoder,
            decoder: &files.moonshine_decoder,
            tokenizer: &files.moonshine_tokenizer,
        };
        let moonshine = Moonshine::load(&library, paths, &options)?;
        let mut phonemizers = phonemizers(args.phonemizer, counts.tts_workers)?.into_iter();
        let first = phonemizers.next().expect("counts are never zero");
        let voice = Piper::load(&library, &files.piper_voice, &files.piper_config, &options, first)?;
        let voice_rate = voice.rate();
        let others = phonemizers.map(|phonemizer| voice.share(phonemizer)).collect::<Result<Vec<_>, _>>()?;
        let others_of_stt =
            (1..counts.stt_workers).map(|_| moonshine.share()).collect::<Result<Vec<_>, _>>()?;
        Ok(Self {
            vad: silero(&library, &files.silero_vad, plan, counts)?,
            stt: boxed(moonshine, others_of_stt, |model| Box::new(model) as Box<dyn SttModel>),
            tts: boxed(voice, others, |model| Box::new(model) as Box<dyn TtsModel>),
            turn: Some(Box::new(SmartTurn::load(&library, &files.smart_turn, &options)?)),
            voice_rate,
        })
    }
}

fn boxed<M, T>(first: M, others: Vec<M>, boxed: impl Fn(M) -> T) -> Vec<T> {
    std::iter::once(first).chain(others).map(boxed).collect()
}

fn silero(
    library: &Arc<Library>,
    path: &std::path::Path,
    plan: &Plan,
    counts: &Counts,
) -> Result<Vec<Box<dyn VadModel>>, ModelError> {
    // More threads inside one call cost more than they save on so small a network.
    let options = GraphOptions::default();
    let first = SileroVad::load(library, path, &options, plan.vad_batch.value().into())?;
    let others = (1..counts.vad_workers).map(|_| first.share()).collect::<Result<Vec<_>, _>>()?;
    Ok(boxed(first, others, |model| Box::new(model) as Box<dyn VadModel>))
}

fn phonemizers(kind: Phonemizer, workers: u16) -> Result<Vec<piper::Phonemizer>, StageModelsError> {
    match kind {
        Phonemizer::Dictionary => Ok((0..workers).map(|_| function(DictionaryPhonemizer::new())).collect()),
        Phonemizer::Espeak if workers == 1 => Ok(vec![function(Espeak::load(None, None)?)]),
        Phonemizer::Espeak => Err(StageModelsError::EspeakWorkers(workers)),
    }
}

fn function(mut phonemizer: impl Phonemize + 'static) -> piper::Phonemizer {
    Box::new(move |text, out| phonemizer.phonemes(text, out))
}
