//! Parser of the function calls in the answer of a model.
//!
//! Models write `<tool_call>{"name": …, "arguments": {…}}</tool_call>`, or nearly that. The rules:
//!
//! - The content between the tags is one JSON object, several, or an array of them. This content never becomes text:
//!   anything but a call of one of the request's functions is dropped. The end of the answer, or the next opening tag,
//!   also closes the tag.
//! - A code fence around tags, or around the JSON of a call, belongs to the call.
//! - Without tags, JSON that begins the answer or a code fence is a call if it has a `name` and `arguments` (or
//!   `parameters`). Invalid JSON with a `"name"` in it is a broken call and is dropped. Everything else is text.
//! - White space after a call, and at the beginning of the answer, is dropped.

use serde::de::IgnoredAny;
use serde_json::{Map, Value};

/// Tag that the prompt requests before a call; ASCII case is ignored when an answer is read.
pub(super) const OPENING: &str = "<tool_call>";

/// Tag that the prompt requests after a call.
pub(super) const CLOSING: &str = "</tool_call>";

const FENCE: &str = "```";

/// A part of the answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedPart {
    /// Text to be spoken; not empty.
    Text(String),
    /// A whole call.
    Call {
        /// Name of a function of the request.
        name: String,
        /// Arguments, a JSON object.
        arguments: String,
    },
}

/// Separates calls from text in an answer that comes in pieces.
#[derive(Debug)]
pub(super) struct CallParser {
    /// Names of the functions that may be called.
    functions: Vec<String>,
    /// Number of calls that may still be made; calls beyond them are dropped.
    left: usize,
    /// Part of the answer that is read and not yet decided to be text or a call.
    held: String,
    state: State,
    /// True while a code fence around a tag is open.
    fenced: bool,
    /// True while white space is skipped.
    trims: bool,
    /// True once the answer has text other than white space.
    has_text: bool,
}

/// Kind of the content of `held`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Text, possibly with the beginning of a tag or fence at its end.
    Text,
    /// The content after an opening tag.
    Tag,
    /// A code fence and the content after it.
    Fence,
    /// JSON that begins the answer.
    Json,
}

/// Progress of one step of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// The beginning of `held` is decided and has been removed, or the state has changed.
    Told,
    /// More of the answer is required.
    Open,
}

impl CallParser {
    /// Creates a parser that returns the first `calls_max` calls of `functions`.
    pub(super) fn new(functions: Vec<String>, calls_max: usize) -> Self {
        let held = String::new();
        Self {
            functions,
            left: calls_max,
            held,
            state: State::Text,
            fenced: false,
            trims: true,
            has_text: false,
        }
    }

    /// Reads `piece` and appends to `parts` all that is decided.
    pub(super) fn feed(&mut self, piece: &str, parts: &mut Vec<ParsedPart>) {
        self.held.push_str(piece);
        self.read(false, parts);
    }

    /// Appends the rest of the answer to `parts`, at its end.
    pub(super) fn finish(&mut self, parts: &mut Vec<ParsedPart>) {
        self.read(true, parts);
    }

    fn read(&mut self, is_end: bool, parts: &mut Vec<ParsedPart>) {
        while !self.held.is_empty() {
            let reading = match self.state {
                State::Text => self.read_text(is_end, parts),
                State::Tag => self.read_tag(is_end, parts),
                State::Fence => self.read_fence(is_end, parts),
                State::Json => self.read_json(is_end, parts),
            };
            if reading == Reading::Open {
                return;
            }
        }
    }

    fn read_text(&mut self, is_end: bool, parts: &mut Vec<ParsedPart>) -> Reading {
        if !self.has_text && self.held.trim_start().starts_with(['{', '[']) {
            self.state = State::Json;
            return Reading::Told;
        }
        const MARKS: [(&str, State); 3] =
            [(OPENING, State::Tag), (CLOSING, State::Text), (FENCE, State::Fence)];
        let found =
            MARKS.into_iter().filter_map(|(mark, state)| Some((find(&self.held, mark)?, mark, state)));
        let Some((at, mark, state)) = found.min_by_key(|(at, ..)| *at) else {
            let kept = MARKS.into_iter().map(|(mark, _)| overlap(&self.held, mark)).max().unwrap_or(0);
            let kept = if is_end { 0 } else { kept };
            let text = self.take(self.held.len() - kept);
            self.say(&text, parts);
            return if kept == 0 { Reading::Told } else { Reading::Open };
        };
        let text = self.take(at);
        self.say(&text, parts);
        if mark != FENCE {
            self.take(mark.len());
            self.trims = true;
            self.state = state;
        } else if std::mem::take(&mut self.fenced) {
            self.take(mark.len());
        } else {
            self.state = state;
        }
        Reading::Told
    }

