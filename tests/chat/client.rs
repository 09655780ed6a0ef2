//! The client: what it sends, what it makes of every way a server can answer, and that it lets go at once.

use std::time::Duration;

use antiphon::door::edge::outbound::http::CallError;
use antiphon::door::edge::outbound::llm::{
    ChatClient, ChatDelta, ChatEndpoint, ChatTimeouts, failure_code, failure_detail,
};
use antiphon::door::message::{
    Caller, ChatRequest, Epoch, FailureCode, FinishReason, Rank, TokenUsage, UnitId,
};
use serde_json::json;
use tokio::sync::watch;

use crate::answer::{Answer, DONE, HANG, body, client, client_with, delta, delta_of, finish, request};
use crate::scripted_server::{ScriptedServer, Step};

#[tokio::test]
async fn the_request_is_what_the_api_asks_for() {
    let answer = vec![Step::Head, Step::Piece(finish("stop")), Step::Piece(DONE.to_vec()), Step::End];
    let server = ScriptedServer::start([answer.clone(), answer]).await;
    let endpoint = ChatEndpoint::new(&server.url, None, Some("m".to_owned()), Some("sk-1")).expect("valid");
    let plain = ChatClient::new(endpoint.clone(), ChatTimeouts::default()).expect("a client");
    let caller = Caller { unit: UnitId::new(3), epoch: Epoch::new(17), rank: Rank::Written };
    Answer::read(plain.stream(&request(), Some(caller))).await;
    let builtin = ChatClient::new(endpoint.with_caller(), ChatTimeouts::default()).expect("a client");
    Answer::read(builtin.stream(&ChatRequest { tokens_max: Some(9), ..request() }, Some(caller))).await;
    let bodies = server.requests.lock().expect("no panic").clone();
    let messages = json!([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hello"}]);
    let plain = json!({"model": "m", "messages": messages, "stream": true, "stream_options": {"include_usage": true}});
    let mut builtin = plain.clone();
    builtin["max_tokens"] = json!(9);
    builtin["antiphon_caller"] = json!({"unit": 3, "epoch": 17, "rank": "written"});
    assert_eq!(bodies, [plain, builtin]);
    let heads = server.heads.lock().expect("no panic").clone();
    assert!(heads[0].starts_with("POST /v1/chat/completions HTTP/1.1\r\n"), "{}", heads[0]);
    assert!(heads[0].contains("authorization: Bearer sk-1\r\n"), "{}", heads[0]);
}

#[tokio::test]
async fn a_kept_connection_serves_the_next_turn() {
    let turn = |text| {
        vec![Step::Head, Step::Piece(delta(text)), Step::Piece([&finish("stop"), DONE].concat()), Step::End]
    };
    let mut server = ScriptedServer::start([turn("one"), turn("two"), turn("three")]).await;
    let client = client(&server.url);
    for text in ["one", "two", "three"] {
        assert_eq!(Answer::read(client.stream(&request(), None)).await, Answer::complete(text));
    }
    server.accepted.recv().await.expect("a connection");
    assert!(server.accepted.try_recv().is_err(), "a second connection was opened");
}

#[tokio::test]
async fn deltas_join_byte_for_byte() {
    let pieces = ["What is ", "the", " ", "weather", "\n", "\u{a0}", "?", "  "];
    let body = pieces.into_iter().map(delta).chain([finish("stop"), DONE.to_vec()]);
    assert_eq!(Answer::to(body).await, Answer::complete(&pieces.concat()));
}

#[tokio::test]
async fn a_text_cut_anywhere_keeps_its_spaces() {
    let text = " What is \n\tthe\u{a0}weather  in Rome?\n ";
    let cuts: Vec<usize> = (1..text.len()).filter(|&cut| text.is_char_boundary(cut)).collect();
    let turn = |cut: &usize| {
        body([delta(&text[..*cut]), delta(""), delta(&text[*cut..]), finish("stop"), DONE.to_vec()])
    };
    let server = ScriptedServer::start(cuts.iter().map(turn)).await;
    let client = client(&server.url);
    for cut in cuts {
        let answer = Answer::read(client.stream(&request(), None)).await;
        assert_eq!(answer, Answer::complete(text), "cut at {cut}");
    }
    let by_characters = text.chars().map(|it| delta(it.encode_utf8(&mut [0; 4])));
    let answer = Answer::to(by_characters.chain([finish("stop"), DONE.to_vec()])).await;
    assert_eq!(answer, Answer::complete(text));
}

#[tokio::test]
async fn a_body_cut_at_every_byte_is_the_same_text() {
    let text = "naïve 你好 👩‍🚀 — end";
    let body = [b": ping\r\n\r\n".to_vec(), delta(text), finish("stop"), DONE.to_vec()].concat();
    let crlf = String::from_utf8(body.clone()).expect("text").replace('\n', "\r\n").into_bytes();
    for body in [body, crlf] {
        assert_eq!(Answer::to([body.clone()]).await, Answer::complete(text), "several events in one piece");
        assert_eq!(
            Answer::to(body.iter().map(|&byte| vec![byte])).await,
            Answer::complete(text),
            "byte by byte"
        );
        let mut scripts = Vec::new();
        for cut in 1..body.len() {
            let (head, tail) = body.split_at(cut);
            scripts.push(vec![Step::Head, Step::Piece(head.to_vec()), Step::Piece(tail.to_vec()), Step::End]);
        }
        let cuts = scripts.len();
        let server = ScriptedServer::start(scripts).await;
        let client = client(&server.url);
        for cut in 1..=cuts {
            assert_eq!(
                Answer::read(client.stream(&request(), None)).await,
                Answer::complete(text),
                "cut at {cut}"
            );
        }
    }
}

#[tokio::test]
async fn every_proper_end_is_understood() {
    let hi = || delta("Hi");
    for (name, body) in [
        ("done and end", [hi(), finish("stop"), DONE.to_vec()].concat()),
        ("end without done", [hi(), finish("stop")].concat()),
        ("done without blank line", [hi(), finish("stop"), b"data: [DONE]".to_vec()].concat()),
        ("done without space", [hi(), b"data:[DONE]\n\n".to_vec()].concat()),
        ("last event without blank line", [hi(), finish("stop").trim_ascii_end().to_vec()].concat()),
    ] {
        assert_eq!(Answer::to([body]).await, Answer::complete("Hi"), "{name}");
    }
    let usage = br#"data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,
data: "prompt_tokens_details":{"cached_tokens":5}}}

"#;
    let counted = Answer::to([[hi(), finish("length"), usage.to_vec(), DONE.to_vec()].concat()]).await;
    assert_eq!(counted.end, Ok((FinishReason::Length, TokenUsage { input: 9, input_cached: 5, output: 2 })));
    assert_eq!(
        Answer::to([finish("content_filter")]).await.end.map(|end| end.0),
        Ok(FinishReason::ContentFilter)
    );
}

