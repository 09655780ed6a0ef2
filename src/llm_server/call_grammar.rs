//! Grammars that restrict a model to a function call.
//!
//! # Source
//! GBNF, the notation of llama.cpp's `grammars/README.md`; schemas as JSON Schema, of which tools use a small part.

use std::fmt::Write as _;

use serde_json::Value;

use super::call_parser::{CLOSING, OPENING};

/// Most levels of nested objects and arrays; below them any scalar is allowed.
const DEPTH_MAX: usize = 6;

/// Rules of every grammar. A string has no `<`, so that it cannot hold a tag. Every rule has a maximal length, because
/// a small model fills the rest of the answer with an unbounded string.
const BASE: &str = r#"
string ::= "\"" char{0,80} "\""
char ::= [^"\\<\x00-\x1F\x7F] | "\\" ["\\/bfnrt]
integer ::= "-"? ("0" | [1-9] [0-9]{0,8})
number ::= integer ("." [0-9]{1,6})?
boolean ::= "true" | "false"
null ::= "null"
scalar ::= string | number | boolean | null
object ::= "{" (string ": " scalar (", " string ": " scalar){0,7})? "}"
"#;

/// Returns a grammar of exactly one call of one of `functions`, which are pairs of a name and the schema of the
/// arguments.
pub(super) fn call_grammar<'a>(functions: impl IntoIterator<Item = (&'a str, Option<&'a Value>)>) -> String {
    let mut grammar = Grammar { rules: BASE.trim_start().to_owned(), count: 0 };
    let calls = functions.into_iter().map(|(name, schema)| {
        let arguments = match schema {
            Some(schema) => grammar.object(schema, 0),
            None => literal("{}"),
        };
        let head = format!("{{\"name\": {}, \"arguments\": ", Value::from(name));
        grammar.rule(&format!("{} {arguments} {}", literal(&head), literal("}")))
    });
    let calls = calls.collect::<Vec<_>>().join(" | ");
    let (opening, closing) = (literal(&format!("{OPENING}\n")), literal(&format!("\n{CLOSING}")));
    format!("root ::= {opening} ({calls}) {closing}\n{}", grammar.rules)
}

struct Grammar {
    rules: String,
    count: usize,
}

impl Grammar {
    /// Adds a rule; returns its name.
    fn rule(&mut self, body: &str) -> String {
        self.count += 1;
        let name = format!("r{}", self.count);
        writeln!(self.rules, "{name} ::= {body}").expect("a string takes everything");
        name
    }

    /// Returns the part of a rule that matches `schema`: the name of a rule, or a literal.
    fn value(&mut self, schema: &Value, depth: usize) -> String {
        if let Some(options) = schema["enum"].as_array().filter(|options| !options.is_empty()) {
            let options: Vec<_> = options.iter().map(|option| literal(&option.to_string())).collect();
            return self.rule(&options.join(" | "));
        }
        if let Some(value) = schema.get("const") {
            return literal(&value.to_string());
        }
        for name in ["anyOf", "oneOf"] {
            if let Some(options) = schema[name].as_array().filter(|options| !options.is_empty()) {
                let options: Vec<_> = options.iter().map(|option| self.value(option, depth + 1)).collect();
                return self.rule(&options.join(" | "));
            }
        }
        let kinds: Vec<&str> = match &schema["type"] {
            Value::String(kind) => vec![kind],
            Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
            _ if schema["properties"].is_object() => vec!["object"],
            _ => Vec::new(),
        };
        let kinds: Vec<_> = kinds.into_iter().map(|kind| self.kind(kind, schema, depth)).collect();
        match kinds.as_slice() {
            [] => "scalar".to_owned(),
            [kind] => kind.clone(),
            kinds => self.rule(&kinds.join(" | ")),
        }
    }

