//! JSON of the chat completions API, as much of it as is used.
//!
//! # Source
//! OpenAI API reference, "Chat Completions": request body, `chat.completion.chunk`, error object.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::chunk::{CallFragment, Chunk, ChunkPart};
use super::error::AnswerError;
use crate::edge::outbound::http::error_text;
use crate::message::{
    Caller, ChatMessage, ChatRequest, FinishReason, FunctionCall, FunctionTool, ReasoningEffort, TokenUsage,
    ToolChoice, UserPart,
};

/// Body of `POST /v1/chat/completions`. Fields that not every server accepts are left out unless they are needed.
#[derive(Serialize)]
struct RequestBody<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    messages: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parallel_tool_calls: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasoning_effort: Option<&'static str>,
    stream: bool,
    stream_options: StreamOptionsBody,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    antiphon_caller: Option<Caller>,
}

#[derive(Serialize)]
struct StreamOptionsBody {
    include_usage: bool,
}

/// Writes the request body for `request`; `caller` is for the built-in server only.
pub(super) fn request_body(model: Option<&str>, request: &ChatRequest, caller: Option<Caller>) -> Vec<u8> {
    let has_tools = !request.tools.is_empty();
    let body = RequestBody {
        model,
        messages: request.messages.iter().map(message_body).collect(),
        tools: has_tools.then(|| request.tools.iter().map(tool_body).collect()),
        tool_choice: (has_tools && request.tool_choice != ToolChoice::Auto)
            .then(|| tool_choice_body(&request.tool_choice)),
        parallel_tool_calls: request.parallel_tool_calls.filter(|_| has_tools),
        reasoning_effort: request.reasoning.map(ReasoningEffort::as_str),
        stream: true,
        stream_options: StreamOptionsBody { include_usage: true },
        max_tokens: request.tokens_max,
        antiphon_caller: caller,
    };
    serde_json::to_vec(&body).expect("strings and numbers are always JSON")
}

fn message_body(message: &ChatMessage) -> Value {
    match message {
        ChatMessage::System(text) => json!({"role": "system", "content": text}),
        ChatMessage::User(parts) => match parts.as_slice() {
            // The form that every server understands.
            [UserPart::Text(text)] => json!({"role": "user", "content": text}),
            parts => json!({"role": "user", "content": parts.iter().map(part_body).collect::<Vec<_>>()}),
        },
        ChatMessage::Assistant { text, calls } if calls.is_empty() => {
            json!({"role": "assistant", "content": text})
        }
        ChatMessage::Assistant { text, calls } => json!({
            "role": "assistant",
            "content": (!text.is_empty()).then_some(text),
            "tool_calls": calls.iter().map(call_body).collect::<Vec<_>>(),
        }),
        ChatMessage::FunctionOutput { call_id, output } => {
            json!({"role": "tool", "tool_call_id": call_id, "content": output})
        }
    }
}

fn part_body(part: &UserPart) -> Value {
    match part {
        UserPart::Text(text) => json!({"type": "text", "text": text}),
        UserPart::Image { url, detail } => {
            json!({"type": "image_url", "image_url": {"url": url, "detail": detail}})
        }
    }
}

fn call_body(call: &FunctionCall) -> Value {
    json!({
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    })
}

fn tool_body(tool: &FunctionTool) -> Value {
    let mut function = json!({"name": tool.name});
    if let Some(description) = &tool.description {
        function["description"] = description.as_str().into();
    }
    if let Some(parameters) = &tool.parameters {
        function["parameters"] = parameters.clone();
    }
    json!({"type": "function", "function": function})
}

fn tool_choice_body(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Function(name) => json!({"type": "function", "function": {"name": name}}),
    }
}

