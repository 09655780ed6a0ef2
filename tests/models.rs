//! The real models still hear and speak: what a unit test cannot show.
//!
//! The model files are fetched if they are missing; the clips are in `tests/golden/speech`. No test is skipped.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::unwrap_used,
    clippy::needless_range_loop,
    reason = "a test may wait, and fails by panicking"
)]

use std::alloc::System;
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use antiphon::door::audio::{Resampler, SampleRate, pcm};
use antiphon::door::language::Language;
use antiphon::door::limits::PIECE_SAMPLES_MAX;
use antiphon::door::model::moonshine::{Moonshine, MoonshinePaths};
use antiphon::door::model::ort::{Graph, GraphOptions, Library, Provider, Terminate};
use antiphon::door::model::piper::Piper;
use antiphon::door::model::silero_vad::SileroVad;
use antiphon::door::model::smart_turn::SmartTurn;
use antiphon::door::model::{
    DETECTOR_WINDOW, DetectorStream, ModelError, Speech, SpeechSource, SttModel, TtsModel, TurnModel,
    VadModel,
};
use antiphon::door::rt::alloc::{AllocPhase, HeapCalls, PhaseAllocator};
use antiphon::door::store::{Artefact, Cache};
use antiphon::door::text::Phonemize;
use antiphon::door::text::{WordErrors, word_errors};

#[global_allocator]
static ALLOCATOR: PhaseAllocator<System> = PhaseAllocator(System);

/// Heap calls of a thread that does nothing but `work`.
fn heap_calls(work: impl FnOnce() + Send) -> u64 {
    let calls: &'static HeapCalls = Box::leak(Box::new(HeapCalls::new("test".to_owned())));
    let work = || {
        AllocPhase::transition_from_init_to_static(calls);
        work();
        calls.own()
    };
    std::thread::scope(|scope| scope.spawn(work).join().unwrap())
}

/// The file in the cache; fetched if it is missing.
fn model(artefact: Artefact) -> PathBuf {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    let cache = CACHE.get_or_init(|| {
        let cache = Cache::open(None).expect("a cache directory");
        let stages: Vec<_> =
            Artefact::ALL.iter().copied().filter(|artefact| *artefact != Artefact::LanguageModel).collect();
        cache.fetch(&stages, &mut *antiphon::door::store::for_stderr()).expect("the models can be fetched");
        cache
    });
    cache.path(artefact)
}

fn library() -> &'static Arc<Library> {
    static LIBRARY: OnceLock<Arc<Library>> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::open(&model(Artefact::OnnxRuntime)).unwrap())
}

/// A clip at 16 kHz.
fn wav(path: &Path) -> Vec<i16> {
    let mut reader =
        hound::WavReader::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert_eq!(reader.spec().channels, 1);
    let samples: Vec<i16> = reader.samples::<i16>().map(Result::unwrap).collect();
    to_16k(&samples, SampleRate::new(reader.spec().sample_rate).unwrap())
}

fn to_16k<S: pcm::Sample>(samples: &[S], rate: SampleRate) -> Vec<i16> {
    let mut resampler = Resampler::new(rate, SampleRate::HZ_16K).unwrap();
    let mut output = Vec::new();
    let mut sink = |block: &[f32]| output.extend(block.iter().map(|&sample| pcm::to_i16(sample)));
    resampler.push(samples, &mut sink);
    resampler.finish(&mut sink);
    output
}

/// Recorded clips and what is said in them.
fn clips() -> Vec<(Vec<i16>, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech");
    let list =
        std::fs::read_to_string(folder.join("transcripts.tsv")).expect("the transcripts are in the tree");
    let clip = |line: &str| {
        let (name, words) = line.split_once('\t').expect("name, tab, words");
        (wav(&folder.join(format!("{name}.wav"))), words.to_owned())
    };
    let clips: Vec<_> = list.lines().map(clip).collect();
    assert_eq!(clips.len(), 10);
    clips
}

