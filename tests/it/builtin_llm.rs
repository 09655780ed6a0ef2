//! The built-in language model among several sessions: everybody is answered, and nobody learns of another.

use antiphon::door::config::DEFAULT_INSTRUCTIONS;
use serde_json::{Value, json};

use crate::client::Client;
use crate::http::Http;
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

/// Tokens of the prompt that need not be read, in the next response.
async fn cached(client: &mut Client) -> u64 {
    let done = client.expect("response.done").await;
    let details = &done["response"]["usage"]["input_token_details"];
    details["cached_tokens"].as_u64().unwrap_or_else(|| panic!("no count: {done}"))
}

/// What a new session says first, and nobody has said before; then how much of it was known.
async fn first_words(client: &mut Client, words: &str) -> u64 {
    client.update(json!({ "output_modalities": ["text"] })).await;
    client.ask(words).await;
    cached(client).await
}

#[tokio::test]
async fn a_guess_tells_nothing_of_another_session() {
    const SECRET: &str = "The code of the safe is seven, four, one, one, nine, three. What is it?";
    let server = Server::real_with(2, &["--serve-endpoints"]).await;
    let mut owner = Client::open(server.addr()).await;
    let instructions = first_words(&mut owner, SECRET).await;
    assert!(instructions > 10, "the server's own instructions were read when it started");
    // A guess beside the conversation, by one who has a conversation of his own.
    let mut other = Client::open(server.addr()).await;
    assert_eq!(first_words(&mut other, "Good morning to you, how do you do?").await, instructions);
    let guess = json!({ "type": "response.create", "response": {
        "conversation": "none", "output_modalities": ["text"], "input": [user(SECRET)],
    } });
    other.send(&guess).await;
    assert_eq!(cached(&mut other).await, instructions, "a neighbour's conversation");
    // A call that is passed on, even in another's name.
    let http = Http::new(server.addr());
    let messages = json!([
        { "role": "system", "content": DEFAULT_INSTRUCTIONS }, { "role": "user", "content": SECRET },
    ]);
    let body = json!({ "messages": messages, "max_tokens": 1, "id_slot": 0,
        "antiphon_caller": { "unit": 0, "epoch": 1, "rank": "spoken" } });
    for _ in 0..2 {
        let answer = http.post("chat/completions", &[("content-type", "application/json")], body.to_string());
        let answer = answer.await.text().await.expect("a body");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        let details = &answer["usage"]["prompt_tokens_details"];
        assert_eq!(details["cached_tokens"].as_u64(), Some(instructions), "{answer}");
    }
    // Its owner has what he has said.
    owner.send(&guess).await;
    assert!(cached(&mut owner).await > instructions, "the own conversation");
    owner.ask("Are you sure?").await;
    assert!(cached(&mut owner).await > instructions + 10, "the own conversation");
    // The next session has the same unit.
    owner.close().await;
    other.close().await;
    server.all_units_free().await;
    let mut next = Client::open(server.addr()).await;
    assert_eq!(first_words(&mut next, SECRET).await, instructions, "what a session has left");
}
