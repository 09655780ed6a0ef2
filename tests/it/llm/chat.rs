//! Streams of chat completions.

use serde_json::{Value, json};

use super::Spoken;

/// The stream of an answer, event by event.
pub(super) fn events(spoken: &Spoken<'_>) -> Vec<String> {
    let mut deltas: Vec<Value> = spoken.text.iter().map(|piece| json!({ "content": piece })).collect();
    for group in spoken.groups() {
        for call in group {
            let function = json!({ "name": call.name, "arguments": "" });
            let begin =
                json!({ "index": call.index, "id": call.id, "type": "function", "function": function });
            deltas.push(json!({ "tool_calls": [begin] }));
        }
        for (call, character) in Spoken::in_turn(group) {
            let more = json!({ "index": call.index, "function": { "arguments": character } });
            deltas.push(json!({ "tool_calls": [more] }));
        }
    }
    let mut events: Vec<_> = deltas.into_iter().map(|delta| choice(&delta, Value::Null)).collect();
    if spoken.is_whole {
        let finish = if spoken.calls.is_empty() { "stop" } else { "tool_calls" };
        events.push(choice(&json!({}), finish.into()));
        let usage = json!({ "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 });
        events.push(event(&json!({ "choices": [], "usage": usage }).to_string()));
        events.push(event("[DONE]"));
    }
    events
}

fn choice(delta: &Value, finish: Value) -> String {
    event(&json!({ "choices": [{ "index": 0, "delta": delta, "finish_reason": finish }] }).to_string())
}

fn event(data: &str) -> String {
    format!("data: {data}\n\n")
}
