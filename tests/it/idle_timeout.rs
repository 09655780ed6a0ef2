//! A client may ask that a silence of the user be answered as a turn.

use std::time::Duration;

use serde_json::json;
use tokio::time::interval;

use crate::client::Client;
use crate::llm::ScriptedLlm;
use crate::server::Server;
use crate::signal::{level, silence};

const TRIGGERED: &str = "input_audio_buffer.timeout_triggered";

#[tokio::test]
async fn a_silence_is_answered_and_speech_is_none() {
    let llm = ScriptedLlm::start().await;
    let server = Server::fake_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let mut client = Client::open(server.addr()).await;
    let detection = json!({ "type": "server_vad", "idle_timeout_ms": 5_000 });
    client.update(json!({ "audio": { "input": { "turn_detection": detection } } })).await;
    client.ask("say dur=0.2 tag=44").await;
    client.answer().await.assert_is(44, 0.2);

    let triggered = client.expect(TRIGGERED).await;
    let committed = client.expect("input_audio_buffer.committed").await;
    assert_eq!(committed["item_id"], triggered["item_id"], "{committed}");
    let added = client.expect("conversation.item.added").await;
    assert_eq!(
        (&added["item"]["id"], &added["item"]["role"]),
        (&triggered["item_id"], &json!("user")),
        "{added}"
    );
    let answer = client.answer().await;
    assert_eq!(answer.status, "completed");
    assert!(!answer.samples.is_empty(), "the silence is answered aloud");
    let requests = llm.requests();
    assert_eq!(requests.len(), 2, "one answer to the words, one to the silence");

    // The user speaks, as fast as people do, for longer than the client waits.
    let mut clock = interval(Duration::from_millis(100));
    for _ in 0..65 {
        clock.tick().await;
        client.append(&level(100, 5_000)).await;
    }
    client.stream(&silence(900)).await;
    loop {
        let event = client.event().await;
        assert!(event["type"] != TRIGGERED && event["type"] != "error", "{event}");
        if event["type"] == "response.done" {
            assert_eq!(event["response"]["status"], "completed", "{event}");
            break;
        }
    }
    assert_eq!(llm.requests().len(), 3, "one answer to what was said");
}