    fn read_tag(&mut self, is_end: bool, parts: &mut Vec<ParsedPart>) -> Reading {
        let (end, mark, next) = match (find(&self.held, CLOSING), find(&self.held, OPENING)) {
            (Some(closing), opening) if opening.is_none_or(|opening| closing < opening) => {
                (closing, CLOSING.len(), State::Text)
            }
            (_, Some(opening)) => (opening, OPENING.len(), State::Tag),
            // The content may end with a piece of the closing tag, which does no harm after the JSON.
            (_, None) if is_end => (self.held.len(), 0, State::Text),
            (_, None) => return Reading::Open,
        };
        let content = self.take(end);
        self.take(mark);
        self.push(calls(&content, true), parts);
        self.state = next;
        Reading::Told
    }

    fn read_fence(&mut self, is_end: bool, parts: &mut Vec<ParsedPart>) -> Reading {
        let inside = &self.held[FENCE.len()..];
        let body = after_language(inside);
        let begin = self.held.len() - body.len();
        if find(body, OPENING) == Some(0) {
            // The tag determines the end of the call; the end of the fence is removed there.
            self.take(begin);
            self.fenced = true;
            self.state = State::Text;
            return Reading::Told;
        }
        if !is_end && overlap(body, OPENING) == body.len() {
            return Reading::Open;
        }
        if !body.starts_with(['{', '[']) {
            let fence = self.take(FENCE.len());
            self.say(&fence, parts);
            self.state = State::Text;
            return Reading::Told;
        }
        let (end, mark) = match body.find(FENCE) {
            Some(end) => (begin + end, FENCE.len()),
            None if is_end => (self.held.len(), 0),
            None => return Reading::Open,
        };
        let content = self.held[begin..end].to_owned();
        let whole = self.take(end + mark);
        self.tell(&content, &whole, parts);
        Reading::Told
    }

    fn read_json(&mut self, is_end: bool, parts: &mut Vec<ParsedPart>) -> Reading {
        let content = match json_extent(&self.held) {
            Extent::To(end) => self.take(end),
            Extent::Open if is_end => self.take(self.held.len()),
            Extent::Open => return Reading::Open,
            Extent::None => {
                let bracket = self.held.len() - self.held.trim_start().len() + 1;
                let text = self.take(bracket);
                self.say(&text, parts);
                self.state = State::Text;
                return Reading::Told;
            }
        };
        self.tell(&content, &content, parts);
        Reading::Told
    }

    /// Classifies JSON without a tag as a call, a broken call or text. `whole` is the JSON with its fence.
    fn tell(&mut self, content: &str, whole: &str, parts: &mut Vec<ParsedPart>) {
        self.state = State::Text;
        let calls = calls(content, false);
        let is_broken_call =
            content.contains("\"name\"") && serde_json::from_str::<IgnoredAny>(content).is_err();
        if calls.is_empty() && !is_broken_call {
            self.say(whole, parts);
        } else {
            self.push(calls, parts);
        }
    }

    fn push(&mut self, calls: Vec<(String, String)>, parts: &mut Vec<ParsedPart>) {
        self.trims = true;
        for (name, arguments) in calls {
            if self.functions.contains(&name) {
                if let Some(left) = self.left.checked_sub(1) {
                    self.left = left;
                    parts.push(ParsedPart::Call { name, arguments });
                }
            } else {
                tracing::debug!(name, "the model calls a function that it does not have");
            }
        }
    }

    fn say(&mut self, text: &str, parts: &mut Vec<ParsedPart>) {
        let text = if self.trims { text.trim_start() } else { text };
        if text.is_empty() {
            return;
        }
        if !text.trim_start().is_empty() {
            self.trims = false;
            self.has_text = true;
        }
        match parts.last_mut() {
            Some(ParsedPart::Text(before)) => before.push_str(text),
            _ => parts.push(ParsedPart::Text(text.to_owned())),
        }
    }

    fn take(&mut self, bytes: usize) -> String {
        let rest = self.held.split_off(bytes);
        std::mem::replace(&mut self.held, rest)
    }
}

