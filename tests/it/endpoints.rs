//! `/v1/audio/transcriptions` and `/v1/audio/speech` on the pool of this server: units are claimed, used and given back as
//! a session does.

use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::http::{Http, error_of};
use crate::server::Server;
use crate::speech_server::{Hear, ScriptedSpeech, Speak, Then};

/// A request that is given up is gone well before this.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

async fn start(units: usize, args: &[&str]) -> (Server, Http) {
    let server = Server::fake_with(units, &[&["--serve-endpoints"], args].concat()).await;
    let http = Http::new(server.addr());
    (server, http)
}

/// A sound of one level.
fn recording(rate: u32, channels: u16, seconds: f64, level: i16) -> Vec<u8> {
    let spec = hound::WavSpec {
        channels,
        sample_rate: rate,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut file, spec).expect("in memory");
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds are few and not negative"
    )]
    let frames = (f64::from(rate) * seconds) as usize;
    for _ in 0..frames * usize::from(channels) {
        writer.write_sample(level).expect("in memory");
    }
    writer.finalize().expect("in memory");
    file.into_inner()
}

/// Levels that the fake recogniser names in `transcript`.
fn levels(transcript: &str) -> Vec<i16> {
    let tags = transcript.split("tag=").skip(1);
    tags.map(|rest| rest.split(' ').next().expect("a number").parse().expect("a number")).collect()
}

