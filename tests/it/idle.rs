//! A session that says nothing costs nothing: nothing polls.

use std::time::Duration;

use crate::client::Client;
use crate::server::Server;

/// Units and sessions.
const SESSIONS: usize = 64;

/// How long the server is watched.
const WINDOW: Duration = Duration::from_secs(5);

/// Processor time of the whole server, part of one core. Processor time, not wall time: a busy machine does not
/// change it.
const CPU_MAX: f64 = 0.005;

#[tokio::test]
async fn sixty_four_idle_sessions_use_no_processor() {
    let server = Server::fake(SESSIONS).await;
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(Client::open(server.addr()).await);
    }
    // An answered request is the end of all work that the last session's opening has caused.
    server.json("/v1/pool").await;
    let before = server.usage();
    assert!(
        before.cpu > Duration::ZERO,
        "opening 64 sessions took no time: this kernel has no schedstat to measure with"
    );
    tokio::time::sleep(WINDOW).await;
    let after = server.usage();
    let part = (after.cpu - before.cpu).as_secs_f64() / WINDOW.as_secs_f64();
    let switches = (after.context_switches - before.context_switches) as f64 / WINDOW.as_secs_f64();
    println!("{:.3} % of a core, {switches:.1} context switches/s, {} threads", 100.0 * part, after.threads);
    assert!(part <= CPU_MAX, "64 idle sessions use {:.2} % of a core", 100.0 * part);
    assert_eq!(after.threads, before.threads);
    drop(clients);
    server.all_units_free().await;
}
