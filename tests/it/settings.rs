//! What a session is told holds for the audio that comes, and what it is not told stays as it is (RC-002, RC-003, RC-014).

use serde_json::{Value, json};

use crate::client::Client;
use crate::llm::ScriptedLlm;
use crate::server::Server;
use crate::signal::{is_level, utterance};

const COMPLETED: &str = "conversation.item.input_audio_transcription.completed";

/// The next answer is to an utterance of this level.
async fn is_answered(client: &mut Client, at: i16) {
    let answer = client.answer().await;
    let tag = *answer.samples.first().expect("an answer has audio");
    assert!(is_level(tag.into(), at), "answered {tag}, spoken was {at}");
    answer.assert_is(tag, 0.5);
}

/// Types of all events up to one of this type.
async fn types_until(client: &mut Client, last: &str) -> Vec<String> {
    let mut types = Vec::new();
    loop {
        let event = client.event().await;
        types.push(event["type"].as_str().expect("an event has a type").to_owned());
        assert_ne!(event["type"], "error", "{event}");
        if event["type"] == last {
            return types;
        }
    }
}

fn turn_detection(of: &Value) -> &Value {
    &of["audio"]["input"]["turn_detection"]
}

/// RC-002: the threshold alone, something else, something else again.
#[tokio::test]
async fn turns_are_found_after_every_partial_update() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let mut expected = turn_detection(client.session()).clone();
    expected["threshold"] = json!(0.8);
    let updates = [
        json!({ "audio": { "input": { "turn_detection": { "type": "server_vad", "threshold": 0.8 } } } }),
        json!({ "audio": { "output": { "speed": 1.1 } } }),
        json!({ "tools": [{ "type": "function", "name": "look" }] }),
    ];
    for (number, update) in updates.into_iter().enumerate() {
        let updated = client.update(update).await;
        assert_eq!(turn_detection(&updated["session"]), &expected, "update {number}");
        let at = 3_000 + 1_000 * i16::try_from(number).expect("few");
        client.stream(&utterance(at)).await;
        client.expect("input_audio_buffer.speech_started").await;
        client.expect("input_audio_buffer.speech_stopped").await;
        is_answered(&mut client, at).await;
    }
}

/// RC-003: off is off until it is on again, whatever else is updated meanwhile.
#[tokio::test]
async fn without_turn_detection_nothing_happens_before_the_client_commits() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let updates = [
        json!({ "audio": { "input": { "turn_detection": null } } }),
        json!({ "instructions": "Other." }),
        json!({ "tools": [], "instructions": "", "audio": { "input": { "noise_reduction": null } } }),
    ];
    for update in updates {
        let updated = client.update(update).await;
        assert_eq!(turn_detection(&updated["session"]), &Value::Null, "{updated}");
        client.stream(&utterance(4_000)).await;
        // The commit comes behind the audio: whatever the audio causes comes before what the commit causes.
        client.send(&json!({ "type": "input_audio_buffer.commit" })).await;
        let types = types_until(&mut client, COMPLETED).await;
        let expected = [
            "input_audio_buffer.committed",
            "conversation.item.added",
            "conversation.item.input_audio_transcription.delta",
            "conversation.item.done",
            COMPLETED,
        ];
        assert_eq!(types, expected);
        client.send(&json!({ "type": "response.create" })).await;
        is_answered(&mut client, 4_000).await;
    }
    client.update(json!({ "audio": { "input": { "turn_detection": { "type": "server_vad" } } } })).await;
    client.stream(&utterance(7_000)).await;
    is_answered(&mut client, 7_000).await;
}

/// Five utterances with these settings: five transcripts, no response.
async fn captions(client: &mut Client, session: Value) {
    let update = json!({ "type": "session.update", "session": session });
    client.send(&update).await;
    client.expect("session.updated").await;
    let levels = [2_000, 4_000, 6_000, 8_000, 10_000];
    for at in levels {
        client.stream(&utterance(at)).await;
    }
    let mut types = Vec::new();
    for _ in levels {
        types.extend(types_until(client, COMPLETED).await);
    }
    client.send(&update).await;
    types.extend(types_until(client, "session.updated").await);
    let responses: Vec<_> = types.iter().filter(|kind| kind.starts_with("response.")).collect();
    assert!(responses.is_empty(), "{responses:?}");
    assert_eq!(types.iter().filter(|kind| *kind == COMPLETED).count(), levels.len(), "{types:?}");
}

/// RC-014: by its type, and by its turn detection where no model can be reached.
#[tokio::test]
async fn captions_ask_no_model() {
    let llm = ScriptedLlm::start().await;
    let server = Server::fake_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let mut client = Client::open(server.addr()).await;
    captions(&mut client, json!({ "type": "transcription" })).await;
    assert!(llm.requests().is_empty(), "{:?}", llm.requests());
    let other = json!({ "type": "session.update", "event_id": "other", "session": { "type": "realtime" } });
    client.send(&other).await;
    let error = client.expect("error").await;
    assert_eq!(error["error"]["event_id"], "other", "{error}");
    client.close().await;
    drop(server);

    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let nowhere = format!("http://{}/v1", listener.local_addr().expect("bound"));
    drop(listener);
    let server = Server::fake_with(1, &["--llm-url", &nowhere, "--llm-model", "scripted"]).await;
    let mut client = Client::open(server.addr()).await;
    let detection = json!({ "type": "server_vad", "create_response": false });
    captions(
        &mut client,
        json!({ "type": "realtime", "audio": { "input": { "turn_detection": detection } } }),
    )
    .await;
}