fn samples_of(bytes: &[u8]) -> Vec<i16> {
    assert!(bytes.len().is_multiple_of(2), "{} bytes", bytes.len());
    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

#[tokio::test]
async fn off_is_said_and_the_rest_is_there() {
    let server = Server::fake(1).await;
    let http = Http::new(server.addr());
    for path in ["audio/transcriptions", "audio/speech", "chat/completions", "responses"] {
        let (status, error) = error_of(http.post(path, &[], "{}").await).await;
        assert_eq!((status, error["type"].as_str()), (501, Some("not_implemented")), "{path}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains("disabled")), "{error}");
    }
    assert_eq!(error_of(http.get("models").await).await.0, 501);
    assert_eq!(server.get("/health").await.0, 200);
}

#[tokio::test]
async fn a_recording_of_any_rate_is_heard() {
    let (server, http) = start(1, &[]).await;
    for (rate, channels) in [(16_000, 1), (24_000, 1), (44_100, 2), (48_000, 1), (8_000, 1)] {
        let answer = http.transcription(recording(rate, channels, 1.5, 4_000), &[("model", "any")]).await;
        assert_eq!(answer.status(), 200, "{rate} Hz");
        let answer: serde_json::Value =
            serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON");
        let heard = levels(answer["text"].as_str().expect("text"));
        assert!(matches!(heard[..], [level] if level.abs_diff(4_000) <= 20), "{rate} Hz: {answer}");
        assert_eq!(answer["usage"]["seconds"], 1.5, "{answer}");
    }
    for (hint, language) in [(None, "unknown"), (Some(("language", "fr")), "french")] {
        let fields: Vec<_> = [("response_format", "verbose_json")].into_iter().chain(hint).collect();
        let answer = http.transcription(recording(16_000, 1, 0.5, 1_234), &fields).await;
        let answer: serde_json::Value =
            serde_json::from_str(&answer.text().await.expect("a body")).expect("JSON");
        let expected = json!({"task": "transcribe", "language": language, "duration": 0.5,
            "text": "say dur=0.5 tag=1234"});
        assert_eq!(answer, expected);
    }
    let fields = [("response_format", "text"), ("language", "en"), ("prompt", "words"), ("temperature", "0")];
    let answer = http.transcription(recording(16_000, 1, 0.5, 1_234), &fields).await;
    let content_type = answer.headers()["content-type"].to_str().expect("ASCII").to_owned();
    assert!(content_type.starts_with("text/plain"), "{content_type}");
    assert_eq!(answer.text().await.expect("a body"), "say dur=0.5 tag=1234\n");
    server.all_units_free().await;
}

#[tokio::test]
async fn a_long_recording_is_heard_piece_by_piece() {
    let (server, http) = start(1, &[]).await;
    let answer = http.transcription(recording(16_000, 1, 100.0, 777), &[("response_format", "text")]).await;
    let transcript = answer.text().await.expect("a body");
    assert_eq!(levels(transcript.trim()), [777; 4], "pieces of up to 30 s: {transcript}");
    server.all_units_free().await;
}

#[tokio::test]
async fn a_bad_recording_is_refused_by_name() {
    let (server, http) = start(1, &[]).await;
    let good = || recording(16_000, 1, 0.5, 1_000);
    for (file, fields, status, param) in [
        (b"ID3 and so on, as an MP3 begins".to_vec(), vec![], 400, json!("file")),
        (recording(16_000, 1, 0.05, 1_000), vec![], 400, json!("file")),
        (good(), vec![("response_format", "srt")], 400, json!("response_format")),
        (good(), vec![("language", "the Queen's")], 400, json!("language")),
        (good(), vec![("stream", "true")], 400, json!("stream")),
        (vec![0; 25_000_001], vec![], 413, json!(null)),
    ] {
        let (found, error) = error_of(http.transcription(file, &fields).await).await;
        assert_eq!((found, &error["param"]), (status, &param), "{fields:?}: {error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains("found")), "{error}");
    }
    let (status, _) = error_of(http.post("audio/transcriptions", &[], "{}").await).await;
    assert_eq!(status, 400, "no form");
    server.all_units_free().await;
}

#[tokio::test]
async fn text_is_spoken_sample_by_sample() {
    let (server, http) = start(1, &[]).await;
    let body = |format: &str| json!({"model": "any", "voice": "alloy", "input": "say dur=1.5 tag=-77", "response_format": format});
    let answer = http.speech(&body("pcm")).await;
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["content-type"]),
        (200, &"audio/pcm".parse().unwrap())
    );
    assert_eq!(samples_of(&answer.bytes().await.expect("all of it")), [-77; 36_000]);
    let answer = http.speech(&body("wav")).await;
    assert_eq!(answer.headers()["content-type"], "audio/wav");
    let file = answer.bytes().await.expect("all of it");
    assert!(file.starts_with(b"RIFF"), "{:?}", &file[..4]);
    assert_eq!(samples_of(&file[44..]), [-77; 36_000]);
    // Longer than a clause: all of it, at the other end of the speeds too.
    let text = "word ".repeat(600);
    let answer =
        http.speech(&json!({"input": text, "voice": "x", "response_format": "pcm", "speed": 4.0})).await;
    let samples = samples_of(&answer.bytes().await.expect("all of it"));
    assert!(samples.len() > 24_000 * 60, "{} samples of a tone", samples.len());
    server.all_units_free().await;
}

#[tokio::test]
async fn a_bad_request_for_speech_is_refused_by_name() {
    let (server, http) = start(1, &[]).await;
    for (field, value) in [
        ("response_format", json!("mp3")),
        ("response_format", json!("opus")),
        ("speed", json!(9.0)),
        ("input", json!("")),
        ("input", json!("x".repeat(4_097))),
        ("stream_format", json!("sse")),
    ] {
        let mut body = json!({"model": "any", "voice": "alloy", "input": "Hello."});
        body[field] = value;
        let (status, error) = error_of(http.speech(&body).await).await;
        assert_eq!((status, &error["param"]), (400, &json!(field)), "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains("expected")), "{error}");
    }
    for body in [json!([]), json!({"voice": "alloy"}), json!({"input": 7})] {
        assert_eq!(error_of(http.speech(&body).await).await.0, 400, "{body}");
    }
    assert_eq!(error_of(http.speech(&json!({"input": "x".repeat(70_000)})).await).await.0, 413);
    server.all_units_free().await;
}

#[tokio::test]
async fn a_full_pool_is_said_and_whoever_leaves_makes_room() {
    let (server, http) = start(1, &[]).await;
    let endless = json!({"input": "say dur=600 tag=5 rt=1", "voice": "x", "response_format": "pcm"});
    // Its audio comes in real time: the first piece is there long before the last is made.
    let mut speaking = http.speech(&endless).await;
    let first = speaking.chunk().await.expect("audio").expect("audio");
    assert!(samples_of(&first).iter().all(|&sample| sample == 5));
    let pool = server.json("/v1/pool").await;
    assert!(pool["units"][0]["session_id"].as_str().is_some_and(|id| id.starts_with("req_")), "{pool}");
    for response in
        [http.speech(&endless).await, http.transcription(recording(16_000, 1, 0.5, 1_000), &[]).await]
    {
        assert!(response.headers().contains_key("retry-after"), "{response:?}");
        let (status, error) = error_of(response).await;
        assert_eq!((status, error["code"].as_str()), (429, Some("session_limit_reached")));
    }
    drop(speaking);
    server.all_units_free().await;
    let client = Client::open(server.addr()).await;
    assert_eq!(error_of(http.speech(&endless).await).await.0, 429);
    client.cut();
    server.all_units_free().await;
    assert_eq!(http.speech(&json!({"input": "Hello.", "voice": "x"})).await.status(), 200);
}

#[tokio::test]
async fn a_recognition_server_behind_it_gets_the_hints_and_its_failures_are_told() {
    let speech = ScriptedSpeech::start().await;
    let (server, http) = start(1, &["--stt-url", &speech.url()]).await;
    let file = || recording(16_000, 1, 0.5, 1_000);
    speech.hears([
        Hear::Text("bonjour"),
        Hear::Text("hello"),
        Hear::Answer(500, "text/plain", "oh no"),
        Hear::Silence,
    ]);
    let answer = http.transcription(file(), &[("language", "fr"), ("prompt", "Antiphon, salut")]).await;
    assert!(answer.text().await.expect("a body").contains("bonjour"));
    let hints = &speech.recorded()[0].fields;
    assert_eq!((hints["language"].as_str(), hints["prompt"].as_str()), ("fr", "Antiphon, salut"));
    http.transcription(file(), &[]).await;
    let hints = &speech.recorded()[1].fields;
    assert!(
        !hints.contains_key("language") && !hints.contains_key("prompt"),
        "of the last client: {hints:?}"
    );
    let (status, error) = error_of(http.transcription(file(), &[]).await).await;
    assert_eq!((status, error["code"].as_str()), (500, Some("stt_failed")));
    // Who leaves takes the request along.
    tokio::select! {
        answer = http.try_transcription(file(), &[]) => panic!("{answer:?}, expected none"),
        () = speech.received(4, CANCEL_LIMIT) => {}
    }
    speech.abandoned(1, CANCEL_LIMIT).await;
    server.all_units_free().await;
}

#[tokio::test]
async fn a_failing_voice_is_told_by_the_status_or_by_a_broken_body() {
    let speech = ScriptedSpeech::start().await;
    let (server, http) = start(1, &["--tts-url", &speech.url()]).await;
    let body = json!({"input": "Hello.", "voice": "x", "response_format": "pcm"});
    speech.speaks([
        Speak::Answer(500, "text/plain", "oh no"),
        Speak::Pieces("audio/pcm", vec![vec![1; 9_600]], Then::Break),
    ]);
    let (status, error) = error_of(http.speech(&body).await).await;
    assert_eq!((status, error["code"].as_str()), (500, Some("tts_failed")), "{error}");
    let answer = http.speech(&body).await;
    assert_eq!(answer.status(), 200);
    assert!(answer.bytes().await.is_err(), "what broke off is not taken for the whole");
    server.all_units_free().await;
}
