//! JSON of the responses API, as much of it as is used.
//!
//! # Source
//! OpenAI API reference, "Responses": request body, streaming events, as the types of the `openai` Python package 2.x
//! state them (`openai.types.responses`).

use serde_json::{Value, json};

use super::chunk::{CallFragment, Chunk, ChunkPart};
use super::error::AnswerError;
use crate::edge::outbound::http::{error_text, first_words};
use crate::message::{
    ChatMessage, ChatRequest, FinishReason, FunctionTool, TokenUsage, ToolChoice, UserPart,
};

/// Body of `POST /v1/responses`. The server keeps nothing (`store`); the whole conversation is sent each time,
/// instructions as system messages at their place in it.
pub(super) fn request_body(model: Option<&str>, request: &ChatRequest) -> Vec<u8> {
    let mut body = json!({
        "input": request.messages.iter().flat_map(items).collect::<Vec<_>>(),
        "stream": true,
        "store": false,
    });
    if let Some(model) = model {
        body["model"] = model.into();
    }
    if !request.tools.is_empty() {
        body["tools"] = request.tools.iter().map(tool_body).collect();
        if request.tool_choice != ToolChoice::Auto {
            body["tool_choice"] = tool_choice_body(&request.tool_choice);
        }
        if let Some(parallel) = request.parallel_tool_calls {
            body["parallel_tool_calls"] = parallel.into();
        }
    }
    if let Some(effort) = request.reasoning {
        body["reasoning"] = json!({"effort": effort.as_str()});
    }
    if let Some(tokens_max) = request.tokens_max {
        body["max_output_tokens"] = tokens_max.into();
    }
    body.to_string().into_bytes()
}

/// Makes the input items of a message. Text alone is a string: that form is one for all roles, and needs no id of ours
/// for the model's messages.
fn items(message: &ChatMessage) -> Vec<Value> {
    let item = |role: &str, content: Value| json!({"type": "message", "role": role, "content": content});
    match message {
        ChatMessage::System(text) => vec![item("system", text.as_str().into())],
        ChatMessage::User(parts) => match parts.as_slice() {
            [UserPart::Text(text)] => vec![item("user", text.as_str().into())],
            parts => vec![item("user", parts.iter().map(part_body).collect())],
        },
        ChatMessage::Assistant { text, calls } => {
            let said = (!text.is_empty()).then(|| item("assistant", text.as_str().into()));
            let calls = calls.iter().map(|call| {
                json!({
                    "type": "function_call",
                    "call_id": call.call_id,
                    "name": call.name,
                    "arguments": call.arguments,
                })
            });
            said.into_iter().chain(calls).collect()
        }
        ChatMessage::FunctionOutput { call_id, output } => {
            vec![json!({"type": "function_call_output", "call_id": call_id, "output": output})]
        }
    }
}

fn part_body(part: &UserPart) -> Value {
    match part {
        UserPart::Text(text) => json!({"type": "input_text", "text": text}),
        UserPart::Image { url, detail } => json!({"type": "input_image", "image_url": url, "detail": detail}),
    }
}

/// Makes the form of a tool. It is not `strict`: that is the API's default and refuses schemas that chat completions
/// accept.
fn tool_body(tool: &FunctionTool) -> Value {
    let none = || json!({"type": "object", "properties": {}});
    let mut body = json!({
        "type": "function",
        "name": tool.name,
        "parameters": tool.parameters.clone().unwrap_or_else(none),
        "strict": false,
    });
    if let Some(description) = &tool.description {
        body["description"] = description.as_str().into();
    }
    body
}

fn tool_choice_body(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => "auto".into(),
        ToolChoice::None => "none".into(),
        ToolChoice::Required => "required".into(),
        ToolChoice::Function(name) => json!({"type": "function", "name": name}),
    }
}

/// Reads one event's data. Events of types that are not used give an empty chunk.
///
/// # Errors
/// [`AnswerError`] if the server reports an error, or the data is no event.
pub(super) fn parse_event(data: &[u8]) -> Result<Chunk, AnswerError> {
    let event: Value =
        serde_json::from_slice(data).map_err(|error| AnswerError::no_event("JSON", &error, data))?;
    let Some(kind) = event["type"].as_str() else {
        return Err(match error_text(&event["error"]) {
            None => AnswerError::NoType(first_words(data)),
            said => AnswerError::Reported(said),
        });
    };
    let delta = event["delta"].as_str();
    let mut chunk = Chunk::default();
    match kind {
        "response.output_text.delta" | "response.refusal.delta" => chunk.text(delta.map(str::to_owned)),
        "response.output_item.added" => {
            chunk.pieces.extend(
                call_item(&event).map(|call| ChunkPart::Call(CallFragment { is_whole: false, ..call })),
            );
        }
        "response.output_item.done" => chunk.pieces.extend(call_item(&event).map(ChunkPart::Call)),
        "response.function_call_arguments.delta" => chunk.pieces.push(ChunkPart::Call(CallFragment {
            arguments: delta.unwrap_or_default().to_owned(),
            ..fragment(&event, &event["item_id"])
        })),
        "response.function_call_arguments.done" => chunk.pieces.push(ChunkPart::Call(CallFragment {
            arguments: event["arguments"].as_str().unwrap_or_default().to_owned(),
            is_whole: true,
            ..fragment(&event, &event["item_id"])
        })),
        "response.completed" => chunk = last(&event["response"], FinishReason::Stop),
        "response.incomplete" => {
            let response = &event["response"];
            let reason = response["incomplete_details"]["reason"].as_str();
            chunk = last(response, finish_reason(reason));
        }
        "response.failed" | "response.cancelled" | "error" => return Err(failure(&event)),
        // The thoughts themselves, or a summary of them.
        kind if kind.starts_with("response.reasoning") && kind.ends_with(".delta") => chunk.reasoning(delta),
        _ => {}
    }
    Ok(chunk)
}

