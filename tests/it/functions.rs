//! Functions: calls that are interrupted, answered late, twice or never, and words before them (RC-021 to RC-024).

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Answer, Client};
use crate::llm::{Api, Script, ScriptedCall, ScriptedLlm};
use crate::server::Server;
use crate::signal::utterance;

/// A request that is given up is gone well before this.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

/// The end of the arguments: what a client acts on.
const CALLED: &str = "response.function_call_arguments.done";

async fn start(llm: &ScriptedLlm) -> (Server, Client) {
    let server =
        Server::fake_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted", "--llm-api", llm.api()])
            .await;
    let mut client = Client::open(server.addr()).await;
    let tools = ["look", "book"].map(|name| json!({ "type": "function", "name": name }));
    client.update(json!({ "tools": tools })).await;
    (server, client)
}

/// Gives the output of a call; returns the item that it became.
async fn give(client: &mut Client, call: &Value, output: &str) -> Value {
    client.send(&output_event(call, output)).await;
    loop {
        let added = client.expect("conversation.item.added").await;
        if added["item"]["type"] == "function_call_output" {
            return added;
        }
    }
}

fn output_event(call: &Value, output: &str) -> Value {
    let item = json!({ "type": "function_call_output", "call_id": call["call_id"], "output": output });
    json!({ "type": "conversation.item.create", "event_id": "output", "item": item })
}

async fn create(client: &mut Client) {
    client.send(&json!({ "type": "response.create" })).await;
}

/// What the model was told last of what its calls have given.
fn outputs(llm: &ScriptedLlm) -> Vec<String> {
    let request = llm.requests().pop().expect("a request");
    let messages = request["messages"].as_array().expect("messages").iter();
    let tool = messages.filter(|message| message["role"] == "tool");
    tool.map(|message| message["content"].as_str().expect("text").to_owned()).collect()
}

/// The model calls, and the user says something else before the output is there; that is answered. Returns the call.
async fn call_and_change_the_subject(client: &mut Client) -> Value {
    client.ask("Please call look.").await;
    let call = client.expect(CALLED).await;
    assert_eq!(client.expect("response.done").await["response"]["status"], "completed");
    client.stream(&utterance(5_000)).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, "completed");
    assert!(!answer.events.iter().any(|kind| kind == CALLED), "the call is made again");
    call
}

/// RC-021: never, late, twice. The model server refuses what is no pair, and fails the test.
#[tokio::test]
async fn a_call_that_was_talked_over_is_answered_never_late_or_twice() {
    let llm = ScriptedLlm::start().await;
    let (_server, mut client) = start(&llm).await;
    let first = call_and_change_the_subject(&mut client).await;
    let waiting = outputs(&llm);
    assert_eq!(waiting.len(), 1, "a call has an output, if only that there is none yet: {waiting:?}");
    client.ask("Are you still there?").await;
    assert_eq!(client.answer().await.text.trim(), "Are you still there?");
    assert_eq!(outputs(&llm), waiting, "never answered");

    give(&mut client, &first, "It is noon.").await;
    create(&mut client).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, "completed");
    assert!(!answer.events.iter().any(|kind| kind == CALLED), "the call is made again");
    assert_eq!(outputs(&llm), ["It is noon."], "answered late");

    client.send(&output_event(&first, "It is midnight.")).await;
    let error = client.expect("error").await;
    assert_eq!(error["error"]["event_id"], "output", "{error}");
    let second = call_and_change_the_subject(&mut client).await;
    assert_ne!(first["call_id"], second["call_id"]);
    give(&mut client, &second, "Rain.").await;
    create(&mut client).await;
    assert_eq!(client.answer().await.status, "completed");
    assert_eq!(outputs(&llm), ["It is noon.", "Rain."], "answered twice");
}

/// RC-022: the user speaks while the arguments are streamed: what was whole by then is a call, the rest never becomes one.
#[tokio::test]
async fn a_call_that_is_interrupted_is_whole_or_incomplete() {
    for api in Api::ALL {
        interrupted_calls(api).await;
    }
}

async fn interrupted_calls(api: Api) {
    let mut llm = ScriptedLlm::start_as(api).await;
    let (_server, mut client) = start(&llm).await;
    let arguments = json!({ "seat": "12A", "note": "by the \"window\"" }).to_string();
    let call = |arguments: &str| ScriptedCall { name: "book".to_owned(), arguments: arguments.to_owned() };
    for (round, cut) in [1, 2, 9, 10, 11, 20, 30, arguments.len() - 1].into_iter().enumerate() {
        // The first is whole, and what begins the second says so.
        llm.script([Script::StallInCall(vec![call(&arguments), call(&arguments[..cut])])]);
        client.ask("Go on.").await;
        let (mut written, mut called, mut closed) = ([String::new(), String::new()], Vec::new(), Vec::new());
        let done = loop {
            let event = client.event().await;
            match event["type"].as_str().expect("an event has a type") {
                "response.function_call_arguments.delta" => {
                    let index = event["output_index"].as_u64().and_then(|index| usize::try_from(index).ok());
                    let index = index.expect("an index");
                    written[index] += event["delta"].as_str().expect("a delta");
                    if index == 1 && written[1].len() == cut {
                        client.stream(&utterance(9_000)).await;
                    }
                }
                CALLED => called.push(event["arguments"].clone()),
                "response.output_item.done" => closed.push(event["item"].clone()),
                "response.done" => break event["response"].clone(),
                "error" => panic!("{event}"),
                _ => {}
            }
        };
        assert_eq!(done["status"], "cancelled", "cut at {cut}");
        assert_eq!((&written[0], &written[1][..]), (&arguments, &arguments[..cut]));
        assert_eq!(called, [json!(arguments)], "cut at {cut}");
        assert_eq!(done["output"], json!(closed), "cut at {cut}");
        let states: Vec<_> = closed.iter().map(|item| (&item["status"], &item["arguments"])).collect();
        assert_eq!(
            states,
            [(&json!("completed"), &json!(arguments)), (&json!("incomplete"), &json!(&arguments[..cut]))],
            "cut at {cut}"
        );
        llm.abandoned(round + 1, REQUEST_LIMIT).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, "completed", "cut at {cut}");
        assert!(!answer.events.iter().any(|kind| kind.contains("function_call")), "cut at {cut}");
    }
}

