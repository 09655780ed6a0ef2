//! From a client's leaving to the moment when its unit can be claimed again, seen over sockets.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench reads clocks and starts processes"
)]

#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../tests/it/client.rs"]
mod client;
mod report;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../tests/it/server.rs"]
mod server;

use std::net::SocketAddr;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use client::{Client, NoSession};
use report::Series;
use server::Server;

/// Leavings per way of leaving in a measurement; in a smoke run.
const LEAVINGS: [usize; 2] = [200, 3];

/// How a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    /// WebSocket close.
    Close,
    /// FIN.
    Cut,
    /// RST.
    Reset,
    /// FIN in the middle of an answer.
    CutInAnswer,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let leavings = LEAVINGS[usize::from(!report::is_measurement())];
    let server = Server::fake(1).await;
    for leaving in [Leaving::Close, Leaving::Cut, Leaving::Reset, Leaving::CutInAnswer] {
        let mut free = Series::new("leave_to_pool_idle", "ms");
        let mut claimed = Series::new("leave_to_next_session", "ms");
        let mut opened = Series::new("session_on_free_unit", "ms");
        let mut pool = PoolWatch::open(server.addr()).await;
        for _ in 0..leavings {
            let begin = Instant::now();
            let client = Client::open(server.addr()).await;
            opened.values.push(millis(begin));
            let left = leave(prepared(client, leaving).await, leaving).await;
            while !pool.is_idle().await {}
            free.values.push(millis(left));

            let client = prepared(Client::open(server.addr()).await, leaving).await;
            let left = leave(client, leaving).await;
            // The next caller does not ask whether the unit is free, it calls until it is let in.
            let next = loop {
                match Client::try_open(server.addr()).await {
                    Ok(client) => break client,
                    Err(NoSession::Refused(..)) => {}
                    Err(NoSession::Unreachable(error)) => panic!("{error}"),
                }
            };
            claimed.values.push(millis(left));
            next.close().await;
            while !pool.is_idle().await {}
        }
        let dimensions = json!({ "stages": "fake", "units": 1, "leaving": format!("{leaving:?}") });
        report::print("release_latency", server.ready_line(), dimensions, &[free, claimed, opened]);
    }
}

async fn prepared(mut client: Client, leaving: Leaving) -> Client {
    if let Leaving::CutInAnswer = leaving {
        client.ask("say dur=60 tag=7 rt=1").await;
        client.expect("response.output_audio.delta").await;
    }
    client
}

/// Leaves; the moment right before.
async fn leave(client: Client, leaving: Leaving) -> Instant {
    let begin = Instant::now();
    match leaving {
        Leaving::Close => client.close().await,
        Leaving::Cut | Leaving::CutInAnswer => client.cut(),
        Leaving::Reset => client.reset(),
    }
    begin
}

fn millis(since: Instant) -> f64 {
    since.elapsed().as_secs_f64() * 1_000.0
}

/// Asks `/v1/pool` over one kept connection, so that asking costs little.
struct PoolWatch {
    stream: TcpStream,
    addr: SocketAddr,
}

impl PoolWatch {
    async fn open(addr: SocketAddr) -> Self {
        let stream = TcpStream::connect(addr).await.expect("the server listens");
        stream.set_nodelay(true).expect("an open socket");
        Self { stream, addr }
    }

    async fn is_idle(&mut self) -> bool {
        let request = format!("GET /v1/pool HTTP/1.1\r\nHost: {}\r\n\r\n", self.addr);
        self.stream.write_all(request.as_bytes()).await.expect("the connection is kept");
        let mut answer = Vec::new();
        let body = loop {
            let read = self.stream.read_buf(&mut answer).await.expect("the connection is kept");
            assert!(read > 0, "the server closed a kept connection");
            if let Some(body) = whole_body(&answer) {
                break body;
            }
        };
        let pool: serde_json::Value = serde_json::from_str(body).expect("JSON");
        pool["in_use"] == 0
    }
}

/// The body of an HTTP answer, once it is there.
fn whole_body(answer: &[u8]) -> Option<&str> {
    let (head, body) = std::str::from_utf8(answer).ok()?.split_once("\r\n\r\n")?;
    let length = head
        .to_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    (Some(body.len()) == length).then_some(body)
}
