//! What is sent to the model fits its context, however long the talk (RC-064).

use crate::client::Client;
use crate::llm::ScriptedLlm;
use crate::server::Server;

/// Bytes of a conversation without its instructions.
fn history_bytes(request: &serde_json::Value) -> usize {
    let messages = request["messages"].as_array().expect("messages").iter();
    let contents = messages.filter(|message| message["role"] != "system").map(|message| &message["content"]);
    contents.map(|content| content.as_str().expect("text").len()).sum()
}

/// Talks for 12 turns of some 90 bytes each way; returns the bytes of history of each request.
async fn talk(server: &Server, llm: &ScriptedLlm) -> Vec<usize> {
    let mut client = Client::open(server.addr()).await;
    for turn in 0..12 {
        client.ask(&format!("Turn {turn}: {}", "one two three four five six seven eight ".repeat(2))).await;
        assert_eq!(client.answer().await.status, "completed", "turn {turn}");
    }
    llm.requests().iter().map(history_bytes).collect()
}

#[tokio::test]
async fn history_follows_the_context_that_the_server_names() {
    let llm = ScriptedLlm::start().await;
    llm.has_context(600);
    let server = Server::fake_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let bytes = talk(&server, &llm).await;
    // Half of the tokens at two bytes each, and what the user says now.
    assert!(bytes.iter().all(|bytes| *bytes <= 700), "{bytes:?}");
    assert!(bytes.iter().any(|bytes| *bytes > 300), "history is kept as far as there is room: {bytes:?}");
}

#[tokio::test]
async fn the_flag_goes_before_what_the_server_says() {
    let llm = ScriptedLlm::start().await;
    llm.has_context(512);
    let flags = ["--llm-url", &llm.url(), "--llm-model", "scripted", "--llm-context", "8192"];
    let server = Server::fake_with(1, &flags).await;
    let bytes = talk(&server, &llm).await;
    assert!(bytes.windows(2).all(|pair| pair[0] < pair[1]), "nothing is forgotten: {bytes:?}");
}
