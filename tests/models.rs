//! The real models still hear and speak: what a unit test cannot show.
//!
//! Needs the model files (the environment variable `ANTIPHON_CACHE` names a directory below which they lie,
//! in any arrangement) and recorded speech (`ANTIPHON_CLIPS`, or where Debian's `pocketsphinx-testdata` puts
//! it). Without them every test here fails and says so; none is skipped.
//!
//! SOURCE of the clips: LibriVox recordings in the public domain and spoken cards, from pocketsphinx's tests
//! (BSD).

#![expect(unsafe_code, reason = "a global allocator that counts")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use antiphon::audio::{Resampler, SampleRate, pcm};
use antiphon::model::moonshine::{Moonshine, MoonshinePaths};
use antiphon::model::ort::{Graph, GraphOptions, Library, Provider, Terminate};
use antiphon::model::piper::{Phonemizer, Piper};
use antiphon::model::silero_vad::SileroVad;
use antiphon::model::smart_turn::SmartTurn;
use antiphon::model::{
    DETECTOR_WINDOW, DetectorStream, ModelError, Speech, SpeechSource, SttModel, TtsModel, TurnModel,
    VadModel,
};

struct Counting;

thread_local! {
    static HEAP_CALLS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: all calls go to the system's allocator; counting touches a thread-local number without a
// destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HEAP_CALLS.set(HEAP_CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HEAP_CALLS.set(HEAP_CALLS.get() + 1);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Heap calls of this thread while `work` runs.
fn heap_calls(work: impl FnOnce()) -> u64 {
    let before = HEAP_CALLS.get();
    work();
    HEAP_CALLS.get() - before
}

/// The file called `name` somewhere below the cache directory.
fn model(name: &str) -> PathBuf {
    let root = std::env::var_os("ANTIPHON_CACHE")
        .expect("ANTIPHON_CACHE is not set: it must name the directory with the model files");
    find(Path::new(&root), name)
        .unwrap_or_else(|| panic!("{name}: not found below ANTIPHON_CACHE ({root:?})"))
}

fn find(directory: &Path, name: &str) -> Option<PathBuf> {
    let entries: Vec<PathBuf> =
        std::fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path()).collect();
    entries
        .iter()
        .find(|path| path.is_file() && path.file_name().is_some_and(|found| found == name))
        .cloned()
        .or_else(|| entries.iter().filter(|path| path.is_dir()).find_map(|path| find(path, name)))
}

fn library() -> &'static Arc<Library> {
    static LIBRARY: OnceLock<Arc<Library>> = OnceLock::new();
    LIBRARY.get_or_init(|| Library::open(&model("libonnxruntime.so.1.32.0")).unwrap())
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
    let root =
        std::env::var_os("ANTIPHON_CLIPS").unwrap_or_else(|| "/usr/share/pocketsphinx/test/data".into());
    let root = PathBuf::from(root);
    let mut clips = Vec::new();
    for list in ["librivox/transcription", "cards/cards.transcription"] {
        let list = root.join(list);
        let text = std::fs::read_to_string(&list).unwrap_or_else(|error| {
            panic!("{}: {error}; ANTIPHON_CLIPS must name pocketsphinx's test/data", list.display())
        });
        for line in text.lines() {
            let (words, name) = line.split_once("</s>").unwrap();
            let name = name.trim().trim_matches(['(', ')']);
            let words = words.replace("<s>", "");
            clips.push((wav(&list.with_file_name(format!("{name}.wav"))), words));
        }
    }
    assert_eq!(clips.len(), 10);
    clips
}

fn words(text: &str) -> Vec<String> {
    let plain =
        text.to_lowercase().replace("mr.", "mister").replace("to-morrow", "tomorrow").replace('-', " ");
    plain
        .split_whitespace()
        .map(|word| word.replace(|c: char| !c.is_alphanumeric(), ""))
        .filter(|word| !word.is_empty())
        .collect()
}

/// Words that were added, lost or changed.
fn word_errors(found: &str, expected: &str) -> usize {
    let (found, expected) = (words(found), words(expected));
    let mut row: Vec<usize> = (0..=found.len()).collect();
    for (n, word) in expected.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = n + 1;
        for (m, other) in found.iter().enumerate() {
            let changed = diagonal + usize::from(word != other);
            diagonal = row[m + 1];
            row[m + 1] = changed.min(row[m] + 1).min(diagonal + 1);
        }
    }
    row[found.len()]
}

