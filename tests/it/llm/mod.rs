//! A language model server that does what a test says: the only faults it has are the scripted ones.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

mod chat;
mod responses;

/// The API that a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Api {
    Chat,
    Responses,
}

impl Api {
    pub(crate) const ALL: [Self; 2] = [Self::Chat, Self::Responses];

    /// The value of `--llm-api`.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Responses => "responses",
        }
    }

    /// The API with a call at this path.
    fn of(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| match api {
            Self::Chat => path.ends_with("/chat/completions"),
            Self::Responses => path.ends_with("/responses"),
        })
    }

    /// A stream, event by event.
    fn events(self, spoken: &Spoken<'_>) -> Vec<String> {
        match self {
            Self::Chat => chat::events(spoken),
            Self::Responses => responses::events(spoken),
        }
    }
}

/// What the server does with one completion.
#[derive(Clone, Debug)]
pub(crate) enum Script {
    /// Streams these pieces and ends in order.
    Say(Vec<String>),
    /// Streams this text, if there is any, and these calls, which interleave, and ends in order.
    Call { before: String, calls: Vec<ScriptedCall> },
    /// Streams these calls, one after the other, then nothing more: the last one has no end.
    StallInCall(Vec<ScriptedCall>),
    /// Answers with this HTTP status.
    Status(u16),
    /// Accepts the request and never answers.
    Silence,
    /// Sends the head of a stream, then nothing.
    OnlyHead,
    /// Streams these pieces, then nothing more.
    StallAfter(Vec<String>),
    /// Streams these pieces, then closes the connection in the middle.
    CloseAfter(Vec<String>),
    /// Streams what is no JSON.
    Nonsense,
}

/// A call of a function.
#[derive(Clone, Debug)]
pub(crate) struct ScriptedCall {
    pub(crate) name: String,
    pub(crate) arguments: String,
}

impl Script {
    /// One call and nothing else.
    pub(crate) fn call(name: &str, arguments: &str) -> Self {
        let call = ScriptedCall { name: name.to_owned(), arguments: arguments.to_owned() };
        Self::Call { before: String::new(), calls: vec![call] }
    }
}

/// What a script puts into a stream, whichever API it is of.
#[derive(Debug)]
struct Spoken<'a> {
    text: Vec<&'a str>,
    calls: Vec<SpokenCall<'a>>,
    /// The answer ends, and its calls interleave; else they come one after the other, and the last one has no end.
    is_whole: bool,
}

#[derive(Debug)]
struct SpokenCall<'a> {
    /// Its place among the calls of the answer.
    index: usize,
    id: String,
    name: &'a str,
    arguments: &'a str,
}

impl<'a> Spoken<'a> {
    /// `first_call` is how many calls there were before the answer.
    fn new(text: Vec<&'a str>, calls: &'a [ScriptedCall], first_call: usize, is_whole: bool) -> Self {
        let call = |(index, call): (usize, &'a ScriptedCall)| SpokenCall {
            index,
            id: format!("call_scripted_{}", first_call + index),
            name: &call.name,
            arguments: &call.arguments,
        };
        Self { text, calls: calls.iter().enumerate().map(call).collect(), is_whole }
    }

    /// The calls that interleave.
    fn groups(&self) -> Vec<&[SpokenCall<'a>]> {
        self.calls.chunks(if self.is_whole { self.calls.len().max(1) } else { 1 }).collect()
    }

    /// A character of the arguments of each call in turn.
    fn in_turn<'b>(calls: &'b [SpokenCall<'a>]) -> Vec<(&'b SpokenCall<'a>, String)> {
        let mut rest: Vec<_> = calls.iter().map(|call| call.arguments.chars()).collect();
        let mut turns = Vec::new();
        while rest.iter().any(|rest| !rest.as_str().is_empty()) {
            for (call, rest) in calls.iter().zip(&mut rest) {
                turns.extend(rest.next().map(|character| (call, character.to_string())));
            }
        }
        turns
    }
}

#[derive(Debug, Default)]
struct State {
    scripts: VecDeque<Script>,
    requests: Vec<Value>,
    /// Calls of all answers so far; their ids count them.
    calls: usize,
    /// What was wrong with requests.
    violations: Vec<String>,
    /// What the list of models says about the context.
    context: Option<u32>,
}

/// The server; it ends when this is dropped. A request in which a call has not exactly one output directly behind it, or
/// an output no call before it, is answered with 400, as the real ones do, and fails the test in the end. One over the
/// other API is answered with 404.
#[derive(Debug)]
pub(crate) struct ScriptedLlm {
    addr: SocketAddr,
    api: Api,
    state: Arc<Mutex<State>>,
    /// Completion requests that have arrived.
    received: watch::Receiver<usize>,
    /// Completions whose connection the other side has closed before they were complete.
    abandoned: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

impl ScriptedLlm {
    pub(crate) async fn start() -> Self {
        Self::start_as(Api::Chat).await
    }

