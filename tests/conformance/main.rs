//! Wire behaviour of a session, without a socket: scripted dialogues and random ones, both read by a strict
//! client.
//!
//! [`url`] plays the cases over a socket, as far as any server can answer them, and the dialogues of `live/`, which
//! need a model: `ANTIPHON_URL=ws://… cargo test --release --test conformance socket`.
//!
//! A case is a file of JSON lines in `cases/`; [`script`] describes the lines. Every event that a session
//! sends, in cases and in random dialogues, goes through [`strict_client::StrictClient`]; those of the cases
//! also through the types of the official client.

mod answer_rules;
mod bench;
mod faithful;
#[path = "../it/installed.rs"]
mod installed;
mod names;
mod random;
mod script;
mod spoken_rules;
mod strict_client;
mod url;

use std::path::{Path, PathBuf};

use installed::Client;

/// Plays and checks a case without a socket; returns the events that were sent.
fn check(case: &Path) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(case).map_err(|error| error.to_string())?;
    let mut events = Vec::new();
    script::play(&text, &mut events).map_err(|error| format!("{}: {error}", case.display()))?;
    Ok(events)
}

/// Returns the dialogues of a folder, in the order of their names.
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
    let failures: Vec<_> = cases.iter().filter_map(|case| check(case).err()).collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
}

/// RC-005, for all events that the session sends in a case.
#[tokio::test]
async fn the_official_client_knows_every_event_of_every_case() {
    let types = Client { interpreter: "python", program: "cases.py", pins: &["requirements/openai.txt"] };
    let folder = tempfile::tempdir().expect("a temporary folder");
    for case in files("cases") {
        let events = check(&case).expect("every case holds");
        std::fs::write(folder.path().join(case.file_name().expect("a file")), events.join("\n"))
            .expect("written");
    }
    let root = env!("CARGO_MANIFEST_DIR");
    types.run(&["--events", folder.path().to_str().expect("UTF-8"), "--root", root]).await;
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
