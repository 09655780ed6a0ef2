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

#[derive(Debug, Default)]
struct State {
    scripts: VecDeque<Script>,
    requests: Vec<Value>,
}

/// The server; it ends when this is dropped.
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

    /// What the next completions are; one that nobody has scripted repeats what the user said last.
    pub(crate) fn script(&self, scripts: impl IntoIterator<Item = Script>) {
        self.state.lock().expect("no panic while held").scripts.extend(scripts);
    }

    /// Bodies of the completion requests so far.
    pub(crate) fn requests(&self) -> Vec<Value> {
        self.state.lock().expect("no panic while held").requests.clone()
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
            let models = json!({ "object": "list", "data": [{ "id": "scripted", "object": "model" }] });
            let _ = stream.write_all(plain(200, &models.to_string()).as_bytes()).await;
            continue;
        }
        let script = {
            let mut state = state.lock().expect("no panic while held");
            let request = serde_json::from_slice(&body).expect("a request is JSON");
            let script = state.scripts.pop_front().unwrap_or_else(|| echo(&request));
            state.requests.push(request);
            script
        };
        receive.send_modify(|count| *count += 1);
        let outcome = play(&mut stream, &script).await;
        match outcome {
            Ok(Played::Whole) => {}
            Ok(Played::HungUp) => return Served::Completely,
            Err(_) => return Served::Abandoned,
        }
    }
    Served::Completely
}

fn echo(request: &Value) -> Script {
    let messages = request["messages"].as_array().expect("a request has messages");
    let said =
        messages.iter().rev().find(|message| message["role"] == "user").map(|message| &message["content"]);
    let said = said.and_then(Value::as_str).expect("a request has something that the user said");
    Script::Say(said.split_inclusive(' ').map(str::to_owned).collect())
}

/// What is left of the connection.
#[derive(Debug)]
enum Played {
    Whole,
    HungUp,
}

/// Plays one script; an error means that the other side went away before the script was done.
async fn play(stream: &mut TcpStream, script: &Script) -> std::io::Result<Played> {
    const HEAD: &str =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    match script {
        Script::Say(pieces) => {
            stream.write_all(HEAD.as_bytes()).await?;
            say(stream, pieces).await?;
            let end = json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": "stop" }] });
            chunk(stream, &format!("data: {end}\n\n")).await?;
            let usage = json!({ "choices": [], "usage": { "prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10 } });
            chunk(stream, &format!("data: {usage}\n\ndata: [DONE]\n\n")).await?;
            stream.write_all(b"0\r\n\r\n").await?;
            Ok(Played::Whole)
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
