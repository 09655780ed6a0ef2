//! Cases and dialogues over a socket, against a server of ours, or with `ANTIPHON_URL=ws://…/v1/realtime` against any
//! other. `ANTIPHON_KEY_ENV=NAME` names the variable whose value is the key, a bearer token. All events go through the
//! strict client.
//!
//! A case is played up to the first input that needs speech, a recogniser, a model, or time; the client and the
//! protocol alone decide everything before. Commands stay inside the server and are not checked.
//!
//! The dialogues in `live/` are played to their end, with a model that may say anything. They hold messages of the
//! client and the events that must follow, in order; other events may come in between. Orders such as `say dur=30` are
//! for the fake voice.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::http::header::{AUTHORIZATION, HeaderValue};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{MaybeTlsStream, WebSocketStream, connect_async};

use crate::files;
use crate::names::Names;
use crate::strict_client::StrictClient;

/// Longest wait for an expected event, even on a busy machine or for a long answer.
const EVENT_LIMIT: Duration = Duration::from_secs(60);

/// Commands that cause no further event.
const QUIET: [&str; 5] = ["vad_settings", "speech_hints", "tts_settings", "input_format", "bump_generation"];

/// A server with fake stages, which is killed on drop.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // The server may be gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server against which dialogues are played.
struct Target {
    url: String,
    key: Option<String>,
    _own: Option<Server>,
}

impl Target {
    fn of_environment() -> Self {
        let Ok(url) = std::env::var("ANTIPHON_URL") else { return Self::own() };
        let key = std::env::var("ANTIPHON_KEY_ENV").ok().map(|name| match std::env::var(&name) {
            Ok(key) if !key.is_empty() => key,
            _ => panic!("ANTIPHON_KEY_ENV names {name}, which is not set"),
        });
        Self { url, key, _own: None }
    }

    fn own() -> Self {
        let arguments = ["serve", "--stages", "fake", "--port", "0", "--units", "2"];
        let mut child = Command::new(env!("CARGO_BIN_EXE_antiphon"))
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary under test");
        let mut line = String::new();
        let stdout = child.stdout.take().expect("piped");
        let own = Some(Server(child));
        BufReader::new(stdout).read_line(&mut line).expect("the ready line");
        let url = line.split(' ').nth(1).unwrap_or_else(|| panic!("no ready line: {line:?}")).to_owned();
        Self { url, key: None, _own: own }
    }

    async fn connect(&self) -> Result<WebSocketStream<MaybeTlsStream<TcpStream>>, SocketError> {
        let mut request = self.url.as_str().into_client_request()?;
        if let Some(key) = &self.key {
            let bearer = HeaderValue::try_from(format!("Bearer {key}")).expect("a key fits into a header");
            request.headers_mut().insert(AUTHORIZATION, bearer);
        }
        Ok(connect_async(request).await?.0)
    }

    /// Plays a dialogue; adds the types of its expected events to `kinds`.
    async fn play(&self, steps: &[Step], order: Order, kinds: &mut BTreeSet<String>) -> Result<(), String> {
        let socket = self.connect().await.map_err(|error| error.to_string())?;
        let (names, client) = (Names::default(), StrictClient::remote());
        let mut dialogue = Dialogue { socket, names, client, order, said: String::new() };
        let mut prologue = vec![Step::Expect(json!({"type": "session.created"}))];
        if order == Order::Complete {
            // The settings that the cases assume. The update names no type, because a named type is then fixed.
            prologue
                .push(Step::Say(json!({"type": "session.update", "session": {"instructions": "Be brief."}})));
            prologue.push(Step::Expect(json!({"type": "session.updated"})));
        }
        for step in prologue.iter().chain(steps) {
            match step {
                Step::Say(input) => dialogue.say(input).await?,
                Step::Expect(expected) => {
                    let found = timeout(EVENT_LIMIT, dialogue.expect(expected)).await;
                    found.map_err(|_| format!("after {}: never came: {expected}", dialogue.said))??;
                    kinds.extend(expected["type"].as_str().map(ToOwned::to_owned));
                }
            }
        }
        dialogue.end().await
    }

