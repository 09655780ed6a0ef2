//! Tests only: `hw-profiles/schema.json` agrees with the parser.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use super::{METRICS, Profile, STATISTICS};

const GENERIC: &str = include_str!("../../hw-profiles/generic-cpu.toml");

fn schema() -> Value {
    serde_json::from_str(include_str!("../../hw-profiles/schema.json")).expect("JSON")
}

fn accepts(text: &str) -> bool {
    Profile::parse(text, Path::new("x.toml")).is_ok()
}

/// Returns the parser's keys in the table `header`, taken from the parser's error about an unknown key.
fn keys_of_parser(header: &str) -> BTreeSet<String> {
    let text = match header {
        "" => format!("no_such_key = 1\n{GENERIC}"),
        _ if GENERIC.contains(&format!("[{header}]")) => {
            GENERIC.replace(&format!("[{header}]"), &format!("[{header}]\nno_such_key = 1"))
        }
        _ => format!("{GENERIC}\n[{header}]\nno_such_key = 1"),
    };
    let error = Profile::parse(&text, Path::new("x.toml")).expect_err("no such key").to_string();
    let (_, known) = error.split_once(", expected ").unwrap_or_else(|| panic!("{error}"));
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_schema_has_every_key_of_the_parser_and_no_other() {
    let schema = schema();
    for (header, pointer) in [
        ("", ""),
        ("meta", "/properties/meta"),
        ("machine", "/properties/machine"),
        ("plan", "/properties/plan"),
        ("plan.nice", "/properties/plan/properties/nice"),
    ] {
        let section = schema.pointer(pointer).expect("a section of the schema");
        let keys =
            section["properties"].as_object().expect("an object").keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys, keys_of_parser(header), "[{header}]");
        assert_eq!(section["additionalProperties"], Value::Bool(false), "[{header}]");
    }
    let names = |pointer: &str| schema.pointer(pointer).and_then(Value::as_object).expect("patterns").clone();
    let (metrics, statistics) = (METRICS.join("|"), STATISTICS.join("|"));
    assert!(
        names("/properties/budget/patternProperties")
            .contains_key(&format!("^({metrics})_ms_({statistics})$"))
    );
    let evidence = &names("/properties/evidence/patternProperties")[&format!("^({metrics})$")];
    let keys: BTreeSet<_> = evidence["properties"].as_object().expect("an object").keys().cloned().collect();
    assert_eq!(keys, keys_of_parser("evidence.ttfa"));
}

/// Each key of the machine accepts the types of the schema, and no others.
#[test]
fn the_schema_has_the_types_of_the_machine() {
    let schema = schema();
    let machine = |key: &str, value: &str| accepts(&format!("{GENERIC}\n[machine]\n{key} = {value}\n"));
    for (key, rule) in schema["properties"]["machine"]["properties"].as_object().expect("an object") {
        let (is_text, is_number) = (rule["type"] == "string", rule["type"] == "integer");
        assert_eq!(machine(key, "\"x\""), is_text, "{key}");
        assert_eq!((rule["pattern"] == "\\S", machine(key, "\" \"")), (is_text, false), "{key}");
        assert_eq!(machine(key, "0"), is_number, "{key}");
        if is_number {
            assert_eq!(rule["minimum"], 0, "{key}");
            assert!(!machine(key, "-1"), "{key}");
            assert_eq!(machine(key, "65536"), rule["maximum"].is_null(), "{key}");
            assert!(rule["maximum"].is_null() || rule["maximum"] == 65_535, "{key}");
        }
        assert_eq!(machine(key, "[]"), rule["type"] == "array", "{key}");
    }
}

