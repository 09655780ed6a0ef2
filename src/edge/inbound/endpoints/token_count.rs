//! Tokens of a call that was passed on, read from the end of its answer.

use std::sync::Arc;

use serde_json::Value;

use crate::edge::inbound::shared::Shared;

/// Bytes at the end of an answer that are searched: the usage follows the text.
const TAIL_BYTES: usize = 64 * 1_024;

/// Count of an answer's tokens. The drop adds the count to the roster: the answer has ended, or its reader has gone.
pub(super) struct TokenCount {
    shared: Arc<Shared>,
    tail: Vec<u8>,
}

impl TokenCount {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, tail: Vec::new() }
    }

    /// Takes the next piece of the answer. Only the end of the answer is kept.
    pub(super) fn look_at(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        if self.tail.len() > 2 * TAIL_BYTES {
            self.tail.drain(..self.tail.len() - TAIL_BYTES);
        }
    }
}

impl Drop for TokenCount {
    fn drop(&mut self) {
        if let Some((input, output)) = tokens(&self.tail) {
            self.shared.roster.count_proxied_tokens(input, output);
        }
    }
}

/// Finds the tokens of prompt and completion: the last `usage` that is an object, in JSON or in events of JSON. Within
/// a string the quotes would be escaped.
fn tokens(tail: &[u8]) -> Option<(u64, u64)> {
    const NAME: &[u8] = b"\"usage\":";
    let starts = tail.windows(NAME.len()).enumerate().filter(|(_, window)| *window == NAME);
    let usages = starts.map(|(at, _)| &tail[at + NAME.len()..]);
    let parse = |rest| serde_json::Deserializer::from_slice(rest).into_iter::<Value>().next()?.ok();
    let usage = usages.filter_map(parse).rfind(Value::is_object)?;
    let count = |names: [&str; 2]| names.iter().find_map(|name| usage.get(name)?.as_u64()).unwrap_or(0);
    Some((count(["prompt_tokens", "input_tokens"]), count(["completion_tokens", "output_tokens"])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_is_found_wherever_it_stands() {
        for (answer, expected) in [
            (r#"{"choices": [], "usage":{"prompt_tokens":14,"completion_tokens":6}}"#, Some((14, 6))),
            (
                r#"{"output": [], "usage": {"input_tokens": 21, "output_tokens": 8}, "store": false}"#,
                Some((21, 8)),
            ),
            (
                "data: {\"usage\":null}\r\n\r\ndata: {\"usage\":{\"prompt_tokens\":11,\"completion_tokens\":5}}\r\n\r\ndata: [DONE]\r\n\r\n",
                Some((11, 5)),
            ),
            (r#"{"text": "\"usage\":{\"prompt_tokens\":9}", "usage":null}"#, None),
            (r#"{"usage":{"prompt_tokens":1"#, None),
            ("", None),
        ] {
            assert_eq!(tokens(answer.as_bytes()), expected, "{answer}");
        }
    }
}