/// Reads the call of an event that shows an output item whole; `None` for other kinds of items.
fn call_item(event: &Value) -> Option<CallFragment> {
    let item = &event["item"];
    (item["type"] == "function_call").then(|| CallFragment {
        name: item["name"].as_str().filter(|name| !name.is_empty()).map(str::to_owned),
        arguments: item["arguments"].as_str().unwrap_or_default().to_owned(),
        is_whole: true,
        ..fragment(event, &item["id"])
    })
}

/// Makes an empty fragment of the call that `event` is about.
fn fragment(event: &Value, item_id: &Value) -> CallFragment {
    CallFragment {
        index: event["output_index"].as_u64().and_then(|index| u32::try_from(index).ok()),
        id: item_id.as_str().filter(|id| !id.is_empty()).map(str::to_owned),
        ..CallFragment::default()
    }
}

fn last(response: &Value, finish: FinishReason) -> Chunk {
    let count = |usage: &Value| usage.as_u64().map_or(0, |tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
    let usage = response.get("usage").filter(|usage| usage.is_object()).map(|usage| TokenUsage {
        input: count(&usage["input_tokens"]),
        input_cached: count(&usage["input_tokens_details"]["cached_tokens"]),
        output: count(&usage["output_tokens"]),
    });
    Chunk { finish: Some(finish), usage, is_last: true, ..Chunk::default() }
}

fn finish_reason(incomplete: Option<&str>) -> FinishReason {
    match incomplete {
        Some("content_filter") => FinishReason::ContentFilter,
        // "max_output_tokens", and other reasons for a cut.
        _ => FinishReason::Length,
    }
}

fn failure(event: &Value) -> AnswerError {
    let places = [&event["response"]["error"], &event["error"], event];
    AnswerError::Reported(places.into_iter().find_map(error_text))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(event: Value) -> Result<Chunk, AnswerError> {
        parse_event(event.to_string().as_bytes())
    }

    fn reported(message: &str) -> Result<Chunk, AnswerError> {
        Err(AnswerError::Reported(Some(message.to_owned())))
    }

    #[test]
    fn text_and_thoughts() {
        let pieces = |event| parse(event).map(|chunk| chunk.pieces);
        let text = |text: &str| Ok(vec![ChunkPart::Text(text.to_owned())]);
        assert_eq!(pieces(json!({"type": "response.output_text.delta", "delta": " "})), text(" "));
        assert_eq!(pieces(json!({"type": "response.refusal.delta", "delta": "No."})), text("No."));
        for kind in [
            "response.reasoning_text.delta",
            "response.reasoning_summary_text.delta",
            "response.reasoning.delta",
        ] {
            assert_eq!(pieces(json!({"type": kind, "delta": "hmm"})), Ok(vec![ChunkPart::Reasoning(3)]));
        }
        for other in [
            json!({"type": "response.created", "response": {"usage": null}}),
            json!({"type": "response.output_text.done", "text": "again"}),
            json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "content": []}}),
            json!({"type": "response.of_next_year", "delta": {"x": [1]}}),
        ] {
            assert_eq!(parse(other.clone()), Ok(Chunk::default()), "{other}");
        }
    }

    #[test]
    fn ends() {
        let usage =
            json!({"input_tokens": 9, "input_tokens_details": {"cached_tokens": 5}, "output_tokens": 4});
        let counted = TokenUsage { input: 9, input_cached: 5, output: 4 };
        let end = |kind: &str, response: Value| parse(json!({"type": kind, "response": response}));
        let completed = end("response.completed", json!({"usage": usage})).expect("an end");
        assert_eq!(
            (completed.finish, completed.usage, completed.is_last),
            (Some(FinishReason::Stop), Some(counted), true)
        );
        for (reason, expected) in [
            ("max_output_tokens", FinishReason::Length),
            ("content_filter", FinishReason::ContentFilter),
            ("x", FinishReason::Length),
        ] {
            let response = json!({"usage": null, "incomplete_details": {"reason": reason}});
            let incomplete = end("response.incomplete", response).expect("an end");
            assert_eq!((incomplete.finish, incomplete.usage), (Some(expected), None), "{reason}");
        }
        let failed = json!({"error": {"code": "server_error", "message": "out of memory"}});
        assert_eq!(end("response.failed", failed), reported("out of memory"));
        assert_eq!(end("response.failed", json!({"error": null})), Err(AnswerError::Reported(None)));
    }

    #[test]
    fn errors_in_every_form() {
        for event in [
            json!({"type": "error", "code": "x", "message": "out of memory", "param": null}),
            json!({"type": "error", "error": {"message": "out of memory"}}),
            json!({"error": {"message": "out of memory"}}),
        ] {
            assert_eq!(parse(event), reported("out of memory"));
        }
        assert!(parse(json!({"choices": []})).is_err_and(|error| matches!(error, AnswerError::NoType(_))));
        assert!(parse_event(b"<html>").is_err_and(|error| error.to_string().ends_with(": <html>")));
    }
}
