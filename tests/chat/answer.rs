//! One answer, read to its end, and the events of chat completions that make it.

use std::time::Duration;

use antiphon::door::edge::outbound::http::CallError;
use antiphon::door::edge::outbound::llm::{ChatClient, ChatDelta, ChatEndpoint, ChatStream, ChatTimeouts};
use antiphon::door::message::{ChatMessage, ChatRequest, FinishReason, RateLimits, TokenUsage};
use serde_json::{Value, json};

use crate::scripted_server::{ScriptedServer, Step};

/// Longer than anything here takes on a busy machine; reached only by a hang.
pub(crate) const HANG: Duration = Duration::from_secs(30);

pub(crate) fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![ChatMessage::System("Be brief.".to_owned()), ChatMessage::user("Hello")],
        spoken: true,
        ..ChatRequest::default()
    }
}

pub(crate) fn client(url: &str) -> ChatClient {
    client_with(url, ChatTimeouts { connect: HANG, first_token: HANG, between_tokens: HANG })
}

pub(crate) fn client_with(url: &str, timeouts: ChatTimeouts) -> ChatClient {
    ChatClient::new(ChatEndpoint::new(url, None, None, None).expect("valid"), timeouts)
        .expect("an HTTP client")
}

/// A function call of an answer.
#[derive(Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) name: String,
    pub(crate) arguments: String,
    /// All text of the answer before the call.
    pub(crate) after_text: String,
    /// Its end has come.
    pub(crate) has_ended: bool,
}

#[derive(Debug, PartialEq)]
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) reasoning: bool,
    pub(crate) calls: Vec<Call>,
    pub(crate) limits: Option<RateLimits>,
    pub(crate) end: Result<(FinishReason, TokenUsage), CallError>,
}

impl Answer {
    /// An answer of this text and nothing else.
    pub(crate) fn complete(text: &str) -> Self {
        Self {
            text: text.to_owned(),
            reasoning: false,
            calls: Vec::new(),
            limits: None,
            end: Ok((FinishReason::Stop, TokenUsage::default())),
        }
    }

    /// Reads to the end, whatever that is, and checks that deltas come in the order that is promised.
    pub(crate) async fn read(mut stream: ChatStream) -> Self {
        let mut answer = Self::complete("");
        let mut is_first = true;
        loop {
            let delta = tokio::time::timeout(HANG, stream.next()).await.expect("the stream ends");
            let open = answer.calls.last_mut().filter(|call| !call.has_ended);
            match (delta, open) {
                (Ok(ChatDelta::Text(text)), None) => {
                    assert!(!text.is_empty(), "an empty delta");
                    answer.text.push_str(&text);
                }
                (Ok(ChatDelta::Reasoning), _) => answer.reasoning = true,
                (Ok(ChatDelta::Call { name }), None) => {
                    let after_text = answer.text.clone();
                    answer.calls.push(Call { name, arguments: String::new(), after_text, has_ended: false });
                }
                (Ok(ChatDelta::Arguments(json)), Some(call)) => {
                    assert!(!json.is_empty(), "an empty delta");
                    call.arguments.push_str(&json);
                }
                (Ok(ChatDelta::CallEnd), Some(call)) => {
                    assert!(!call.arguments.is_empty(), "a call without arguments");
                    call.has_ended = true;
                }
                (Ok(ChatDelta::RateLimits(limits)), None) if is_first => answer.limits = Some(limits),
                (Ok(ChatDelta::Done { finish, usage }), _) => {
                    answer.end = Ok((finish, usage));
                    break;
                }
                (Err(error), _) => {
                    answer.end = Err(error);
                    break;
                }
                (Ok(delta), open) => panic!("{delta:?} out of place, with {open:?} open"),
            }
            is_first = false;
        }
        let after = stream.next().await;
        assert!(matches!(after, Err(CallError::Broken(_))), "{after:?} after the end");
        answer
    }

    /// The answer to a body that comes in these pieces and is then closed properly.
    pub(crate) async fn to(pieces: impl IntoIterator<Item = Vec<u8>>) -> Self {
        let server = ScriptedServer::start([body(pieces)]).await;
        Self::read(client(&server.url).stream(&request(), None)).await
    }

    /// Names and arguments of the calls.
    pub(crate) fn calls(&self) -> Vec<(&str, &str)> {
        self.calls.iter().map(|call| (call.name.as_str(), call.arguments.as_str())).collect()
    }
}

/// The steps of a response whose body comes in these pieces and is then closed properly.
pub(crate) fn body(pieces: impl IntoIterator<Item = Vec<u8>>) -> Vec<Step> {
    [Step::Head].into_iter().chain(pieces.into_iter().map(Step::Piece)).chain([Step::End]).collect()
}

/// One event.
pub(crate) fn event(data: &Value) -> Vec<u8> {
    format!("data: {data}\n\n").into_bytes()
}

/// The event of one delta object.
pub(crate) fn delta_of(delta: &Value) -> Vec<u8> {
    event(&json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}))
}

pub(crate) fn delta(text: &str) -> Vec<u8> {
    delta_of(&json!({"content": text}))
}

pub(crate) fn finish(reason: &str) -> Vec<u8> {
    event(&json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}))
}

pub(crate) const DONE: &[u8] = b"data: [DONE]\n\n";
