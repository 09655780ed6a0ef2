//! Streams and requests of the responses API.
//!
//! # Source
//! OpenAI API reference, "Responses": request body and streaming events, as the types of the `openai` Python package 2.x
//! state them (`openai.types.responses`).

use serde_json::{Value, json};

use super::{Spoken, SpokenCall};

/// The stream of an answer, event by event.
pub(super) fn events(spoken: &Spoken<'_>) -> Vec<String> {
    let mut events = vec![json!({ "type": "response.created", "response": response("in_progress", &[]) })];
    let mut output = Vec::new();
    if !spoken.text.is_empty() {
        events.extend(text(spoken, &mut output));
    }
    let first = output.len();
    for (number, group) in spoken.groups().into_iter().enumerate() {
        let of_call = |call: &SpokenCall<'_>, kind: &str| {
            let kind = format!("response.function_call_arguments.{kind}");
            json!({ "type": kind, "item_id": item_id(call), "output_index": first + call.index })
        };
        for call in group {
            events.push(item_event("added", first + call.index, &call_item(call, "in_progress", "")));
        }
        for (call, character) in Spoken::in_turn(group) {
            let mut more = of_call(call, "delta");
            more["delta"] = json!(character);
            events.push(more);
        }
        let is_whole = spoken.is_whole || number + 1 < spoken.calls.len();
        for call in group.iter().filter(|_| is_whole) {
            let mut done = of_call(call, "done");
            done["arguments"] = json!(call.arguments);
            let item = call_item(call, "completed", call.arguments);
            events.extend([done, item_event("done", first + call.index, &item)]);
            output.push(item);
        }
    }
    if spoken.is_whole {
        let mut completed = response("completed", &output);
        completed["usage"] = json!({ "input_tokens": 7, "output_tokens": 3, "total_tokens": 10 });
        events.push(json!({ "type": "response.completed", "response": completed }));
    }
    events.into_iter().enumerate().map(|(number, event)| in_stream(number, event)).collect()
}

/// The message of an answer; it is done if there is more behind it, and then part of `output`.
fn text(spoken: &Spoken<'_>, output: &mut Vec<Value>) -> Vec<Value> {
    let item = |status: &str, content: Value| json!({ "type": "message", "id": "msg_scripted", "role": "assistant", "status": status, "content": content });
    let part = |text: &str| json!({ "type": "output_text", "text": text, "annotations": [] });
    let of_part = |kind: &str, name: &str, value: Value| {
        let mut event =
            json!({ "type": kind, "item_id": "msg_scripted", "output_index": 0, "content_index": 0 });
        event[name] = value;
        event
    };
    let mut events = vec![
        item_event("added", 0, &item("in_progress", json!([]))),
        of_part("response.content_part.added", "part", part("")),
    ];
    let deltas = spoken.text.iter().map(|piece| of_part("response.output_text.delta", "delta", json!(piece)));
    events.extend(deltas);
    if spoken.is_whole || !spoken.calls.is_empty() {
        let text = spoken.text.concat();
        let done = item("completed", json!([part(&text)]));
        events.extend([
            of_part("response.output_text.done", "text", json!(text)),
            of_part("response.content_part.done", "part", part(&text)),
            item_event("done", 0, &done),
        ]);
        output.push(done);
    }
    events
}

fn response(status: &str, output: &[Value]) -> Value {
    json!({ "id": "resp_scripted", "object": "response", "status": status, "output": output, "usage": null })
}

fn item_event(kind: &str, index: usize, item: &Value) -> Value {
    json!({ "type": format!("response.output_item.{kind}"), "output_index": index, "item": item })
}

/// The id of the item of a call, which is not that of the call.
fn item_id(call: &SpokenCall<'_>) -> String {
    format!("fc_{}", call.id)
}

fn call_item(call: &SpokenCall<'_>, status: &str, arguments: &str) -> Value {
    json!({ "type": "function_call", "id": item_id(call), "call_id": call.id, "name": call.name, "arguments": arguments,
        "status": status })
}

/// An event as OpenAI sends it, with the type as its name.
fn in_stream(number: usize, event: Value) -> String {
    let mut event = event;
    event["sequence_number"] = json!(number);
    let kind = event["type"].as_str().expect("an event has a type");
    format!("event: {kind}\ndata: {event}\n\n")
}

/// A request as one of chat completions: `messages` for `input`, and their form of `tools`; the rest as it is.
///
/// # Errors
/// Says what is no part of a request.
pub(super) fn as_chat(request: Value) -> Result<Value, String> {
    let mut request = request;
    let fields = request.as_object_mut().ok_or("a request that is no object")?;
    let Some(Value::Array(items)) = fields.remove("input") else {
        return Err("a request without a list of input items".to_owned());
    };
    let mut messages: Vec<Value> = Vec::new();
    for item in &items {
        match item["type"].as_str() {
            Some("message") => {
                messages.push(json!({ "role": item["role"], "content": content(&item["content"])? }));
            }
            Some("function_call") => {
                // It is part of the message that it stands behind.
                if messages.last().is_none_or(|last| last["role"] != "assistant") {
                    messages.push(json!({ "role": "assistant", "content": null }));
                }
                let last = messages.last_mut().expect("pushed just now");
                if last["tool_calls"].is_null() {
                    last["tool_calls"] = json!([]);
                }
                let function = json!({ "name": item["name"], "arguments": item["arguments"] });
                let call = json!({ "id": item["call_id"], "type": "function", "function": function });
                last["tool_calls"].as_array_mut().expect("an array").push(call);
            }
            Some("function_call_output") => messages
                .push(json!({ "role": "tool", "tool_call_id": item["call_id"], "content": item["output"] })),
            _ => return Err(format!("an item that is no message, call or output: {item}")),
        }
    }
    fields.insert("messages".to_owned(), Value::Array(messages));
    if let Some(Value::Array(tools)) = fields.get_mut("tools") {
        for tool in tools {
            *tool = json!({ "type": "function", "function": tool.take() });
        }
    }
    Ok(request)
}

fn content(content: &Value) -> Result<Value, String> {
    let Value::Array(parts) = content else { return Ok(content.clone()) };
    let part = |part: &Value| match part["type"].as_str() {
        Some("input_text") => Ok(json!({ "type": "text", "text": part["text"] })),
        Some("input_image") => {
            let image = json!({ "url": part["image_url"], "detail": part["detail"] });
            Ok(json!({ "type": "image_url", "image_url": image }))
        }
        _ => Err(format!("a part of no kind that is known: {part}")),
    };
    parts.iter().map(part).collect()
}
