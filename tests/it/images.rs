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

/// A message with this picture is an error of this code.
async fn is_refused(client: &mut Client, url: &str, code: &str) {
    client.send(&picture(url)).await;
    let refused = client.expect("error").await;
    assert_eq!(
        (&refused["error"]["code"], &refused["error"]["event_id"]),
        (&json!(code), &json!("picture")),
        "{refused}"
    );
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
    is_refused(&mut client, ADDRESS, "image_url_not_allowed").await;
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

/// What a model without eyes says to a picture is that response's failure; the conversation goes on without it.
#[tokio::test]
async fn a_model_without_eyes_fails_one_response_or_is_never_asked() {
    let llm = ScriptedLlm::start().await;
    let url = llm.url();
    let args = ["--llm-url", &url, "--llm-model", "scripted"];
    let server = Server::fake_with(1, &args).await;
    let mut client = Client::open(server.addr()).await;
    client.update(json!({ "output_modalities": ["text"] })).await;
    client.send(&picture(PIXEL)).await;
    let item = client.expect("conversation.item.done").await["item"]["id"].clone();
    llm.script([Script::Status(400)]);
    client.send(&json!({ "type": "response.create" })).await;
    let done = client.expect("response.done").await;
    let error = &done["response"]["status_details"]["error"];
    assert_eq!(done["response"]["status"], "failed", "{done}");
    assert!(error["message"].as_str().is_some_and(|message| message.contains("scripted failure")), "{error}");
    client.send(&json!({ "type": "conversation.item.delete", "item_id": item })).await;
    client.expect("conversation.item.deleted").await;
    client.ask("And without it?").await;
    assert_eq!(client.answer().await.status, "completed");
    assert!(shown(&llm).is_empty());
    drop((client, server));

    let server = Server::fake_with(1, &[&args[..], &["--llm-no-images"]].concat()).await;
    let mut client = Client::open(server.addr()).await;
    is_refused(&mut client, PIXEL, "image_not_supported").await;
}