    async fn play_all(&self, dialogues: Vec<(PathBuf, Vec<Step>)>, order: Order) -> BTreeSet<String> {
        let (mut kinds, mut failures) = (BTreeSet::new(), Vec::new());
        for (case, steps) in dialogues {
            if let Err(why) = self.play(&steps, order, &mut kinds).await {
                failures.push(format!("{}: {why}", case.display()));
            }
        }
        assert!(failures.is_empty(), "{}:\n{}", self.url, failures.join("\n"));
        kinds
    }
}

/// A line that is played.
#[derive(Debug)]
enum Step {
    Say(Value),
    Expect(Value),
}

/// Events that may come besides the expected ones.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Order {
    /// No other events.
    Complete,
    /// Any events but errors.
    Among,
}

struct Dialogue {
    socket: WebSocketStream<MaybeTlsStream<TcpStream>>,
    names: Names,
    client: StrictClient,
    order: Order,
    /// The last message of the client.
    said: String,
}

impl Dialogue {
    async fn say(&mut self, input: &Value) -> Result<(), String> {
        self.said = input.as_str().map_or_else(|| self.names.resolve(input).to_string(), ToOwned::to_owned);
        let sent = self.socket.send(Message::text(self.said.as_str())).await;
        sent.map_err(|error| error.to_string())
    }

    async fn expect(&mut self, expected: &Value) -> Result<(), String> {
        loop {
            let found = self.next().await?;
            let found = found.ok_or_else(|| format!("closed after {}, expected {expected}", self.said))?;
            // An event that does not match must set no names.
            let mut names = self.names.clone();
            match names.matches(expected, &found, "") {
                Ok(()) => {
                    self.names = names;
                    return Ok(());
                }
                Err(_) if self.order == Order::Among && found["type"] != "error" => {}
                Err(why) => {
                    let said = &self.said;
                    return Err(format!("after {said}: {why}\n  expected {expected}\n  found    {found}"));
                }
            }
        }
    }

    /// Waits for the next event; returns `None` if the connection is closed.
    async fn next(&mut self) -> Result<Option<Value>, String> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => {
                    let event = serde_json::from_str(text.as_str()).map_err(|error| error.to_string())?;
                    self.client.event(&event)?;
                    return Ok(Some(event));
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
                None | Some(Ok(Message::Close(_)) | Err(SocketError::ConnectionClosed)) => return Ok(None),
                Some(other) => return Err(format!("{other:?} after {}", self.said)),
            }
        }
    }

    /// Closes the connection, so that the unit is free for the next case. Events on their way are checked too.
    async fn end(&mut self) -> Result<(), String> {
        self.socket.close(None).await.map_err(|error| error.to_string())?;
        let rest = async {
            while self.next().await?.is_some() {}
            self.client.at_end(false)
        };
        timeout(EVENT_LIMIT, rest).await.map_err(|_| "the close is not answered".to_owned())?
    }
}

fn parsed(text: &str) -> impl Iterator<Item = Value> {
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("//"));
    lines.map(|line| serde_json::from_str(line).expect("a case is JSON"))
}

/// Returns the inputs of a case that can be played, each before the events that it causes.
fn playable(text: &str) -> Vec<Step> {
    let mut lines = parsed(text).peekable();
    let mut steps = Vec::new();
    while let Some(line) = lines.next() {
        if let Some(event) = line.get("<").filter(|_| !steps.is_empty()) {
            steps.push(Step::Expect(event.clone()));
        } else if line.get(">").is_some() && line.get("at_ms").is_none() {
            steps.push(Step::Say(line[">"].clone()));
        } else if let Some(command) = line.get("!") {
            let quiet = QUIET.iter().any(|quiet| command.get(quiet).is_some());
            if !quiet && lines.next_if(|answer| detector_answers(command, answer)).is_none() {
                // The input before this command causes further events, so it cannot be played either.
                let input = steps.iter().rposition(|step| matches!(step, Step::Say(_)));
                steps.truncate(input.unwrap_or(0));
                break;
            }
        } else {
            break;
        }
    }
    steps
}

