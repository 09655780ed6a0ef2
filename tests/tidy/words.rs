//! Locks, clocks, threads and crates stand in their one place.

use crate::source::{code, files, has_word, read, tidy};

/// Words, where alone they may stand (prefixes of paths below `src/`), and what to use instead.
const WORDS: &[(&str, &[&str], &str)] = &[
    (
        "tokio",
        &["edge/", "llm_server/", "server.rs", "talk/"],
        "async lives at the edge; a stage is woken by its bell",
    ),
    ("axum", &["edge/inbound/", "llm_server/"], "edge::inbound serves clients"),
    ("reqwest", &["edge/outbound/"], "edge::outbound calls servers, whoever asks"),
    ("futures_util", &["edge/", "llm_server/", "talk/"], "async lives at the edge"),
    (".await", &["edge/", "llm_server/", "server.rs", "talk/"], "async lives at the edge"),
    ("rtrb", &["sync.rs", "unit/ring.rs"], "unit::ring wakes whoever waits"),
    ("atomic_refcell", &["sync.rs"], "sync::PortCell"),
    ("sync::atomic", &["sync.rs", "model/ort/"], "crate::sync, which the model checker replaces"),
    ("triple_buffer", &["unit/"], "settings go through the ports"),
    ("onnxruntime_sys", &["model/ort"], "model::ort's safe types"),
    ("libloading", &["model/ort", "model/espeak.rs"], "libraries are opened by their one module"),
    ("llama_cpp_2", &["model/llama", "main.rs"], "model::llama"),
    ("simd_json", &["protocol/"], "protocol::Decoder"),
    ("mimalloc", &["main.rs"], "the allocator is the binary's choice"),
    ("anyhow", &["main.rs"], "an error enum of the module"),
    ("Mutex", &["edge/", "llm_server/"], "nobody waits: a ring, a triple buffer, an atomic"),
    ("RwLock", &[], "nobody waits: a triple buffer"),
    ("Condvar", &[], "nobody waits: a bell"),
    ("mpsc", &["edge/", "llm_server/", "server.rs"], "a ring"),
    ("thread::Builder", &["rt/thread.rs", "llm_server/"], "rt::thread::spawn"),
    ("thread::spawn", &[], "rt::thread::spawn"),
    ("thread::sleep", &["model/fake.rs"], "a stage parks in its runner, the edge awaits a timer"),
    ("thread::park", &["unit/stage_bell.rs"], "StageBell::sleep"),
    ("clock_gettime", &["clock.rs"], "clock::now, passed on as an argument"),
    ("Instant::now", &["edge/outbound/llm"], "clock::now, passed on as an argument"),
    ("SystemTime", &["llm_server/"], "clock::now, passed on as an argument"),
    (
        "catch_unwind",
        &["stage/runner.rs", "edge/tasks/"],
        "a panic is a bug; whoever serves one unit for ever catches it",
    ),
    ("unsafe", &["model/ort", "model/espeak.rs", "rt/alloc.rs"], "a safe crate"),
    (
        "tracing::",
        &["edge/", "llm_server/", "server.rs", "rt/thread.rs"],
        "a counter, or an event to the edge; a thread may log before it works",
    ),
    ("println!", &["talk/", "server.rs", "text/phonemes/learn.rs"], "standard output is what was asked for"),
    ("eprintln!", &["main.rs", "store/"], "an error of the module, told by main"),
    (
        "clippy::disallowed_methods",
        &["edge/", "llm_server/", "rt/thread.rs", "stage/runner.rs", "model/fake.rs"],
        "see .clippy.toml",
    ),
    ("clippy::disallowed_types", &["edge/", "llm_server/"], "see .clippy.toml"),
    ("clippy::unwrap_used", &[], "expect, with the reason why it cannot fail"),
    ("dbg!", &[], "nothing"),
    ("todo!", &[], "the code"),
    ("unimplemented!", &[], "the code"),
    ("FIXME", &[], "the fix"),
    ("TODO", &[], "an issue"),
];

fn misplaced_words(path: &str, text: &str) -> Vec<String> {
    let below_src = path.strip_prefix("src/").unwrap_or(path);
    let banned =
        WORDS.iter().filter(|(_, places, _)| !places.iter().any(|place| below_src.starts_with(place)));
    let banned: Vec<_> = banned.collect();
    let mut wrong = Vec::new();
    for (at, line) in code(text) {
        for (word, places, instead) in &banned {
            if has_word(line, word) {
                wrong.push(format!("{path}:{at}: {word} only in {places:?}; here: {instead}"));
            }
        }
    }
    wrong
}

#[test]
fn locks_clocks_threads_and_crates_stand_in_their_one_place() {
    tidy(files("src", "rs").iter().flat_map(|path| misplaced_words(path, &read(path))));
}

#[test]
fn every_place_of_a_word_is_still_one() {
    let texts: Vec<_> = files("src", "rs").into_iter().map(|path| (read(&path), path)).collect();
    let files: Vec<_> = texts.iter().map(|(text, path)| (code(text).collect::<Vec<_>>(), path)).collect();
    let mut unused = Vec::new();
    for (word, places, _) in WORDS {
        for place in *places {
            let mut here = files.iter().filter(|(_, path)| path["src/".len()..].starts_with(place));
            if !here.any(|(lines, _)| lines.iter().any(|(_, line)| has_word(line, word))) {
                unused.push(format!("{word} does not stand in {place} any more: take it out of the list"));
            }
        }
    }
    tidy(unused);
}

#[test]
fn a_word_out_of_place_is_found() {
    let wrong =
        misplaced_words("src/stage/vad.rs", "let now = Instant::now(); // Instant::now\nlet spark = 1;");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("src/stage/vad.rs:1: Instant::now only in"), "{wrong:?}");
    assert!(misplaced_words("src/clock.rs", "rustix::time::clock_gettime(x)").is_empty());
    assert!(!misplaced_words("src/audio/pcm.rs", "let x = unsafe { y };").is_empty());
}
