//! What the recogniser makes of a turn belongs to that turn, whatever else goes on (RC-008, RC-012, RC-035).

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::llm::{Script, ScriptedLlm};
use crate::server::Server;
use crate::signal::{level, silence, utterance};
use crate::speech_server::{Hear, ScriptedSpeech};

/// A request is made well before this.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

const COMPLETED: &str = "conversation.item.input_audio_transcription.completed";
const FAILED: &str = "conversation.item.input_audio_transcription.failed";

/// One unit, recogniser and model elsewhere.
async fn start(speech: &ScriptedSpeech, llm: &ScriptedLlm) -> Server {
    let (stt, llm) = (speech.url(), llm.url());
    let args = ["--stt-url", &stt, "--stt-model", "scripted", "--llm-url", &llm, "--llm-model", "scripted"];
    Server::fake_with(1, &args).await
}

/// What the user has said, as the last request has it.
fn said(llm: &ScriptedLlm) -> Vec<String> {
    let request = llm.requests().pop().expect("a request");
    let messages = request["messages"].as_array().expect("messages").iter();
    let user = messages.filter(|message| message["role"] == "user");
    user.map(|message| message["content"].as_str().expect("text").to_owned()).collect()
}

async fn create(client: &mut Client) {
    client.send(&json!({ "type": "response.create" })).await;
}

/// RC-008: the first of two turns is recognised late, then not at all.
#[tokio::test]
async fn two_turns_keep_their_own_transcripts_and_their_order() {
    let (speech, llm) = (ScriptedSpeech::start().await, ScriptedLlm::start().await);
    let server = start(&speech, &llm).await;
    let mut client = Client::open(server.addr()).await;
    let detection = json!({ "type": "server_vad", "create_response": false });
    client.update(json!({ "audio": { "input": { "turn_detection": detection } } })).await;
    let turn = [level(600, 5_000), silence(700)].concat();

    speech.hears([Hear::Late("First."), Hear::Text("Second.")]);
    client.stream(&turn.repeat(2)).await;
    let first = client.expect("input_audio_buffer.committed").await;
    let second = client.expect("input_audio_buffer.committed").await;
    assert_eq!(second["previous_item_id"], first["item_id"], "{second}");
    speech.let_go();
    for _ in 0..2 {
        let heard = client.expect(COMPLETED).await;
        let expected = if heard["item_id"] == first["item_id"] { "First." } else { "Second." };
        assert_eq!(heard["transcript"], expected, "{heard}");
    }
    create(&mut client).await;
    assert_eq!(client.answer().await.status, "completed");
    assert_eq!(said(&llm), ["First.", "Second."]);

    speech.hears([Hear::Answer(500, "application/json", "{}"), Hear::Text("Fourth.")]);
    client.stream(&turn.repeat(2)).await;
    let mut ends: Vec<Value> = Vec::new();
    let mut items: Vec<Value> = Vec::new();
    while ends.len() < 2 {
        let event = client.event().await;
        match event["type"].as_str().expect("an event has a type") {
            "input_audio_buffer.committed" => items.push(event["item_id"].clone()),
            COMPLETED | FAILED => ends.push(event),
            "error" => panic!("{event}"),
            _ => {}
        }
    }
    ends.sort_by_key(|end| items.iter().position(|item| *item == end["item_id"]));
    assert_eq!((&ends[0]["type"], &ends[0]["item_id"]), (&json!(FAILED), &items[0]), "{ends:?}");
    assert_eq!((&ends[1]["transcript"], &ends[1]["item_id"]), (&json!("Fourth."), &items[1]), "{ends:?}");
    create(&mut client).await;
    assert_eq!(client.answer().await.status, "completed");
    assert_eq!(said(&llm), ["First.", "Second.", "Fourth."]);
}

/// RC-012: a cancel is for a response; what the user says is recognised all the same.
#[tokio::test]
async fn a_cancel_leaves_the_recogniser_alone() {
    let (speech, mut llm) = (ScriptedSpeech::start().await, ScriptedLlm::start().await);
    let server = start(&speech, &llm).await;
    let mut client = Client::open(server.addr()).await;
    client.update(json!({ "audio": { "input": { "turn_detection": null } } })).await;
    llm.script([Script::Silence]);
    create(&mut client).await;
    let created = client.expect("response.created").await;
    llm.received(1, REQUEST_LIMIT).await;
    client.send(&json!({ "type": "response.cancel" })).await;
    assert_eq!(client.rest_of_answer(&created).await.status, "cancelled");

    speech.hears([Hear::Late("Are you there?")]);
    client.stream(&level(2_000, 5_000)).await;
    client.send(&json!({ "type": "input_audio_buffer.commit" })).await;
    speech.received(1, REQUEST_LIMIT).await;
    client.send(&json!({ "type": "response.cancel", "event_id": "busy" })).await;
    let refused = client.expect("error").await;
    assert_eq!(refused["error"]["code"], "response_cancel_not_active", "{refused}");
    assert_eq!(refused["error"]["event_id"], "busy", "{refused}");
    speech.let_go();
    assert_eq!(client.expect(COMPLETED).await["transcript"], "Are you there?");
    create(&mut client).await;
    assert_eq!(client.answer().await.text.trim(), "Are you there?");
    assert_eq!(said(&llm), ["Are you there?"]);
}

/// RC-035: five times nothing, then a word.
#[tokio::test]
async fn nothing_said_is_told_and_not_answered() {
    let (speech, llm) = (ScriptedSpeech::start().await, ScriptedLlm::start().await);
    let server = start(&speech, &llm).await;
    let mut client = Client::open(server.addr()).await;
    for nothing in ["", "   ", "...", "[noise]", " (coughs). "] {
        speech.hears([Hear::Text(nothing)]);
        client.stream(&utterance(5_000)).await;
        assert_eq!(client.expect(COMPLETED).await["transcript"], "", "{nothing:?}");
    }
    speech.hears([Hear::Text("Hello there.")]);
    client.stream(&utterance(5_000)).await;
    let answer = client.answer().await;
    assert_eq!((answer.status.as_str(), answer.text.trim()), ("completed", "Hello there."));
    assert_eq!(llm.requests().len(), 1, "nobody answers what was not said");
    assert_eq!(said(&llm), ["Hello there."]);
}