    fn kind(&mut self, kind: &str, schema: &Value, depth: usize) -> String {
        match kind {
            "string" | "integer" | "number" | "boolean" | "null" => kind.to_owned(),
            "object" if depth < DEPTH_MAX => self.object(schema, depth),
            "array" if depth < DEPTH_MAX => {
                let item = self.value(&schema["items"], depth + 1);
                self.rule(&format!(r#""[" ({item} (", " {item}){{0,7}})? "]""#))
            }
            _ => "scalar".to_owned(),
        }
    }

    /// Returns an object: the required properties in the order of the schema, then the optional ones.
    fn object(&mut self, schema: &Value, depth: usize) -> String {
        let Some(properties) = schema["properties"].as_object() else {
            let is_closed = schema["additionalProperties"] == false || depth == 0;
            return if is_closed { literal("{}") } else { "object".to_owned() };
        };
        let is_required =
            |name: &str| schema["required"].as_array().is_some_and(|names| names.iter().any(|it| it == name));
        let (mut required, mut optional) = (Vec::new(), Vec::new());
        for (name, schema) in properties {
            let value = self.value(schema, depth + 1);
            let property =
                self.rule(&format!("{} {value}", literal(&format!("{}: ", Value::from(name.as_str())))));
            if is_required(name) { &mut required } else { &mut optional }.push(property);
        }
        // Any selection of the optional properties, in their order, each after a comma.
        let (mut tail, mut beginnings) = (String::new(), Vec::new());
        for property in optional.iter().rev() {
            beginnings.push(format!("{property} {tail}").trim_end().to_owned());
            tail = self.rule(format!(r#"(", " {property})? {tail}"#).trim_end());
        }
        let inside = match (required.is_empty(), beginnings.is_empty()) {
            (true, true) => return literal("{}"),
            (true, false) => format!("({})?", beginnings.join(" | ")),
            (false, _) => format!("{} {tail}", required.join(r#" ", " "#)),
        };
        self.rule(&format!(r#""{{" {} "}}""#, inside.trim_end()))
    }
}

/// Quotes `text` as a literal of the notation.
fn literal(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// Returns the grammar's own rules, without the base.
    fn rules(functions: &[(&str, Option<&Value>)]) -> Vec<String> {
        let grammar = call_grammar(functions.iter().copied());
        grammar.lines().filter(|line| !BASE.contains(line)).map(str::to_owned).collect()
    }

    #[test]
    fn a_function_without_parameters() {
        assert_eq!(
            rules(&[("f", None), ("g", Some(&json!({"type": "object"})))]),
            [
                r#"root ::= "<tool_call>\n" (r1 | r2) "\n</tool_call>""#,
                r#"r1 ::= "{\"name\": \"f\", \"arguments\": " "{}" "}""#,
                r#"r2 ::= "{\"name\": \"g\", \"arguments\": " "{}" "}""#,
            ]
        );
    }

    #[test]
    fn what_must_be_and_what_may_be() {
        let schema = json!({
            "type": "object",
            "properties": {
                "a": {"type": "string"},
                "b": {"enum": ["x \"y\"", 2]},
                "c": {"type": ["integer", "null"]},
                "d": {"type": "array", "items": {"type": "boolean"}},
            },
            "required": ["b"],
        });
        assert_eq!(
            rules(&[("f", Some(&schema))]),
            [
                r#"root ::= "<tool_call>\n" (r12) "\n</tool_call>""#,
                r#"r1 ::= "\"a\": " string"#,
                r#"r2 ::= "\"x \\\"y\\\"\"" | "2""#,
                r#"r3 ::= "\"b\": " r2"#,
                r#"r4 ::= integer | null"#,
                r#"r5 ::= "\"c\": " r4"#,
                r#"r6 ::= "[" (boolean (", " boolean){0,7})? "]""#,
                r#"r7 ::= "\"d\": " r6"#,
                r#"r8 ::= (", " r7)?"#,
                r#"r9 ::= (", " r5)? r8"#,
                r#"r10 ::= (", " r1)? r9"#,
                r#"r11 ::= "{" r3 r10 "}""#,
                r#"r12 ::= "{\"name\": \"f\", \"arguments\": " r11 "}""#,
            ]
        );
        let optional = json!({"properties": {"a": {"type": "string"}, "b": {"type": "null"}}});
        assert_eq!(
            rules(&[("f", Some(&optional))])[1..6],
            [
                r#"r1 ::= "\"a\": " string"#,
                r#"r2 ::= "\"b\": " null"#,
                r#"r3 ::= (", " r2)?"#,
                r#"r4 ::= (", " r1)? r3"#,
                r#"r5 ::= "{" (r2 | r1 r3)? "}""#,
            ]
        );
    }
}
