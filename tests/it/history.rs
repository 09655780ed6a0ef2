//! What the model is told of the conversation: what was heard, as it was said, as much as fits (RC-015, RC-017, RC-043,
//! RC-045, RC-064).

use serde_json::{Value, json};

use crate::client::Client;
use crate::llm::{Api, Script, ScriptedLlm};
use crate::server::Server;
use crate::signal::{level, silence, utterance};

/// The first ones have three letters: a sentence of 28 characters, which the fake voice hums for 1,680 ms.
const NUMBERS: [&str; 10] = ["one", "two", "six", "ten", "three", "four", "five", "seven", "eight", "nine"];

fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

/// "This is sentence number one. This is sentence number two." and so on.
fn numbered() -> String {
    NUMBERS.map(|number| format!("This is sentence number {number}.")).join(" ")
}

async fn start(llm: &ScriptedLlm) -> Server {
    Server::fake_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted", "--llm-api", llm.api()]).await
}

async fn create(client: &mut Client) {
    client.send(&json!({ "type": "response.create" })).await;
}

fn messages(request: &Value) -> &[Value] {
    request["messages"].as_array().expect("a request has messages")
}

fn roles(request: &Value) -> Vec<&str> {
    messages(request).iter().map(|message| message["role"].as_str().expect("a role")).collect()
}

/// What the model has said first, as the last request has it.
fn first_answer(llm: &ScriptedLlm) -> String {
    let request = llm.requests().pop().expect("a request");
    let said = messages(&request).iter().find(|message| message["role"] == "assistant");
    let said = said.and_then(|message| message["content"].as_str());
    said.unwrap_or_else(|| panic!("nothing that the model said: {request}")).to_owned()
}

/// RC-015: with a model that insists on a user, and with one that does not.
#[tokio::test]
async fn a_greeting_needs_no_user_and_leaves_none_behind() {
    let llm = ScriptedLlm::start().await;
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    client.update(json!({ "instructions": "Greet the caller." })).await;
    llm.script([Script::Status(400), Script::Say(words("Good morning."))]);
    create(&mut client).await;
    let refused = client.answer().await;
    assert_eq!(refused.status, "failed");
    let reason = refused.details["error"]["message"].as_str().expect("a reason");
    assert!(reason.contains("scripted failure"), "{reason}");
    create(&mut client).await;
    let greeting = client.answer().await;
    assert_eq!((greeting.status.as_str(), greeting.text.trim()), ("completed", "Good morning."));
    assert!(!greeting.samples.is_empty(), "the greeting is spoken");
    client.ask("Who are you?").await;
    assert_eq!(client.answer().await.text.trim(), "Who are you?");
    llm.script([Script::Say(words("Out of nothing."))]);
    client.send(&json!({ "type": "response.create", "response": { "input": [] } })).await;
    assert_eq!(client.answer().await.status, "completed");
    let requests = llm.requests();
    let expected: [&[&str]; 4] = [&["system"], &["system"], &["system", "assistant", "user"], &["system"]];
    assert_eq!(requests.iter().map(roles).collect::<Vec<_>>(), expected);
}

/// RC-017: all of it was sent, three seconds were heard; the client says so while the user speaks, or when the next answer
/// is there, or never.
#[tokio::test]
async fn the_model_knows_what_was_heard_of_its_answer() {
    let llm = ScriptedLlm::start().await;
    let server = start(&llm).await;
    let whole = numbered();
    for truncated in ["while the user speaks", "behind the next answer", "never"] {
        let mut client = Client::open(server.addr()).await;
        llm.script([Script::Say(words(&whole))]);
        client.ask("Count, please.").await;
        let added = client.expect("response.output_item.added").await;
        client.expect("response.done").await;
        let item = &added["item"]["id"];
        let truncate = json!({ "type": "conversation.item.truncate", "item_id": item, "content_index": 0, "audio_end_ms": 3_000 });
        client.stream(&level(1_000, 5_000)).await;
        client.expect("input_audio_buffer.speech_started").await;
        if truncated == "while the user speaks" {
            client.send(&truncate).await;
            assert_eq!(client.expect("conversation.item.truncated").await["audio_end_ms"], 3_000);
        }
        client.stream(&silence(900)).await;
        assert_eq!(client.answer().await.status, "completed", "{truncated}");
        if truncated == "behind the next answer" {
            client.send(&truncate).await;
            client.expect("conversation.item.truncated").await;
            client.ask("And now?").await;
            assert_eq!(client.answer().await.status, "completed", "{truncated}");
        }
        let known = first_answer(&llm);
        if truncated == "never" {
            assert_eq!(known.trim(), whole);
        } else {
            assert!(known.starts_with("This is sentence number one."), "{truncated}: {known:?}");
            assert!(whole.starts_with(known.trim_end()), "{truncated}: {known:?}");
            // The second sentence ends after 3,360 ms; a word of the third may stand with it.
            assert!(!known.contains("number six"), "{truncated}: {known:?}");
        }
        client.close().await;
        server.all_units_free().await;
    }
}

