//! Text → phonemes → speech → text: word errors per kind of sentence, for the built-in phonemizer, and for espeak-ng if
//! that is installed. Voice and recogniser are the same; compare the rows with each other, not with zero.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench reads clocks and starts processes"
)]

mod report;

use std::path::Path;

use antiphon::door::audio::{Resampler, SampleRate, pcm};
use antiphon::door::limits::{CLAUSE_TEXT_BYTES, MADE_MAX};
use antiphon::door::model::espeak::Espeak;
use antiphon::door::model::moonshine::{Moonshine, MoonshinePaths};
use antiphon::door::model::ort::{GraphOptions, Library};
use antiphon::door::model::piper::Piper;
use antiphon::door::model::{Speech, SttModel, TtsModel};
use antiphon::door::store::{Artefact, Cache, ModelSet, WhenMissing, for_stderr};
use antiphon::door::text::{DictionaryPhonemizer, Phonemize, WordErrors, normalise, word_errors};
use report::Series;
use serde_json::json;

const KINDS: [&str; 5] = ["plain", "assistant", "names", "numbers", "rare"];

/// Syntheses of each sentence, since the voice is random. A smoke run has one, of one sentence per kind.
const REPEATS: usize = 3;

fn main() {
    let cache = Cache::open(None).expect("a cache directory");
    let files = ModelSet::resolve(
        &cache,
        &Default::default(),
        &[Artefact::LanguageModel],
        WhenMissing::Fetch,
        &mut *for_stderr(),
    )
    .expect("the models can be fetched");
    let library = Library::open(&files.onnxruntime).expect("ONNX Runtime");
    let options = GraphOptions::default();
    let paths = MoonshinePaths {
        encoder: &files.moonshine_encoder,
        decoder: &files.moonshine_decoder,
        tokenizer: &files.moonshine_tokenizer,
    };
    let mut moonshine = Moonshine::load(&library, paths, &options).expect("Moonshine");
    let mut phonemizers: Vec<(&str, Box<dyn Phonemize>)> =
        vec![("dictionary", Box::new(DictionaryPhonemizer::new()))];
    match Espeak::load(None, None) {
        Ok(espeak) => phonemizers.push(("espeak", Box::new(espeak))),
        Err(error) => eprintln!("espeak-ng is not compared: {error}"),
    }
    for (name, phonemizer) in phonemizers {
        let phonemizer = Box::new(Normalised(phonemizer));
        let piper = Piper::load(&library, &files.piper_voice, &files.piper_config, &options, phonemizer);
        let mut piper = piper.expect("the voice");
        let rows = KINDS.map(|kind| (kind, round_trip(kind, &mut piper, &mut moonshine)));
        let mut series: Vec<_> = rows.iter().map(|(kind, errors)| row(kind, *errors)).collect();
        series.push(row("all", rows.iter().map(|(_, errors)| *errors).sum()));
        report::print("round_trip", "", json!({ "phonemizer": name, "syntheses": repeats() }), &series);
    }
}

/// A phonemizer that gets text from our normaliser, espeak-ng included, so that only the phonemes differ.
struct Normalised(Box<dyn Phonemize>);

impl Phonemize for Normalised {
    fn phonemes(&mut self, text: &str, out: &mut String) {
        let mut words = String::new();
        normalise(text, &mut words);
        self.0.phonemes(&words, out);
    }
}

fn repeats() -> usize {
    if report::is_measurement() { REPEATS } else { 1 }
}

fn row(kind: &'static str, errors: WordErrors) -> Series {
    let mut series = Series::new(kind, "word error rate, %");
    series.values.push(errors.rate() * 100.0);
    series
}

fn round_trip(kind: &str, piper: &mut Piper, moonshine: &mut Moonshine) -> WordErrors {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/golden/sentences/{kind}.txt"));
    let text = std::fs::read_to_string(&path).expect("the sentences are in the tree");
    let lines: Vec<_> = text.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines.len(), 12, "{}", path.display());
    let sentences = if report::is_measurement() { lines.len() } else { 1 };
    let mut speech = Speech::new(CLAUSE_TEXT_BYTES, MADE_MAX, piper.rate());
    let mut heard = String::new();
    let mut errors = WordErrors::default();
    for line in &lines[..sentences] {
        let (sentence, words) = line.split_once('\t').expect("sentence, tab, words");
        for _ in 0..repeats() {
            let audio = at_16k(&say(piper, sentence, &mut speech), speech.rate);
            moonshine.transcribe(&audio, &|| false, &mut heard).expect("recognition");
            errors += word_errors(words, &heard);
        }
    }
    errors
}

fn say(piper: &mut Piper, text: &str, speech: &mut Speech) -> Vec<f32> {
    speech.clear();
    speech.text.push_str(text);
    piper.begin(1.0, SampleRate::HZ_24K, speech).expect("synthesis");
    let mut pcm = Vec::new();
    let mut sink = |piece: &[f32]| pcm.extend_from_slice(piece);
    while piper.proceed(&|| false, speech, &mut sink).expect("synthesis") {}
    pcm
}

fn at_16k(samples: &[f32], rate: SampleRate) -> Vec<i16> {
    let mut resampler = Resampler::new(rate, SampleRate::HZ_16K).expect("named rates");
    let mut audio = Vec::new();
    let mut sink = |block: &[f32]| audio.extend(block.iter().map(|sample| pcm::to_i16(*sample)));
    resampler.push(samples, &mut sink);
    resampler.finish(&mut sink);
    audio
}