fn moonshine() -> Moonshine {
    let (encoder, decoder) = (model(Artefact::MoonshineEncoder), model(Artefact::MoonshineDecoder));
    let tokenizer = model(Artefact::MoonshineTokenizer);
    let paths = MoonshinePaths { encoder: &encoder, decoder: &decoder, tokenizer: &tokenizer };
    Moonshine::load(library(), paths, &GraphOptions::default()).unwrap()
}

fn silero(rows_max: usize) -> SileroVad {
    SileroVad::load(library(), &model(Artefact::SileroVad), &GraphOptions::default(), rows_max).unwrap()
}

fn smart_turn() -> SmartTurn {
    SmartTurn::load(library(), &model(Artefact::SmartTurn), &GraphOptions::default()).unwrap()
}

const fn shared_by_threads<T: Send + Sync>() {}
const _: () = {
    shared_by_threads::<Library>();
    shared_by_threads::<Graph>();
    shared_by_threads::<Terminate>();
};

/// What the three sentences of the round trip sound like, in the way of espeak's `en-us`.
const SENTENCES: [(&str, &str); 3] = [
    ("Good morning, how are you today?", "ɡʊd mˈɔːɹnɪŋ, hˌaʊ ɑːɹ juː tədˈeɪ?"),
    ("The train to the city leaves at seven.", "ðə tɹˈeɪn tə ðə sˈɪɾi lˈiːvz æt sˈɛvən."),
    ("I will send you the report tomorrow afternoon.", "aɪ wɪl sˈɛnd juː ðə ɹᵻpˈoːɹt təmˈɑːɹoʊ ˌæftɚnˈuːn."),
];

/// The phonemes of [`SENTENCES`], and none of any other text.
struct Recited;

impl Phonemize for Recited {
    fn phonemes(&mut self, text: &str, phonemes: &mut String) {
        for sentence in text.split_inclusive(['.', '?']) {
            if let Some((_, sounds)) = SENTENCES.iter().find(|(known, _)| *known == sentence.trim()) {
                phonemes.push_str(sounds);
                phonemes.push(' ');
            }
        }
    }
}

fn piper() -> Piper {
    let path = model(Artefact::PiperVoice);
    let description = model(Artefact::PiperConfig);
    Piper::load(library(), &path, &description, &GraphOptions::default(), Box::new(Recited)).unwrap()
}

fn speech(samples: usize) -> Speech {
    Speech::new(1_024, samples, SampleRate::HZ_8K)
}

/// Speaks `text`; returns its samples.
fn say(
    piper: &mut Piper,
    text: &str,
    speed: f32,
    stale: &dyn Fn() -> bool,
    speech: &mut Speech,
) -> Result<Vec<f32>, ModelError> {
    let mut pcm = Vec::with_capacity(PCM_SAMPLES);
    speech.clear();
    speech.text.push_str(text);
    piper.begin(speed, SampleRate::HZ_24K, speech)?;
    let mut sink = |piece: &[f32]| {
        assert!(piece.len() <= PIECE_SAMPLES_MAX);
        pcm.extend_from_slice(piece);
    };
    while piper.proceed(stale, speech, &mut sink)? {}
    Ok(pcm)
}

/// Room for the longest text of these tests.
const PCM_SAMPLES: usize = 2_000_000;

/// The probability for each window of `audio`.
fn score(vad: &mut SileroVad, stream: &mut DetectorStream, audio: &[i16]) -> Vec<f32> {
    let mut scores = Vec::new();
    for window in audio.as_chunks::<DETECTOR_WINDOW>().0 {
        vad.load(0, stream, window);
        vad.run(1).unwrap();
        scores.push(vad.store(0, stream));
    }
    scores
}

