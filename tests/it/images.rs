//! Pictures on their way to a language model that can see.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::llm::{Script, ScriptedLlm};
use crate::server::Server;

/// A request is made well before this.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

/// One pixel.
const PIXEL: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// An address that leads nowhere: who fetched it would fail.
const ADDRESS: &str = "https://pictures.invalid/cat.png";

fn picture(url: &str) -> Value {
    let content = json!([{ "type": "input_text", "text": "What is this?" }, { "type": "input_image", "image_url": url }]);
    json!({ "type": "conversation.item.create", "event_id": "picture",
        "item": { "type": "message", "role": "user", "content": content } })
}

/// Addresses of the pictures in the last request.
fn shown(llm: &ScriptedLlm) -> Vec<Value> {
    let request = llm.requests().pop().expect("a request");
    let messages = request["messages"].as_array().expect("messages").iter();
    let parts = messages.flat_map(|message| message["content"].as_array().into_iter().flatten());
    parts.filter(|part| part["type"] == "image_url").map(|part| part["image_url"]["url"].clone()).collect()
}

#[tokio::test]
async fn a_picture_survives_a_cancel_and_stays_in_the_conversation() {
    let mut llm = ScriptedLlm::start().await;
    let server = Server::fake_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let mut client = Client::open(server.addr()).await;
    client.update(json!({ "output_modalities": ["text"] })).await;
    client.send(&picture(PIXEL)).await;
    llm.script([Script::Silence, Script::StallAfter(vec!["It is ".to_owned()])]);
    for asked in 1..=2 {
        client.send(&json!({ "type": "response.create" })).await;
        let created = client.expect("response.created").await;
        llm.received(asked, REQUEST_LIMIT).await;
        assert_eq!(shown(&llm), [PIXEL], "request {asked}");
        client.send(&json!({ "type": "response.cancel" })).await;
        assert_eq!(client.rest_of_answer(&created).await.status, "cancelled");
    }
    for words in ["Go on.", "And then?"] {
        client.ask(words).await;
        assert_eq!(client.answer().await.status, "completed");
        assert_eq!(shown(&llm), [PIXEL], "{words}");
    }
    client.send(&picture(ADDRESS)).await;
    let refused = client.expect("error").await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["event_id"]),
        (&json!("image_url_not_allowed"), &json!("picture")),
        "{refused}"
    );
}

#[tokio::test]
async fn an_address_goes_to_the_model_unfetched_where_that_is_allowed() {
    let llm = ScriptedLlm::start().await;
    let args = ["--llm-url", &llm.url(), "--llm-model", "scripted", "--llm-image-urls"];
    let server = Server::fake_with(1, &args).await;
    let mut client = Client::open(server.addr()).await;
    client.update(json!({ "output_modalities": ["text"] })).await;
    client.send(&picture(ADDRESS)).await;
    client.send(&picture(PIXEL)).await;
    client.send(&json!({ "type": "response.create" })).await;
    assert_eq!(client.answer().await.status, "completed");
    assert_eq!(shown(&llm), [ADDRESS, PIXEL]);
}