/// RC-017: the answer is broken off while it is made, and nobody says what was heard of it.
#[tokio::test]
async fn of_an_interrupted_answer_what_was_sent_is_known() {
    let llm = ScriptedLlm::start().await;
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    let whole = numbered();
    llm.script([Script::StallAfter(words(&whole))]);
    client.ask("Count, please.").await;
    let created = client.expect("response.created").await;
    client.expect("response.output_audio.delta").await;
    client.stream(&utterance(5_000)).await;
    let interrupted = client.rest_of_answer(&created).await;
    assert_eq!(interrupted.status, "cancelled");
    assert_eq!(interrupted.details["reason"], "turn_detected");
    assert_eq!(client.answer().await.status, "completed");
    let known = first_answer(&llm);
    assert!(known.starts_with("This is") && whole.starts_with(known.trim_end()), "{known:?}");
}

/// RC-043, RC-045: cut at each place, by characters, and with thoughts before it.
#[tokio::test]
async fn what_the_model_says_is_told_and_remembered_as_it_is() {
    for api in Api::ALL {
        texts_are_remembered(api).await;
    }
}

async fn texts_are_remembered(api: Api) {
    const TEXT: &str = "What is the\u{a0}weather?\nIt is  fine, caf\u{e9} 🚀 open.";
    let llm = ScriptedLlm::start_as(api).await;
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    let cuts = (0..TEXT.len()).filter(|&at| TEXT.is_char_boundary(at));
    let mut answers: Vec<Vec<String>> =
        cuts.map(|at| vec![TEXT[..at].to_owned(), TEXT[at..].to_owned()]).collect();
    answers.push(TEXT.chars().map(String::from).collect());
    answers.push(["<thi", "nk>A secret.</th", "ink>", TEXT].map(str::to_owned).to_vec());
    for pieces in answers {
        llm.script([Script::Say(pieces.clone())]);
        client.ask("Go on.").await;
        let answer = client.answer().await;
        assert_eq!((answer.status.as_str(), answer.text.as_str()), ("completed", TEXT), "{pieces:?}");
    }
    client.ask("Thank you.").await;
    assert_eq!(client.answer().await.status, "completed");
    let request = llm.requests().pop().expect("a request");
    let said = messages(&request).iter().filter(|message| message["role"] == "assistant");
    let said: Vec<_> = said.map(|message| &message["content"]).collect();
    assert!(said.len() > 1 && said.iter().all(|said| **said == TEXT), "{said:?}");
}

/// Bytes of a request that a model reads: 2 to the token, as the server reckons.
fn bytes_read(request: &Value) -> usize {
    let text = |value: &Value| value.as_str().map_or(0, str::len);
    let call = |call: &Value| text(&call["function"]["name"]) + text(&call["function"]["arguments"]);
    let calls = |message: &Value| {
        message["tool_calls"].as_array().map_or(0, |calls| calls.iter().map(call).sum::<usize>())
    };
    messages(request).iter().map(|message| text(&message["content"]) + calls(message)).sum()
}

/// RC-064: 200 turns, every fifth with a call, and a model that can read 4,096 tokens. That calls and outputs are pairs is
/// checked by the model server.
#[tokio::test]
async fn two_hundred_turns_with_calls_fit_a_small_context() {
    const CONTEXT_TOKENS: u32 = 4_096;
    let llm = ScriptedLlm::start().await;
    llm.has_context(CONTEXT_TOKENS);
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    let tools = json!([{ "type": "function", "name": "look", "parameters": { "type": "object" } }]);
    client.update(json!({ "instructions": "Never forget this.", "tools": tools })).await;
    for turn in 0..200 {
        if turn % 5 == 0 {
            client.ask("Please call look.").await;
            let called = client.expect("response.function_call_arguments.done").await;
            assert_eq!(
                client.expect("response.done").await["response"]["status"],
                "completed",
                "turn {turn}"
            );
            let output = format!("On turn {turn} there is nothing to be seen but rain.");
            let item =
                json!({ "type": "function_call_output", "call_id": called["call_id"], "output": output });
            client.send(&json!({ "type": "conversation.item.create", "item": item })).await;
            create(&mut client).await;
            assert_eq!(client.answer().await.text.trim(), output, "turn {turn}");
        } else {
            client.ask(&format!("This is what I have to say to you on turn {turn}, and no more.")).await;
            let answer = client.answer().await;
            assert_eq!(answer.status, "completed", "turn {turn}: {:?}", answer.details);
        }
    }
    let requests = llm.requests();
    assert_eq!(requests.len(), 240);
    for request in &requests {
        assert_eq!(messages(request)[0]["content"], "Never forget this.");
        assert!(bytes_read(request) <= 2 * CONTEXT_TOKENS as usize, "{} bytes", bytes_read(request));
    }
    let largest = |requests: &[Value]| requests.iter().map(bytes_read).max().expect("requests");
    let (early, late) = (largest(&requests[..120]), largest(&requests[120..]));
    assert!(late < early + 200, "requests grow: {early} bytes in the first half, {late} in the second");
    let last = requests.last().expect("a request");
    let forgets = !messages(last)
        .iter()
        .any(|message| message["content"].as_str().is_some_and(|it| it.contains("turn 1,")));
    assert!(forgets, "the first turns are still there: {last}");
    assert!(bytes_read(last) > 1_000, "all is forgotten: {last}");
}
