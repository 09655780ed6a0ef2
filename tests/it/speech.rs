//! The real models hear and speak: recordings of people through the whole server, word by word.
//!
//! The language model is scripted, so that it is known what should be said.

use std::path::{Path, PathBuf};

use antiphon::text::{WordErrors, word_errors};
use serde_json::Value;

use crate::llm::{Script, ScriptedLlm};
use crate::server::Server;
use crate::talk::{json_of, talk};

/// Word errors of the recogniser over all clips, part of the words.
const HEARING_ERRORS_MAX: f64 = 0.08;

/// Word errors after synthesis and recognition, part of the words.
const ROUND_TRIP_ERRORS_MAX: f64 = 0.10;

/// Sentences to be spoken and understood again: what an assistant says in a day.
const SENTENCES: [&str; 8] = [
    "Hello, how can I help you today?",
    "The train to the city leaves at a quarter past nine.",
    "I have put the meeting with your sister on Thursday afternoon.",
    "It will be cloudy in the morning, with a little rain later on.",
    "You can find the bakery on the left side of the main road.",
    "Your order will arrive within three working days.",
    "Please turn off the oven before you leave the house.",
    "There are twelve people on the list, and two of them are waiting.",
];

/// One clip of `golden/speech`.
#[derive(Clone, Debug)]
pub(crate) struct Clip {
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// All clips with their transcripts.
pub(crate) fn clips() -> Vec<Clip> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech");
    let list = folder.join("transcripts.tsv");
    let text = std::fs::read_to_string(&list).unwrap_or_else(|error| panic!("{}: {error}", list.display()));
    let clip = |line: &str| {
        let (name, text) = line.split_once('\t').unwrap_or_else(|| panic!("{}: {line:?}", list.display()));
        Clip { path: folder.join(name).with_extension("wav"), text: text.to_owned() }
    };
    text.lines().map(clip).collect()
}

fn text_of(printed: &Value, name: &str) -> String {
    printed[name].as_str().unwrap_or_else(|| panic!("no {name} in {printed}")).to_owned()
}

#[tokio::test]
async fn ten_clips_are_understood() {
    let llm = ScriptedLlm::start().await;
    let server = Server::real_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let clips = clips();
    assert_eq!(clips.len(), 10);
    let mut total = WordErrors::default();
    for clip in &clips {
        llm.script([Script::Say(vec!["Yes.".to_owned()])]);
        let output = talk(&server.url(), &["--input", clip.path.to_str().expect("UTF-8"), "--json"]).await;
        let heard = text_of(&json_of(&output), "transcript");
        let errors = word_errors(&clip.text, &heard);
        println!("{} of {}: {heard:?}, said was {:?}", errors.errors, errors.words, clip.text);
        total += errors;
    }
    println!("word error rate {:.1} % ({} of {})", 100.0 * total.rate(), total.errors, total.words);
    let calls = server.engine_heap_calls().await;
    assert!(calls.len() >= 3 && calls.values().all(|&calls| calls == 0), "heap calls: {calls:?}");
    assert!(total.rate() <= HEARING_ERRORS_MAX, "{} of {} words are wrong", total.errors, total.words);
}

#[tokio::test]
async fn what_is_spoken_is_understood_again() {
    let llm = ScriptedLlm::start().await;
    let server = Server::real_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut total = WordErrors::default();
    for (number, sentence) in SENTENCES.iter().enumerate() {
        let answer = folder.path().join(format!("answer-{number}.wav"));
        let answer = answer.to_str().expect("UTF-8");
        llm.script([Script::Say(sentence.split_inclusive(' ').map(str::to_owned).collect())]);
        let spoken =
            json_of(&talk(&server.url(), &["--text", "Say it.", "--output", answer, "--json"]).await);
        assert_eq!(text_of(&spoken, "reply").trim(), *sentence);
        // What one client was told is what the next one says.
        llm.script([Script::Say(vec!["Yes.".to_owned()])]);
        let heard = json_of(&talk(&server.url(), &["--input", answer, "--json"]).await);
        let heard = text_of(&heard, "transcript");
        let errors = word_errors(sentence, &heard);
        println!("{} of {}: {heard:?}, said was {sentence:?}", errors.errors, errors.words);
        total += errors;
    }
    println!("round trip {:.1} % ({} of {})", 100.0 * total.rate(), total.errors, total.words);
    assert!(total.rate() <= ROUND_TRIP_ERRORS_MAX, "{} of {} words are wrong", total.errors, total.words);
}
