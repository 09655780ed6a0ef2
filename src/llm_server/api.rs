//! JSON of the built-in server.
//!
//! # Source
//! OpenAI API reference, "Chat Completions"; `id_slot`, `min_p` and `repeat_penalty` as llama.cpp's own server names
//! them.

use serde::Deserialize;
use serde_json::{Value, json};

use crate::model::llama::{CompletionUsage, End, Limit, Sampling};

/// Where an answer without `max_tokens` is cut. Speech of a minute.
const ANSWER_TOKENS_MAX: u32 = 200;

/// From here on an answer without `max_tokens` ends with its sentence: nobody likes to listen for longer than 15 s.
const ANSWER_TOKENS_ENOUGH: u32 = 50;

/// An answer that says what is wrong with a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ApiError {
    pub(super) status: u16,
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl ApiError {
    pub(super) fn new(status: u16, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, message: message.into() }
    }

    fn invalid(message: impl Into<String>) -> Self {
        Self::new(400, "invalid_request", message)
    }

    /// The error object of the API.
    pub(super) fn body(&self) -> Value {
        let kind = if self.status < 500 { "invalid_request_error" } else { "server_error" };
        json!({"error": {"message": self.message, "type": kind, "param": null, "code": self.code}})
    }
}

/// Body of `POST /v1/chat/completions`. Fields that change nothing here (`model`, `user`, …) are ignored; those that
/// would be silently disobeyed are refused.
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
    id_slot: Option<i64>,
    n: Option<u32>,
    stop: Option<Value>,
    tools: Option<Vec<Value>>,
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
    content: Content,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
}

/// A request that can be served.
#[derive(Debug, PartialEq)]
pub(super) struct ApiRequest {
    /// Role, as templates name it, and content.
    pub(super) messages: Vec<(&'static str, String)>,
    pub(super) stream: bool,
    pub(super) include_usage: bool,
    pub(super) limit: Limit,
    pub(super) sampling: Sampling,
    pub(super) slot: Option<usize>,
}

impl ApiRequest {
    /// Reads and checks a body.
    pub(super) fn parse(bytes: &[u8], slots: u16) -> Result<Self, ApiError> {
        let body: Body =
            serde_json::from_slice(bytes).map_err(|error| ApiError::invalid(error.to_string()))?;
        refuse_unsupported(&body)?;
        let limit = match body.max_completion_tokens.or(body.max_tokens) {
            Some(0) => return Err(ApiError::invalid("max_tokens: found 0, expected 1 or more")),
            Some(hard) => Limit { hard, soft: None },
            None => Limit { hard: ANSWER_TOKENS_MAX, soft: Some(ANSWER_TOKENS_ENOUGH) },
        };
        let slot = match body.id_slot {
            // llama.cpp's way to say "any".
            None | Some(-1) => None,
            Some(slot) => match usize::try_from(slot) {
                Ok(slot) if slot < usize::from(slots) => Some(slot),
                _ => {
                    return Err(ApiError::invalid(format!(
                        "id_slot: found {slot}, expected 0 to {}",
                        slots - 1
                    )));
                }
            },
        };
        let sampling = sampling(&body)?;
        let messages = body.messages.into_iter().map(message).collect::<Result<Vec<_>, _>>()?;
        if messages.is_empty() {
            return Err(ApiError::invalid("messages: found none, expected one or more"));
        }
        let include_usage = body.stream_options.is_some_and(|options| options.include_usage);
        Ok(Self { messages, stream: body.stream, include_usage, limit, sampling, slot })
    }
}

fn refuse_unsupported(body: &Body) -> Result<(), ApiError> {
    let wants = |value: &Option<Value>| value.as_ref().is_some_and(|value| !value.is_null());
    let is_text =
        body.response_format.as_ref().is_some_and(|format| format.get("type") == Some(&json!("text")));
    let unsupported = [
        ("n", body.n.is_some_and(|n| n != 1)),
        ("stop", wants(&body.stop)),
        ("tools", body.tools.as_ref().is_some_and(|tools| !tools.is_empty())),
        ("logprobs", body.logprobs == Some(true)),
        ("response_format", wants(&body.response_format) && !is_text),
    ];
    match unsupported.iter().find(|(_, used)| *used) {
        Some((name, _)) => Err(ApiError::new(
            400,
            "unsupported_parameter",
            format!("{name}: not supported by the built-in model"),
        )),
        None => Ok(()),
    }
}

fn sampling(body: &Body) -> Result<Sampling, ApiError> {
    let defaults = Sampling::default();
    let within = |name: &str, value: Option<f32>, low: f32, high: f32, default: f32| match value {
        None => Ok(default),
        Some(value) if (low..=high).contains(&value) => Ok(value),
        Some(value) => Err(ApiError::invalid(format!("{name}: found {value}, expected {low} to {high}"))),
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
        // Any number is a seed; the model's samplers take 32 bits of it.
        seed: body.seed.map(|seed| u32::try_from(seed & 0x7fff_ffff).expect("31 bits")),
    })
}

