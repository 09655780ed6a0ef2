//! The connection itself: pings both ways, the closing handshake, and a client that does not read (RC-053, RC-057).

use std::time::Duration;

use tokio::net::TcpSocket;
use tokio::time::{Instant, timeout};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use crate::client::Client;
use crate::server::Server;

/// Longest gap between pings of the server: middle boxes forget connections that are quiet for a minute.
const PING_GAP_MAX: Duration = Duration::from_secs(60);

/// Clients that stop reading.
const DEAF_CLIENTS: usize = 50;

/// Memory that one of them may cost, besides what the kernel holds.
const BYTES_PER_DEAF_CLIENT_MAX: u64 = 2 * 1_024 * 1_024;

/// A deaf client must be gone well before this.
const DEAF_LIMIT: Duration = Duration::from_secs(60);

#[tokio::test]
async fn a_ping_is_answered_while_an_answer_is_sent() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    client.ask("say dur=60 tag=9 rt=1").await;
    client.expect("response.output_audio.delta").await;
    for size in [0, 1, 125] {
        let payload = vec![b'p'; size];
        client.send_message(Message::Ping(payload.clone().into())).await;
        assert_eq!(client.pong().await, payload);
    }
    client.send(&serde_json::json!({ "type": "response.cancel" })).await;
    client.expect("response.done").await;
}

#[tokio::test]
async fn a_session_ends_when_its_time_is_up() {
    let server = Server::fake_with(1, &["--session-max-s", "1"]).await;
    let mut client = Client::open(server.addr()).await;
    let error = client.expect("error").await;
    assert_eq!(error["error"]["code"], "session_expired", "{error}");
    let (code, reason) = client.closed_by_server().await.expect("a close with a code");
    assert_eq!((code, reason.as_str()), (1001, "the session has reached its maximum length of 1 s"));
    server.all_units_free().await;
}

/// Browsers have no other place for a key than the list of sub-protocols.
#[tokio::test]
async fn of_the_sub_protocols_realtime_is_chosen() {
    let server = Server::fake(1).await;
    for (offered, chosen) in [
        (Some("realtime, openai-insecure-api-key.none, openai-beta.realtime-v1"), Some("realtime")),
        (Some("openai-insecure-api-key.none, realtime"), Some("realtime")),
        (None, None),
    ] {
        server.all_units_free().await;
        let mut request =
            format!("ws://{}/v1/realtime", server.addr()).into_client_request().expect("an address");
        if let Some(offered) = offered {
            request.headers_mut().insert("sec-websocket-protocol", offered.parse().expect("a header"));
        }
        let (mut socket, response) = tokio_tungstenite::connect_async(request).await.expect("an upgrade");
        let answered = response.headers().get("sec-websocket-protocol").map(|it| it.to_str().expect("text"));
        assert_eq!(answered, chosen, "{offered:?}");
        socket.close(None).await.expect("open");
    }
}

#[tokio::test]
async fn the_server_pings_a_client_that_says_nothing() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    client.ping_within(PING_GAP_MAX).await;
    // Its pong has gone out with the next event, and the session is as good as ever.
    client.ask("say dur=0.1 tag=9").await;
    client.answer().await.assert_is(9, 0.1);
}

#[tokio::test]
async fn a_close_is_answered_with_a_close() {
    let server = Server::fake(1).await;
    for _ in 0..20 {
        let mut client = loop {
            if let Ok(client) = Client::try_open(server.addr()).await {
                break client;
            }
        };
        let close = CloseFrame { code: CloseCode::Normal, reason: "done".into() };
        client.send_message(Message::Close(Some(close))).await;
        let (code, _) = client.closed_by_server().await.expect("a close with a code");
        assert_eq!(code, 1_000);
    }
}

#[tokio::test]
async fn clients_that_do_not_read_cost_little_disturb_nobody_and_are_let_go() {
    let server = Server::fake(DEAF_CLIENTS + 1).await;
    let mut healthy = Client::open(server.addr()).await;
    let alone = slowest_answer(&mut healthy).await;
    let before = server.usage().rss_bytes;
    let mut deaf = Vec::new();
    for _ in 0..DEAF_CLIENTS {
        let socket = TcpSocket::new_v4().expect("a socket");
        socket.set_recv_buffer_size(4_096).expect("a new socket");
        let stream = socket.connect(server.addr()).await.expect("the server listens");
        let mut client = Client::over(stream, server.addr()).await.expect("a free unit");
        client.ask("say dur=180 tag=8").await;
        client.expect("response.output_audio.delta").await;
        deaf.push(client);
    }
    let beside = slowest_answer(&mut healthy).await;
    println!("slowest of 20 answers: alone {alone:?}, beside {DEAF_CLIENTS} deaf clients {beside:?}");
    let grown = server.usage().rss_bytes.saturating_sub(before);
    assert!(
        grown < DEAF_CLIENTS as u64 * BYTES_PER_DEAF_CLIENT_MAX,
        "{DEAF_CLIENTS} deaf clients cost {grown} bytes"
    );
    let deadline = Instant::now() + DEAF_LIMIT;
    while server.json("/v1/pool").await["in_use"] != 1 {
        assert!(
            Instant::now() < deadline,
            "deaf clients keep their units: {}",
            server.json("/v1/pool").await
        );
        healthy.ask("say dur=0.2 tag=10 rt=1").await;
        healthy.answer().await.assert_is(10, 0.2);
    }
}

async fn slowest_answer(client: &mut Client) -> Duration {
    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let begin = Instant::now();
        client.ask("say dur=0.1 tag=11").await;
        client.answer().await.assert_is(11, 0.1);
        slowest = slowest.max(begin.elapsed());
    }
    slowest
}

impl Client {
    /// The payload of the next pong; events on the way are passed over.
    async fn pong(&mut self) -> Vec<u8> {
        loop {
            match self.message().await {
                Message::Pong(payload) => return payload.to_vec(),
                Message::Close(frame) => panic!("{frame:?}, expected a pong"),
                _ => {}
            }
        }
    }

    async fn ping_within(&mut self, limit: Duration) {
        let ping = async { while !matches!(self.message().await, Message::Ping(_)) {} };
        assert!(timeout(limit, ping).await.is_ok(), "no ping within {limit:?}");
    }
}