fn moonshine() -> Moonshine {
    let (encoder, decoder) = (model("encoder_model.ort"), model("decoder_model_merged.ort"));
    let tokenizer = model("tokenizer.bin");
    let paths = MoonshinePaths { encoder: &encoder, decoder: &decoder, tokenizer: &tokenizer };
    Moonshine::load(library(), paths, &GraphOptions::default()).unwrap()
}

fn silero(rows_max: usize) -> SileroVad {
    SileroVad::load(library(), &model("silero_vad_op18_ifless.onnx"), &GraphOptions::default(), rows_max)
        .unwrap()
}

fn smart_turn() -> SmartTurn {
    SmartTurn::load(library(), &model("smart-turn-v3.2-cpu.onnx"), &GraphOptions::default()).unwrap()
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

fn phonemizer() -> Phonemizer {
    Box::new(|text, phonemes| {
        for sentence in text.split_inclusive(['.', '?']) {
            if let Some((_, sounds)) = SENTENCES.iter().find(|(known, _)| *known == sentence.trim()) {
                phonemes.push_str(sounds);
                phonemes.push(' ');
            }
        }
    })
}

fn piper() -> Piper {
    let path = model("en_US-joe-medium.onnx");
    let description = model("en_US-joe-medium.onnx.json");
    Piper::load(library(), &path, &description, &GraphOptions::default(), phonemizer()).unwrap()
}

fn speech(samples: usize) -> Speech {
    Speech { pcm: Vec::with_capacity(samples), rate: SampleRate::HZ_8K, source: SpeechSource::Pcm }
}

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
        let score_alone = |caller: usize, window: usize| alone[caller][window];
        let windows = alone[..rows].iter().map(Vec::len).min().unwrap();
        for n in 0..windows {
            // Rows are given in another order for every window.
            let caller = |row: usize| (row + n) % rows;
            for row in 0..rows {
                let window = clips[caller(row)].0.as_chunks().0[n];
                vad.load(row, &streams[caller(row)], &window);
            }
            vad.run(rows).unwrap();
            for row in 0..rows {
                let score = vad.store(row, &mut streams[caller(row)]);
                let expected = score_alone(caller(row), n);
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
    let calls = heap_calls(|| moonshine.transcribe(&clips[0].0, &|| false, &mut transcript).unwrap());
    assert_eq!(calls, 0, "recognition");
    let (mut piper, mut speech) = (piper(), speech(500_000));
    let calls = heap_calls(|| {
        piper.synthesise(SENTENCES[0].0, 1.0, SampleRate::HZ_24K, &|| false, &mut speech).unwrap();
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
        resampler.push(&speech.pcm, &mut sink);
    });
    assert_eq!(calls, 0, "resampler");
    assert!(heap_calls(|| drop(std::hint::black_box(Box::new(1)))) > 0, "the allocator counts");
}

#[test]
fn recorded_speech_is_understood() {
    let mut moonshine = moonshine();
    let mut transcript = String::new();
    let (mut errors, mut count) = (0, 0);
    for (audio, said) in clips() {
        moonshine.transcribe(&audio, &|| false, &mut transcript).unwrap();
        println!("{said} | {transcript}");
        errors += word_errors(&transcript, &said);
        count += words(&said).len();
    }
    assert!(errors * 100 <= count * 5, "{errors} errors in {count} words");
}

#[test]
fn a_long_utterance_is_understood_to_its_end() {
    let start = "it was the best of times it was the worst of times it was the age of wisdom it was the age of \
                 foolishness it was the epoch of belief it was the epoch of incredulity it was the season of light \
                 it was the season of darkness it was the spring of hope it was the winter of despair";
    let end = "for good or for evil in the superlative degree of comparison only";
    let audio = wav(&model("two_cities.wav"));
    assert!(audio.len() > 40 * 16_000, "longer than the network takes at once");
    let mut transcript = String::new();
    moonshine().transcribe(&audio, &|| false, &mut transcript).unwrap();
    println!("{transcript}");
    let heard = words(&transcript);
    for (said, heard) in [
        (start, &heard[..words(start).len().min(heard.len())]),
        (end, &heard[heard.len().saturating_sub(words(end).len())..]),
    ] {
        let errors = word_errors(&heard.join(" "), said);
        assert!(errors * 100 <= words(said).len() * 15, "{errors} errors in {said:?}: {transcript}");
    }
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
    let done = piper.synthesise(SENTENCES[0].0, 1.0, SampleRate::HZ_24K, &|| true, &mut speech);
    assert!(matches!(done, Err(ModelError::Stale)) && speech.pcm.is_empty());
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
        let done = piper.synthesise(&text, 1.0, SampleRate::HZ_24K, &stale, &mut speech);
        ended.store(true, Ordering::Release);
        assert!(matches!(done, Err(ModelError::Stale)), "{done:?}");
        assert!(speech.pcm.is_empty(), "the first run was stopped");
    });
    piper.synthesise(&text, 1.0, SampleRate::HZ_24K, &|| false, &mut speech).unwrap();
    assert!(speech.pcm.len() > 60_000, "the voice speaks again");
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
    let mut shared = piper.share(phonemizer()).unwrap();
    let mut speech = speech(20 * 22_050);
    let mut transcript = String::new();
    let (mut errors, mut count) = (0, 0);
    for (text, _) in SENTENCES {
        for piper in [&mut piper, &mut shared] {
            piper.synthesise(text, 1.0, SampleRate::HZ_24K, &|| false, &mut speech).unwrap();
            assert_eq!((speech.rate, speech.source), (SampleRate::HZ_22K, SpeechSource::Pcm));
            let peak = speech.pcm.iter().fold(0.0_f32, |peak, sample| peak.max(sample.abs()));
            assert!((0.05..=1.0).contains(&peak), "peak {peak}");
            let lead = speech.pcm.iter().position(|sample| sample.abs() > 0.02).unwrap();
            assert!(lead < 22_050 / 20, "{lead} samples of silence first");
            moonshine.transcribe(&to_16k(&speech.pcm, speech.rate), &|| false, &mut transcript).unwrap();
            println!("{text} | {transcript} | {} s, peak {peak}", speech.pcm.len() as f32 / 22_050.0);
            errors += word_errors(&transcript, text);
            count += words(text).len();
        }
    }
    assert!(errors * 100 <= count * 10, "{errors} errors in {count} words");
    piper.synthesise("...", 1.0, SampleRate::HZ_24K, &|| false, &mut speech).unwrap();
    assert!(speech.pcm.is_empty(), "nothing to speak");
}