#[test]
fn the_detector_hears_speech_and_nothing_else() {
    let mut vad = silero(1);
    let mut stream = DetectorStream::new();
    let silence = score(&mut vad, &mut stream, &vec![0; 64_000]);
    assert!(silence.iter().all(|&score| score < 0.1), "{silence:?}");
    for (audio, said) in clips() {
        stream.reset();
        let scores = score(&mut vad, &mut stream, &audio);
        assert!(scores.iter().all(|score| (0.0..=1.0).contains(score)));
        let share = scores.iter().filter(|&&score| score > 0.5).count() as f32 / scores.len() as f32;
        assert!(share > 0.5, "{said}: speech in {share} of the windows");
    }
}

#[test]
fn rows_of_a_batch_do_not_hear_each_other() {
    let clips = clips();
    let mut vad = silero(8);
    let windows = 60;
    let alone: Vec<Vec<f32>> = clips[..8]
        .iter()
        .map(|clip| {
            score(
                &mut vad,
                &mut DetectorStream::new(),
                &clip.0[..DETECTOR_WINDOW * windows.min(clip.0.len() / DETECTOR_WINDOW)],
            )
        })
        .collect();
    for rows in [2, 3, 8] {
        let mut streams = vec![DetectorStream::new(); rows];
        for n in 0..alone[..rows].iter().map(Vec::len).min().unwrap() {
            // Rows are given in another order for every window.
            let caller = |row: usize| (row + n) % rows;
            for row in 0..rows {
                let window = clips[caller(row)].0.as_chunks().0[n];
                vad.load(row, &streams[caller(row)], &window);
            }
            vad.run(rows).unwrap();
            for row in 0..rows {
                let score = vad.store(row, &mut streams[caller(row)]);
                let expected = alone[caller(row)][n];
                assert!(
                    (score - expected).abs() < 1e-5,
                    "row {row} of {rows}, window {n}: {score}, alone {expected}"
                );
            }
        }
    }
}

#[test]
fn a_detector_that_was_reset_is_a_fresh_one() {
    let clips = clips();
    let fresh = score(&mut silero(1), &mut DetectorStream::new(), &clips[1].0);
    let mut used = silero(1);
    let mut stream = DetectorStream::new();
    let first = score(&mut used, &mut stream, &clips[0].0);
    let without_reset = score(&mut used, &mut stream.clone(), &clips[1].0);
    stream.reset();
    assert_eq!(score(&mut used, &mut stream, &clips[1].0), fresh);
    assert_ne!(without_reset, fresh, "the state matters");
    let mut shared = used.share().unwrap();
    assert_eq!(score(&mut shared, &mut DetectorStream::new(), &clips[0].0), first);
}

#[test]
fn runs_of_fixed_shape_make_no_heap_call() {
    let clips = clips();
    let mut vad = silero(4);
    let mut streams = vec![DetectorStream::new(); 4];
    let calls = heap_calls(|| {
        for (n, window) in clips[0].0.as_chunks::<DETECTOR_WINDOW>().0.iter().enumerate() {
            let rows = n % 4 + 1;
            for (row, stream) in streams[..rows].iter().enumerate() {
                vad.load(row, stream, window);
            }
            vad.run(rows).unwrap();
            for (row, stream) in streams[..rows].iter_mut().enumerate() {
                vad.store(row, stream);
            }
        }
    });
    assert_eq!(calls, 0, "detector");
    let mut turn = smart_turn();
    assert_eq!(heap_calls(|| _ = turn.completion(&clips[0].0).unwrap()), 0, "turn");
    let mut moonshine = moonshine();
    let mut transcript = String::with_capacity(1_000);
    let calls = heap_calls(|| {
        let language = moonshine.transcribe(&clips[0].0, &|| false, &mut transcript).unwrap();
        assert_eq!(language, Some(Language::english()));
    });
    assert_eq!(calls, 0, "recognition");
    let (mut piper, mut speech, mut pcm) = (piper(), speech(500_000), Vec::with_capacity(PCM_SAMPLES));
    let calls = heap_calls(|| {
        speech.text.push_str(SENTENCES[0].0);
        piper.begin(1.0, SampleRate::HZ_24K, &mut speech).unwrap();
        while piper.proceed(&|| false, &mut speech, &mut |piece| pcm.extend_from_slice(piece)).unwrap() {}
    });
    assert_eq!(calls, 0, "voice");
    let mut resampler = Resampler::new(SampleRate::HZ_24K, SampleRate::HZ_16K).unwrap();
    Resampler::prepare();
    let mut sum = 0.0;
    let calls = heap_calls(|| {
        let mut sink = |block: &[f32]| sum += block.iter().sum::<f32>();
        resampler.push(&clips[0].0, &mut sink);
        resampler.finish(&mut sink);
        resampler.set_rates(SampleRate::HZ_22K, SampleRate::HZ_24K).unwrap();
        resampler.push(&pcm, &mut sink);
    });
    assert_eq!(calls, 0, "resampler");
    assert!(heap_calls(|| drop(std::hint::black_box(Box::new(1)))) > 0, "the allocator counts");
}