/// Returns the position of `mark`, which is ASCII, in `text`.
fn find(text: &str, mark: &str) -> Option<usize> {
    text.as_bytes().windows(mark.len()).position(|window| window.eq_ignore_ascii_case(mark.as_bytes()))
}

/// Returns the number of bytes at the end of `text` that may be the beginning of `mark`.
fn overlap(text: &str, mark: &str) -> usize {
    let (text, mark) = (text.as_bytes(), mark.as_bytes());
    let lengths = (1..mark.len().min(text.len() + 1)).rev();
    lengths
        .into_iter()
        .find(|&length| text[text.len() - length..].eq_ignore_ascii_case(&mark[..length]))
        .unwrap_or(0)
}

/// Returns the rest of `text` after the name of a language and white space.
fn after_language(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_alphanumeric() || c == '_').trim_start()
}

/// End of a JSON value.
#[derive(Debug, PartialEq, Eq)]
enum Extent {
    /// Number of bytes of the value.
    To(usize),
    /// The value ends beyond the text.
    Open,
    /// No call begins like this.
    None,
}

/// Returns the extent of the object, or array of objects, that `text` begins with.
fn json_extent(text: &str) -> Extent {
    let start = text.trim_start();
    let object = start.strip_prefix('[').map_or(start, str::trim_start);
    match object.strip_prefix('{').map(str::trim_start) {
        Some(inside) if inside.is_empty() || inside.starts_with('"') => {}
        None if object.is_empty() => {}
        Some(_) | None => return Extent::None,
    }
    let (mut depth, mut in_string, mut escaped) = (0_usize, false, false);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            _ if std::mem::take(&mut escaped) => {}
            b'\\' => escaped = in_string,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return Extent::To(at + 1);
                }
            }
            _ => {}
        }
    }
    Extent::Open
}

/// Returns the calls in consecutive JSON values, up to the first invalid one.
fn calls(content: &str, has_tag: bool) -> Vec<(String, String)> {
    let content = content.trim();
    let content = content.strip_prefix(FENCE).map_or(content, after_language);
    let values = serde_json::Deserializer::from_str(content).into_iter::<Value>().map_while(Result::ok);
    let objects = values.flat_map(|value| match value {
        Value::Array(values) => values,
        value => vec![value],
    });
    objects.filter_map(|object| call(object.as_object()?, has_tag)).collect()
}