#[tokio::test]
async fn an_answer_whose_body_is_never_closed_still_ends() {
    let mut server = ScriptedServer::start([
        vec![Step::Head, Step::Piece([delta("Hi"), finish("stop")].concat()), Step::Hold],
        vec![Step::Head, Step::Piece([delta("Hi"), finish("stop"), DONE.to_vec()].concat()), Step::Hold],
    ])
    .await;
    for _ in 0..2 {
        assert_eq!(Answer::read(client(&server.url).stream(&request(), None)).await, Answer::complete("Hi"));
        tokio::time::timeout(HANG, server.closed.recv()).await.expect("the client closes");
    }
}

#[tokio::test]
async fn an_early_close_is_a_broken_stream_after_the_text() {
    let half = Step::Piece(delta("Half a sen"));
    let closed_in_the_middle = vec![Step::Head, half.clone(), Step::Close];
    let ended_without_a_reason = vec![Step::Head, half, Step::End];
    let until_close = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n".to_vec();
    let closed_without_framing = vec![Step::Raw(until_close), Step::Raw(delta("Half a sen")), Step::Close];
    for script in [closed_in_the_middle, ended_without_a_reason, closed_without_framing] {
        let server = ScriptedServer::start([script]).await;
        let answer = Answer::read(client(&server.url).stream(&request(), None)).await;
        assert_eq!(answer.text, "Half a sen");
        assert_eq!(failure_code(&answer.end.expect_err("broken")), FailureCode::LlmBrokenStream);
    }
}

