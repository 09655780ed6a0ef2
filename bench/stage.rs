//! The work of each stage on one thread: real audio in its ring, the result in the next ring. `fake` is the engine
//! without a network. The rest runs the real models, which are fetched if they are missing.
#![allow(clippy::disallowed_methods, reason = "a bench reads clocks")]

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use antiphon::door::audio::SampleRate;
use antiphon::door::message::{
    AnswerIn, AudioFrame, AudioIn, Moment, ResponseKey, SPEECH_FRAME_SAMPLES, SpeechFrame, SpeechItem,
    TextChunk, UnitId, UtteranceId,
};
use antiphon::door::model::fake::{EnergyVad, FakeStt};
use antiphon::door::model::moonshine::{Moonshine, MoonshinePaths};
use antiphon::door::model::ort::{GraphOptions, Library};
use antiphon::door::model::piper::Piper;
use antiphon::door::model::silero_vad::SileroVad;
use antiphon::door::model::{SttModel, VadModel};
use antiphon::door::stage::{Deadlines, Stage, SttStage, TtsStage, VadStage};
use antiphon::door::store::{Artefact, Cache};
use antiphon::door::text::DictionaryPhonemizer;
use antiphon::door::unit::{Bells, EdgeBell, StageBell, UnitLease, UnitSlab};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// Units in one call of a stage.
const BATCHES: [usize; 4] = [1, 2, 4, 8];

/// Texts for the voice: the first clause of an answer, and a whole sentence.
const CLAUSES: [&str; 2] = ["Good morning,", "The train to the city leaves at a quarter past nine."];

/// Claimed units, and the state that a stage needs to work on them.
struct Pool {
    slab: &'static UnitSlab,
    leases: Vec<UnitLease>,
    deadlines: Deadlines,
    /// Units of the last call.
    called: Vec<UnitId>,
}

impl Pool {
    fn new(units: usize) -> Self {
        let bell = || -> &'static StageBell { Box::leak(Box::new(StageBell::new(units, 1))) };
        let (edge, _) = EdgeBell::new(units).expect("a pipe");
        let bells =
            Bells { vad: bell(), stt: bell().into(), tts: bell().into(), edge: Box::leak(Box::new(edge)) };
        let slab = UnitSlab::leak(units, bells, SampleRate::HZ_22K);
        let leases = (0..units).map(|_| UnitLease::claim(slab).expect("free")).collect();
        Self { slab, leases, deadlines: Deadlines::new(units), called: Vec::with_capacity(units) }
    }

    /// Returns the first `units` units.
    fn ids(&self, units: usize) -> Vec<UnitId> {
        self.leases[..units].iter().map(UnitLease::id).collect()
    }

    /// Returns the time that `stage` takes for the contents of the rings of `units`.
    fn work(&mut self, stage: &mut impl Stage, units: &[UnitId]) -> Duration {
        let begin = Instant::now();
        self.called.clear();
        for unit in units {
            if stage.prepare(self.slab, *unit, Moment::default(), &mut self.deadlines).is_some() {
                self.called.push(*unit);
            }
        }
        for rows in self.called.chunks(stage.rows_max()) {
            stage.call(self.slab, rows);
        }
        begin.elapsed()
    }
}

// Models.

fn cache() -> &'static Cache {
    static CACHE: OnceLock<Cache> = OnceLock::new();
    CACHE.get_or_init(|| {
        let cache = Cache::open(None).expect("a cache directory");
        let stages = Artefact::ALL.iter().copied().filter(|artefact| *artefact != Artefact::LanguageModel);
        cache
            .fetch(&stages.collect::<Vec<_>>(), &mut *antiphon::door::store::for_stderr())
            .expect("the models can be fetched");
        cache
    })
}

fn library() -> Arc<Library> {
    static LIBRARY: OnceLock<Arc<Library>> = OnceLock::new();
    let open = || Library::open(&cache().path(Artefact::OnnxRuntime)).expect("ONNX Runtime loads");
    Arc::clone(LIBRARY.get_or_init(open))
}

fn silero(rows: usize) -> Box<dyn VadModel> {
    let path = cache().path(Artefact::SileroVad);
    Box::new(SileroVad::load(&library(), &path, &GraphOptions::default(), rows).expect("the model loads"))
}

fn moonshine() -> Box<dyn SttModel> {
    let [encoder, decoder, tokenizer] =
        [Artefact::MoonshineEncoder, Artefact::MoonshineDecoder, Artefact::MoonshineTokenizer]
            .map(|artefact| cache().path(artefact));
    let paths = MoonshinePaths { encoder: &encoder, decoder: &decoder, tokenizer: &tokenizer };
    Box::new(Moonshine::load(&library(), paths, &GraphOptions::default()).expect("the model loads"))
}

fn piper() -> Piper {
    let (voice, config) = (cache().path(Artefact::PiperVoice), cache().path(Artefact::PiperConfig));
    let phonemizer = Box::new(DictionaryPhonemizer::new());
    Piper::load(&library(), &voice, &config, &GraphOptions::default(), phonemizer).expect("the model loads")
}

/// Returns a recording of `tests/golden/speech`, which is 16 kHz mono.
fn clip(name: &str) -> Vec<i16> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech").join(name);
    let mut reader = hound::WavReader::open(path).expect("the clip is in the tree");
    assert_eq!((reader.spec().channels, reader.spec().sample_rate), (1, 16_000));
    reader.samples::<i16>().map(|sample| sample.expect("a whole file")).collect()
}

// Stages.

