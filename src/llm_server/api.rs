//! JSON of the built-in server.
//!
//! # Source
//! OpenAI API reference, "Chat Completions". `min_p` and `repeat_penalty` are named as in llama.cpp's own server.
//! `antiphon_caller`, the session that asks, is an addition of this project.

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::RequestError;
use super::toolbox::{CallBody, ToolBody, Toolbox, output, said};
use crate::message::Caller;
use crate::model::llama::{CompletionUsage, End, Limit, Sampling};

/// Tokens after which an answer without `max_tokens` is cut: speech of a minute.
const ANSWER_TOKENS_MAX: u32 = 200;

/// Tokens after which an answer without `max_tokens` ends with its sentence: 15 s of speech, as much as a listener
/// likes. Not applied if functions may be called, because much in a call looks like the end of a sentence.
const ANSWER_TOKENS_ENOUGH: u32 = 50;

/// Body of `POST /v1/chat/completions`. Fields without an effect here are ignored, such as `model`, `user`,
/// `reasoning_effort` (this model does not reason) and `id_slot` (any slot will do). Fields that would be disobeyed
/// silently are refused.
#[derive(Deserialize)]
struct Body {
    messages: Vec<Message>,
    #[serde(default)]
    stream: bool,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    max_tokens: Option<u32>,
    max_completion_tokens: Option<u32>,
    temperature: Option<f32>,
    top_p: Option<f32>,
    min_p: Option<f32>,
    repeat_penalty: Option<f32>,
    frequency_penalty: Option<f32>,
    presence_penalty: Option<f32>,
    seed: Option<i64>,
    antiphon_caller: Option<Caller>,
    n: Option<u32>,
    stop: Option<Value>,
    tools: Option<Vec<ToolBody>>,
    tool_choice: Option<Value>,
    parallel_tool_calls: Option<bool>,
    logprobs: Option<bool>,
    response_format: Option<Value>,
}

#[derive(Deserialize)]
struct StreamOptions {
    #[serde(default)]
    include_usage: bool,
}