/// RC-023: the output comes as soon as the call is known, and the request for the answer at once or when the first is over.
#[tokio::test]
async fn an_output_is_taken_at_once_and_the_answers_do_not_mix() {
    let llm = ScriptedLlm::start().await;
    let (_server, mut client) = start(&llm).await;
    for asks_at_once in [true, false, true, false] {
        let calls = vec![ScriptedCall { name: "look".to_owned(), arguments: "{}".to_owned() }];
        llm.script([Script::Call { before: "say dur=3 tag=44 rt=8".to_owned(), calls }]);
        client.ask("What time is it?").await;
        let created = client.expect("response.created").await;
        let id = created["response"]["id"].as_str().expect("an id").to_owned();
        let mut first = Answer { id, ..Answer::default() };
        let (mut call, mut output, mut refused) = (Value::Null, Value::Null, 0);
        loop {
            let event = client.event().await;
            if event["type"] == "error" {
                let code = "conversation_already_has_active_response";
                assert_eq!(
                    (&event["error"]["code"], &event["error"]["event_id"]),
                    (&json!(code), &json!("early"))
                );
                refused += 1;
                continue;
            }
            if event["type"] == CALLED {
                call = event.clone();
                client.send(&output_event(&call, "It is noon.")).await;
                if asks_at_once {
                    client.send(&json!({ "type": "response.create", "event_id": "early" })).await;
                }
            }
            if event["item"]["type"] == "function_call_output" && event["type"] == "conversation.item.added" {
                output = event.clone();
            }
            if first.take(&event) {
                break;
            }
        }
        first.assert_is(44, 3.0);
        if output.is_null() {
            output = client.expect("conversation.item.added").await;
        }
        assert_eq!(output["item"]["output"], "It is noon.", "{output}");
        assert_eq!(output["previous_item_id"], call["item_id"], "{output}");
        // Refused while the first was running, or taken: never both, never neither.
        if !asks_at_once || refused == 1 {
            create(&mut client).await;
        }
        let second = client.answer().await;
        assert_eq!((second.status.as_str(), second.text.trim()), ("completed", "It is noon."));
        assert!(!second.samples.is_empty(), "the answer is spoken");
    }
}

/// RC-024: byte for byte, in the order of the model, and silent.
#[tokio::test]
async fn two_calls_at_once_are_two_items_and_nothing_of_them_is_spoken() {
    for api in Api::ALL {
        two_calls(api).await;
    }
}

async fn two_calls(api: Api) {
    let llm = ScriptedLlm::start_as(api).await;
    let (_server, mut client) = start(&llm).await;
    let arguments = [r#"{"q":"caf\u00e9 \"x\" 😀","n":1e3}"#, "{ }"];
    let calls = [("look", arguments[0]), ("book", arguments[1])];
    let calls = calls.map(|(name, json)| ScriptedCall { name: name.to_owned(), arguments: json.to_owned() });
    llm.script([Script::Call { before: String::new(), calls: calls.to_vec() }]);
    client.ask("Both, please.").await;
    let mut called = Vec::new();
    let done = loop {
        let event = client.event().await;
        let kind = event["type"].as_str().expect("an event has a type");
        assert!(!kind.contains("audio") && kind != "error", "{event}");
        match kind {
            CALLED => called.push(event),
            "response.done" => break event["response"].clone(),
            _ => {}
        }
    };
    assert_eq!(done["status"], "completed", "{done}");
    let [first, second] = &called[..] else { panic!("{called:?}, expected two calls") };
    for (at, call) in [first, second].into_iter().enumerate() {
        assert_eq!(call["arguments"], arguments[at], "{call}");
        assert_eq!(call["output_index"], at, "{call}");
        assert_eq!(done["output"][at]["call_id"], call["call_id"], "{done}");
    }
    assert_ne!(first["call_id"], second["call_id"]);
    // The outputs come in the other order and stand in that of the calls.
    give(&mut client, second, "Booked.").await;
    give(&mut client, first, "Found.").await;
    create(&mut client).await;
    assert_eq!(client.answer().await.status, "completed");
    assert_eq!(outputs(&llm), ["Found.", "Booked."]);
}
