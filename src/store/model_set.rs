//! The model files of one server, resolved to paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::error::StoreError;
use super::manifest::Artefact;
use super::progress::Progress;

/// Reaction to a file that is missing or wrong in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenMissing {
    /// Fetch the file.
    Fetch,
    /// Fail with an error that names the file.
    Fail,
}

/// The model files of one server. When the set was made, each path was a file, and a file of the cache had the
/// manifest's SHA-256. Paths of models that are elsewhere are not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSet {
    /// ONNX Runtime's shared library.
    pub onnxruntime: PathBuf,
    /// Silero VAD graph.
    pub silero_vad: PathBuf,
    /// Smart Turn graph.
    pub smart_turn: PathBuf,
    /// Moonshine encoder graph.
    pub moonshine_encoder: PathBuf,
    /// Moonshine decoder graph.
    pub moonshine_decoder: PathBuf,
    /// Moonshine vocabulary.
    pub moonshine_tokenizer: PathBuf,
    /// Piper voice graph.
    pub piper_voice: PathBuf,
    /// Piper voice table.
    pub piper_config: PathBuf,
    /// GGUF file of the built-in language model; `None` if a server at an URL does its work.
    pub language_model: Option<PathBuf>,
}

impl ModelSet {
    /// Resolves every file that a server needs. A path in `local`, named by the user, is taken as it is; other files
    /// are in the cache. The artefacts in `elsewhere` are not needed: they are neither fetched nor checked. The table
    /// of a voice in `local` is at the voice's path with `.json` appended, unless `local` names the table too.
    ///
    /// # Errors
    /// [`StoreError::Missing`] for a local path that is no file; the errors of [`Cache::fetch`] with
    /// [`WhenMissing::Fetch`], of [`Cache::verify`] with [`WhenMissing::Fail`].
    pub fn resolve(
        cache: &Cache,
        local: &BTreeMap<Artefact, PathBuf>,
        elsewhere: &[Artefact],
        when_missing: WhenMissing,
        progress: &mut dyn Progress,
    ) -> Result<Self, StoreError> {
        let mut local = local.clone();
        if let Some(voice) = local.get(&Artefact::PiperVoice) {
            let table = appended(voice, ".json");
            local.entry(Artefact::PiperConfig).or_insert(table);
        }
        for (artefact, path) in &local {
            if !path.is_file() {
                return Err(StoreError::Missing { path: path.clone(), expected: artefact.to_string() });
            }
        }
        let needed = |artefact: &Artefact| !elsewhere.contains(artefact);
        let cached: Vec<_> = Artefact::ALL
            .iter()
            .copied()
            .filter(|artefact| needed(artefact) && !local.contains_key(artefact))
            .collect();
        match when_missing {
            WhenMissing::Fetch => cache.fetch(&cached, progress)?,
            WhenMissing::Fail => cached.iter().try_for_each(|&artefact| cache.verify(artefact))?,
        }
        let mut path = |artefact| local.remove(&artefact).unwrap_or_else(|| cache.path(artefact));
        Ok(Self {
            onnxruntime: path(Artefact::OnnxRuntime),
            silero_vad: path(Artefact::SileroVad),
            smart_turn: path(Artefact::SmartTurn),
            moonshine_encoder: path(Artefact::MoonshineEncoder),
            moonshine_decoder: path(Artefact::MoonshineDecoder),
            moonshine_tokenizer: path(Artefact::MoonshineTokenizer),
            piper_voice: path(Artefact::PiperVoice),
            piper_config: path(Artefact::PiperConfig),
            language_model: needed(&Artefact::LanguageModel).then(|| path(Artefact::LanguageModel)),
        })
    }
}

fn appended(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::progress::Quiet;
    use super::*;

    #[test]
    fn local_files_stand_in_for_the_cache() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let mut local = BTreeMap::new();
        for &artefact in Artefact::ALL.iter().filter(|&&artefact| artefact != Artefact::PiperConfig) {
            let path = folder.path().join(format!("{artefact:?}"));
            fs::write(&path, "anything").expect("writable");
            local.insert(artefact, path);
        }
        let voice = local[&Artefact::PiperVoice].clone();
        let table = appended(&voice, ".json");
        let cache = Cache::open(Some(folder.path().join("cache"))).expect("a cache");
        let resolve = || ModelSet::resolve(&cache, &local, &[], WhenMissing::Fail, &mut Quiet);

        let error = resolve().expect_err("the voice's table is not there").to_string();
        assert!(error.contains(&table.display().to_string()), "{error}");

        fs::write(&table, "{}").expect("writable");
        let set = resolve().expect("everything is local");
        assert_eq!((set.piper_voice, set.piper_config), (voice, table));
        assert_eq!(set.language_model.as_ref(), local.get(&Artefact::LanguageModel));
    }

    #[test]
    fn without_fetching_the_first_missing_file_is_named() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::open(Some(folder.path().to_owned())).expect("a cache");
        let elsewhere = [Artefact::LanguageModel];
        let error = ModelSet::resolve(&cache, &BTreeMap::new(), &elsewhere, WhenMissing::Fail, &mut Quiet)
            .expect_err("an empty cache");
        assert!(
            matches!(&error, StoreError::Missing { path, .. } if *path == cache.path(Artefact::OnnxRuntime))
        );
    }
}
