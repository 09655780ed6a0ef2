//! Function calls and rate limits of a chat completions stream (RC-024).

use antiphon::door::message::{
    ChatMessage, ChatRequest, FinishReason, FunctionCall, FunctionTool, ReasoningEffort, ToolChoice,
};
use antiphon::door::message::{RateLimit, RateLimits};
use serde_json::{Value, json};

use crate::answer::{Answer, DONE, body, client, delta, delta_of, finish, request};
use crate::scripted_server::{ScriptedServer, Step};

/// Arguments with everything that a cut can hurt.
const ARGUMENTS: &str = r#"{"q":"caf\u00e9 \"x\" 😀","n":1e3}"#;

/// The event of one piece of the call with this number.
fn piece(index: u32, call: Value) -> Vec<u8> {
    let mut call = call;
    call["index"] = json!(index);
    delta_of(&json!({"tool_calls": [call]}))
}

/// Its first piece: id, name, and the arguments so far.
fn first(index: u32, name: &str, arguments: &str) -> Vec<u8> {
    let function = json!({"name": name, "arguments": arguments});
    piece(index, json!({"id": format!("c{index}"), "type": "function", "function": function}))
}

fn more(index: u32, arguments: &str) -> Vec<u8> {
    piece(index, json!({"function": {"arguments": arguments}}))
}

async fn answer(pieces: impl IntoIterator<Item = Vec<u8>>) -> Answer {
    let answer = Answer::to(pieces.into_iter().chain([finish("tool_calls"), DONE.to_vec()])).await;
    assert_eq!(answer.end.as_ref().map(|end| end.0), Ok(FinishReason::Stop), "{answer:?}");
    assert!(answer.calls.iter().all(|call| call.has_ended), "{answer:?}");
    answer
}

#[tokio::test]
async fn arguments_cut_anywhere_join_byte_for_byte() {
    let cuts: Vec<usize> = (0..=ARGUMENTS.len()).filter(|&cut| ARGUMENTS.is_char_boundary(cut)).collect();
    let scripts = cuts.iter().map(|&cut| {
        let (head, tail) = ARGUMENTS.split_at(cut);
        // The head comes with the name or after it.
        let begin =
            if cut % 2 == 0 { vec![first(0, "f", head)] } else { vec![first(0, "f", ""), more(0, head)] };
        body(begin.into_iter().chain([more(0, tail), finish("tool_calls"), DONE.to_vec()]))
    });
    let server = ScriptedServer::start(scripts).await;
    let client = client(&server.url);
    for cut in cuts {
        let answer = Answer::read(client.stream(&request(), None)).await;
        assert_eq!(answer.calls(), [("f", ARGUMENTS)], "cut at {cut}");
    }
    let by_characters = ARGUMENTS.chars().map(|it| more(0, it.encode_utf8(&mut [0; 4])));
    let read = answer([first(0, "f", "")].into_iter().chain(by_characters)).await;
    assert_eq!((read.calls(), read.text.as_str()), (vec![("f", ARGUMENTS)], ""));
}

#[tokio::test]
async fn a_body_of_calls_cut_at_every_byte_is_the_same() {
    let pieces = [
        first(0, "f", "{\"q\":"),
        first(1, "g", ""),
        more(1, ARGUMENTS),
        more(0, "\"😀\"}"),
        finish("tool_calls"),
    ];
    let body_bytes = [pieces.concat(), DONE.to_vec()].concat();
    let expected = [("f", "{\"q\":\"😀\"}"), ("g", ARGUMENTS)];
    let cuts = 1..body_bytes.len();
    let scripts = cuts.clone().map(|cut| body([body_bytes[..cut].to_vec(), body_bytes[cut..].to_vec()]));
    let server = ScriptedServer::start(scripts).await;
    let client = client(&server.url);
    for cut in cuts {
        assert_eq!(Answer::read(client.stream(&request(), None)).await.calls(), expected, "cut at {cut}");
    }
    assert_eq!(Answer::to(body_bytes.iter().map(|&byte| vec![byte])).await.calls(), expected, "byte by byte");
}