#[test]
fn speech_is_as_fast_as_asked_and_never_larger_than_its_room() {
    let mut piper = piper();
    let text = SENTENCES.map(|(text, _)| text).join(" ");
    let mut say = |speed, room| {
        let mut speech = speech(room);
        let room = speech.pcm.capacity();
        piper.synthesise(&text, speed, SampleRate::HZ_24K, &|| false, &mut speech).unwrap();
        assert_eq!(speech.pcm.capacity(), room, "the buffer did not grow");
        speech.pcm.len()
    };
    let normal = say(1.0, 1_000_000);
    let slow = say(0.5, 1_000_000);
    assert!((1.6..2.4).contains(&(slow as f32 / normal as f32)), "{normal}, slow {slow}");
    let hurried = say(1.0, normal / 2);
    assert!(hurried > normal / 5, "{hurried} samples in room for {}", normal / 2);
}

#[test]
fn wrong_files_are_named_with_what_was_found_and_expected() {
    let vad = model("silero_vad_op18_ifless.onnx");
    let description = model("en_US-joe-medium.onnx.json");
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

#[test]
fn execution_providers_are_chosen_by_name() {
    assert!(library().providers().unwrap().contains(&"CPUExecutionProvider".to_owned()));
    assert!(library().version().starts_with("1."));
    let vad = model("silero_vad_op18_ifless.onnx");
    for name in ["cuda", "TensorRT", "OpenVINO", "XNNPACK", "Abacus"] {
        let provider = Provider { name: name.into(), settings: vec![("device_id".into(), "0".into())] };
        let options = GraphOptions { provider, ..GraphOptions::default() };
        let error = SileroVad::load(library(), &vad, &options, 1).unwrap_err().to_string();
        println!("{error}");
        assert!(error.contains(name) && error.contains("CPUExecutionProvider"), "{error}");
    }
}
