//! The same cases over a socket: against a server of ours, or with `ANTIPHON_URL=ws://…/v1/realtime` against any other.
//!
//! Of each case as much is played as the client and the protocol decide alone: up to the first input that needs a detector,
//! a recogniser, a model, or time. Commands are the session's own affair and are not looked for.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::Value;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use crate::cases;
use crate::names::Names;

/// No event takes longer, however busy the machine is.
const EVENT_LIMIT: Duration = Duration::from_secs(30);

/// Commands behind which nothing more comes by itself.
const QUIET: [&str; 5] = ["vad_settings", "speech_hints", "tts_settings", "input_format", "bump_generation"];

/// A server with fake stages; it is killed when this is dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // It may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn start() -> (Server, String) {
    let arguments = ["serve", "--stages", "fake", "--port", "0", "--units", "2"];
    let mut child = Command::new(env!("CARGO_BIN_EXE_antiphon"))
        .args(arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the binary under test");
    let mut line = String::new();
    let stdout = child.stdout.take().expect("piped");
    BufReader::new(stdout).read_line(&mut line).expect("the ready line");
    let url = line.split(' ').nth(1).unwrap_or_else(|| panic!("no ready line: {line:?}")).to_owned();
    (Server(child), url)
}

/// The inputs of a case that can be played, each with the events that it causes.
fn playable(text: &str) -> Vec<(Value, Vec<Value>)> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//"));
    let mut exchanges: Vec<(Value, Vec<Value>)> = Vec::new();
    for line in lines {
        let line: Value = serde_json::from_str(line).expect("a case is JSON");
        if let Some(event) = line.get("<") {
            let Some((_, events)) = exchanges.last_mut() else { return exchanges };
            events.push(event.clone());
        } else if let Some(command) = line.get("!") {
            if !QUIET.iter().any(|quiet| command.get(quiet).is_some()) {
                // What the input before it causes goes on by itself.
                exchanges.pop();
                return exchanges;
            }
        } else if line.get(">").is_some() && line.get("at_ms").is_none() {
            exchanges.push((line[">"].clone(), Vec::new()));
        } else {
            return exchanges;
        }
    }
    exchanges
}

async fn play(url: &str, exchanges: &[(Value, Vec<Value>)]) -> Result<(), String> {
    let (mut socket, _) = tokio_tungstenite::connect_async(url).await.map_err(|error| error.to_string())?;
    let mut names = Names::default();
    let prologue = serde_json::json!({"type": "session.update", "session": {"instructions": "Be brief."}});
    let expected = [serde_json::json!({"type": "session.updated"})];
    let begin = (serde_json::json!(null), vec![serde_json::json!({"type": "session.created"})]);
    let all = [begin, (prologue, expected.to_vec())];
    for (input, events) in all.iter().chain(exchanges) {
        if !input.is_null() {
            let text = input.as_str().map_or_else(|| names.resolve(input).to_string(), ToOwned::to_owned);
            socket.send(Message::text(text)).await.map_err(|error| error.to_string())?;
        }
        for expected in events {
            let found = loop {
                let message = timeout(EVENT_LIMIT, socket.next()).await;
                match message.map_err(|_| format!("nothing came after {input}, expected {expected}"))? {
                    Some(Ok(Message::Text(text))) => break text,
                    Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                    other => return Err(format!("{other:?} after {input}, expected {expected}")),
                }
            };
            let found: Value = serde_json::from_str(found.as_str()).map_err(|error| error.to_string())?;
            names
                .matches(expected, &found, "")
                .map_err(|why| format!("after {input}: {why}\n  expected {expected}\n  found    {found}"))?;
        }
    }
    // A goodbye, so that the unit is free for the next case.
    socket.close(None).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn every_case_holds_over_a_socket_as_far_as_it_can_be_played() {
    let given = std::env::var("ANTIPHON_URL").ok();
    let own = given.is_none().then(start);
    let url = given.as_deref().or(own.as_ref().map(|(_, url)| url.as_str())).expect("one of both");
    let (mut played, mut failures) = (0, Vec::new());
    for case in cases() {
        let text = std::fs::read_to_string(&case).expect("a case");
        let exchanges = playable(&text);
        if exchanges.is_empty() {
            continue;
        }
        played += exchanges.len();
        if let Err(why) = play(url, &exchanges).await {
            failures.push(format!("{}: {why}", case.display()));
        }
    }
    assert!(failures.is_empty(), "{url}:\n{}", failures.join("\n"));
    assert!(played >= 100, "only {played} inputs were played");
}
