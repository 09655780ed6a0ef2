//! The pool as a client and as an operator see it: refusal, release, and what `/v1/pool`, `/v1/usage`, `/health` and
//! `/ready` say. Shapes are those of the system we start from, so that its dashboards go on working.

use tokio::time::Instant;

use crate::client::{Client, EVENT_LIMIT, Heard, NoSession};
use crate::server::{Server, states};

#[tokio::test]
async fn a_full_pool_refuses_with_an_error_and_1008_and_the_next_free_unit_is_claimed() {
    let server = Server::fake(2).await;
    let first = Client::open(server.addr()).await;
    let mut second = Client::open(server.addr()).await;
    for _ in 0..20 {
        let refusal = Client::try_open(server.addr()).await;
        let Err(NoSession::Refused(error, close)) = refusal else {
            panic!("{refusal:?}, expected a refusal")
        };
        assert_eq!(error["type"], "session_limit_reached", "{error}");
        assert!(error["message"].as_str().is_some_and(|message| message.contains('2')), "{error}");
        let (code, reason) = close.expect("a close with a code");
        assert_eq!(code, 1_008);
        assert!(!reason.is_empty());
    }
    // Those who are in are not disturbed.
    second.ask("say dur=0.1 tag=77").await;
    second.answer().await.assert_is(77, 0.1);
    first.close().await;
    let mut third = loop {
        match Client::try_open(server.addr()).await {
            Ok(client) => break client,
            Err(NoSession::Refused(..)) => {}
            Err(NoSession::Unreachable(error)) => panic!("{error}"),
        }
    };
    third.ask("say dur=0.1 tag=78").await;
    third.answer().await.assert_is(78, 0.1);
    let usage = server.json("/v1/usage").await;
    assert_eq!(usage["connections"], 3, "refusals are not connections: {usage}");
    assert_eq!(usage["total_errors"], 0, "refusals are not errors of a session: {usage}");
}

#[tokio::test]
async fn pool_lists_every_unit_with_its_state_and_session() {
    let server = Server::fake(3).await;
    let pool = server.json("/v1/pool").await;
    assert_eq!((&pool["size"], &pool["in_use"]), (&3.into(), &0.into()), "{pool}");
    assert_eq!(states(&pool), ["idle", "idle", "idle"]);
    let indices: Vec<_> =
        pool["units"].as_array().expect("units").iter().map(|unit| unit["index"].as_u64()).collect();
    assert_eq!(indices, [Some(0), Some(1), Some(2)]);

    let client = Client::open(server.addr()).await;
    let pool = server.json("/v1/pool").await;
    assert_eq!(pool["in_use"], 1, "{pool}");
    let units = pool["units"].as_array().expect("units");
    let active: Vec<_> = units.iter().filter(|unit| unit["state"] == "active").collect();
    let [active] = active.as_slice() else { panic!("{pool}, expected one active unit") };
    assert_eq!(active["session_id"], client.session()["id"], "{pool}");
    assert!(
        units.iter().filter(|unit| unit["state"] == "idle").all(|unit| unit["session_id"].is_null()),
        "{pool}"
    );
    client.cut();
    server.all_units_free().await;
}

#[tokio::test]
async fn usage_counts_what_was_done() {
    let server = Server::fake(2).await;
    let mut client = Client::open(server.addr()).await;
    client.ask("say dur=0.1 tag=5").await;
    client.answer().await.assert_is(5, 0.1);
    client.ask("say dur=30 tag=6 rt=1").await;
    let created = client.expect("response.created").await;
    client.expect("response.output_audio.delta").await;
    client.send(&serde_json::json!({ "type": "response.cancel" })).await;
    let done = client.expect("response.done").await;
    assert_eq!(done["response"]["id"], created["response"]["id"]);
    client.send(&serde_json::json!({ "type": "no.such.event" })).await;
    while !matches!(client.hear().await, Heard::Event(event) if event["type"] == "error") {}
    client.stream(&crate::signal::utterance(3_000)).await;
    client.answer().await;
    client.close().await;
    server.all_units_free().await;

    let usage = server.json("/v1/usage").await;
    let count = |name: &str| usage[name].as_u64().unwrap_or_else(|| panic!("no {name} in {usage}"));
    assert_eq!((count("connections"), count("turns")), (1, 1), "{usage}");
    assert_eq!((count("responses_completed"), count("responses_cancelled")), (2, 1), "{usage}");
    assert_eq!(count("total_errors"), 1, "{usage}");
    assert_eq!(usage["errors_by_type"]["invalid_request_error"], 1, "{usage}");
    assert_eq!(count("total_tokens"), count("input_tokens") + count("output_tokens"), "{usage}");
    let spoken =
        usage["audio_duration_s"].as_f64().unwrap_or_else(|| panic!("no audio_duration_s in {usage}"));
    assert!((2.0..3.2).contains(&spoken), "2 s of speech with its padding: {usage}");
}

#[tokio::test]
async fn health_ready_and_metrics_answer() {
    let server = Server::fake(2).await;
    let line = server.ready_line();
    assert!(line.contains(" units=2 profile="), "{line}");
    for path in ["/health", "/ready"] {
        let (status, body) = server.get(path).await;
        assert_eq!(status, 200, "{path}: {body}");
    }
    let (status, body) = server.get("/metrics").await;
    assert_eq!(status, 200);
    let samples: Vec<_> = body.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).collect();
    assert!(!samples.is_empty(), "no metric at all");
    for sample in samples {
        let value = sample.rsplit(' ').next().and_then(|value| value.parse::<f64>().ok());
        assert!(value.is_some(), "no sample of a metric: {sample}");
    }
    let (status, _) = server.get("/no/such/path").await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn leaving_while_the_session_opens_gives_the_unit_back() {
    let server = Server::fake(2).await;
    for number in 0..200_u32 {
        let stream = tokio::net::TcpStream::connect(server.addr()).await.expect("a listener");
        let request = format!(
            "GET /v1/realtime HTTP/1.1\r\nHost: {}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            server.addr()
        );
        // Whole, half, and none of the upgrade, then gone: in order or by reset.
        let sent = [request.len(), request.len() / 2, 0][number as usize % 3];
        stream.writable().await.expect("connected");
        let _ = stream.try_write(&request.as_bytes()[..sent]);
        if number % 2 == 0 {
            stream.set_zero_linger().expect("an open socket");
        }
        drop(stream);
    }
    // The last of them may still be on their way in; when they are through, both units are there again.
    let mut clients = Vec::new();
    let deadline = Instant::now() + EVENT_LIMIT;
    while clients.len() < 2 {
        match Client::try_open(server.addr()).await {
            Ok(client) => clients.push(client),
            Err(refusal) => assert!(Instant::now() < deadline, "{refusal:?}"),
        }
    }
    drop(clients);
    server.all_units_free().await;
}
