//! SIGTERM: running answers are finished, new clients refused, the exit code is 0 (RC-069).

use std::time::Duration;

use crate::client::{Answer, Client, NoSession};
use crate::server::{Server, http_get};

/// A server with nothing to finish is gone long before this.
const IDLE_LIMIT: Duration = Duration::from_secs(10);

/// Longer than any drain limit that makes sense.
const DRAIN_LIMIT: Duration = Duration::from_secs(60);

/// "Going away", RFC 6455 section 7.4.1.
const GOING_AWAY: u16 = 1_001;

#[tokio::test]
async fn an_idle_server_exits_with_0() {
    let mut server = Server::fake(2).await;
    server.terminate();
    let status = server.exit(IDLE_LIMIT).await;
    assert_eq!(status.code(), Some(0), "{status}");
    assert_eq!(server.rest_of_stdout().await, "", "the ready line is all that stdout has");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[tokio::test]
async fn idle_clients_are_told_that_the_server_goes_away() {
    let mut server = Server::fake(2).await;
    let mut client = Client::open(server.addr()).await;
    server.terminate();
    let (code, reason) = client.closed_by_server().await.expect("a close with a code");
    assert_eq!(code, GOING_AWAY);
    assert!(!reason.is_empty(), "a close without a reason");
    let status = server.exit(IDLE_LIMIT).await;
    assert_eq!(status.code(), Some(0), "{status}");
}

#[tokio::test]
async fn a_running_answer_is_finished_and_new_clients_are_refused() {
    let mut server = Server::fake(2).await;
    let mut client = Client::open(server.addr()).await;
    client.ask("say dur=2.5 tag=88 rt=1").await;
    let created = client.expect("response.created").await;
    let first = client.expect("response.output_audio.delta").await;
    server.terminate();
    // The signal is on its way; from the moment it is seen nobody new gets in.
    while http_get(server.addr(), "/ready").await.is_ok_and(|(status, _)| status == 200) {}
    let refusal = Client::try_open(server.addr()).await;
    assert!(
        matches!(&refusal, Err(NoSession::Unreachable(_) | NoSession::Refused(..))),
        "a new session while the server goes down: {refusal:?}"
    );
    if let Ok((status, body)) = http_get(server.addr(), "/ready").await {
        assert_eq!(status, 503, "/ready while the server goes down: {body}");
    }
    let mut answer =
        Answer { id: created["response"]["id"].as_str().expect("an id").to_owned(), ..Answer::default() };
    answer.take(&first);
    while !answer.take(&client.event().await) {}
    answer.assert_is(88, 2.5);
    let (code, _) = client.closed_by_server().await.expect("a close with a code");
    assert_eq!(code, GOING_AWAY);
    let status = server.exit(DRAIN_LIMIT).await;
    assert_eq!(status.code(), Some(0), "{status}");
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

#[tokio::test]
async fn a_client_that_speaks_does_not_hold_the_server_up() {
    let mut server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    client.stream(&crate::signal::level(1_000, 5_000)).await;
    client.expect("input_audio_buffer.speech_started").await;
    server.terminate();
    let status = server.exit(DRAIN_LIMIT).await;
    assert_eq!(status.code(), Some(0), "{status}");
}

#[tokio::test]
async fn a_second_signal_ends_it_at_once() {
    let mut server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    client.ask("say dur=600 tag=1 rt=1").await;
    client.expect("response.output_audio.delta").await;
    server.terminate();
    // The first signal has arrived when a new client is refused.
    while Client::try_open(server.addr()).await.is_ok() {}
    server.terminate();
    server.exit(IDLE_LIMIT).await;
}

/// The child that runs the built-in language model must not outlive the server, not even when nobody can end it.
#[cfg(feature = "builtin-llm")]
#[tokio::test]
async fn the_language_model_child_ends_with_the_server() {
    use rustix::process::{Signal, test_kill_process};

    for signal in [Signal::TERM, Signal::KILL] {
        let mut server = Server::real_with(1, &[]).await;
        let children = server.children();
        assert!(!children.is_empty(), "real stages without --llm-url have a child");
        server.signal(signal);
        server.exit(DRAIN_LIMIT).await;
        let deadline = tokio::time::Instant::now() + IDLE_LIMIT;
        while children.iter().any(|&child| test_kill_process(child).is_ok()) {
            assert!(
                tokio::time::Instant::now() < deadline,
                "{children:?} outlive the server after {signal:?}"
            );
            tokio::task::yield_now().await;
        }
    }
}
