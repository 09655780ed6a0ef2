//! The server under load: one of ours, started for this run, or any other that runs already.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, bail};
use rustix::process::{Pid, Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio_tungstenite::tungstenite::Utf8Bytes;
use tokio_tungstenite::tungstenite::http::Uri;

use crate::report::Line;
use crate::server::{ProcessUsage, Server};

/// The server, and the settings of its sessions.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TargetArgs {
    /// A server that runs already [default: one of ours with fake stages, fresh for each repeat]
    #[arg(long, value_name = "ws://HOST:PORT/PATH")]
    pub(crate) url: Option<Uri>,
    /// A process of that server, for its processor time and memory; may be given several times
    #[arg(long, requires = "url", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Vec<i32>,
    /// Units of our server [default: as many as the case needs]; with --url: of that server, if known
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) units: Option<u16>,
    /// Further argument of our server, as in --server-arg=--vad=silero; may be given several times
    #[arg(long, value_name = "ARG", conflicts_with = "url", allow_hyphen_values = true)]
    pub(crate) server_arg: Vec<String>,
    /// Sample rate both ways, Hz; 16000 is the default of huggingface/speech-to-speech
    #[arg(long, default_value = "24000", value_parser = ["16000", "24000"])]
    pub(crate) rate: String,
    /// Silence that ends a turn [default: the server's]
    #[arg(long, value_name = "MS")]
    pub(crate) silence_ms: Option<u32>,
    /// Runs, each on a fresh server of ours
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repeats: u32,
}

impl TargetArgs {
    pub(crate) fn rate_hz(&self) -> usize {
        if self.rate == "16000" { 16_000 } else { 24_000 }
    }
}

/// A server that answers.
#[derive(Debug)]
pub(crate) struct Target {
    server: Option<Server>,
    url: String,
    addr: SocketAddr,
    pids: Vec<Pid>,
    /// Number of units of the server; `None` if not known.
    units: Option<usize>,
    args: TargetArgs,
}

impl Target {
    /// Finds the server at `--url`, or starts one with `units` units, or with `--units`.
    ///
    /// # Errors
    /// If there is no server at `--url`, or no process with a `--pid`.
    pub(crate) async fn start(args: &TargetArgs, units: usize) -> anyhow::Result<Self> {
        raise_descriptor_limit();
        let asked = args.units.map(usize::from);
        let Some(uri) = &args.url else {
            let more: Vec<_> = args.server_arg.iter().map(String::as_str).collect();
            let units = asked.unwrap_or(units);
            let server = Server::fake_with(units, &more).await;
            let (url, addr) = (server.url(), server.addr());
            let units = Some(units);
            return Ok(Self { server: Some(server), url, addr, pids: Vec::new(), units, args: args.clone() });
        };
        let (Some("ws"), Some(host)) = (uri.scheme_str(), uri.host()) else {
            bail!("--url {uri}: expected ws://HOST:PORT/PATH");
        };
        let port = uri.port_u16().unwrap_or(80);
        let mut found =
            tokio::net::lookup_host((host, port)).await.with_context(|| format!("--url {uri}"))?;
        let addr = found.next().with_context(|| format!("--url {uri}: {host} has no address"))?;
        let pids = args.pid.iter().filter_map(|pid| Pid::from_raw(*pid)).collect();
        let target =
            Self { server: None, url: uri.to_string(), addr, pids, units: asked, args: args.clone() };
        target.usage()?;
        Ok(target)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn units(&self) -> Option<usize> {
        self.units
    }

    pub(crate) fn rate_hz(&self) -> usize {
        self.args.rate_hz()
    }

    /// Returns the server's time and memory; `None` if its process is not known.
    ///
    /// # Errors
    /// If a process is gone.
    pub(crate) fn usage(&self) -> anyhow::Result<Option<ProcessUsage>> {
        if let Some(server) = &self.server {
            return Ok(Some(server.usage()));
        }
        let mut sum: Option<ProcessUsage> = None;
        for pid in &self.pids {
            let usage = ProcessUsage::of(*pid).with_context(|| format!("--pid {}", pid.as_raw_nonzero()))?;
            let sum = sum.get_or_insert(ProcessUsage {
                cpu: Duration::ZERO,
                rss_bytes: 0,
                context_switches: 0,
                threads: 0,
            });
            sum.cpu += usage.cpu;
            sum.rss_bytes += usage.rss_bytes;
            sum.context_switches += usage.context_switches;
            sum.threads += usage.threads;
        }
        Ok(sum)
    }

    /// Returns the `session.update` with the settings of the command line; `None` if those are the server's defaults.
    pub(crate) fn session_update(&self) -> Option<Utf8Bytes> {
        let format = (self.rate_hz() == 24_000).then(|| json!({ "type": "audio/pcm", "rate": 24_000 }));
        let mut input = serde_json::Map::new();
        let mut audio = serde_json::Map::new();
        if let Some(format) = format {
            input.insert("format".to_owned(), format.clone());
            audio.insert("output".to_owned(), json!({ "format": format }));
        }
        if let Some(ms) = self.args.silence_ms {
            let detection = json!({ "type": "server_vad", "silence_duration_ms": ms });
            input.insert("turn_detection".to_owned(), detection);
        }
        if input.is_empty() {
            return None;
        }
        audio.insert("input".to_owned(), input.into());
        let update = json!({ "type": "session.update", "session": { "type": "realtime", "audio": audio } });
        Some(update.to_string().into())
    }

    /// Creates a line of this case on this server.
    pub(crate) fn line(&self, case: &str) -> Line {
        let ready_line = self.server.as_ref().map_or("", Server::ready_line);
        let mut line = Line::new("converse", ready_line);
        line.dimension("case", case);
        line.dimension("server", if self.server.is_some() { "ours, fake stages" } else { &self.url });
        if !self.args.server_arg.is_empty() {
            line.dimension("server_args", self.args.server_arg.join(" "));
        }
        line.dimension("units", self.units);
        line.dimension("rate_hz", self.rate_hz());
        if let Some(ms) = self.args.silence_ms {
            line.dimension("silence_ms", ms);
        }
        line
    }
}

/// Raises the limit of descriptors for many sessions, for us and for the server that we start, as far as the system
/// grants without root.
fn raise_descriptor_limit() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If this is refused, the connection that finds no descriptor fails with that message.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}
