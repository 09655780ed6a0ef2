//! The models of the stages: checked, fetched, loaded and warmed up, or fakes. Each worker has an instance; instances
//! share their weights.

use std::path::PathBuf;
use std::sync::Arc;

use crate::audio::SampleRate;
use crate::config::{Detector, Phonemizer, ServeArgs, Stages};
use crate::model::espeak::Espeak;
use crate::model::fake::{EnergyVad, FakeStt, FakeTts};
use crate::model::moonshine::{Moonshine, MoonshinePaths};
use crate::model::ort::{GraphOptions, Library};
use crate::model::piper::Piper;
use crate::model::silero_vad::SileroVad;
use crate::model::smart_turn::SmartTurn;
use crate::model::{ModelError, SttModel, TtsModel, TurnModel, VadModel};
use crate::profile::{Counts, Plan};
use crate::store::{Artefact, Cache, ModelSet, StoreError, WhenMissing, for_stderr};
use crate::text::{DictionaryPhonemizer, Phonemize};

/// Errors of the check, the fetch and the load of the stages' models.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StageModelsError {
    /// A file is missing, damaged or cannot be fetched.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A model could not be loaded or run.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// Too many workers for espeak-ng, which keeps its state in global variables.
    #[error(
        "found {0} synthesis workers, expected 1 with --phonemizer espeak: espeak-ng serves one thread per process"
    )]
    EspeakWorkers(u16),
    /// The fake detector beside real stages.
    #[error("found --vad energy, which is a fake, expected --stages fake beside it")]
    EnergyWithRealStages,
}

/// Models of the stages, one instance per worker.
pub struct StageModels {
    /// Voice activity detectors.
    pub vad: Vec<Box<dyn VadModel>>,
    /// Recognisers; empty if a server recognises speech.
    pub stt: Vec<Box<dyn SttModel>>,
    /// Voices; empty if a server synthesises speech.
    pub tts: Vec<Box<dyn TtsModel>>,
    /// Detector of the end of a turn; `None` with fake stages. No stage asks it yet.
    #[expect(dead_code, reason = "loaded, so that a missing file is found at the start")]
    pub turn: Option<Box<dyn TurnModel>>,
    /// Rate of the voice; with a server's voice, the rate that is asked for.
    pub voice_rate: SampleRate,
    /// Reason why the voice is run whole, if it is.
    pub whole_because: Option<String>,
}

impl std::fmt::Debug for StageModels {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageModels").field("voice_rate", &self.voice_rate).finish_non_exhaustive()
    }
}

/// The models that a server needs, before the fetch. Errors are found in this order: the flags, the files, the models.
pub struct StageLoader<'a> {
    args: &'a ServeArgs,
    plan: &'a Plan,
    counts: &'a Counts,
    /// `None` if no stage needs a file.
    cache: Option<Cache>,
    /// One phonemizer for each worker of the built-in voice.
    phonemizers: Vec<Box<dyn Phonemize>>,
}

impl std::fmt::Debug for StageLoader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StageLoader").field("cache", &self.cache).finish_non_exhaustive()
    }
}

/// The files that a server needs, all present.
#[derive(Debug)]
pub enum StageFiles {
    /// No files: every stage is a fake.
    None,
    /// Files of the detector beside fakes.
    Detector {
        /// ONNX Runtime's shared library.
        onnxruntime: PathBuf,
        /// Graph of Silero VAD.
        silero_vad: PathBuf,
    },
    /// Files of real stages.
    All(Box<ModelSet>),
}

impl<'a> StageLoader<'a> {
    /// Checks that the flags in `args` go together and that local files exist. Reads no model and no network.
    ///
    /// # Errors
    /// Returns an error if flags contradict each other, if the cache cannot be opened, or if the user's own model file
    /// or the requested espeak-ng is missing.
    pub fn check(args: &'a ServeArgs, plan: &'a Plan, counts: &'a Counts) -> Result<Self, StageModelsError> {
        let is_real = args.stages == Stages::Real;
        if is_real && args.detector() == Detector::Energy {
            return Err(StageModelsError::EnergyWithRealStages);
        }
        if let Some(path) = args.llm_gguf.as_ref().filter(|path| is_real && !path.is_file()) {
            let expected = Artefact::LanguageModel.to_string();
            return Err(StoreError::Missing { path: path.clone(), expected }.into());
        }
        let phonemizers = match args.tts_url {
            None if is_real => phonemizers(args.phonemizer, counts.tts_workers)?,
            _ => Vec::new(),
        };
        let needs_files = is_real || args.detector() == Detector::Silero;
        let cache = needs_files.then(|| Cache::open(args.cache.clone())).transpose()?;
        Ok(Self { args, plan, counts, cache, phonemizers })
    }

    /// Fetches the files that are missing, and compares all files with their SHA-256.
    ///
    /// # Errors
    /// Returns the error of the first file that cannot be fetched or does not match.
    pub fn fetch(&self) -> Result<StageFiles, StageModelsError> {
        let Some(cache) = &self.cache else { return Ok(StageFiles::None) };
        let progress = &mut *for_stderr();
        if self.args.stages == Stages::Fake {
            cache.fetch(&[Artefact::OnnxRuntime, Artefact::SileroVad], progress)?;
            return Ok(StageFiles::Detector {
                onnxruntime: cache.path(Artefact::OnnxRuntime),
                silero_vad: cache.path(Artefact::SileroVad),
            });
        }
        let local = self.args.llm_gguf.iter().map(|path| (Artefact::LanguageModel, path.clone())).collect();
        let files = ModelSet::resolve(cache, &local, &elsewhere(self.args), WhenMissing::Fetch, progress)?;
        Ok(StageFiles::All(Box::new(files)))
    }

