//! The responses API: what is sent, and that its stream gives the same answers as that of chat completions.

use antiphon::door::config::LlmApi;
use antiphon::door::edge::outbound::http::CallError;
use antiphon::door::edge::outbound::llm::{
    ChatClient, ChatEndpoint, ChatTimeouts, failure_code, failure_detail,
};
use antiphon::door::message::{
    ChatMessage, ChatRequest, FailureCode, FinishReason, FunctionCall, FunctionTool, ReasoningEffort,
    TokenUsage, ToolChoice, UserPart,
};
use serde_json::{Value, json};

use crate::answer::{Answer, HANG, body, event, request};
use crate::scripted_server::{ScriptedServer, Step};

fn client(url: &str) -> ChatClient {
    let endpoint =
        ChatEndpoint::new(url, Some(LlmApi::Responses), Some("m".to_owned()), None).expect("valid");
    let timeouts = ChatTimeouts { connect: HANG, first_token: HANG, between_tokens: HANG };
    ChatClient::new(endpoint, timeouts).expect("an HTTP client")
}

async fn answer_to(pieces: impl IntoIterator<Item = Vec<u8>>) -> Answer {
    let server = ScriptedServer::start([body(pieces)]).await;
    Answer::read(client(&server.url).stream(&request(), None)).await
}

fn created() -> Vec<u8> {
    event(
        &json!({"type": "response.created", "sequence_number": 0, "response": {"status": "in_progress", "usage": null}}),
    )
}