#[tokio::test]
async fn what_is_no_stream_is_a_broken_stream() {
    let response = |kind: &str, body: &str| {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\n\r\n", body.len());
        vec![Step::Raw(head.into_bytes()), Step::Raw(body.as_bytes().to_vec()), Step::End]
    };
    for (script, expected) in [
        (
            response("application/json", "{}"),
            "found content type application/json, expected text/event-stream",
        ),
        (response("text/html; charset=utf-8", "<p>"), "found content type text/html;charset=utf-8"),
        (response("text/plain", "data: <p>\n\n"), "no completion chunk"),
        (vec![Step::Close], ""),
    ] {
        let server = ScriptedServer::start([script]).await;
        let error = Answer::read(client(&server.url).stream(&request(), None)).await.end.expect_err("broken");
        assert_eq!(failure_code(&error), FailureCode::LlmBrokenStream, "{error}");
        assert!(error.to_string().contains(expected), "{error}");
    }
    let reported =
        Answer::to([delta("So "), b"data: {\"error\":{\"message\":\"out of memory\"}}\n\n".to_vec()]).await;
    assert_eq!(reported.text, "So ", "text that came in the same read stands");
    assert_eq!(failure_detail(&reported.end.expect_err("broken")), "out of memory");
}

#[tokio::test]
async fn reasoning_is_never_text() {
    let written = "<think>Secret, 5 < 6.</think>\n\nI <3 you, <THINK>Really?</Think>I think.";
    for cut in (0..written.len()).filter(|&cut| written.is_char_boundary(cut)) {
        let answer =
            Answer::to([delta(&written[..cut]), delta(&written[cut..]), finish("stop"), DONE.to_vec()]).await;
        assert_eq!(answer.text, "I <3 you, I think.", "cut at {cut}");
    }
    let by_characters = written.chars().map(|it| delta(it.encode_utf8(&mut [0; 4])));
    let answer = Answer::to(by_characters.chain([finish("stop"), DONE.to_vec()])).await;
    assert_eq!((answer.text.as_str(), answer.reasoning), ("I <3 you, I think.", true));
    let fields = ["reasoning_content", "reasoning"].map(|name| {
        format!("data: {}\n\n", json!({"choices": [{"delta": {name: "Secret.", "content": ""}}]}))
            .into_bytes()
    });
    let answer = Answer::to(fields.into_iter().chain([delta("Yes."), finish("stop"), DONE.to_vec()])).await;
    assert_eq!((answer.text.as_str(), answer.reasoning), ("Yes.", true));
    let unclosed = Answer::to([delta("Well. <think>and so on"), finish("stop"), DONE.to_vec()]).await;
    assert_eq!((unclosed.text.as_str(), unclosed.end.is_ok()), ("Well. ", true));
}

#[tokio::test]
async fn reasoning_without_end_is_bounded() {
    let thought = delta(&"on and on ".repeat(1_000));
    let answer = Answer::to([delta("<think>")].into_iter().chain(std::iter::repeat_n(thought, 20))).await;
    assert_eq!(answer.text, "");
    assert!(answer.end.expect_err("bounded").to_string().contains("reasoning without an answer"));
}