#[test]
fn recorded_speech_is_understood() {
    let mut moonshine = moonshine();
    let mut transcript = String::new();
    let mut errors = WordErrors::default();
    for (audio, said) in clips() {
        moonshine.transcribe(&audio, &|| false, &mut transcript).unwrap();
        println!("{said} | {transcript}");
        errors += word_errors(&said, &transcript);
    }
    assert!(errors.rate() <= 0.05, "{errors:?}");
}

/// Longer than the network takes at once: it is cut where nobody speaks, and no word is lost there.
#[test]
fn a_long_utterance_is_understood_to_its_end() {
    let (mut audio, mut said) = (Vec::new(), String::new());
    for (clip, words) in clips().into_iter().filter(|(clip, _)| clip.len() > 40_000) {
        audio.extend_from_slice(&clip);
        said = format!("{said} {words}");
    }
    let (audio, said) = ([audio.as_slice(), &audio].concat(), format!("{said} {said}"));
    assert!(audio.len() > 40 * 16_000, "{} samples", audio.len());
    let mut transcript = String::new();
    moonshine().transcribe(&audio, &|| false, &mut transcript).unwrap();
    let errors = word_errors(&said, &transcript);
    assert!(errors.rate() <= 0.12, "{errors:?}: {transcript}");
}

#[test]
fn stale_work_is_given_up_between_steps() {
    let audio = &clips()[0].0;
    let mut moonshine = moonshine();
    let mut transcript = String::new();
    for most in [0, 1, 5] {
        let asked = Cell::new(0);
        let stale = || asked.replace(asked.get() + 1) == most;
        assert!(matches!(moonshine.transcribe(audio, &stale, &mut transcript), Err(ModelError::Stale)));
        assert_eq!(asked.get(), most + 1);
    }
    moonshine.transcribe(audio, &|| false, &mut transcript).unwrap();
    assert!(transcript.contains("John Dashwood"), "{transcript}");
    let (mut piper, mut speech) = (piper(), speech(500_000));
    for most in [0, 1, 2] {
        let asked = Cell::new(0);
        let stale = || asked.replace(asked.get() + 1) == most;
        let done = say(&mut piper, SENTENCES[0].0, 1.0, &stale, &mut speech);
        assert!(matches!(done, Err(ModelError::Stale)) && asked.get() == most + 1, "{done:?}");
    }
}

/// The stop comes from another thread while the network runs; the work is stale only once it has begun.
#[test]
fn a_run_is_ended_from_another_thread() {
    let (mut piper, mut speech) = (piper(), speech(2_000_000));
    let text = SENTENCES.map(|(text, _)| text).join(" ");
    let (begun, ended) = (AtomicBool::new(false), AtomicBool::new(false));
    let terminate = piper.terminate();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Acquire) {
                if begun.load(Ordering::Acquire) {
                    terminate.stop();
                }
                std::thread::yield_now();
            }
        });
        // Not stale when asked before a run, stale when asked after a run that was stopped: so the run itself
        // ended.
        let asked = Cell::new(0);
        let stale = || {
            begun.store(true, Ordering::Release);
            asked.replace(asked.get() + 1) > 0
        };
        let done = say(&mut piper, &text, 1.0, &stale, &mut speech);
        ended.store(true, Ordering::Release);
        assert!(matches!(done, Err(ModelError::Stale)), "{done:?}");
        assert!(speech.made.is_empty(), "the first run was stopped");
    });
    let pcm = say(&mut piper, &text, 1.0, &|| false, &mut speech).unwrap();
    assert!(pcm.len() > 60_000, "the voice speaks again");
}

