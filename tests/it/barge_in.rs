//! The user speaks while the server does.

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::server::Server;
use crate::signal::{is_level, level, silence, utterance};

/// The types of events, to look at their order.
fn types(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().expect("an event has a type")).collect()
}

/// Starts a long answer and reads until its first audio.
async fn long_answer(client: &mut Client, tag: i16) -> Answer {
    client.ask(&format!("say dur=60 tag={tag} rt=1")).await;
    let created = client.expect("response.created").await;
    let id = created["response"]["id"].as_str().expect("an id").to_owned();
    let mut answer = Answer { id, ..Answer::default() };
    while answer.samples.is_empty() {
        let event = client.event().await;
        assert!(!answer.take(&event), "60 s of paced audio are over at once");
    }
    answer
}

#[tokio::test]
async fn speech_stops_the_answer_and_is_answered_itself() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let mut first = long_answer(&mut client, 111).await;
    client.stream(&utterance(9_000)).await;
    let mut events = Vec::new();
    loop {
        let event = client.event().await;
        if first.take(&event) {
            events.push(event);
            break;
        }
        events.push(event);
    }
    assert_eq!(first.status, "cancelled");
    assert_eq!(first.details["reason"], "turn_detected", "{:?}", first.details);
    assert!(first.samples.len() < 60 * 24_000 && first.samples.iter().all(|&sample| sample == 111));
    // Nothing of it afterwards: `answer` fails on an event of another response.
    let second = client.answer().await;
    let tag = second.samples[0];
    assert!(
        is_level(tag.into(), 9_000) && second.samples.iter().all(|&sample| sample == tag),
        "answered {tag}"
    );
    assert!(types(&events).contains(&"response.output_audio.done"), "{:?}", types(&events));
}

#[tokio::test]
async fn speech_is_reported_when_it_begins_and_not_when_it_ends() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    long_answer(&mut client, 222).await;
    // No end of the speech is in sight, and the answer stops all the same.
    client.stream(&level(1_000, 9_000)).await;
    client.expect("input_audio_buffer.speech_started").await;
    client.stream(&silence(900)).await;
    let stopped = client.expect("input_audio_buffer.speech_stopped").await;
    let committed = client.expect("input_audio_buffer.committed").await;
    assert_eq!(stopped["item_id"], committed["item_id"]);
}

#[tokio::test]
async fn an_answer_that_may_not_be_interrupted_is_not() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let detection = json!({ "type": "server_vad", "interrupt_response": false, "create_response": false });
    client.update(json!({ "audio": { "input": { "turn_detection": detection } } })).await;
    client.ask("say dur=1.5 tag=333 rt=1").await;
    let created = client.expect("response.created").await;
    client.stream(&utterance(9_000)).await;
    client.rest_of_answer(&created).await.assert_is(333, 1.5);
}

#[tokio::test]
async fn the_next_answer_knows_that_it_was_interrupted() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    for round in 0..20 {
        let level = 2_000 + 500 * round;
        let mut interrupted = long_answer(&mut client, 100 + round).await;
        client.stream(&utterance(level)).await;
        while !interrupted.take(&client.event().await) {}
        assert_eq!(interrupted.status, "cancelled", "round {round}");
        let answer = client.answer().await;
        assert_eq!(answer.status, "completed", "round {round}");
        assert!(is_level(answer.samples[0].into(), level), "round {round}: answered {}", answer.samples[0]);
    }
}