#[derive(Deserialize)]
struct ChunkBody {
    #[serde(default)]
    choices: Vec<ChoiceBody>,
    #[serde(default)]
    usage: Option<UsageBody>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct ChoiceBody {
    #[serde(default)]
    index: u32,
    #[serde(default)]
    delta: Option<Delta>,
    #[serde(default)]
    finish_reason: Option<String>,
}

#[derive(Default, Deserialize)]
struct Delta {
    #[serde(default)]
    content: Option<String>,
    /// A refusal in place of an answer, which is spoken as well.
    #[serde(default)]
    refusal: Option<String>,
    /// Thoughts, as DeepSeek, llama.cpp and vLLM name them.
    #[serde(default)]
    reasoning_content: Option<String>,
    /// Thoughts, as OpenRouter and newer vLLM name them.
    #[serde(default)]
    reasoning: Option<Value>,
    #[serde(default)]
    tool_calls: Option<Vec<CallDelta>>,
    /// A call, in the form of the API before there could be several.
    #[serde(default)]
    function_call: Option<FunctionDelta>,
}

#[derive(Deserialize)]
struct CallDelta {
    #[serde(default)]
    index: Option<u32>,
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    function: Option<FunctionDelta>,
}

#[derive(Default, Deserialize)]
struct FunctionDelta {
    #[serde(default)]
    name: Option<String>,
    /// A piece of JSON as a string; some servers send the object itself.
    #[serde(default)]
    arguments: Option<Value>,
}

impl CallDelta {
    fn into_piece(self) -> ChunkPart {
        let function = self.function.unwrap_or_default();
        let given = |text: Option<String>| text.filter(|text| !text.is_empty());
        ChunkPart::Call(CallFragment {
            index: self.index,
            id: given(self.id),
            name: given(function.name),
            arguments: match function.arguments {
                None | Some(Value::Null) => String::new(),
                Some(Value::String(piece)) => piece,
                Some(object) => object.to_string(),
            },
            is_whole: false,
        })
    }
}

#[derive(Deserialize)]
struct UsageBody {
    #[serde(default)]
    prompt_tokens: u32,
    #[serde(default)]
    completion_tokens: u32,
    #[serde(default)]
    prompt_tokens_details: Option<PromptDetails>,
}

#[derive(Deserialize)]
struct PromptDetails {
    #[serde(default)]
    cached_tokens: Option<u32>,
}

/// Reads one event's data.
///
/// # Errors
/// [`AnswerError::Reported`] if the server reports an error, [`AnswerError::NoEvent`] if the data is no chunk.
pub(super) fn parse_event(data: &[u8]) -> Result<Chunk, AnswerError> {
    let body: ChunkBody = serde_json::from_slice(data)
        .map_err(|error| AnswerError::no_event("completion chunk", &error, data))?;
    if let Some(error) = body.error.filter(|error| !error.is_null()) {
        return Err(AnswerError::Reported(error_text(&error)));
    }
    let usage = body.usage.map(|usage| TokenUsage {
        input: usage.prompt_tokens,
        input_cached: usage.prompt_tokens_details.and_then(|details| details.cached_tokens).unwrap_or(0),
        output: usage.completion_tokens,
    });
    let mut chunk = Chunk { usage, ..Chunk::default() };
    for choice in body.choices.into_iter().filter(|choice| choice.index == 0) {
        let delta = choice.delta.unwrap_or_default();
        chunk.reasoning(delta.reasoning_content.as_deref());
        chunk.reasoning(delta.reasoning.as_ref().and_then(Value::as_str));
        chunk.text(delta.content);
        chunk.text(delta.refusal);
        let calls = delta.tool_calls.unwrap_or_default().into_iter();
        let old =
            delta.function_call.map(|call| CallDelta { index: Some(0), id: None, function: Some(call) });
        chunk.pieces.extend(calls.chain(old).map(CallDelta::into_piece));
        chunk.finish = choice.finish_reason.as_deref().map(finish_reason).or(chunk.finish);
    }
    Ok(chunk)
}

fn finish_reason(name: &str) -> FinishReason {
    match name {
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        // "stop", "tool_calls", and other names of an end that the model chose.
        _ => FinishReason::Stop,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Epoch, Rank, UnitId};

    #[test]
    fn the_body_holds_what_is_set_and_nothing_else() {
        let mut request = ChatRequest {
            messages: vec![ChatMessage::user("\"Hi\" 你")],
            spoken: true,
            ..ChatRequest::default()
        };
        let json = |body: Vec<u8>| serde_json::from_slice::<Value>(&body).expect("JSON");
        assert_eq!(
            json(request_body(None, &request, None)),
            json!({"messages": [{"role": "user", "content": "\"Hi\" 你"}], "stream": true,
                "stream_options": {"include_usage": true}})
        );
        request.tokens_max = Some(7);
        // OpenAI's server refuses the field if there are no functions.
        request.parallel_tool_calls = Some(false);
        let caller = Caller { unit: UnitId::new(3), epoch: Epoch::new(17), rank: Rank::Spoken };
        let full = json(request_body(Some("m"), &request, Some(caller)));
        assert_eq!(
            (&full["model"], &full["max_tokens"], &full["antiphon_caller"], &full["parallel_tool_calls"]),
            (&"m".into(), &7.into(), &json!({"unit": 3, "epoch": 17, "rank": "spoken"}), &Value::Null)
        );
    }

    #[test]
    fn chunks_as_servers_send_them() {
        let text = |json: &str| {
            let pieces = parse_event(json.as_bytes())?.pieces.into_iter().map(|piece| match piece {
                ChunkPart::Text(text) => text,
                other => panic!("{other:?}"),
            });
            Ok::<_, AnswerError>(pieces.collect::<String>())
        };
        assert_eq!(
            text(r#"{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}"#),
            Ok(String::new())
        );
        assert_eq!(
            text(r#"{"choices":[{"delta":{"content":" "}}],"usage":null,"error":null}"#),
            Ok(" ".to_owned())
        );
        assert_eq!(text(r#"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#), Ok(String::new()));
        assert_eq!(text(r#"{"choices":[{"delta":{"refusal":"I can't."}}]}"#), Ok("I can't.".to_owned()));
        assert_eq!(
            text(r#"{"error":{"message":"out of memory","code":500}}"#),
            Err(AnswerError::Reported(Some("out of memory".to_owned())))
        );
        assert!(text("<html>").is_err_and(|error| error.to_string().ends_with(": <html>")));
    }

    #[test]
    fn reasoning_is_counted_and_not_text() {
        for field in ["reasoning_content", "reasoning"] {
            let chunk = parse_event(format!(r#"{{"choices":[{{"delta":{{"{field}":"hmm"}}}}]}}"#).as_bytes());
            assert_eq!(chunk, Ok(Chunk { pieces: vec![ChunkPart::Reasoning(3)], ..Chunk::default() }));
        }
    }

    #[test]
    fn calls_as_servers_send_them() {
        let pieces = |delta: Value| {
            let chunk = json!({"choices": [{"index": 0, "delta": delta}]});
            parse_event(chunk.to_string().as_bytes()).expect("a chunk").pieces
        };
        let call = |index, id: Option<&str>, name: Option<&str>, arguments: &str| {
            ChunkPart::Call(CallFragment {
                index,
                id: id.map(str::to_owned),
                name: name.map(str::to_owned),
                arguments: arguments.to_owned(),
                is_whole: false,
            })
        };
        for (delta, expected) in [
            (
                json!({"tool_calls": [{"index": 1, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{"}}]}),
                call(Some(1), Some("c1"), Some("f"), "{"),
            ),
            (
                json!({"content": null, "tool_calls": [{"function": {"arguments": "1}"}}]}),
                call(None, None, None, "1}"),
            ),
            (
                json!({"content": "", "tool_calls": [{"index": 0, "id": "", "function": {"name": "", "arguments": null}}]}),
                call(Some(0), None, None, ""),
            ),
            (
                json!({"tool_calls": [{"index": 0, "id": null, "function": {"name": "f", "arguments": {"x": 1}}}]}),
                call(Some(0), None, Some("f"), r#"{"x":1}"#),
            ),
            (
                json!({"function_call": {"name": "f", "arguments": "{}"}}),
                call(Some(0), None, Some("f"), "{}"),
            ),
        ] {
            assert_eq!(pieces(delta.clone()), [expected], "{delta}");
        }
        assert_eq!(pieces(json!({"tool_calls": null, "function_call": null})), []);
    }

    #[test]
    fn finish_and_usage() {
        for (name, expected) in [
            ("stop", FinishReason::Stop),
            ("length", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
            ("tool_calls", FinishReason::Stop),
            ("function_call", FinishReason::Stop),
            ("eos", FinishReason::Stop),
        ] {
            let json = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{name}"}}]}}"#);
            assert_eq!(parse_event(json.as_bytes()).map(|chunk| chunk.finish), Ok(Some(expected)));
        }
        let json = r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":4,"total_tokens":13,
            "prompt_tokens_details":{"cached_tokens":5}}}"#;
        let usage = TokenUsage { input: 9, input_cached: 5, output: 4 };
        assert_eq!(parse_event(json.as_bytes()).map(|chunk| chunk.usage), Ok(Some(usage)));
    }
}