    /// A server with this API.
    pub(crate) async fn start_as(api: Api) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("bound");
        let state = Arc::new(Mutex::new(State::default()));
        let (receive, received) = watch::channel(0);
        let (abandon, abandoned) = watch::channel(0);
        let mut tasks = JoinSet::new();
        let shared = Arc::clone(&state);
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (state, receive, abandon) = (Arc::clone(&shared), receive.clone(), abandon.clone());
                connections.spawn(async move {
                    if let Served::Abandoned = serve(stream, api, &state, &receive).await {
                        abandon.send_modify(|count| *count += 1);
                    }
                });
            }
        });
        Self { addr, api, state, received, abandoned, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// The value of `--llm-api` for it.
    pub(crate) fn api(&self) -> &'static str {
        self.api.as_str()
    }

    /// What the next completions are. One that nobody has scripted calls `f` if the user's last words are "call f" or
    /// "call f {...}", with these arguments, `f` is a function of the request and may be called; repeats the output if
    /// there is one last; and else repeats what the user said last.
    pub(crate) fn script(&self, scripts: impl IntoIterator<Item = Script>) {
        self.state.lock().expect("no panic while held").scripts.extend(scripts);
    }

    /// Bodies of the completion requests so far; those of the responses API as chat completions have them.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.state.lock().expect("no panic while held").requests.clone()
    }

    /// What the list of models says from now on: tokens of prompt and answer together.
    pub(crate) fn has_context(&self, tokens: u32) {
        self.state.lock().expect("no panic while held").context = Some(tokens);
    }

    /// What was wrong with the requests since it was asked last.
    pub(crate) fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().expect("no panic while held").violations)
    }

    /// Waits until `count` completions have been asked for.
    pub(crate) async fn received(&mut self, count: usize, limit: Duration) {
        let seen = timeout(limit, self.received.wait_for(|received| *received >= count)).await.is_ok();
        assert!(seen, "{} completions asked for within {limit:?}, expected {count}", *self.received.borrow());
    }

    /// Waits until the server under test has hung up on `count` completions.
    pub(crate) async fn abandoned(&mut self, count: usize, limit: Duration) {
        let seen = timeout(limit, self.abandoned.wait_for(|abandoned| *abandoned >= count)).await.is_ok();
        assert!(
            seen,
            "{} completions abandoned within {limit:?}, expected {count}",
            *self.abandoned.borrow()
        );
    }
}

impl Drop for ScriptedLlm {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let violations = self.take_violations();
            assert!(violations.is_empty(), "{}", violations.join("\n"));
        }
    }
}

/// How a connection ended.
#[derive(Debug)]
enum Served {
    Completely,
    Abandoned,
}

/// Serves one connection, requests one after the other.
async fn serve(
    mut stream: TcpStream,
    api: Api,
    state: &Mutex<State>,
    receive: &watch::Sender<usize>,
) -> Served {
    while let Some((path, body)) = read_request(&mut stream).await {
        let asked = Api::of(&path);
        if asked.is_some_and(|asked| asked != api) {
            let error = json!({ "error": { "message": format!("no {path} here") } });
            let _ = stream.write_all(plain(404, &error.to_string()).as_bytes()).await;
            continue;
        }
        if asked.is_none() {
            let context = state.lock().expect("no panic while held").context;
            let model = json!({ "id": "scripted", "object": "model", "max_model_len": context });
            let models = json!({ "object": "list", "data": [model] });
            let _ = stream.write_all(plain(200, &models.to_string()).as_bytes()).await;
            continue;
        }
        let (script, first_call) = {
            let mut state = state.lock().expect("no panic while held");
            let request: Value = serde_json::from_slice(&body).expect("a request is JSON");
            let (request, violation) = match api {
                Api::Chat => (request, None),
                Api::Responses => match responses::as_chat(request) {
                    Ok(request) => (request, None),
                    Err(problem) => (Value::Null, Some(problem)),
                },
            };
            let violation = violation.or_else(|| unpaired(&request["messages"]));
            let violation = violation.map(|problem| format!("{problem}: {request}"));
            let script = match violation {
                Some(_) => Script::Status(400),
                None => state.scripts.pop_front().unwrap_or_else(|| answer(&request)),
            };
            state.violations.extend(violation);
            state.requests.push(request);
            let first_call = state.calls;
            if let Script::Call { calls, .. } | Script::StallInCall(calls) = &script {
                state.calls += calls.len();
            }
            (script, first_call)
        };
        receive.send_modify(|count| *count += 1);
        let outcome = play(&mut stream, api, &script, first_call).await;
        match outcome {
            Ok(Played::Whole) => {}
            Ok(Played::HungUp) => return Served::Completely,
            Err(_) => return Served::Abandoned,
        }
    }
    Served::Completely
}

