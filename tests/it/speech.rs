//! The real models hear and speak: recordings of people through the whole server, word by word.
//!
//! The language model is scripted, so that it is known what should be said.

use std::path::{Path, PathBuf};

use antiphon::door::text::{WordErrors, word_errors};
use serde_json::{Value, json};

use crate::client::Client;
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

/// Says 16 kHz samples and a pause; what the server understood, and its answer's samples.
async fn say_at_16_khz(client: &mut Client, samples: &[i16]) -> (String, Vec<i16>) {
    client.stream(&[samples, &[0; 16_000]].concat()).await;
    let heard = client.expect("conversation.item.input_audio_transcription.completed").await;
    (text_of(&heard, "transcript"), client.answer().await.samples)
}

/// A client in the manner of huggingface/speech-to-speech's: it names no format, and means 16 kHz both ways.
#[tokio::test]
async fn who_names_no_format_is_understood_and_answered_at_the_default_rate() {
    let llm = ScriptedLlm::start().await;
    let args = ["--llm-url", &llm.url(), "--llm-model", "scripted", "--default-rate", "16000"];
    let server = Server::real_with(1, &args).await;
    let (mut heard, mut understood_again, mut misheard) =
        (WordErrors::default(), WordErrors::default(), WordErrors::default());
    for (clip, sentence) in clips().iter().zip(SENTENCES).take(2) {
        let reader = hound::WavReader::open(&clip.path).expect("a clip of the repository");
        assert_eq!(reader.spec().sample_rate, 16_000);
        let samples: Vec<i16> = reader.into_samples().collect::<Result<_, _>>().expect("samples");
        let mut client = Client::open(server.addr()).await;
        llm.script([Script::Say(sentence.split_inclusive(' ').map(str::to_owned).collect())]);
        let (text, answer) = say_at_16_khz(&mut client, &samples).await;
        println!("{text:?}, said was {:?}", clip.text);
        heard += word_errors(&clip.text, &text);
        // What the client was told is what it says next.
        llm.script([Script::Say(vec!["Yes.".to_owned()])]);
        let (text, _) = say_at_16_khz(&mut client, &answer).await;
        println!("{text:?}, told was {sentence:?}");
        understood_again += word_errors(sentence, &text);
        let format = json!({ "type": "audio/pcm", "rate": 24_000 });
        client.update(json!({ "audio": { "input": { "format": format } } })).await;
        llm.script([Script::Say(vec!["Yes.".to_owned()])]);
        let (text, _) = say_at_16_khz(&mut client, &samples).await;
        println!("{text:?} at 24 kHz");
        misheard += word_errors(&clip.text, &text);
        client.close().await;
        server.all_units_free().await;
    }
    println!("heard {heard:?}, again {understood_again:?}, misheard {misheard:?}");
    assert!(heard.rate() <= HEARING_ERRORS_MAX, "{heard:?}");
    // Eighteen words of a voice that rolls dice: at the wrong rate hardly one of them is right.
    assert!(understood_again.rate() <= 0.25, "{understood_again:?}");
    assert!(misheard.errors > heard.errors, "the rate makes no difference: {misheard:?}");
}
