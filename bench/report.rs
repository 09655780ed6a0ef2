//! What a bench prints: one JSON object per run, with all that is needed to repeat it.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json};

/// Version of the line's shape.
const SCHEMA: u32 = 1;

/// Whether this is a measurement (`cargo bench`) or only the check that the bench still runs (`cargo test --benches`).
pub(crate) fn is_measurement() -> bool {
    std::env::args().any(|arg| arg == "--bench")
}

/// Values of one metric, in the order of their measurement.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) values: Vec<f64>,
}

impl Series {
    pub(crate) fn new(name: &'static str, unit: &'static str) -> Self {
        Self { name, unit, values: Vec::new() }
    }

    fn summary(&self) -> Value {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let mut summary = json!({ "unit": self.unit, "n": sorted.len() });
        if let [only] = sorted.as_slice() {
            summary["value"] = rounded(*only);
        } else if !sorted.is_empty() {
            for (name, part) in [("p50", 0.5), ("p95", 0.95), ("max", 1.0)] {
                summary[name] = rounded(nearest_rank(&sorted, part));
            }
            summary["series"] = self.values.iter().copied().map(rounded).collect();
        }
        summary
    }
}

/// Prints the line of this run.
pub(crate) fn print(bench: &str, ready_line: &str, dimensions: Value, series: &[Series]) {
    let metrics: Map<String, Value> = series.iter().map(|s| (s.name.to_owned(), s.summary())).collect();
    let started_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let profile = ready_line.split("profile=").nth(1).unwrap_or("unknown");
    let line = json!({
        "schema": SCHEMA,
        "bench": bench,
        "measured": is_measurement(),
        "git_sha": git(&["rev-parse", "--short", "HEAD"]),
        "dirty": !git(&["status", "--porcelain"]).is_empty(),
        "profile": profile,
        "machine": { "cpu": cpu(), "cores": std::thread::available_parallelism().map_or(0, usize::from),
                     "load_1m": load() },
        "finished_at": started_at,
        "command": format!("cargo bench --bench {bench}"),
        "dimensions": dimensions,
        "metrics": metrics,
    });
    println!("{line}");
}

/// The smallest value that at least this part of the values does not exceed.
fn nearest_rank(sorted: &[f64], part: f64) -> f64 {
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

fn rounded(value: f64) -> Value {
    json!((value * 1_000.0).round() / 1_000.0)
}

fn git(args: &[&str]) -> String {
    let output = Command::new("git").args(args).output();
    output.map_or_else(|_| String::new(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name =
        info.lines().find(|line| line.starts_with("model name")).and_then(|line| line.split(": ").nth(1));
    name.unwrap_or("unknown").to_owned()
}

/// Runnable threads on average over the last minute: above the number of cores, times say little.
fn load() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
