//! `antiphon talk` as a user runs it.

use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::Value;
use tokio::process::Command;

use crate::client::Client;
use crate::server::{BINARY, Server};
use crate::signal::{is_level, level, silence};

/// Runs `antiphon talk` to its end.
pub(crate) async fn talk(url: &str, args: &[&str]) -> Output {
    let mut command = Command::new(BINARY);
    command.args(["talk", "--url", url]).args(args).stdin(Stdio::null()).kill_on_drop(true);
    command.output().await.unwrap_or_else(|error| panic!("{BINARY}: {error}"))
}

/// The one JSON object that `--json` prints.
pub(crate) fn json_of(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {text}{error}", output.status);
    serde_json::from_str(&text).unwrap_or_else(|reason| panic!("{reason}: {text}{error}"))
}

/// A failure: exit code, and one line that has this in it.
fn is_refused(output: &Output, part: &str) {
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{}: {error}", output.status);
    let lines: Vec<_> = error.lines().filter(|line| !line.trim().is_empty()).collect();
    let [line] = lines.as_slice() else { panic!("{} lines, expected one: {error}", lines.len()) };
    assert!(line.contains(part), "{line:?}, expected {part:?} in it");
}

fn write_wav(path: &Path, rate: u32, samples: &[i16]) {
    let format = hound::SampleFormat::Int;
    let spec = hound::WavSpec { channels: 1, sample_rate: rate, bits_per_sample: 16, sample_format: format };
    let mut writer = hound::WavWriter::create(path, spec).expect("created");
    samples.iter().for_each(|&sample| writer.write_sample(sample).expect("written"));
    writer.finalize().expect("finished");
}

#[tokio::test]
async fn a_recording_is_answered_and_the_answer_stored() {
    let server = Server::fake(1).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (question, answer) = (folder.path().join("question.wav"), folder.path().join("answer.wav"));
    write_wav(&question, 24_000, &[silence(200), level(1_500, 7_000), silence(300)].concat());
    let (question, answer) = (question.to_str().expect("UTF-8"), answer.to_str().expect("UTF-8"));
    let output = talk(&server.url(), &["--input", question, "--output", answer, "--json"]).await;
    let printed = json_of(&output);
    let transcript = printed["transcript"].as_str().expect("a transcript");
    let samples: Vec<i16> = hound::WavReader::open(answer)
        .expect("a WAV file")
        .samples::<i16>()
        .collect::<Result<_, _>>()
        .expect("16-bit samples");
    assert!(is_level(samples[0].into(), 7_000), "answered {}", samples[0]);
    assert!(transcript.contains(&format!("tag={}", samples[0])), "{printed}");
    assert_eq!(printed["reply"], transcript, "the fake model repeats what it hears");
    let audio_s = printed["audio_s"].as_f64().expect("a length");
    assert!((audio_s - samples.len() as f64 / 24_000.0).abs() < 0.001, "{printed}");
    for name in
        ["speech_end_to_endpoint", "speech_end_to_transcript", "to_first_text", "to_first_audio", "to_done"]
    {
        assert!(printed["ms"][name].as_f64().is_some_and(|ms| ms > 0.0), "{name}: {printed}");
    }
}

#[tokio::test]
async fn a_written_question_is_answered_too_and_repeats_have_a_median() {
    let server = Server::fake(2).await;
    let output = talk(&server.url(), &["--text", "say dur=0.1 tag=99", "--repeat", "3", "--json"]).await;
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), 4, "three turns and their median: {text}");
    assert_eq!((&lines[0]["audio_s"], &lines[0]["transcript"]), (&0.1.into(), &Value::Null), "{text}");
    assert_eq!(lines[3]["turns"], 3, "{text}");
    let readable = talk(&server.url(), &["--text", "say dur=0.1 tag=99"]).await;
    let text = String::from_utf8(readable.stdout).expect("UTF-8");
    assert!(text.contains("say dur=0.1 tag=99") && text.contains("first audio"), "{text}");
}

/// `talk` as a client of huggingface/speech-to-speech: it names no format.
#[tokio::test]
async fn a_rate_that_is_not_named_must_be_the_servers() {
    let server = Server::fake_with(1, &["--default-rate", "16000"]).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (question, answer) = (folder.path().join("question.wav"), folder.path().join("answer.wav"));
    write_wav(&question, 24_000, &[silence(200), level(1_500, 7_000), silence(300)].concat());
    let (question, answer) = (question.to_str().expect("UTF-8"), answer.to_str().expect("UTF-8"));
    let spoken = ["--input", question, "--output", answer, "--json"];
    for (args, rate) in [(&["--default-rate", "16000"][..], 16_000), (&[], 24_000)] {
        let printed = json_of(&talk(&server.url(), &[&spoken[..], args].concat()).await);
        let stored = hound::WavReader::open(answer).expect("a WAV file");
        assert_eq!(
            (stored.spec().sample_rate, stored.len(), &printed["audio_s"]),
            (rate, rate / 2, &0.5.into())
        );
    }
    let other = talk(&server.url(), &["--default-rate", "8000", "--text", "say dur=0.1 tag=1"]).await;
    is_refused(&other, "at 16000 Hz, and --default-rate says 8000 Hz");
    server.all_units_free().await;
}

#[tokio::test]
async fn what_goes_wrong_is_one_clear_line() {
    let server = Server::fake(1).await;
    let folder = tempfile::tempdir().expect("a temporary folder");
    let bad = folder.path().join("bad.wav");
    std::fs::write(&bad, "this is text").expect("written");
    let bad = bad.to_str().expect("UTF-8");
    is_refused(&talk(&server.url(), &["--input", bad]).await, "not a readable WAV file");
    is_refused(&talk(&server.url(), &["--input", "/no/such/file.wav"]).await, "/no/such/file.wav");
    let _only_unit = Client::open(server.addr()).await;
    is_refused(&talk(&server.url(), &["--text", "say dur=0.1 tag=1"]).await, "no free unit");
    drop(server);
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nobody = format!("ws://{}/v1/realtime", listener.local_addr().expect("bound"));
    drop(listener);
    is_refused(&talk(&nobody, &["--text", "Hello"]).await, "no connection");
}
