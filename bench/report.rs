//! The output of a bench: one JSON object per run, with all that is needed to repeat the run.

#![allow(dead_code, reason = "not every bench has every kind of metric")]

use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hdrhistogram::Histogram;
use serde_json::{Map, Value, json};

/// Version of the line's fields. Version 2 has `p90`, `p99` and, of 10,000 values or more, `p99.9`;
/// `bottleneck`; the whole `command`.
const SCHEMA: u32 = 2;

/// Percentiles of a distribution, and the parts of the values that they stand for.
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)];

/// Fewest values of a distribution with a `p99.9`: ten of them lie above it.
const P999_COUNT_MIN: u64 = 10_000;

/// Most values of a distribution that are printed one by one.
const SERIES_MAX: usize = 500;

/// Returns true in a measurement (`cargo bench`), and false in the check that the bench still runs (`cargo test
/// --benches`).
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

    /// Creates a metric that is one number.
    pub(crate) fn one(name: &'static str, unit: &'static str, value: f64) -> Self {
        Self { name, unit, values: vec![value] }
    }

    fn summary(&self) -> Value {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let mut summary = json!({ "unit": self.unit, "n": sorted.len() });
        if let [only] = sorted.as_slice() {
            summary["value"] = rounded(*only);
        } else if !sorted.is_empty() {
            for (name, part) in PERCENTILES.into_iter().chain([("max", 1.0)]) {
                summary[name] = rounded(nearest_rank(&sorted, part));
            }
            summary["series"] = self.values.iter().copied().map(rounded).collect();
        }
        summary
    }
}

/// Distribution of any number of durations: to the nanosecond below 2 µs, to one part in a thousand above.
#[derive(Clone, Debug)]
pub(crate) struct Distribution {
    pub(crate) name: &'static str,
    nanos: Histogram<u64>,
    /// The first values, ms.
    series: Vec<f64>,
}

impl Distribution {
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, nanos: Histogram::new(3).expect("three digits are in 0..=5"), series: Vec::new() }
    }

    pub(crate) fn record(&mut self, duration: Duration) {
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.record(nanos).expect("the histogram grows with its values");
        if self.series.len() < SERIES_MAX {
            self.series.push(nanos as f64 / 1e6);
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.nanos.add(&other.nanos).expect("the histogram grows with its values");
        self.series.extend(other.series.iter().take(SERIES_MAX - self.series.len()));
    }

    pub(crate) fn count(&self) -> u64 {
        self.nanos.len()
    }

    /// Returns the smallest duration that at least this part, `0.0..=1.0`, of the durations do not exceed, ms; 0 if
    /// there are no durations.
    pub(crate) fn millis_at(&self, part: f64) -> f64 {
        self.nanos.value_at_quantile(part) as f64 / 1e6
    }

    fn summary(&self) -> Value {
        let mut summary = json!({ "unit": "ms", "n": self.count() });
        if self.count() > 0 {
            for (name, part) in PERCENTILES {
                summary[name] = rounded(self.millis_at(part));
            }
            if self.count() >= P999_COUNT_MIN {
                summary["p99.9"] = rounded(self.millis_at(0.999));
            }
            summary["max"] = rounded(self.millis_at(1.0));
            if self.count() == self.series.len() as u64 {
                summary["series"] = self.series.iter().copied().map(rounded).collect();
            }
        }
        summary
    }
}

/// One metric of a line.
#[derive(Clone, Debug)]
pub(crate) enum Metric {
    Series(Series),
    Distribution(Distribution),
}

impl Metric {
    fn name(&self) -> &'static str {
        match self {
            Self::Series(series) => series.name,
            Self::Distribution(distribution) => distribution.name,
        }
    }

    fn summary(&self) -> Value {
        match self {
            Self::Series(series) => series.summary(),
            Self::Distribution(distribution) => distribution.summary(),
        }
    }
}

impl From<Series> for Metric {
    fn from(series: Series) -> Self {
        Self::Series(series)
    }
}

impl From<Distribution> for Metric {
    fn from(distribution: Distribution) -> Self {
        Self::Distribution(distribution)
    }
}

/// One run.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    bench: &'static str,
    profile: String,
    /// The part that limited the run; `None` if that was the server, or is not known.
    pub(crate) bottleneck: Option<&'static str>,
    dimensions: Map<String, Value>,
    metrics: Vec<Metric>,
}

impl Line {
    /// Creates a line without metrics. `ready_line` is the server's; empty if there is none.
    pub(crate) fn new(bench: &'static str, ready_line: &str) -> Self {
        let profile = ready_line.split("profile=").nth(1).unwrap_or("unknown").to_owned();
        Self { bench, profile, bottleneck: None, dimensions: Map::new(), metrics: Vec::new() }
    }