/// Returns true if any detector that has had no audio gives this answer to `command`.
fn detector_answers(command: &Value, answer: &Value) -> bool {
    if command.get("commit").is_some() {
        return answer["vad"]["commit_refused"]["audio_ms"] == 0;
    }
    let cleared = &answer["vad"]["cleared"];
    command.get("clear").is_some() && cleared.is_object() && cleared.get("utterance").is_none()
}

/// Parses a dialogue of `live/`.
fn live(text: &str) -> Vec<Step> {
    let step = |line: Value| match (line.get(">"), line.get("<")) {
        (Some(input), None) => Step::Say(input.clone()),
        (None, Some(event)) => Step::Expect(event.clone()),
        _ => panic!("neither said nor expected: {line}"),
    };
    parsed(text).map(step).collect()
}

fn read(folder: &str, steps: fn(&str) -> Vec<Step>) -> Vec<(PathBuf, Vec<Step>)> {
    let read = |case: PathBuf| {
        let steps = steps(&std::fs::read_to_string(&case).expect("a case"));
        (case, steps)
    };
    files(folder).into_iter().map(read).filter(|(_, steps)| !steps.is_empty()).collect()
}

#[tokio::test]
async fn every_case_holds_over_a_socket_as_far_as_it_can_be_played() {
    let cases = read("cases", playable);
    let inputs = cases.iter().flat_map(|(_, steps)| steps).filter(|step| matches!(step, Step::Say(_)));
    assert!(inputs.count() >= 100, "too few inputs are played");
    let kinds = Target::of_environment().play_all(cases, Order::Complete).await;
    assert!(kinds.contains("input_audio_buffer.cleared"), "{kinds:?}");
}

#[tokio::test]
async fn every_live_dialogue_holds_over_a_socket() {
    let kinds = Target::of_environment().play_all(read("live", live), Order::Among).await;
    for kind in [
        "conversation.item.truncated",
        "response.output_text.done",
        "response.output_audio.delta",
        "response.done",
    ] {
        assert!(kinds.contains(kind), "no dialogue expects {kind}");
    }
}

#[tokio::test]
async fn a_dialogue_over_a_socket_that_expects_something_else_fails() {
    let own = Target::own();
    let play =
        async |lines: &[&str], order| own.play(&live(&lines.join("\n")), order, &mut BTreeSet::new()).await;
    let update = r#"{">":{"type":"session.update","session":{"type":"realtime"}}}"#;
    let cancel = r#"{">":{"type":"response.cancel"}}"#;
    let refused = r#"{"<":{"type":"error","error":{"code":"response_cancel_not_active"}}}"#;
    let other = r#"{"<":{"type":"error","error":{"code":"x"}}}"#;
    assert_eq!(play(&[update, cancel, refused], Order::Among).await, Ok(()));
    assert!(play(&[update, cancel, refused], Order::Complete).await.is_err());
    assert!(play(&[update, cancel, other], Order::Among).await.is_err());
}

#[tokio::test]
async fn a_key_goes_along_as_a_bearer_token() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("ws://{}/v1/realtime", listener.local_addr().expect("bound"));
    let target = Target { url, key: Some("sk-1".to_owned()), _own: None };
    let request = async {
        let (mut stream, _) = listener.accept().await.expect("a client");
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            assert_ne!(stream.read_buf(&mut head).await.expect("the request"), 0);
        }
        String::from_utf8(head).expect("a head is text")
    };
    let (refused, head) = tokio::join!(target.connect(), request);
    assert!(refused.is_err(), "nobody has answered");
    assert!(head.to_lowercase().contains("\r\nauthorization: bearer sk-1\r\n"), "{head}");
}