    /// Loads the models and runs each one once.
    ///
    /// # Errors
    /// Returns the error of the first model, or of its library, that fails to load or run.
    pub fn load(self, files: &StageFiles) -> Result<StageModels, StageModelsError> {
        match files {
            StageFiles::None => Ok(self.fake(self.energy())),
            StageFiles::Detector { onnxruntime, silero_vad } => {
                let library = Library::open(onnxruntime)?;
                Ok(self.fake(silero(&library, silero_vad, self.plan, self.counts)?))
            }
            StageFiles::All(files) => Ok(self.real(files)?),
        }
    }

    fn energy(&self) -> Vec<Box<dyn VadModel>> {
        let one = || Box::new(EnergyVad::new(self.plan.vad_batch.value().into())) as Box<dyn VadModel>;
        (0..self.counts.vad_workers).map(|_| one()).collect()
    }

    fn fake(&self, vad: Vec<Box<dyn VadModel>>) -> StageModels {
        let stt_workers = if self.args.stt_url.is_some() { 0 } else { self.counts.stt_workers };
        let tts_workers = if self.args.tts_url.is_some() { 0 } else { self.counts.tts_workers };
        StageModels {
            vad,
            stt: (0..stt_workers).map(|_| Box::new(FakeStt::new()) as Box<dyn SttModel>).collect(),
            tts: (0..tts_workers).map(|_| Box::new(FakeTts) as Box<dyn TtsModel>).collect(),
            turn: None,
            voice_rate: SampleRate::HZ_24K,
            whole_because: None,
        }
    }

    fn real(self, files: &ModelSet) -> Result<StageModels, ModelError> {
        let Self { args, plan, counts, phonemizers, .. } = self;
        let library = Library::open(&files.onnxruntime)?;
        let options = GraphOptions { threads: plan.onnx_intra_op.value(), ..GraphOptions::default() };
        let stt = match args.stt_url {
            Some(_) => Vec::new(),
            None => moonshine(&library, files, &options, counts.stt_workers)?,
        };
        let voices = match args.tts_url {
            Some(_) => Voices { models: Vec::new(), rate: SampleRate::HZ_24K, whole_because: None },
            None => piper(&library, files, &options, phonemizers)?,
        };
        Ok(StageModels {
            vad: silero(&library, &files.silero_vad, plan, counts)?,
            stt,
            tts: voices.models,
            turn: Some(Box::new(SmartTurn::load(&library, &files.smart_turn, &options)?)),
            voice_rate: voices.rate,
            whole_because: voices.whole_because,
        })
    }
}

/// Returns the files of the models that other servers run.
fn elsewhere(args: &ServeArgs) -> Vec<Artefact> {
    let models = [
        (&args.llm_url, &[Artefact::LanguageModel][..]),
        (
            &args.stt_url,
            &[Artefact::MoonshineEncoder, Artefact::MoonshineDecoder, Artefact::MoonshineTokenizer],
        ),
        (&args.tts_url, &[Artefact::PiperVoice, Artefact::PiperConfig]),
    ];
    let remote = models.iter().filter(|(url, _)| url.is_some());
    remote.flat_map(|(_, artefacts)| artefacts.iter().copied()).collect()
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
    // On so small a network, more threads inside one call cost more than they save.
    let options = GraphOptions::default();
    let first = SileroVad::load(library, path, &options, plan.vad_batch.value().into())?;
    let others = (1..counts.vad_workers).map(|_| first.share()).collect::<Result<Vec<_>, _>>()?;
    Ok(boxed(first, others, |model| Box::new(model) as Box<dyn VadModel>))
}

fn moonshine(
    library: &Arc<Library>,
    files: &ModelSet,
    options: &GraphOptions,
    workers: u16,
) -> Result<Vec<Box<dyn SttModel>>, ModelError> {
    let paths = MoonshinePaths {
        encoder: &files.moonshine_encoder,
        decoder: &files.moonshine_decoder,
        tokenizer: &files.moonshine_tokenizer,
    };
    let first = Moonshine::load(library, paths, options)?;
    let others = (1..workers).map(|_| first.share()).collect::<Result<Vec<_>, _>>()?;
    Ok(boxed(first, others, |model| Box::new(model) as Box<dyn SttModel>))
}

/// The instances of one voice.
struct Voices {
    models: Vec<Box<dyn TtsModel>>,
    rate: SampleRate,
    /// Reason why the voice is run whole, if it is.
    whole_because: Option<String>,
}

/// Loads one instance of the voice for each of `phonemizers`.
fn piper(
    library: &Arc<Library>,
    files: &ModelSet,
    options: &GraphOptions,
    phonemizers: Vec<Box<dyn Phonemize>>,
) -> Result<Voices, ModelError> {
    let mut phonemizers = phonemizers.into_iter();
    let first = phonemizers.next().expect("counts are never zero");
    let first = Piper::load(library, &files.piper_voice, &files.piper_config, options, first)?;
    let (rate, whole_because) = (first.rate(), first.whole_because().map(str::to_owned));
    let others = phonemizers.map(|phonemizer| first.share(phonemizer)).collect::<Result<Vec<_>, _>>()?;
    let models = boxed(first, others, |model| Box::new(model) as Box<dyn TtsModel>);
    Ok(Voices { models, rate, whole_because })
}

fn phonemizers(kind: Phonemizer, workers: u16) -> Result<Vec<Box<dyn Phonemize>>, StageModelsError> {
    match kind {
        Phonemizer::Dictionary => {
            Ok((0..workers).map(|_| Box::new(DictionaryPhonemizer::new()) as _).collect())
        }
        Phonemizer::Espeak if workers == 1 => Ok(vec![Box::new(Espeak::load(None, None)?)]),
        Phonemizer::Espeak => Err(StageModelsError::EspeakWorkers(workers)),
    }
}