#[derive(Deserialize)]
struct Message {
    role: String,
    content: Option<MessageContent>,
    tool_calls: Option<Vec<CallBody>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum MessageContent {
    Text(String),
    Parts(Vec<MessagePart>),
}

#[derive(Deserialize)]
struct MessagePart {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

/// A request that can be served.
#[derive(Debug, PartialEq)]
pub(super) struct ApiRequest {
    /// Role, as templates name it, and content; the content includes functions, calls and outputs.
    pub(super) messages: Vec<(&'static str, String)>,
    /// Functions that the model may call.
    pub(super) tools: Toolbox,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) limit: Limit,
    pub(super) sampling: Sampling,
    pub(super) caller: Option<Caller>,
}

impl ApiRequest {
    /// Parses and checks a body.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, RequestError> {
        let mut body: Body =
            serde_json::from_slice(bytes).map_err(|error| RequestError::invalid(error.to_string()))?;
        refuse_unsupported(&body)?;
        let tools = Toolbox::parse(
            body.tools.take(),
            body.tool_choice.as_ref(),
            body.parallel_tool_calls != Some(false),
        )?;
        let limit = match body.max_completion_tokens.or(body.max_tokens) {
            Some(0) => return Err(RequestError::invalid("max_tokens: found 0, expected 1 or more")),
            Some(hard) => Limit { hard, soft: None },
            None => {
                let soft = tools.is_empty().then_some(ANSWER_TOKENS_ENOUGH);
                Limit { hard: ANSWER_TOKENS_MAX, soft }
            }
        };
        let sampling = sampling(&body)?;
        let messages = messages(body.messages, &tools)?;
        let include_usage = body.stream_options.is_some_and(|options| options.include_usage);
        let caller = body.antiphon_caller;
        Ok(Self { messages, tools, stream: body.stream, include_usage, limit, sampling, caller })
    }
}

fn refuse_unsupported(body: &Body) -> Result<(), RequestError> {
    let wants = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
    let is_text =
        body.response_format.as_ref().is_some_and(|format| format.get("type") == Some(&json!("text")));
    let unsupported = [
        ("n", body.n.is_some_and(|n| n != 1)),
        ("stop", wants(&body.stop)),
        ("logprobs", body.logprobs == Some(true)),
        ("response_format", wants(&body.response_format) && !is_text),
    ];
    match unsupported.iter().find(|(_, used)| *used) {
        Some((name, _)) => Err(RequestError::new(
            400,
            "unsupported_parameter",
            format!("{name}: not supported by the built-in model"),
        )),
        None => Ok(()),
    }
}

fn sampling(body: &Body) -> Result<Sampling, RequestError> {
    let defaults = Sampling::default();
    let within = |name: &str, value: Option<f32>, low: f32, high: f32, default: f32| match value {
        None => Ok(default),
        Some(value) if (low..=high).contains(&value) => Ok(value),
        Some(value) => Err(RequestError::invalid(format!("{name}: found {value}, expected {low} to {high}"))),
    };
    Ok(Sampling {
        temperature: within("temperature", body.temperature, 0.0, 2.0, defaults.temperature)?,
        top_p: within("top_p", body.top_p, 0.0, 1.0, defaults.top_p)?,
        min_p: within("min_p", body.min_p, 0.0, 1.0, defaults.min_p)?,
        repeat_penalty: within("repeat_penalty", body.repeat_penalty, 0.5, 2.0, defaults.repeat_penalty)?,
        frequency_penalty: within(
            "frequency_penalty",
            body.frequency_penalty,
            -2.0,
            2.0,
            defaults.frequency_penalty,
        )?,
        presence_penalty: within(
            "presence_penalty",
            body.presence_penalty,
            -2.0,
            2.0,
            defaults.presence_penalty,
        )?,
        // Every integer is a valid seed; the model's samplers take 32 bits of it.
        seed: body.seed.map(|seed| u32::try_from(seed & 0x7fff_ffff).expect("31 bits")),
    })
}

/// Returns the conversation in the form of templates: functions are part of the instructions, and consecutive outputs
/// are one message.
fn messages(bodies: Vec<Message>, tools: &Toolbox) -> Result<Vec<(&'static str, String)>, RequestError> {
    if bodies.is_empty() {
        return Err(RequestError::invalid("messages: found none, expected one or more"));
    }
    let mut messages: Vec<(&str, String)> = Vec::new();
    let mut after_output = false;
    for body in bodies {
        let is_output = body.role == "tool";
        let (role, content) = message(body)?;
        match messages.last_mut() {
            Some((_, before)) if is_output && after_output => {
                before.push('\n');
                before.push_str(&content);
            }
            _ => messages.push((role, content)),
        }
        after_output = is_output;
    }
    if !tools.is_empty() {
        match messages.first_mut() {
            Some(("system", instructions)) => {
                instructions.push_str("\n\n");
                instructions.push_str(&tools.instructions());
            }
            _ => messages.insert(0, ("system", tools.instructions())),
        }
    }
    Ok(messages)
}

fn message(message: Message) -> Result<(&'static str, String), RequestError> {
    let text = match message.content {
        Some(content) => Some(text(content)?),
        None => None,
    };
    let calls = message.tool_calls.unwrap_or_default();
    match (message.role.as_str(), text) {
        ("assistant", text) if text.is_some() || !calls.is_empty() => {
            Ok(("assistant", said(text.unwrap_or_default(), calls)))
        }
        ("system" | "developer", Some(text)) => Ok(("system", text)),
        ("user", Some(text)) => Ok(("user", text)),
        ("tool", Some(text)) => Ok(("user", output(&text))),
        ("system" | "developer" | "user" | "assistant" | "tool", None) => {
            let problem = "content: found null, which only an assistant's message with tool_calls may have";
            Err(RequestError::invalid(problem))
        }
        (other, _) => {
            let problem =
                format!("role: found {other:?}, expected system, developer, user, assistant or tool");
            Err(RequestError::invalid(problem))
        }
    }
}

fn text(content: MessageContent) -> Result<String, RequestError> {
    let parts = match content {
        MessageContent::Text(text) => return Ok(text),
        MessageContent::Parts(parts) => parts,
    };
    let mut text = String::new();
    for part in parts {
        match (part.kind.as_str(), part.text) {
            ("text", Some(part)) => text.push_str(&part),
            (kind, _) => {
                let problem = format!("content: found a part of type {kind:?}, expected text");
                return Err(RequestError::invalid(problem));
            }
        }
    }
    Ok(text)
}

/// Fields of every object of an answer.
#[derive(Clone, Debug)]
pub(super) struct AnswerHead {
    pub(super) id: String,
    pub(super) model: String,
    /// Seconds since 1970.
    pub(super) created: u64,
}

impl AnswerHead {
    fn object(&self, kind: &str) -> Value {
        json!({"id": self.id, "object": kind, "created": self.created, "model": self.model})
    }