fn delta(text: &str) -> Vec<u8> {
    let data = json!({"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "content_index": 0, "delta": text});
    // As OpenAI sends it, with the type as the event's name.
    [b"event: response.output_text.delta\n".to_vec(), event(&data)].concat()
}

fn completed() -> Vec<u8> {
    event(&json!({"type": "response.completed", "response": {"status": "completed", "usage": null}}))
}

fn item(kind: &str, index: u32, name: &str, arguments: &str) -> Vec<u8> {
    let item = json!({"id": format!("fc_{index}"), "call_id": format!("call_{index}"), "type": "function_call", "name": name,
        "arguments": arguments});
    event(&json!({"type": format!("response.output_item.{kind}"), "output_index": index, "item": item}))
}

fn arguments(index: u32, json: &str) -> Vec<u8> {
    let item_id = format!("fc_{index}");
    event(
        &json!({"type": "response.function_call_arguments.delta", "item_id": item_id, "output_index": index, "delta": json}),
    )
}

fn arguments_done(index: u32, json: &str) -> Vec<u8> {
    let item_id = format!("fc_{index}");
    event(
        &json!({"type": "response.function_call_arguments.done", "item_id": item_id, "output_index": index, "arguments": json}),
    )
}

#[tokio::test]
async fn the_request_is_what_the_api_asks_for() {
    let server = ScriptedServer::start([body([completed()]), body([completed()])]).await;
    let client = client(&server.url);
    Answer::read(client.stream(&request(), None)).await;
    let call = FunctionCall { call_id: "c1".to_owned(), name: "f".to_owned(), arguments: "{}".to_owned() };
    let parameters = json!({"type": "object", "properties": {"q": {"type": "string"}}});
    let image = UserPart::Image { url: "data:image/png;base64,AA==".to_owned(), detail: "low" };
    let full = ChatRequest {
        messages: vec![
            ChatMessage::User(vec![UserPart::Text("What is this?".to_owned()), image]),
            ChatMessage::Assistant { text: "Let me see.".to_owned(), calls: vec![call] },
            ChatMessage::FunctionOutput { call_id: "c1".to_owned(), output: "42".to_owned() },
            ChatMessage::assistant("It is 42."),
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
        parallel_tool_calls: Some(true),
        reasoning: Some(ReasoningEffort::Minimal),
        tokens_max: Some(99),
        ..request()
    };
    Answer::read(client.stream(&full, None)).await;
    let bodies = server.requests.lock().expect("no panic").clone();
    let message = |role: &str, content: Value| json!({"type": "message", "role": role, "content": content});
    let plain = [message("system", json!("Be brief.")), message("user", json!("Hello"))];
    assert_eq!(bodies[0], json!({"model": "m", "input": plain, "stream": true, "store": false}));
    let parts = json!([
        {"type": "input_text", "text": "What is this?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AA==", "detail": "low"},
    ]);
    let input = json!([
        message("user", parts),
        message("assistant", json!("Let me see.")),
        {"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
        message("assistant", json!("It is 42.")),
    ]);
    let none = json!({"type": "object", "properties": {}});
    let tools = json!([
        {"type": "function", "name": "f", "description": "Does it.", "parameters": parameters, "strict": false},
        {"type": "function", "name": "g", "parameters": none, "strict": false},
    ]);
    let choice = json!({"type": "function", "name": "f"});
    assert_eq!(
        bodies[1],
        json!({"model": "m", "input": input, "stream": true, "store": false, "max_output_tokens": 99,
            "tools": tools, "tool_choice": choice, "parallel_tool_calls": true, "reasoning": {"effort": "minimal"}})
    );
    let heads = server.heads.lock().expect("no panic").clone();
    assert!(heads[0].starts_with("POST /v1/responses HTTP/1.1\r\n"), "{}", heads[0]);
}

#[tokio::test]
async fn a_body_cut_at_every_byte_is_the_same_answer() {
    let (text, json) = ("naïve 你好 👩‍🚀 —\n\u{a0} end ", "{\"q\":\"caf\\u00e9 😀\"}");
    let pieces = [created(), delta(text), item("added", 1, "f", ""), arguments(1, json), completed()];
    let whole = pieces.concat();
    let crlf = String::from_utf8(whole.clone()).expect("text").replace('\n', "\r\n").into_bytes();
    for bytes in [whole, crlf] {
        let cuts = 1..bytes.len();
        let server = ScriptedServer::start(
            cuts.clone().map(|cut| body([bytes[..cut].to_vec(), bytes[cut..].to_vec()])),
        )
        .await;
        let client = client(&server.url);
        for cut in cuts {
            let answer = Answer::read(client.stream(&request(), None)).await;
            assert_eq!((answer.text.as_str(), answer.calls()), (text, vec![("f", json)]), "cut at {cut}");
            assert!(answer.end.is_ok(), "cut at {cut}");
        }
        let answer = answer_to(bytes.iter().map(|&byte| vec![byte])).await;
        assert_eq!((answer.text.as_str(), answer.calls()), (text, vec![("f", json)]), "byte by byte");
    }
    let by_characters = text.chars().map(|it| delta(it.encode_utf8(&mut [0; 4])));
    assert_eq!(answer_to(by_characters.chain([completed()])).await, Answer::complete(text));
}

#[tokio::test]
async fn calls_come_one_after_the_other_each_once() {
    let streamed = [
        delta("Let me see."),
        item("added", 1, "f", ""),
        item("added", 2, "g", ""),
        arguments(2, "{\"y\":"),
        arguments(1, "{\"x\":1}"),
        arguments(2, "2}"),
        arguments_done(2, "{\"y\":2}"),
        item("done", 2, "g", "{\"y\":2}"),
        arguments_done(1, "{\"x\":1}"),
        item("done", 1, "f", "{\"x\":1}"),
        completed(),
    ];
    let answer = answer_to(streamed).await;
    assert_eq!(answer.calls(), [("f", "{\"x\":1}"), ("g", "{\"y\":2}")]);
    assert!(answer.calls.iter().all(|call| call.has_ended && call.after_text == "Let me see."), "{answer:?}");
    let only_done = [item("done", 0, "f", "{\"x\":1}"), item("done", 1, "f", ""), completed()];
    assert_eq!(answer_to(only_done).await.calls(), [("f", "{\"x\":1}"), ("f", "{}")]);
    let nothing_streamed = [item("added", 0, "f", ""), arguments_done(0, ""), completed()];
    assert_eq!(answer_to(nothing_streamed).await.calls(), [("f", "{}")]);
    let incomplete = json!({"incomplete_details": {"reason": "max_output_tokens"}});
    let cut = [
        item("added", 0, "f", ""),
        arguments(0, "{\"x\""),
        event(&json!({"type": "response.incomplete", "response": incomplete})),
    ];
    let answer = answer_to(cut).await;
    assert_eq!((answer.calls(), answer.calls[0].has_ended), (vec![("f", "{\"x\"")], false));
    assert_eq!(answer.end.map(|end| end.0), Ok(FinishReason::Length));
}

#[tokio::test]
async fn thoughts_are_never_text() {
    let thought =
        |kind: &str| event(&json!({"type": kind, "item_id": "rs_1", "output_index": 0, "delta": "Secret."}));
    let pieces = [
        event(
            &json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "reasoning", "summary": []}}),
        ),
        thought("response.reasoning_text.delta"),
        thought("response.reasoning_summary_text.delta"),
        event(&json!({"type": "response.reasoning_text.done", "text": "Secret."})),
        delta("<think>Secret.</th"),
        delta("ink>Yes."),
        completed(),
    ];
    let answer = answer_to(pieces).await;
    assert_eq!((answer.text.as_str(), answer.reasoning), ("Yes.", true));
}

#[tokio::test]
async fn every_end_is_understood_and_the_connection_kept() {
    let usage = json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 2});
    let counted = event(&json!({"type": "response.completed", "response": {"usage": usage}}));
    let mut server = ScriptedServer::start([
        body([[delta("one"), counted].concat()]),
        // Some end as chat completions do.
        body([[delta("two"), completed(), b"data: [DONE]\n\n".to_vec()].concat()]),
        body([[delta("three"), completed().trim_ascii_end().to_vec()].concat()]),
    ])
    .await;
    let client = client(&server.url);
    let mut ends = Vec::new();
    for text in ["one", "two", "three"] {
        let answer = Answer::read(client.stream(&request(), None)).await;
        assert_eq!(answer.text, text);
        ends.push(answer.end.expect("an end"));
    }
    assert_eq!(ends[0], (FinishReason::Stop, TokenUsage { input: 9, input_cached: 5, output: 2 }));
    assert_eq!(ends[1], (FinishReason::Stop, TokenUsage::default()));
    server.accepted.recv().await.expect("a connection");
    assert!(server.accepted.try_recv().is_err(), "a second connection was opened");
}

#[tokio::test]
async fn every_failure_comes_after_the_text() {
    let failed = json!({"type": "response.failed", "response": {"error": {"code": "server_error", "message": "out of memory"}}});
    let error =
        json!({"type": "error", "code": "rate_limit_exceeded", "message": "slow down", "param": null});
    for (pieces, expected) in [
        (vec![delta("Half a sen"), event(&failed)], "out of memory"),
        (vec![delta("Half a sen"), event(&error)], "slow down"),
        (vec![delta("Half a sen")], "it closed before the answer was complete"),
        (vec![delta("Half a sen"), event(&json!({"choices": []}))], "an event without a type"),
    ] {
        let answer = answer_to(pieces).await;
        let error = answer.end.expect_err("broken");
        assert_eq!(
            (answer.text.as_str(), failure_code(&error)),
            ("Half a sen", FailureCode::LlmBrokenStream)
        );
        assert!(failure_detail(&error).contains(expected), "{error}");
    }
    let refused = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
    let server = ScriptedServer::start([vec![Step::Raw(refused), Step::End]]).await;
    let error = Answer::read(client(&server.url).stream(&request(), None)).await.end.expect_err("a status");
    assert_eq!(error, CallError::Status { status: 404, message: "Not Found".to_owned() });
}