/// Returns the parser's words, taken from the parser's error about an unknown word.
fn words_of_parser(text: &str) -> Vec<String> {
    let error = Profile::parse(text, Path::new("x.toml")).expect_err("no such word").to_string();
    let (_, known) = error.split_once("`no_such_word`, expected ").unwrap_or_else(|| panic!("{error}"));
    known.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn the_schema_has_the_words_of_the_parser() {
    let schema = schema();
    for (pointer, text) in [
        ("/properties/meta/properties/status", GENERIC.replace("\"draft\"", "\"no_such_word\"")),
        ("/properties/plan/properties/execution_provider", GENERIC.replace("\"cpu\"", "\"no_such_word\"")),
        (
            "/properties/machine/properties/isa/items",
            format!("{GENERIC}\n[machine]\nisa = [\"no_such_word\"]\n"),
        ),
    ] {
        let words = schema.pointer(pointer).expect("a rule")["enum"].as_array().expect("a list");
        assert_eq!(*words, words_of_parser(&text), "{pointer}");
    }
}

/// The schema requires evidence for a promise; the parser also requires the metric of the promise.
#[test]
fn the_schema_wants_evidence_where_the_parser_does() {
    let schema = schema();
    let [of_status, of_budget] = schema["allOf"].as_array().expect("two rules").as_slice() else {
        panic!("{}", schema["allOf"]);
    };
    for rule in [of_status, of_budget] {
        let not_empty = json!({ "evidence": { "minProperties": 1 } });
        let evidence = json!({ "required": ["evidence"], "properties": not_empty });
        assert_eq!(rule["then"], evidence);
    }
    let statuses = &of_status["if"]["properties"]["meta"]["properties"]["status"]["enum"];
    for status in ["draft", "measured", "verified"] {
        let without = accepts(&GENERIC.replace("\"draft\"", &format!("\"{status}\"")));
        assert_eq!(!without, statuses.as_array().expect("a list").contains(&status.into()), "{status}");
    }
    let expected = json!({ "required": ["budget"], "properties": { "budget": { "minProperties": 1 } } });
    assert_eq!(of_budget["if"], expected);
    let evidence = "[evidence]\nstt = { result = 'x', n = 1 }\n";
    for (text, accepted) in [
        ("[budget]\n".to_owned(), true),
        ("[budget]\nstt_ms_p50 = 1\n".to_owned(), false),
        (format!("[budget]\nstt_ms_p50 = 1\n{evidence}"), true),
    ] {
        assert_eq!(accepts(&format!("{GENERIC}\n{text}")), accepted, "{text}");
    }
}

/// Each end of each range is accepted, and the numbers beyond are refused.
#[test]
fn the_schema_has_the_ranges_of_the_parser() {
    let mut ranges = 0;
    let schema = schema();
    for pointer in ["/properties/plan", "/properties/plan/properties/nice"] {
        for (key, rule) in
            schema.pointer(pointer).expect("a section")["properties"].as_object().expect("an object")
        {
            let number = rule.get("oneOf").map_or(rule, |either| &either[0]);
            let Some((low, high)) = number["minimum"].as_i64().zip(number["maximum"].as_i64()) else {
                continue;
            };
            let line = GENERIC
                .lines()
                .find(|line| line.starts_with(&format!("{key} = ")))
                .expect("every key is set");
            let with = |value: i64| GENERIC.replace(line, &format!("{key} = {value}"));
            assert!(accepts(&with(low)) && accepts(&with(high)), "{key}: {low}..={high}");
            assert!(!accepts(&with(low - 1)) && !accepts(&with(high + 1)), "{key}: {low}..={high}");
            let auto = accepts(&GENERIC.replace(line, &format!("{key} = \"auto\"")));
            assert_eq!(auto, rule.get("oneOf").is_some(), "{key}: auto");
            ranges += 1;
        }
    }
    assert_eq!(ranges, 14, "nine of the plan, five of the niceness");
}

#[test]
fn the_schema_requires_what_the_parser_requires() {
    let schema = schema();
    for (pointer, header) in [("/properties/plan", "plan"), ("/properties/meta", "meta")] {
        let section = schema.pointer(pointer).expect("a section");
        let required: Vec<_> =
            section["required"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        for key in section["properties"].as_object().expect("an object").keys() {
            let Some(line) = GENERIC.lines().find(|line| line.starts_with(&format!("{key} = "))) else {
                continue;
            };
            let without = accepts(&GENERIC.replace(line, ""));
            assert_eq!(without, !required.contains(&key.as_str()), "[{header}] {key}");
        }
    }
}