#[test]
fn whole_sentences_are_complete_and_cut_ones_less_so() {
    let mut turn = smart_turn();
    let (mut whole, mut cut) = (0.0, 0.0);
    let clips = clips();
    for (audio, said) in &clips[..5] {
        let mut with_silence = audio.clone();
        with_silence.extend([0; 3_200]);
        let mut half = audio[..audio.len() / 2].to_vec();
        half.extend([0; 3_200]);
        let scores = (turn.completion(&with_silence).unwrap(), turn.completion(&half).unwrap());
        println!("{said}: whole {:.3}, cut {:.3}", scores.0, scores.1);
        whole += scores.0 / 5.0;
        cut += scores.1 / 5.0;
    }
    assert!(whole > 0.6 && cut < whole - 0.2, "whole {whole}, cut {cut}");
}

#[test]
fn what_is_spoken_is_understood() {
    let (mut piper, mut moonshine) = (piper(), moonshine());
    let mut shared = piper.share(Box::new(Recited)).unwrap();
    let mut speech = speech(20 * 22_050);
    let mut transcript = String::new();
    let mut errors = WordErrors::default();
    for (text, _) in SENTENCES {
        for piper in [&mut piper, &mut shared] {
            let pcm = say(piper, text, 1.0, &|| false, &mut speech).unwrap();
            assert_eq!((speech.rate, speech.source), (SampleRate::HZ_22K, SpeechSource::Model));
            let peak = pcm.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
            assert!((0.05..=1.0).contains(&peak), "peak {peak}");
            let lead = pcm.iter().position(|sample| sample.abs() > 0.02).unwrap();
            assert!(lead < 22_050 / 20, "{lead} samples of silence first");
            moonshine.transcribe(&to_16k(&pcm, speech.rate), &|| false, &mut transcript).unwrap();
            println!("{text} | {transcript} | {} s, peak {peak}", pcm.len() as f32 / 22_050.0);
            errors += word_errors(text, &transcript);
        }
    }
    assert!(errors.rate() <= 0.1, "{errors:?}");
    let silence = say(&mut piper, "...", 1.0, &|| false, &mut speech).unwrap();
    assert!(silence.is_empty(), "nothing to speak");
}

#[test]
fn speech_is_as_fast_as_asked_and_never_larger_than_its_room() {
    let mut piper = piper();
    piper.set_steady();
    let text = SENTENCES[0].0;
    let mut lasts = |speed, room| {
        let mut speech = speech(room);
        let room = speech.made.capacity();
        let samples = say(&mut piper, text, speed, &|| false, &mut speech).unwrap().len();
        assert_eq!(speech.made.capacity(), room, "the buffer did not grow");
        samples
    };
    let normal = lasts(1.0, 1_000_000);
    let slow = lasts(0.5, 1_000_000);
    assert!((1.6..2.2).contains(&(slow as f32 / normal as f32)), "{normal}, slow {slow}");
    // 192 numbers of a frame become 256 samples. Each sound takes two frames at least, so half the room is too little.
    let room = normal * 192 / 256 * 2 / 3;
    let hurried = lasts(1.0, room);
    assert!((normal / 4..=normal * 2 / 3).contains(&hurried), "{hurried} samples instead of {normal}");
}

