//! The built-in language model among several sessions: everybody is answered.

use serde_json::{Value, json};

use crate::client::Client;
use crate::server::Server;

/// A profile with eight slots of the language model.
const EIGHT_SLOTS: [&str; 2] = ["--profile", "xeon-avx512-2c-cpu-debian12"];

#[tokio::test]
async fn nine_sessions_share_eight_slots() {
    let server = Server::real_with(9, &EIGHT_SLOTS).await;
    let mut clients = Vec::new();
    for _ in 0..9 {
        let mut client = Client::open(server.addr()).await;
        client.update(json!({ "output_modalities": ["text"] })).await;
        clients.push(client);
    }
    for client in &mut clients {
        client.ask("Hello, who are you?").await;
    }
    for (session, client) in clients.iter_mut().enumerate() {
        let answer = client.answer().await;
        assert_eq!(answer.status, "completed", "session {session}: {}", answer.details);
    }
}

#[tokio::test]
async fn asides_of_one_client_delay_nobody() {
    let server = Server::real_with(8, &EIGHT_SLOTS).await;
    let mut busy = Client::open(server.addr()).await;
    let aside = json!({ "type": "response.create", "response": {
        "conversation": "none", "output_modalities": ["text"], "max_output_tokens": 4_096,
        "instructions": "You are a writer.", "input": [user("Write a very long story with many chapters.")],
    } });
    for _ in 0..8 {
        busy.send(&aside).await;
    }
    let mut begun = std::collections::BTreeSet::new();
    while begun.len() < 8 {
        let delta = busy.expect("response.output_text.delta").await;
        begun.insert(delta["response_id"].as_str().expect("an id").to_owned());
    }
    // They would go on for minutes.
    let mut neighbour = Client::open(server.addr()).await;
    for question in ["Hello, who are you?", "And what can you do?"] {
        neighbour.ask(question).await;
        let answer = neighbour.answer().await;
        assert_eq!(answer.status, "completed", "{}", answer.details);
        assert!(!answer.samples.is_empty(), "it is spoken");
    }
    neighbour.send(&aside).await;
    neighbour.expect("response.output_text.delta").await;
    // Their own session's conversation does not wait for them either.
    busy.ask("Hello, who are you?").await;
    let done = loop {
        let done = busy.expect("response.done").await;
        assert_ne!(done["response"]["status"], "failed", "{done}");
        if done["response"]["conversation_id"].is_string() {
            break done;
        }
    };
    assert_eq!(done["response"]["status"], "completed", "{done}");
}

fn user(text: &str) -> Value {
    json!({ "type": "message", "role": "user", "content": [{ "type": "input_text", "text": text }] })
}
