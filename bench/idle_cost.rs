//! What 64 sessions cost that say nothing: nothing may poll.
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

use std::time::Duration;

use serde_json::json;

use client::Client;
use report::Series;
use server::{ProcessUsage, Server};

/// Units, and sessions while connected.
const SESSIONS: usize = 64;

/// Length of a measurement; length of a smoke run.
const WINDOWS: [Duration; 2] = [Duration::from_secs(10), Duration::from_millis(500)];

/// The server has settled: connections are open, buffers touched.
const SETTLE: Duration = Duration::from_secs(1);

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let window = WINDOWS[usize::from(!report::is_measurement())];
    let server = Server::fake(SESSIONS).await;
    measure(&server, 0, window).await;
    let mut clients = Vec::new();
    for _ in 0..SESSIONS {
        clients.push(Client::open(server.addr()).await);
    }
    measure(&server, clients.len(), window).await;
    drop(clients);
}

async fn measure(server: &Server, connected: usize, window: Duration) {
    tokio::time::sleep(SETTLE.min(window)).await;
    let before = server.usage();
    let begin = tokio::time::Instant::now();
    tokio::time::sleep(window).await;
    let (after, seconds) = (server.usage(), begin.elapsed().as_secs_f64());
    let per_second = |count: fn(&ProcessUsage) -> f64| (count(&after) - count(&before)) / seconds;
    let one = |name, unit, value| Series { values: vec![value], ..Series::new(name, unit) };
    let series = [
        one("cpu", "percent of a core", 100.0 * per_second(|usage| usage.cpu.as_secs_f64())),
        one("context_switches", "1/s", per_second(|usage| usage.context_switches as f64)),
        one("threads", "threads", after.threads as f64),
        one("rss", "MiB", after.rss_bytes as f64 / 1_048_576.0),
    ];
    let dimensions = json!({ "stages": "fake", "units": SESSIONS, "connected": connected, "seconds": window.as_secs_f64() });
    report::print("idle_cost", server.ready_line(), dimensions, &series);
}