#[tokio::test]
async fn error_statuses_carry_the_servers_words() {
    let response = |status: &str, body: &str| {
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        vec![Step::Raw(head.into_bytes()), Step::End]
    };
    let server = ScriptedServer::start([
        response("429 Too Many Requests", r#"{"error":{"message":"slow down"}}"#),
        response("500 Internal Server Error", "CUDA error"),
        response("503 Service Unavailable", ""),
        response("307 Temporary Redirect\r\nlocation: http://example.org/", ""),
        vec![Step::Head, Step::Piece([delta("Hi"), finish("stop"), DONE.to_vec()].concat()), Step::End],
    ])
    .await;
    let client = client(&server.url);
    for (status, words) in
        [(429, "slow down"), (500, "CUDA error"), (503, "Service Unavailable"), (307, "Temporary Redirect")]
    {
        let error = Answer::read(client.stream(&request(), None)).await.end.expect_err("a status");
        assert_eq!(failure_code(&error), FailureCode::LlmStatus(status));
        assert_eq!(error, CallError::Status { status, message: words.to_owned() });
        assert_eq!(failure_detail(&error), words);
    }
    assert_eq!(
        Answer::read(client.stream(&request(), None)).await,
        Answer::complete("Hi"),
        "the next turn works"
    );
    assert_eq!(server.requests.lock().expect("no panic").len(), 5, "nothing was retried");
}

#[tokio::test]
async fn an_error_body_that_never_ends_is_given_up() {
    let head = b"HTTP/1.1 500 Oh\r\ncontent-length: 99\r\n\r\n{\"error".to_vec();
    let server = ScriptedServer::start([vec![Step::Raw(head), Step::Hold]]).await;
    let error = Answer::read(client(&server.url).stream(&request(), None)).await.end.expect_err("a status");
    assert_eq!(failure_code(&error), FailureCode::LlmStatus(500));
}

const SHORT: Duration = Duration::from_millis(80);

#[tokio::test]
async fn silence_before_the_first_token_is_bounded() {
    let role = br#"data: {"choices":[{"delta":{"role":"assistant","content":""}}]}"#.to_vec();
    let mut server = ScriptedServer::start([
        vec![Step::Hold],
        vec![Step::Head, Step::Hold],
        vec![Step::Head, Step::Piece([role, b"\n\n".to_vec()].concat()), Step::Hold],
        vec![Step::Head, Step::PingForEver],
    ])
    .await;
    let timeouts = ChatTimeouts { connect: HANG, first_token: SHORT, between_tokens: HANG };
    for case in ["accepts and is silent", "headers", "a role", "comments"] {
        let answer = Answer::read(client_with(&server.url, timeouts).stream(&request(), None)).await;
        assert_eq!(answer.end, Err(CallError::Timeout(SHORT)), "{case}");
        tokio::time::timeout(HANG, server.closed.recv()).await.expect("the socket is closed");
    }
}

#[tokio::test]
async fn silence_between_tokens_is_bounded() {
    let thought = br#"data: {"choices":[{"delta":{"reasoning_content":"hm"}}]}"#.to_vec();
    let call = delta_of(&json!({"tool_calls": [{"index": 0, "function": {"name": "f", "arguments": "{"}}]}));
    let server = ScriptedServer::start([
        vec![Step::Head, Step::Piece(delta("One")), Step::Hold],
        vec![Step::Head, Step::Piece(delta("One")), Step::PingForEver],
        vec![Step::Head, Step::Piece([thought, b"\n\n".to_vec()].concat()), Step::Hold],
        vec![Step::Head, Step::Piece(call), Step::Hold],
    ])
    .await;
    let timeouts = ChatTimeouts { connect: HANG, first_token: HANG, between_tokens: SHORT };
    for text in ["One", "One", "", ""] {
        let answer = Answer::read(client_with(&server.url, timeouts).stream(&request(), None)).await;
        assert_eq!((answer.text.as_str(), answer.end), (text, Err(CallError::Stalled(SHORT))));
    }
}

#[tokio::test]
async fn dropping_the_stream_closes_the_socket_at_once() {
    let mut server = ScriptedServer::start([
        vec![Step::Head, Step::Piece(delta("One")), Step::Hold],
        vec![Step::Hold],
        vec![Step::Head, Step::Piece([delta("Two"), finish("stop"), DONE.to_vec()].concat()), Step::End],
    ])
    .await;
    let client = client(&server.url);
    let mut stream = client.stream(&request(), None);
    assert_eq!(stream.next().await, Ok(ChatDelta::Text("One".to_owned())));
    drop(stream);
    tokio::time::timeout(HANG, server.closed.recv()).await.expect("closed in the middle of the answer");
    // A request that has been sent and not been answered.
    let mut stream = client.stream(&request(), None);
    let waiting = tokio::spawn(async move { stream.next().await });
    while server.requests.lock().expect("no panic").len() < 2 {
        tokio::task::yield_now().await;
    }
    waiting.abort();
    tokio::time::timeout(HANG, server.closed.recv()).await.expect("closed before the answer");
    assert_eq!(
        Answer::read(client.stream(&request(), None)).await,
        Answer::complete("Two"),
        "no half-read connection is used again"
    );
}

#[tokio::test]
async fn nothing_is_sent_before_the_first_read_and_a_cancelled_read_loses_nothing() {
    let mut pieces: Vec<Vec<u8>> = (0..50).map(|number| delta(&format!("{number} "))).collect();
    pieces.extend([finish("stop"), DONE.to_vec()]);
    let script =
        [Step::Head].into_iter().chain(pieces.into_iter().map(Step::Piece)).chain([Step::End]).collect();
    let server = ScriptedServer::start([script]).await;
    let mut stream = client(&server.url).stream(&request(), None);
    let mut text = String::new();
    let finish = loop {
        // Each read is given up after one poll and tried again.
        let delta = tokio::select! { biased; delta = stream.next() => delta, () = tokio::task::yield_now() => continue };
        match delta.expect("no failure") {
            ChatDelta::Text(piece) => text.push_str(&piece),
            ChatDelta::Done { finish, .. } => break finish,
            other => panic!("{other:?} was not asked for"),
        }
    };
    assert_eq!(finish, FinishReason::Stop);
    assert_eq!(text, (0..50).map(|number| format!("{number} ")).collect::<String>());
}

#[tokio::test]
async fn a_server_that_is_not_there_is_unreachable() {
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        listener.local_addr().expect("bound").port()
    };
    let refused = Answer::read(client(&format!("http://127.0.0.1:{port}")).stream(&request(), None)).await;
    assert_eq!(failure_code(&refused.end.expect_err("refused")), FailureCode::LlmUnreachable);
    let server = ScriptedServer::start([]).await;
    let endpoint =
        ChatEndpoint::new(&server.url.replace("http://", "https://"), None, None, None).expect("valid");
    match ChatClient::new(endpoint, ChatTimeouts::default()) {
        Ok(client) => {
            let no_tls = Answer::read(client.stream(&request(), None)).await;
            assert_eq!(failure_code(&no_tls.end.expect_err("no TLS")), FailureCode::LlmUnreachable);
        }
        Err(error) => assert!(matches!(error, CallError::Setup(_)), "a system without certificates: {error}"),
    }
}