/// Returns the name and arguments of a call; without a tag the object must have both.
fn call(object: &Map<String, Value>, has_tag: bool) -> Option<(String, String)> {
    if let Some(Value::Object(function)) = object.get("function") {
        return call(function, has_tag);
    }
    let name = object.get("name").or_else(|| object.get("function"))?.as_str()?;
    let arguments = match object.get("arguments").or_else(|| object.get("parameters")) {
        None if !has_tag => return None,
        None | Some(Value::Null) => "{}".to_owned(),
        Some(Value::String(json)) if json.trim().is_empty() => "{}".to_owned(),
        Some(Value::String(json)) => {
            serde_json::from_str::<Map<String, Value>>(json).ok()?;
            json.clone()
        }
        Some(arguments) => arguments.as_object().is_some().then(|| arguments.to_string())?,
    };
    Some((name.to_owned(), arguments))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the parts of an answer in these pieces: text as it is, calls as `name(arguments)` in angle quotes.
    fn read<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
        read_up_to(usize::MAX, pieces)
    }

    fn read_up_to<'a>(calls_max: usize, pieces: impl IntoIterator<Item = &'a str>) -> String {
        let mut parser = CallParser::new(vec!["f".to_owned(), "g".to_owned()], calls_max);
        let mut parts = Vec::new();
        for piece in pieces {
            parser.feed(piece, &mut parts);
        }
        parser.finish(&mut parts);
        let written = parts.into_iter().map(|part| match part {
            ParsedPart::Text(text) => text,
            ParsedPart::Call { name, arguments } => format!("«{name}({arguments})»"),
        });
        written.collect()
    }

    /// Checks the answer whole, cut at every character, and character by character.
    fn check(written: &str, expected: &str) {
        assert_eq!(read([written]), expected, "{written:?} whole");
        for (cut, _) in written.char_indices() {
            assert_eq!(read([&written[..cut], &written[cut..]]), expected, "{written:?} cut at {cut}");
        }
        let characters = written.char_indices().map(|(at, c)| &written[at..at + c.len_utf8()]);
        assert_eq!(read(characters), expected, "{written:?} by characters");
    }

    #[test]
    fn where_one_call_may_be_made_the_first_is() {
        let two = "<tool_call>[{\"name\":\"f\"},{\"name\":\"g\"}]</tool_call> and <tool_call>{\"name\":\"f\"}</tool_call>";
        assert_eq!(read([two]), "«f({})»«g({})»and «f({})»");
        assert_eq!(read_up_to(1, [two]), "«f({})»and ");
    }

    #[test]
    fn a_call_as_it_is_asked_for() {
        check(
            "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"q\": \"é <b> }\"}}\n</tool_call>",
            "«f({\"q\":\"é <b> }\"})»",
        );
        check(
            "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>\n<tool_call>{\"name\":\"g\"}</tool_call>",
            "«f({})»«g({})»",
        );
        check(
            "<TOOL_CALL>[{\"name\":\"f\",\"arguments\":null},{\"name\":\"g\",\"arguments\":{\"x\":[1]}}]</Tool_Call>",
            "«f({})»«g({\"x\":[1]})»",
        );
    }

    #[test]
    fn text_before_and_after_a_call() {
        let call = "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call>";
        check(&format!("I'll look. {call}\n\nDone, 1 < 2."), "I'll look. «f({})»Done, 1 < 2.");
        check(&format!("\n {call}"), "«f({})»");
        check(&format!("{call}{call}"), "«f({})»«f({})»");
    }

    #[test]
    fn what_is_missing_or_wrapped() {
        check("<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1}}", "«f({\"x\":1})»");
        check("<tool_call>{\"name\":\"f\",\"arguments\":{\"x\":1}}</tool_", "«f({\"x\":1})»");
        check("<tool_call>{\"name\":\"f\"}<tool_call>{\"name\":\"g\"}</tool_call>", "«f({})»«g({})»");
        check("{\"name\":\"f\",\"arguments\":{}}</tool_call>", "«f({})»");
        check("```json\n{\"name\": \"f\", \"parameters\": {\"x\": 1}}\n```\nSo.", "«f({\"x\":1})»So.");
        check("```\n<tool_call>{\"name\":\"f\"}</tool_call>\n```", "«f({})»");
        check("Here: ```tool_call\n<tool_call>{\"name\":\"f\"}</tool_call>``` ok", "Here: «f({})»ok");
        check("<tool_call>```json\n{\"name\":\"f\"}\n```</tool_call>", "«f({})»");
        check(
            " {\"name\": \"f\", \"arguments\": {}}\n{\"name\": \"g\", \"arguments\": {}}",
            "«f({})»«g({})»",
        );
        check(
            "[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{\\\"x\\\": 1}\"}}]",
            "«f({\"x\": 1})»",
        );
        check("<tool_call>{\"name\":\"f\",\"arguments\":\"\"}</tool_call>", "«f({})»");
    }

    #[test]
    fn a_call_gone_wrong_is_never_text() {
        for written in [
            "<tool_call>I would call f now</tool_call>",
            "<tool_call>{\"name\": \"f\", \"arguments\": {\"x\":",
            "<tool_call>{\"name\": \"no_such_function\", \"arguments\": {}}</tool_call>",
            "<tool_call>{\"name\": \"f\", \"arguments\": \"Paris\"}</tool_call>",
            "<tool_call>{\"arguments\": {}}</tool_call>",
            "<tool_call></tool_call>",
            "<tool_call>",
            "</tool_call>",
            "{\"name\": \"f\", \"arguments\": {\"x\":",
            "```json\n{\"name\": \"f\", \"arguments\": {x: 1}}\n```",
            "{\"name\": \"no_such_function\", \"arguments\": {}}",
        ] {
            check(written, "");
        }
        check("<tool_call>{]</tool_call>Sorry.", "Sorry.");
    }

    #[test]
    fn everything_else_is_text() {
        for text in [
            "Hello there.",
            "1 < 2, <tool> and <tool_ call>",
            "{\"name\": \"Bob\", \"age\": 3}",
            "{\"x\":",
            "[laughs] Hello",
            "{curly} and [square]",
            "In Rust: ```rust\nfn main() {}\n``` That is all.",
            "```json\n{\"x\": 1}\n```",
            "a ` b `` c",
            "Well, {\"name\": \"f\", \"arguments\": {}} would be it.",
            "```",
            "",
        ] {
            check(text, text);
        }
    }
}