fn message(message: Message) -> Result<(&'static str, String), ApiError> {
    let role = match message.role.as_str() {
        "system" | "developer" => "system",
        "user" => "user",
        "assistant" => "assistant",
        other => {
            let problem = format!("role: found {other:?}, expected system, developer, user or assistant");
            return Err(ApiError::invalid(problem));
        }
    };
    let content = match message.content {
        Content::Text(text) => text,
        Content::Parts(parts) => {
            let mut text = String::new();
            for part in parts {
                match (part.kind.as_str(), part.text) {
                    ("text", Some(part)) => text.push_str(&part),
                    (kind, _) => {
                        let problem = format!("content: found a part of type {kind:?}, expected text");
                        return Err(ApiError::invalid(problem));
                    }
                }
            }
            text
        }
    };
    Ok((role, content))
}

/// What stands at the beginning of every answer.
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

    /// One event of a streamed answer.
    pub(super) fn chunk(&self, delta: &Value, finish: Option<End>) -> Value {
        let mut chunk = self.object("chat.completion.chunk");
        chunk["choices"] = json!([{"index": 0, "delta": delta, "finish_reason": finish.map(finish_reason)}]);
        chunk
    }

    /// The event after the end that tells the cost.
    pub(super) fn usage_chunk(&self, usage: CompletionUsage) -> Value {
        let mut chunk = self.object("chat.completion.chunk");
        chunk["choices"] = json!([]);
        chunk["usage"] = usage_object(usage);
        chunk
    }

    /// A whole answer.
    pub(super) fn completion(&self, text: &str, end: End, usage: CompletionUsage) -> Value {
        let mut completion = self.object("chat.completion");
        let message = json!({"role": "assistant", "content": text});
        completion["choices"] =
            json!([{"index": 0, "message": message, "finish_reason": finish_reason(end)}]);
        completion["usage"] = usage_object(usage);
        completion
    }
}

fn finish_reason(end: End) -> &'static str {
    match end {
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

    fn parse(body: &Value) -> Result<ApiRequest, ApiError> {
        ApiRequest::parse(body.to_string().as_bytes(), 4)
    }

    #[test]
    fn defaults_and_settings() {
        let plain =
            parse(&json!({"messages": [{"role": "user", "content": "Hi"}], "model": "any"})).expect("valid");
        assert_eq!(plain.messages, [("user", "Hi".to_owned())]);
        assert_eq!(plain.limit, Limit { hard: ANSWER_TOKENS_MAX, soft: Some(ANSWER_TOKENS_ENOUGH) });
        assert_eq!((plain.sampling, plain.slot, plain.stream), (Sampling::default(), None, false));
        let parts = json!([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]);
        let full = parse(
            &json!({"messages": [{"role": "developer", "content": parts}], "stream": true, "id_slot": 3,
            "stream_options": {"include_usage": true}, "max_tokens": 7, "temperature": 0, "seed": -1}),
        )
        .expect("valid");
        assert_eq!(full.messages, [("system", "ab".to_owned())]);
        assert_eq!(full.limit, Limit { hard: 7, soft: None });
        assert_eq!(
            full.sampling,
            Sampling { temperature: 0.0, seed: Some(0x7fff_ffff), ..Sampling::default() }
        );
        assert_eq!((full.slot, full.stream, full.include_usage), (Some(3), true, true));
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
            ("id_slot", json!(4), "invalid_request"),
            ("id_slot", json!(-2), "invalid_request"),
            ("max_tokens", json!(0), "invalid_request"),
            ("temperature", json!(2.5), "invalid_request"),
            ("top_p", json!(-0.1), "invalid_request"),
            ("n", json!(2), "unsupported_parameter"),
            ("stop", json!(["x"]), "unsupported_parameter"),
            ("tools", json!([{}]), "unsupported_parameter"),
            ("response_format", json!({"type": "json_object"}), "unsupported_parameter"),
        ] {
            if name == "role" {
                let error =
                    parse(&json!({"messages": [{"role": "tool", "content": ""}]})).expect_err("a role");
                assert_eq!((error.status, error.code), (400, code));
                continue;
            }
            let error = with(name, value);
            assert_eq!((error.status, error.code), (400, code), "{name}");
            assert!(error.message.starts_with(name), "{error:?}");
            assert_eq!(error.body()["error"]["code"], code);
        }
        assert!(ApiRequest::parse(b"{", 4).is_err());
        assert!(parse(&json!({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})).is_err());
    }
}