#[tokio::test]
async fn a_request_waits_a_bounded_time_for_a_server_that_starts() {
    let script =
        vec![Step::Head, Step::Piece([delta("Hi"), finish("stop"), DONE.to_vec()].concat()), Step::End];
    let server = ScriptedServer::start([script]).await;
    let (sender, endpoint) = watch::channel(None);
    let timeouts = ChatTimeouts { connect: SHORT, first_token: HANG, between_tokens: HANG };
    let impatient = ChatClient::following(endpoint.clone(), timeouts).expect("a client");
    let error = Answer::read(impatient.stream(&request(), None)).await.end.expect_err("nothing there");
    assert_eq!(error, CallError::Unreachable("it is being started again".to_owned()));
    let patient =
        ChatClient::following(endpoint, ChatTimeouts { connect: HANG, ..timeouts }).expect("a client");
    let waiting = tokio::spawn(Answer::read(patient.stream(&request(), None)));
    sender.send_replace(Some(ChatEndpoint::new(&server.url, None, None, None).expect("valid")));
    assert_eq!(waiting.await.expect("no panic"), Answer::complete("Hi"));
}

#[tokio::test]
async fn the_context_is_what_the_list_of_models_says() {
    let list = |body: &str| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        vec![Step::Raw(head.into_bytes()), Step::End]
    };
    let server = ScriptedServer::start([
        list(r#"{"object":"list","data":[{"id":"a","max_model_len":1000},{"id":"m","max_model_len":4096}]}"#),
        list(r#"{"object":"list","data":[{"id":"m"}]}"#),
        list("<html>"),
        vec![Step::Raw(b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n".to_vec()), Step::End],
        vec![Step::Close],
    ])
    .await;
    let endpoint = ChatEndpoint::new(&server.url, None, Some("m".to_owned()), Some("sk-1")).expect("valid");
    let timeouts = ChatTimeouts { connect: HANG, first_token: HANG, between_tokens: HANG };
    let client = ChatClient::new(endpoint, timeouts).expect("a client");
    assert_eq!(client.context_tokens().await, Ok(Some(4_096)));
    assert_eq!(client.context_tokens().await, Ok(None));
    let no_json = client.context_tokens().await.expect_err("no JSON");
    assert!(no_json.to_string().contains("a list of models that is no JSON"), "{no_json}");
    assert_eq!(
        failure_code(&client.context_tokens().await.expect_err("a status")),
        FailureCode::LlmStatus(401)
    );
    assert_eq!(
        failure_code(&client.context_tokens().await.expect_err("closed")),
        FailureCode::LlmBrokenStream
    );
    let heads = server.heads.lock().expect("no panic").clone();
    assert!(heads[0].starts_with("GET /v1/models HTTP/1.1\r\n"), "{}", heads[0]);
    assert!(heads[0].contains("authorization: Bearer sk-1\r\n"), "{}", heads[0]);
}