/// The voice in a file that cannot be cut, because the first weights of its decoder have another name.
fn uncut_piper() -> Piper {
    let (name, other) = (b"dec.conv_pre.weight", b"dec.conv_pre.weighs");
    let mut file = std::fs::read(model(Artefact::PiperVoice)).unwrap();
    let places: Vec<_> = (0..file.len() - name.len()).filter(|&at| file[at..].starts_with(name)).collect();
    assert!(!places.is_empty());
    places.iter().for_each(|&at| file[at..at + name.len()].copy_from_slice(other));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("uncut.onnx");
    std::fs::write(&path, file).unwrap();
    let description = model(Artefact::PiperConfig);
    Piper::load(library(), &path, &description, &GraphOptions::default(), Box::new(Recited)).unwrap()
}

/// The pieces of a voice against its file run whole, with the dice taken from both.
#[test]
fn pieces_are_the_whole() {
    let (mut whole, mut in_pieces) = (uncut_piper(), piper());
    let reason = whole.whole_because().expect("it cannot be cut");
    assert!(reason.contains("dec.conv_pre.weight"), "{reason}");
    assert_eq!(in_pieces.whole_because(), None);
    for piper in [&mut whole, &mut in_pieces] {
        piper.set_steady();
    }
    let mut speech = speech(1_000_000);
    for (text, _) in SENTENCES {
        for speed in [0.5, 1.0, 2.0] {
            let expected = say(&mut whole, text, speed, &|| false, &mut speech).unwrap();
            let found = say(&mut in_pieces, text, speed, &|| false, &mut speech).unwrap();
            assert_eq!(found.len(), expected.len(), "{text}");
            let differences = found.iter().zip(&expected).map(|(a, b)| (a - b).abs());
            let largest = differences.fold(0.0_f32, f32::max);
            println!("{text} {speed}: {largest}");
            assert!(largest < 1e-5, "{text} {speed}: {largest}");
        }
    }
}

#[test]
fn wrong_files_are_named_with_what_was_found_and_expected() {
    let vad = model(Artefact::SileroVad);
    let description = model(Artefact::PiperConfig);
    let options = GraphOptions::default();
    let error = SmartTurn::load(library(), &vad, &options).unwrap_err().to_string();
    assert!(
        error.contains("silero_vad_op18_ifless.onnx")
            && error.contains("input_features of F32 [-1, 80, 800]"),
        "{error}"
    );
    let error = SileroVad::load(library(), &description, &options, 1).unwrap_err().to_string();
    assert!(
        error.contains("en_US-joe-medium.onnx.json") && error.contains("expected an ONNX model"),
        "{error}"
    );
    let error = SileroVad::load(library(), Path::new("/nowhere/vad.onnx"), &options, 1).unwrap_err();
    assert!(matches!(error, ModelError::Missing { .. }), "{error}");
    let error = Library::open(Path::new("/nowhere/libonnxruntime.so")).unwrap_err();
    assert!(matches!(error, ModelError::Missing { .. }), "{error}");
    let error = Library::open(&vad).unwrap_err();
    assert!(matches!(error, ModelError::Wrong { .. }), "{error}");
}

/// A process with threads that was started with telemetry on cannot turn it off safely any more, so it gets no library.
#[test]
fn a_library_that_would_phone_home_is_not_opened() {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "execution_providers_are_chosen_by_name", "--test-threads", "2"])
        .env("ORT_DISABLE_TELEMETRY", "0")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(!output.status.success() && said.contains("expected ORT_DISABLE_TELEMETRY=1"), "{said}");
}

#[test]
fn execution_providers_are_chosen_by_name() {
    assert!(library().providers().unwrap().contains(&"CPUExecutionProvider".to_owned()));
    assert_eq!(library().version(), Artefact::OnnxRuntime.entry().wheel.version);
    let vad = model(Artefact::SileroVad);
    for name in ["cuda", "TensorRT", "OpenVINO", "XNNPACK", "Abacus"] {
        let provider = Provider { name: name.into(), settings: vec![("device_id".into(), "0".into())] };
        let options = GraphOptions { provider, ..GraphOptions::default() };
        let error = SileroVad::load(library(), &vad, &options, 1).unwrap_err().to_string();
        println!("{error}");
        assert!(error.contains(name) && error.contains("CPUExecutionProvider"), "{error}");
    }
}
