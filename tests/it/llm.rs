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
/// an output no call before it, is answered with 400, as the real ones do, and fails the test in the end.
#[derive(Debug)]
pub(crate) struct ScriptedLlm {
    addr: SocketAddr,
    state: Arc<Mutex<State>>,
    /// Completion requests that have arrived.
    received: watch::Receiver<usize>,
    /// Completions whose connection the other side has closed before they were complete.
    abandoned: watch::Receiver<usize>,
    _tasks: JoinSet<()>,
}

impl ScriptedLlm {
    pub(crate) async fn start() -> Self {
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
                    if let Served::Abandoned = serve(stream, &state, &receive).await {
                        abandon.send_modify(|count| *count += 1);
                    }
                });
            }
        });
        Self { addr, state, received, abandoned, _tasks: tasks }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// What the next completions are. One that nobody has scripted calls `f` if the user's last words are "call f" or
    /// "call f {...}", with these arguments, `f` is a function of the request and may be called; repeats the output if
    /// there is one last; and else repeats what the user said last.
    pub(crate) fn script(&self, scripts: impl IntoIterator<Item = Script>) {
        self.state.lock().expect("no panic while held").scripts.extend(scripts);
    }

    /// Bodies of the completion requests so far.
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
async fn serve(mut stream: TcpStream, state: &Mutex<State>, receive: &watch::Sender<usize>) -> Served {
    while let Some((path, body)) = read_request(&mut stream).await {
        if !path.ends_with("/chat/completions") {
            let context = state.lock().expect("no panic while held").context;
            let model = json!({ "id": "scripted", "object": "model", "max_model_len": context });
            let models = json!({ "object": "list", "data": [model] });
            let _ = stream.write_all(plain(200, &models.to_string()).as_bytes()).await;
            continue;
        }
        let (script, first_call) = {
            let mut state = state.lock().expect("no panic while held");
            let request: Value = serde_json::from_slice(&body).expect("a request is JSON");
            let violation = unpaired(&request["messages"]).map(|problem| format!("{problem}: {request}"));
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
        let outcome = play(&mut stream, &script, first_call).await;
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
async fn play(stream: &mut TcpStream, script: &Script, first_call: usize) -> std::io::Result<Played> {
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    match script {
        Script::Say(pieces) => {
            stream.write_all(HEAD.as_bytes()).await?;
            say(stream, pieces).await?;
            end(stream, "stop").await
        }
        Script::Call { before, calls } => {
            stream.write_all(HEAD.as_bytes()).await?;
            say(stream, &before.split_inclusive(' ').map(str::to_owned).collect::<Vec<_>>()).await?;
            call(stream, calls, 0, first_call).await?;
            end(stream, "tool_calls").await
        }
        Script::StallInCall(calls) => {
            stream.write_all(HEAD.as_bytes()).await?;
            for (index, one) in calls.iter().enumerate() {
                call(stream, std::slice::from_ref(one), index, first_call).await?;
            }
            wait_for_hang_up(stream).await
        }
        Script::Status(status) => {
            let body = json!({ "error": { "message": "scripted failure", "type": "server_error" } });
            stream.write_all(plain(*status, &body.to_string()).as_bytes()).await?;
            Ok(Played::Whole)
        }
        Script::Silence => wait_for_hang_up(stream).await,
        Script::OnlyHead => {
            stream.write_all(HEAD.as_bytes()).await?;
            wait_for_hang_up(stream).await
        }
        Script::StallAfter(pieces) => {
            stream.write_all(HEAD.as_bytes()).await?;
            say(stream, pieces).await?;
            wait_for_hang_up(stream).await
        }
        Script::CloseAfter(pieces) => {
            stream.write_all(HEAD.as_bytes()).await?;
            say(stream, pieces).await?;
            stream.shutdown().await?;
            Ok(Played::HungUp)
        }
        Script::Nonsense => {
            stream.write_all(HEAD.as_bytes()).await?;
            chunk(stream, "data: {\"choices\": [oops\n\n").await?;
            stream.write_all(b"0\r\n\r\n").await?;
            Ok(Played::Whole)
        }
    }
}

/// The end of a stream, with what it cost.
async fn end(stream: &mut TcpStream, finish: &str) -> std::io::Result<Played> {
    let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] });
    let usage =
        json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 } });
    chunk(stream, &format!("data: {end}\n\ndata: {usage}\n\ndata: [DONE]\n\n")).await?;
    stream.write_all(b"0\r\n\r\n").await?;
    Ok(Played::Whole)
}

/// Begins every call, then sends a character of each in turn. `first` is the index of the first in the answer, `before` how
/// many there were before the answer.
async fn call(
    stream: &mut TcpStream,
    calls: &[ScriptedCall],
    first: usize,
    before: usize,
) -> std::io::Result<()> {
    let mut pieces: Vec<Value> = Vec::new();
    for (index, call) in (first..).zip(calls) {
        let function = json!({ "name": call.name, "arguments": "" });
        let id = format!("call_scripted_{}", before + index);
        pieces.push(json!({ "index": index, "id": id, "type": "function", "function": function }));
    }
    let mut rest: Vec<_> = calls.iter().map(|call| call.arguments.chars()).collect();
    while rest.iter().any(|rest| !rest.as_str().is_empty()) {
        for (index, rest) in (first..).zip(&mut rest) {
            let character = rest.next().map(|character| character.to_string());
            pieces.extend(character.map(|it| json!({ "index": index, "function": { "arguments": it } })));
        }
    }
    for piece in pieces {
        let delta =
            json!({ "choices": [{ "index": 0, "delta": { "tool_calls": [piece] }, "finish_reason": null }] });
        chunk(stream, &format!("data: {delta}\n\n")).await?;
    }
    Ok(())
}

async fn say(stream: &mut TcpStream, pieces: &[String]) -> std::io::Result<()> {
    for piece in pieces {
        let delta =
            json!({ "choices": [{ "index": 0, "delta": { "content": piece }, "finish_reason": null }] });
        chunk(stream, &format!("data: {delta}\n\n")).await?;
    }
    Ok(())
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