/// The answer that nobody has scripted.
fn answer(request: &Value) -> Script {
    let messages = request["messages"].as_array().expect("a request has messages");
    let last = messages.last().expect("a request has a message");
    let words = |text: &str| Script::Say(text.split_inclusive(' ').map(str::to_owned).collect());
    if last["role"] == "tool" {
        return words(&text(last));
    }
    let said = messages.iter().rev().find(|message| message["role"] == "user").map(text);
    let said = said.expect("a request has something that the user said");
    if last["role"] == "user" && request["tool_choice"] != "none" {
        let functions = request["tools"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(|tool| tool["function"]["name"].as_str());
        let asked = |name: &&str| said.to_lowercase().contains(&format!("call {}", name.to_lowercase()));
        if let Some(name) = functions.filter(asked).max_by_key(|name| name.len()) {
            let object = said.find('{').map(|at| said[at..].trim());
            let object = object.filter(|it| serde_json::from_str::<Value>(it).is_ok());
            return Script::call(name, object.unwrap_or("{}"));
        }
    }
    words(&said)
}

/// The text of a message, its pictures left out.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        content => content.as_str().unwrap_or_default().to_owned(),
    }
}

/// What is wrong with the calls and outputs of a conversation.
fn unpaired(messages: &Value) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    for message in messages.as_array().into_iter().flatten() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|open| *open == id) else {
                return Some(format!(
                    "the output of {id:?} stands behind no call of it, or behind another output of it"
                ));
            };
            open.remove(at);
            continue;
        }
        if let Some(id) = open.first() {
            return Some(format!("the call {id:?} has no output directly behind it"));
        }
        let calls = message["tool_calls"].as_array().into_iter().flatten();
        open.extend(calls.map(|call| call["id"].as_str().unwrap_or_default()));
    }
    open.first().map(|id| format!("the call {id:?} has no output directly behind it"))
}

/// What is left of the connection.
#[derive(Debug)]
enum Played {
    Whole,
    HungUp,
}

/// Plays one script; an error means that the other side went away before the script was done.
async fn play(
    stream: &mut TcpStream,
    api: Api,
    script: &Script,
    first_call: usize,
) -> std::io::Result<Played> {
    let said = |pieces: &'_ [String], is_whole| {
        api.events(&Spoken::new(pieces.iter().map(String::as_str).collect(), &[], first_call, is_whole))
    };
    let events = match script {
        Script::Status(status) => {
            let body = json!({ "error": { "message": "scripted failure", "type": "server_error" } });
            stream.write_all(plain(*status, &body.to_string()).as_bytes()).await?;
            return Ok(Played::Whole);
        }
        Script::Silence => return wait_for_hang_up(stream).await,
        Script::OnlyHead => vec![],
        Script::Nonsense => vec!["data: {\"choices\": [oops\n\n".to_owned()],
        Script::Say(pieces) => said(pieces, true),
        Script::StallAfter(pieces) | Script::CloseAfter(pieces) => said(pieces, false),
        Script::Call { before, calls } => {
            api.events(&Spoken::new(before.split_inclusive(' ').collect(), calls, first_call, true))
        }
        Script::StallInCall(calls) => api.events(&Spoken::new(vec![], calls, first_call, false)),
    };
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(HEAD.as_bytes()).await?;
    for event in events {
        chunk(stream, &event).await?;
    }
    match script {
        Script::OnlyHead | Script::StallAfter(_) | Script::StallInCall(_) => wait_for_hang_up(stream).await,
        Script::CloseAfter(_) => {
            stream.shutdown().await?;
            Ok(Played::HungUp)
        }
        Script::Say(_) | Script::Call { .. } | Script::Nonsense | Script::Status(_) | Script::Silence => {
            stream.write_all(b"0\r\n\r\n").await?;
            Ok(Played::Whole)
        }
    }
}

async fn chunk(stream: &mut TcpStream, text: &str) -> std::io::Result<()> {
    stream.write_all(format!("{:x}\r\n{text}\r\n", text.len()).as_bytes()).await
}

/// Says nothing until the other side has had enough of it.
async fn wait_for_hang_up(stream: &mut TcpStream) -> std::io::Result<Played> {
    let mut buffer = [0; 256];
    while stream.read(&mut buffer).await? > 0 {}
    Err(std::io::ErrorKind::ConnectionAborted.into())
}

fn plain(status: u16, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} Scripted\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

/// Path and body of the next request; `None` at the end of the connection.
async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let path = head.split(' ').nth(1)?.to_owned();
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((path, body))
}