/// Measures one window of 32 ms of speech for each unit, from 24 kHz, resampling and endpointing included.
fn vad(c: &mut Criterion) {
    let speech = clip("austen-0880.wav");
    let mut group = c.benchmark_group("vad_window");
    for units in BATCHES {
        let mut pool = Pool::new(units);
        let ids = pool.ids(units);
        for (name, model) in
            [("fake", Box::new(EnergyVad::new(8)) as Box<dyn VadModel>), ("silero", silero(8))]
        {
            let mut stage = VadStage::new(model);
            let mut at = 0;
            group.bench_function(BenchmarkId::new(name, units), |b| {
                b.iter_custom(|windows| {
                    let mut spent = Duration::ZERO;
                    for _ in 0..windows {
                        hear(&mut pool, &speech, at);
                        at += 1;
                        spent += pool.work(&mut stage, &ids);
                        forget(&mut pool);
                    }
                    spent
                });
            });
        }
    }
    group.finish();
}

/// Pushes 32 ms into `audio_in` of every unit: 768 samples. The clip is read as if it were at 24 kHz.
fn hear(pool: &mut Pool, speech: &[i16], window: usize) {
    for at in 0..pool.leases.len() {
        let epoch = pool.leases[at].epoch();
        let from = (window * 768 + at * 4_800) % (speech.len() - 768);
        for part in speech[from..from + 768].chunks(480) {
            let mut frame = AudioFrame::empty(SampleRate::HZ_24K);
            frame.samples[..part.len()].copy_from_slice(part);
            frame.len = u16::try_from(part.len()).expect("at most a frame");
            let pushed = pool.leases[at].port().audio_in.push(epoch, AudioIn::Audio(frame));
            pushed.expect("the stage has emptied the ring");
        }
    }
}

/// Empties the rings that VAD has filled.
fn forget(pool: &mut Pool) {
    for lease in &mut pool.leases {
        while lease.port().vad_events.pop().is_some() {}
        while lease.unit().stt.borrow().speech.pop().is_some() {}
    }
}

/// Measures a whole utterance of each unit; the stage transcribes them one after the other.
fn stt(c: &mut Criterion) {
    let speech = clip("cards-002.wav");
    let mut group = c.benchmark_group("stt_utterance");
    group.sample_size(10);
    for (name, model) in [("fake", Box::new(FakeStt::new()) as Box<dyn SttModel>), ("moonshine", moonshine())]
    {
        let mut stage = SttStage::new(model);
        for units in BATCHES {
            let mut pool = Pool::new(units);
            group.bench_function(BenchmarkId::new(name, units), |b| {
                b.iter_custom(|rounds| (0..rounds).map(|_| transcribe(&mut pool, &mut stage, &speech)).sum());
            });
        }
    }
    group.finish();
}

fn transcribe(pool: &mut Pool, stage: &mut SttStage, speech: &[i16]) -> Duration {
    let utterance = UtteranceId(0);
    for at in 0..pool.leases.len() {
        let epoch = pool.leases[at].epoch();
        let mut port = pool.leases[at].unit().vad.borrow();
        let mut push = |item| port.speech.push(epoch, item).expect("the stage has emptied the ring");
        push(SpeechItem::Start(utterance));
        for part in speech.chunks(SPEECH_FRAME_SAMPLES) {
            let mut frame = SpeechFrame { len: 0, samples: [0; SPEECH_FRAME_SAMPLES] };
            frame.samples[..part.len()].copy_from_slice(part);
            frame.len = u16::try_from(part.len()).expect("at most a frame");
            push(SpeechItem::Frame(frame));
        }
        push(SpeechItem::End(utterance));
    }
    let ids = pool.ids(pool.leases.len());
    let spent = pool.work(stage, &ids);
    for lease in &mut pool.leases {
        let mut events = 0;
        while lease.port().stt_events.pop().is_some() {
            events += 1;
        }
        assert!(events > 0, "a transcript of each unit");
    }
    spent
}

/// Measures the time from a clause in the ring to its first audio in `answer_out`, of each unit one after the other.
fn tts(c: &mut Criterion) {
    let mut group = c.benchmark_group("tts_first_audio");
    group.sample_size(10);
    let mut stage = TtsStage::new(Box::new(piper()));
    for (name, clause) in ["piper_clause", "piper_sentence"].into_iter().zip(CLAUSES) {
        for units in BATCHES {
            let mut pool = Pool::new(units);
            group.bench_function(BenchmarkId::new(name, units), |b| {
                b.iter_custom(|rounds| (0..rounds).map(|_| speak(&mut pool, &mut stage, clause)).sum());
            });
        }
    }
    group.finish();
}

fn speak(pool: &mut Pool, stage: &mut TtsStage, clause: &str) -> Duration {
    for at in 0..pool.leases.len() {
        let (chunk, _) = TextChunk::split(clause);
        let (stamp, item) = (pool.leases[at].stamp(ResponseKey(0)), AnswerIn::Clause { chunk, last: true });
        pool.leases[at]
            .unit()
            .llm
            .borrow()
            .answer_in
            .push(stamp, item)
            .expect("the stage has emptied the ring");
    }
    let ids = pool.ids(pool.leases.len());
    let mut spent = Duration::ZERO;
    // One call makes the first piece of each clause; the next one sends it, and makes the second.
    for _ in 0..2 {
        spent += pool.work(stage, &ids);
    }
    for lease in &mut pool.leases {
        assert!(!lease.port().answer_out.is_empty(), "audio of each unit");
        // The rest of the clause is stale now, so the next round begins with empty rings.
        lease.cancel();
        while lease.port().answer_out.pop().is_some() {}
    }
    pool.work(stage, &ids);
    spent
}

criterion_group!(benches, vad, stt, tts);
criterion_main!(benches);