#[tokio::test]
async fn interleaved_calls_come_in_the_order_in_which_they_began() {
    let mut pieces = vec![first(0, "f", ""), first(1, "g", "{")];
    let text = ARGUMENTS.strip_prefix('{').expect("an object");
    for character in text.chars() {
        let character = character.to_string();
        pieces.extend([more(1, &character), more(0, &character)]);
    }
    // The call that began first is also the one that is complete last.
    pieces.insert(2, more(0, "{"));
    assert_eq!(answer(pieces).await.calls(), [("f", ARGUMENTS), ("g", ARGUMENTS)]);
    let at_once = delta_of(&json!({"tool_calls": [
        {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
        {"index": 1, "id": "b", "function": {"name": "g", "arguments": ARGUMENTS}},
    ]}));
    assert_eq!(answer([at_once]).await.calls(), [("f", "{}"), ("g", ARGUMENTS)]);
}

#[tokio::test]
async fn a_call_without_parameters_has_an_empty_object() {
    assert_eq!(answer([first(0, "f", "")]).await.calls(), [("f", "{}")]);
    assert_eq!(answer([first(0, "f", "{}")]).await.calls(), [("f", "{}")]);
    assert_eq!(answer([first(0, "f", ""), more(0, " \n")]).await.calls(), [("f", "{}")]);
    let no_field = piece(0, json!({"id": "c", "function": {"name": "f"}}));
    assert_eq!(answer([no_field, first(1, "g", "{}")]).await.calls(), [("f", "{}"), ("g", "{}")]);
}

#[tokio::test]
async fn ids_and_numbers_may_be_missing() {
    let bare = |name: Option<&str>, arguments: &str| {
        let mut function = json!({"arguments": arguments});
        if let Some(name) = name {
            function["name"] = json!(name);
        }
        delta_of(&json!({"tool_calls": [{"function": function}]}))
    };
    let read = answer([bare(Some("f"), "{\"x\""), bare(None, ":1}"), bare(Some("f"), "{\"x\":2}")]).await;
    assert_eq!(read.calls(), [("f", "{\"x\":1}"), ("f", "{\"x\":2}")]);
    let old = |call: Value| delta_of(&json!({"function_call": call}));
    let pieces = [
        old(json!({"name": "f", "arguments": ""})),
        old(json!({"arguments": ARGUMENTS})),
        finish("function_call"),
    ];
    assert_eq!(Answer::to(pieces).await.calls(), [("f", ARGUMENTS)]);
}

#[tokio::test]
async fn text_before_and_after_a_call_stays_in_its_place() {
    let pieces =
        [delta("Let me "), delta("see <"), first(0, "f", "{"), delta(" And"), more(0, "}"), delta(" so on.")];
    let read = answer(pieces).await;
    assert_eq!(read.text, "Let me see < And so on.");
    assert_eq!((read.calls(), read.calls[0].after_text.as_str()), (vec![("f", "{}")], "Let me see <"));
    let thinking = [delta("<think>I shall call f"), first(0, "f", "{}"), delta("</think>Done.")];
    let read = answer(thinking).await;
    assert_eq!((read.text.as_str(), read.reasoning, read.calls()), ("Done.", true, vec![("f", "{}")]));
}

#[tokio::test]
async fn a_call_that_is_cut_has_no_end() {
    let read =
        Answer::to([first(0, "f", "{}"), first(1, "g", "{\"x\":"), finish("length"), DONE.to_vec()]).await;
    assert_eq!(read.end.as_ref().map(|end| end.0), Ok(FinishReason::Length));
    assert_eq!(read.calls(), [("f", "{}"), ("g", "{\"x\":")]);
    assert_eq!(read.calls.iter().map(|call| call.has_ended).collect::<Vec<_>>(), [true, false]);
    // The same if the connection ends.
    let read = Answer::to([first(0, "f", "{\"x\":")]).await;
    assert_eq!(
        (read.calls(), read.end.is_err(), read.calls[0].has_ended),
        (vec![("f", "{\"x\":")], true, false)
    );
}

#[tokio::test]
async fn arguments_without_end_are_bounded() {
    let endless = std::iter::repeat_n(more(0, &"x".repeat(10_000)), 10);
    let read = Answer::to([first(0, "f", "")].into_iter().chain(endless)).await;
    assert!(read.end.expect_err("bounded").to_string().contains("more than 65536 bytes of function calls"));
}

#[tokio::test]
async fn tools_calls_and_outputs_are_sent_as_the_api_says() {
    let server = ScriptedServer::start([body([finish("stop"), DONE.to_vec()])]).await;
    let call =
        FunctionCall { call_id: "c1".to_owned(), name: "f".to_owned(), arguments: ARGUMENTS.to_owned() };
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let request = ChatRequest {
        messages: vec![
            ChatMessage::user("Hello"),
            ChatMessage::Assistant { text: String::new(), calls: vec![call] },
            ChatMessage::FunctionOutput { call_id: "c1".to_owned(), output: "42".to_owned() },
        ],
        tools: vec![
            FunctionTool {
                name: "f".to_owned(),
                description: Some("Does it.".to_owned()),
                parameters: Some(parameters.clone()),
            },
            FunctionTool { name: "g".to_owned(), description: None, parameters: None },
        ],
        tool_choice: ToolChoice::Function("f".to_owned()),
        parallel_tool_calls: Some(false),
        reasoning: Some(ReasoningEffort::Low),
        ..request()
    };
    Answer::read(client(&server.url).stream(&request, None)).await;
    let sent = server.requests.lock().expect("no panic")[0].clone();
    let call = json!({"id": "c1", "type": "function", "function": {"name": "f", "arguments": ARGUMENTS}});
    assert_eq!(
        sent["messages"],
        json!([
            {"role": "user", "content": "Hello"},
            {"role": "assistant", "content": null, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "42"},
        ])
    );
    let function = json!({"name": "f", "description": "Does it.", "parameters": parameters});
    assert_eq!(
        sent["tools"],
        json!([{"type": "function", "function": function}, {"type": "function", "function": {"name": "g"}}])
    );
    assert_eq!(sent["tool_choice"], json!({"type": "function", "function": {"name": "f"}}));
    assert_eq!((&sent["parallel_tool_calls"], &sent["reasoning_effort"]), (&json!(false), &json!("low")));
}

#[tokio::test]
async fn rate_limits_come_first_and_only_if_the_server_names_them() {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\
        x-ratelimit-limit-requests: 60\r\nx-ratelimit-remaining-requests: 59\r\nx-ratelimit-reset-requests: 1s\r\n\
        x-ratelimit-limit-tokens: 150000\r\nx-ratelimit-remaining-tokens: 149984\r\nx-ratelimit-reset-tokens: 6m0s\r\n\r\n";
    let limited = vec![
        Step::Raw(head.as_bytes().to_vec()),
        Step::Piece([delta("Hi"), finish("stop"), DONE.to_vec()].concat()),
        Step::End,
    ];
    let server = ScriptedServer::start([limited]).await;
    let read = Answer::read(client(&server.url).stream(&request(), None)).await;
    let expected = RateLimits {
        requests: Some(RateLimit { limit: 60, remaining: 59, reset_ms: 1_000 }),
        tokens: Some(RateLimit { limit: 150_000, remaining: 149_984, reset_ms: 360_000 }),
    };
    assert_eq!((read.text.as_str(), read.limits), ("Hi", Some(expected)));
    assert_eq!(Answer::to([delta("Hi"), finish("stop")]).await, Answer::complete("Hi"));
}