    pub(crate) fn dimension(&mut self, name: &str, value: impl Into<Value>) {
        self.dimensions.insert(name.to_owned(), value.into());
    }

    pub(crate) fn metric(&mut self, metric: impl Into<Metric>) {
        self.metrics.push(metric.into());
    }

    /// Adds a metric that is one number.
    pub(crate) fn value(&mut self, name: &'static str, unit: &'static str, value: f64) {
        self.metric(Series::one(name, unit, value));
    }

    /// Returns the one number of a metric.
    ///
    /// # Panics
    /// If there is no such metric, or the metric is a distribution.
    pub(crate) fn number(&self, name: &str) -> f64 {
        let metric = self.metrics.iter().find(|metric| metric.name() == name);
        match metric {
            Some(Metric::Series(Series { values, .. })) if values.len() == 1 => values[0],
            other => panic!("metric {name} is {other:?}, expected one number"),
        }
    }

    /// Returns the number of values of a metric.
    ///
    /// # Panics
    /// If there is no such metric.
    pub(crate) fn count(&self, name: &str) -> u64 {
        match self.metrics.iter().find(|metric| metric.name() == name) {
            Some(Metric::Series(series)) => series.values.len() as u64,
            Some(Metric::Distribution(distribution)) => distribution.count(),
            None => panic!("no metric {name}"),
        }
    }

    /// Prints the line on stdout.
    pub(crate) fn print(&self) {
        let metrics: Map<String, Value> =
            self.metrics.iter().map(|metric| (metric.name().to_owned(), metric.summary())).collect();
        let finished_at = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        let line = json!({
            "schema": SCHEMA,
            "bench": self.bench,
            "measured": is_measurement(),
            "bottleneck": self.bottleneck,
            "git_sha": git(&["rev-parse", "--short", "HEAD"]),
            "dirty": !git(&["status", "--porcelain"]).is_empty(),
            "profile": self.profile,
            "machine": { "cpu": cpu(), "cores": cores(), "load_1m": load() },
            "finished_at": finished_at,
            "command": command(self.bench),
            "dimensions": self.dimensions,
            "metrics": metrics,
        });
        println!("{line}");
    }

    /// Returns the dimensions and metrics in a few lines for people.
    pub(crate) fn summary(&self) -> String {
        let dimensions: Vec<_> =
            self.dimensions.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
        let mut text = format!("{}  load {}\n", dimensions.join(" "), load());
        for metric in &self.metrics {
            let summary = metric.summary();
            let shown = ["value", "p50", "p95", "p99", "max"].into_iter().filter_map(|name| {
                let value = summary.get(name)?;
                Some(if name == "value" { value.to_string() } else { format!("{name} {value}") })
            });
            let shown: Vec<_> = shown.collect();
            let n = if shown.len() == 1 { String::new() } else { format!("n {}  ", summary["n"]) };
            let unit = summary["unit"].as_str().unwrap_or_default();
            text += &format!("  {:<28} {n}{} {unit}\n", metric.name(), shown.join("  "));
        }
        text
    }
}

/// Prints the line of a run whose metrics are series.
pub(crate) fn print(bench: &'static str, ready_line: &str, dimensions: Value, series: &[Series]) {
    let mut line = Line::new(bench, ready_line);
    for (name, value) in dimensions.as_object().into_iter().flatten() {
        line.dimension(name, value.clone());
    }
    series.iter().cloned().for_each(|series| line.metric(series));
    line.print();
}

/// Returns the smallest value that at least this part of the values does not exceed.
fn nearest_rank(sorted: &[f64], part: f64) -> f64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of the number of values"
    )]
    let rank = (part * sorted.len() as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

/// Rounds to three decimals; to six below one.
fn rounded(value: f64) -> Value {
    let scale = if value.abs() < 1.0 { 1e6 } else { 1e3 };
    json!((value * scale).round() / scale)
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Returns the command that repeats this run.
fn command(bench: &str) -> String {
    let args: Vec<_> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    let mut command = format!("cargo bench --bench {bench}");
    if !args.is_empty() {
        command += &format!(" -- {}", args.join(" "));
    }
    command
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

fn cores() -> usize {
    std::thread::available_parallelism().map_or(0, usize::from)
}

/// Returns the average number of runnable threads over the last minute. Times measured under a load above the
/// number of cores mean little.
fn load() -> f64 {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').next().and_then(|load| load.parse().ok()).unwrap_or(0.0)
}