    /// Returns one event of a streamed answer.
    pub(super) fn chunk(&self, delta: &Value, finish: Option<&str>) -> Value {
        let mut chunk = self.object("chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish}]);
        chunk
    }

    /// Returns the event with the tokens of the completion, which follows the end.
    pub(super) fn usage_chunk(&self, usage: CompletionUsage) -> Value {
        let mut chunk = self.object("chat.completion.chunk");
        chunk["choices"] = json!([]);
        chunk["usage"] = usage_object(usage);
        chunk
    }

    /// Returns a whole answer. `calls` are the objects of the API.
    pub(super) fn completion(
        &self,
        text: &str,
        calls: Vec<Value>,
        end: End,
        usage: CompletionUsage,
    ) -> Value {
        let mut completion = self.object("chat.completion");
        let finish = finish_reason(end, !calls.is_empty());
        let mut message = json!({"role": "assistant", "content": text});
        if !calls.is_empty() {
            message["content"] = if text.is_empty() { Value::Null } else { text.into() };
            message["tool_calls"] = calls.into();
        }
        completion["choices"] = json!([{"index": 0, "message": message, "finish_reason": finish}]);
        completion["usage"] = usage_object(usage);
        completion
    }
}

/// Returns a call in the form of the API.
pub(super) fn call_object(id: &str, name: &str, arguments: &str) -> Value {
    json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}})
}

pub(super) fn finish_reason(end: End, has_calls: bool) -> &'static str {
    match end {
        End::Stop if has_calls => "tool_calls",
        End::Stop => "stop",
        End::Length => "length",
    }
}

