//! Recognition by a server (`--stt-url`): what it hears is what the session gets, and its faults cost one utterance.

use std::time::Duration;

use crate::client::Client;
use crate::server::Server;
use crate::signal::utterance;
use crate::speech_server::{Hear, ScriptedSpeech};

/// A request that is given up is gone well before this.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

const COMPLETED: &str = "conversation.item.input_audio_transcription.completed";
const FAILED: &str = "conversation.item.input_audio_transcription.failed";

async fn start(speech: &ScriptedSpeech, args: &[&str]) -> Server {
    let url = speech.url();
    Server::fake_with(2, &[&["--stt-url", &url, "--stt-model", "scripted"], args].concat()).await
}

/// The next utterance is understood and answered.
async fn is_well(client: &mut Client, speech: &ScriptedSpeech) {
    speech.hears([Hear::Text(" say dur=0.5 tag=321\n")]);
    client.stream(&utterance(5_000)).await;
    let heard = client.expect(COMPLETED).await;
    assert_eq!(heard["transcript"], "say dur=0.5 tag=321", "{heard}");
    client.answer().await.assert_is(321, 0.5);
}

#[tokio::test]
async fn the_server_hears_what_was_said_and_the_session_what_it_heard() {
    let speech = ScriptedSpeech::start().await;
    // Cargo gives every test this variable; its value is as good a key as any.
    let server = start(&speech, &["--stt-key-env", "CARGO_PKG_NAME"]).await;
    let mut client = Client::open(server.addr()).await;
    is_well(&mut client, &speech).await;
    let [recorded] = &speech.recorded()[..] else { panic!("{:?}, expected one", speech.recorded()) };
    assert_eq!(recorded.authorization.as_deref(), Some(concat!("Bearer ", env!("CARGO_PKG_NAME"))));
    let fields: Vec<_> =
        recorded.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    assert_eq!(fields, [("model", "scripted"), ("response_format", "json")]);
    assert!(recorded.file_name.ends_with(".wav"), "{}", recorded.file_name);
    let loud = recorded.ms_of(5_000);
    assert!(
        loud > 1_900,
        "{loud} ms of {} samples have the level of the utterance",
        recorded.samples().len()
    );
}

#[tokio::test]
async fn utterances_are_transcribed_in_their_order() {
    let speech = ScriptedSpeech::start().await;
    let server = start(&speech, &[]).await;
    let mut client = Client::open(server.addr()).await;
    client.update(serde_json::json!({ "audio": { "input": { "turn_detection": null } } })).await;
    speech.hears([Hear::Late("one"), Hear::Text("two"), Hear::Text("three")]);
    for _ in 0..3 {
        client.stream(&utterance(5_000)).await;
        client.send(&serde_json::json!({ "type": "input_audio_buffer.commit" })).await;
        client.expect("input_audio_buffer.committed").await;
    }
    speech.let_go();
    for expected in ["one", "two", "three"] {
        assert_eq!(client.expect(COMPLETED).await["transcript"], expected);
    }
}

#[tokio::test]
async fn every_failure_fails_one_utterance_and_the_session_goes_on() {
    let speech = ScriptedSpeech::start().await;
    let server = start(&speech, &["--stt-timeout-s", "1"]).await;
    let mut client = Client::open(server.addr()).await;
    let failures = [
        Hear::Answer(500, "application/json", r#"{"error": {"message": "scripted"}}"#),
        Hear::Answer(429, "application/json", r#"{"error": {"message": "too many"}}"#),
        Hear::Answer(200, "text/html", "<p>Welcome to the portal</p>"),
        Hear::Answer(200, "application/json", r#"{"txt": "no text"}"#),
        Hear::Answer(200, "application/json", r#"{"text": "#),
        Hear::Silence,
    ];
    for failure in failures {
        let before = speech.recorded().len();
        speech.hears([failure.clone()]);
        client.stream(&utterance(5_000)).await;
        let failed = client.expect(FAILED).await;
        assert_eq!(failed["error"]["code"], "stt_failed", "{failure:?}: {failed}");
        assert_eq!(speech.recorded().len(), before + 1, "{failure:?}: no storm of retries");
        is_well(&mut client, &speech).await;
    }
    speech.abandoned(1, CANCEL_LIMIT).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_fails_the_utterance() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    drop(listener);
    let server = Server::fake_with(1, &["--stt-url", &url]).await;
    let mut client = Client::open(server.addr()).await;
    for _ in 0..2 {
        client.stream(&utterance(5_000)).await;
        client.expect(FAILED).await;
    }
}

#[tokio::test]
async fn whoever_leaves_takes_the_request_along() {
    let speech = ScriptedSpeech::start().await;
    let server = start(&speech, &[]).await;
    for round in 1..=3 {
        let mut client = Client::open(server.addr()).await;
        speech.hears([Hear::Silence]);
        client.stream(&utterance(5_000)).await;
        speech.received(round, CANCEL_LIMIT).await;
        // A second one waits behind it.
        client.stream(&utterance(5_000)).await;
        if round == 2 {
            client.reset();
        } else {
            client.cut();
        }
        speech.abandoned(round, CANCEL_LIMIT).await;
        server.all_units_free().await;
    }
    let mut client = Client::open(server.addr()).await;
    is_well(&mut client, &speech).await;
}
