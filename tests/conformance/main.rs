//! Wire behaviour of a session, without a socket: scripted dialogues and random ones, both read by a strict
//! client.
//!
//! [`url`] plays what it can of the cases over a socket, against any server, and the dialogues of `live/`, which need a model:
//! `ANTIPHON_URL=ws://… cargo test --release --test conformance socket`.
//!
//! A case is a file of JSON lines in `cases/`; [`script`] says what a line may be. Every event that a session
//! sends, in cases and in random dialogues, goes through [`strict_client::StrictClient`]. Set
//! `ANTIPHON_EVENTS_OUT=FILE` to have the events of all cases written to a file, one a line, to check them
//! against other people's types.

mod answer_rules;
mod bench;
mod faithful;
mod names;
mod random;
mod script;
mod strict_client;
mod url;

use std::path::{Path, PathBuf};

/// The one way in which cases are checked.
fn check(case: &Path, events: &mut Vec<String>) -> Result<(), String> {
    let text = std::fs::read_to_string(case).map_err(|error| error.to_string())?;
    script::play(&text, events).map_err(|error| format!("{}: {error}", case.display()))
}

/// The dialogues of a folder, in the order of their names.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance").join(folder);
    let mut files: Vec<_> = std::fs::read_dir(folder)
        .expect("a folder of this test")
        .map(|entry| entry.expect("readable").path())
        .collect();
    files.sort();
    files
}

#[test]
fn every_case_holds() {
    let cases = files("cases");
    assert!(cases.len() >= 15, "found {} cases", cases.len());
    let mut events = Vec::new();
    let failures: Vec<_> = cases.iter().filter_map(|case| check(case, &mut events).err()).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    if let Ok(file) = std::env::var("ANTIPHON_EVENTS_OUT") {
        std::fs::write(file, events.join("\n") + "\n").expect("ANTIPHON_EVENTS_OUT can be written");
    }
}

#[test]
fn a_case_that_expects_something_else_fails() {
    let played = |lines: &[&str]| script::play(&lines.join("\n"), &mut Vec::new());
    let cancel = r#"{">":{"type":"response.cancel"}}"#;
    let refused = r#"{"<":{"type":"error","error":{"code":"response_cancel_not_active"}}}"#;
    assert_eq!(played(&[cancel, refused]), Ok(()));
    for lines in [
        &[cancel][..],
        &[refused],
        &[cancel, refused, refused],
        &[cancel, r#"{"<":{"type":"error","error":{"code":"x"}}}"#],
        &[cancel, r#"{"!":{"bump_generation":true}}"#],
        &[r#"{"what":1}"#],
    ] {
        assert!(played(lines).is_err(), "{lines:?}");
    }
}
