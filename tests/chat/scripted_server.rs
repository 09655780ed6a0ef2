//! A chat completions server that does exactly what a test tells it, byte for byte.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

/// What the server does with one request, in order.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    /// Writes these bytes as they are.
    Raw(Vec<u8>),
    /// Writes the head of a 200 response with a chunked body.
    Head,
    /// Writes one HTTP chunk of the body: the client reads it as one piece.
    Piece(Vec<u8>),
    /// Writes the end of the chunked body; the connection stays open for the next request.
    End,
    /// Writes comment after comment until the client closes.
    PingForEver,
    /// Writes nothing more and waits until the client closes.
    Hold,
    /// Closes the connection at once.
    Close,
}

/// The server; it stops with the test's runtime.
pub(crate) struct ScriptedServer {
    /// Base of its API.
    pub(crate) url: String,
    /// Bodies of the requests, in order of arrival; null for none.
    pub(crate) requests: Arc<Mutex<Vec<serde_json::Value>>>,
    /// Heads of the requests, in order of arrival.
    pub(crate) heads: Arc<Mutex<Vec<String>>>,
    /// One item whenever a client has closed its connection.
    pub(crate) closed: mpsc::UnboundedReceiver<()>,
    /// One item for each connection accepted.
    pub(crate) accepted: mpsc::UnboundedReceiver<()>,
}

impl ScriptedServer {
    /// Serves `scripts`, one for each request in order of arrival; further requests get a closed connection.
    pub(crate) async fn start(scripts: impl IntoIterator<Item = Vec<Step>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
        let scripts: Arc<Mutex<Vec<_>>> = Arc::new(Mutex::new(scripts.into_iter().collect::<Vec<_>>()));
        scripts.lock().expect("no panic").reverse();
        let (requests, heads) = (Arc::default(), Arc::default());
        let (closed_sender, closed) = mpsc::unbounded_channel();
        let (accepted_sender, accepted) = mpsc::unbounded_channel();
        let connection = Connection {
            scripts,
            requests: Arc::clone(&requests),
            heads: Arc::clone(&heads),
            closed: closed_sender,
        };
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let _ = accepted_sender.send(());
                let connection = connection.clone();
                tokio::spawn(async move {
                    // Errors here are the client's going away, which `closed` reports.
                    let _ = connection.serve(socket).await;
                    let _ = connection.closed.send(());
                });
            }
        });
        Self { url, requests, heads, closed, accepted }
    }
}

#[derive(Clone)]
struct Connection {
    scripts: Arc<Mutex<Vec<Vec<Step>>>>,
    requests: Arc<Mutex<Vec<serde_json::Value>>>,
    heads: Arc<Mutex<Vec<String>>>,
    closed: mpsc::UnboundedSender<()>,
}

impl Connection {
    async fn serve(&self, socket: TcpStream) -> std::io::Result<()> {
        socket.set_nodelay(true)?;
        let mut socket = BufReader::new(socket);
        while self.read_request(&mut socket).await? {
            let script = self.scripts.lock().expect("no panic").pop().unwrap_or_default();
            let stays = script.iter().any(|step| matches!(step, Step::End));
            for step in script {
                self.run(step, &mut socket).await?;
            }
            if !stays {
                return Ok(());
            }
        }
        Ok(())
    }

    async fn read_request(&self, socket: &mut BufReader<TcpStream>) -> std::io::Result<bool> {
        let mut head = String::new();
        loop {
            let start = head.len();
            if socket.read_line(&mut head).await? == 0 {
                return Ok(false);
            }
            if &head[start..] == "\r\n" {
                break;
            }
        }
        let length = head
            .lines()
            .find_map(|line| {
                line.to_ascii_lowercase().strip_prefix("content-length:").map(|it| it.trim().to_owned())
            })
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        socket.read_exact(&mut body).await?;
        let body = if body.is_empty() {
            serde_json::Value::Null
        } else {
            serde_json::from_slice(&body).expect("a JSON body")
        };
        self.requests.lock().expect("no panic").push(body);
        self.heads.lock().expect("no panic").push(head);
        Ok(true)
    }

    async fn run(&self, step: Step, socket: &mut BufReader<TcpStream>) -> std::io::Result<()> {
        match step {
            Step::Raw(bytes) => socket.write_all(&bytes).await,
            Step::Head => {
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n";
                socket.write_all(head.as_bytes()).await
            }
            Step::Piece(bytes) => socket.write_all(&piece(&bytes)).await,
            Step::End => socket.write_all(b"0\r\n\r\n").await,
            Step::PingForEver => loop {
                socket.write_all(&piece(b": ping\n\n")).await?;
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            },
            Step::Hold => loop {
                if socket.read(&mut [0; 64]).await? == 0 {
                    return Ok(());
                }
            },
            Step::Close => socket.shutdown().await,
        }
    }
}

fn piece(bytes: &[u8]) -> Vec<u8> {
    [format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat()
}