fn usage_object(usage: CompletionUsage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.output,
        "total_tokens": usage.prompt + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached},
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Epoch, Rank, UnitId};

    fn parse(body: &Value) -> Result<ApiRequest, RequestError> {
        ApiRequest::parse(body.to_string().as_bytes())
    }

    #[test]
    fn defaults_and_settings() {
        let plain =
            parse(&json!({"messages": [{"role": "user", "content": "Hi"}], "model": "any"})).expect("valid");
        assert_eq!(plain.messages, [("user", "Hi".to_owned())]);
        assert_eq!(plain.limit, Limit { hard: ANSWER_TOKENS_MAX, soft: Some(ANSWER_TOKENS_ENOUGH) });
        assert_eq!((plain.sampling, plain.caller, plain.stream), (Sampling::default(), None, false));
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let caller = Caller { unit: UnitId::new(3), epoch: Epoch::new(17), rank: Rank::Spoken };
        let full = parse(
            &json!({"messages": [{"role": "developer", "content": parts}], "stream": true, "id_slot": 3_000,
            "antiphon_caller": {"unit": 3, "epoch": 17, "rank": "spoken"},
            "stream_options": {"include_usage": true}, "max_tokens": 7, "temperature": 0, "seed": -1}),
        )
        .expect("valid");
        assert_eq!(full.messages, [("system", "ab".to_owned())]);
        assert_eq!(full.limit, Limit { hard: 7, soft: None });
        assert_eq!(
            full.sampling,
            Sampling { temperature: 0.0, seed: Some(0x7fff_ffff), ..Sampling::default() }
        );
        assert_eq!((full.caller, full.stream, full.include_usage), (Some(caller), true, true));
    }

    #[test]
    fn what_cannot_be_done_is_refused_by_name() {
        let with = |name: &str, value: Value| {
            let mut body = json!({"messages": [{"role": "user", "content": "Hi"}]});
            body[name] = value;
            parse(&body).expect_err(name)
        };
        for (name, value, code) in [
            ("messages", json!([]), "invalid_request"),
            ("role", json!(1), "invalid_request"),
            ("max_tokens", json!(0), "invalid_request"),
            ("temperature", json!(2.5), "invalid_request"),
            ("top_p", json!(-0.1), "invalid_request"),
            ("n", json!(2), "unsupported_parameter"),
            ("stop", json!(["x"]), "unsupported_parameter"),
            ("tools", json!([{"type": "web_search"}]), "invalid_request"),
            ("tool_choice", json!("required"), "invalid_request"),
            ("tool_choice", json!("sometimes"), "invalid_request"),
            ("tool_choice", json!({"type": "function", "function": {"name": "f"}}), "invalid_request"),
            ("response_format", json!({"type": "json_object"}), "unsupported_parameter"),
        ] {
            if name == "role" {
                let error =
                    parse(&json!({"messages": [{"role": "function", "content": ""}]})).expect_err("a role");
                assert_eq!((error.status, error.code), (400, code));
                continue;
            }
            let error = with(name, value);
            assert_eq!((error.status, error.code), (400, code), "{name}");
            assert!(error.message.starts_with(name), "{error:?}");
            assert_eq!(error.body()["error"]["code"], code);
        }
        assert!(ApiRequest::parse(b"{").is_err());
        for caller in [json!(3), json!({"unit": 3}), json!({"unit": 3, "epoch": 1, "rank": "loud"})] {
            assert_eq!(with("antiphon_caller", caller).status, 400);
        }
        assert!(parse(&json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})).is_err());
        assert!(parse(&json!({"messages": [{"role": "assistant", "content": null}]})).is_err());
    }

    #[test]
    fn functions_calls_and_outputs_are_part_of_the_conversation() {
        let tool = |name: &str| {
            json!({"type": "function", "function": {"name": name, "description": "Does it.",
            "parameters": {"type": "object"}}})
        };
        let call =
            |id: &str| json!({"id": id, "type": "function", "function": {"name": "f", "arguments": "{}"}});
        let body = json!({
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi"},
                {"role": "assistant", "content": null, "tool_calls": [call("1"), call("2")]},
                {"role": "tool", "tool_call_id": "1", "content": "one"},
                {"role": "tool", "tool_call_id": "2", "content": "two"},
            ],
            "tools": [tool("f"), tool("g")],
        });
        let request = parse(&body).expect("valid");
        let written = "<tool_call>\n{\"name\": \"f\", \"arguments\": {}}\n</tool_call>";
        let outputs = "<tool_response>\none\n</tool_response>\n<tool_response>\ntwo\n</tool_response>";
        assert_eq!(
            request.messages[1..],
            [
                ("user", "Hi".to_owned()),
                ("assistant", format!("{written}\n{written}")),
                ("user", outputs.to_owned()),
            ]
        );
        let instructions = &request.messages[0].1;
        assert!(instructions.starts_with("Be brief.\n\nYou can call"), "{instructions}");
        for name in ["f", "g"] {
            let line = format!(
                "{{\"name\":\"{name}\",\"description\":\"Does it.\",\"parameters\":{{\"type\":\"object\"}}}}"
            );
            assert!(instructions.contains(&line), "{instructions}");
        }
        assert_eq!((request.limit.soft, request.tools.grammar()), (None, None));
        let with_choice = |choice: Value| {
            let mut body = body.clone();
            body["tool_choice"] = choice;
            parse(&body).expect("valid").tools
        };
        assert!(with_choice(json!("none")).is_empty());
        assert_eq!(with_choice(json!("auto")), request.tools);
        let required = with_choice(json!("required"));
        assert!(required.names() == ["f", "g"] && required.grammar().is_some());
        let named = with_choice(json!({"type": "function", "function": {"name": "g"}}));
        assert!(named.names() == ["g"] && named.grammar().is_some());
    }
}
