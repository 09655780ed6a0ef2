//! The server as a process of its own: start it, ask it, look at it from outside, end it.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::{Mutex, MutexGuard};
use tokio::time::{Instant, timeout};

/// Fake stages start at once.
const FAKE_START_LIMIT: Duration = Duration::from_secs(20);

/// Real models are loaded, and fetched first if this machine has never had them (250 MB).
pub(crate) const REAL_START_LIMIT: Duration = Duration::from_secs(900);

/// A unit is free again a millisecond after its client has gone; on a busy machine it may be later.
const RELEASE_LIMIT: Duration = Duration::from_secs(10);

/// Whoever holds this has the machine: servers do not run beside each other.
static MACHINE: Mutex<()> = Mutex::const_new(());

/// Number of the next log file.
static NEXT_LOG: AtomicU32 = AtomicU32::new(0);

/// The binary under test.
pub(crate) const BINARY: &str = env!("CARGO_BIN_EXE_antiphon");

/// A running server; it is killed when this is dropped, and its log is shown if the test has failed.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    pid: Pid,
    addr: SocketAddr,
    ready_line: String,
    log: PathBuf,
    /// `None`: another server of the same test holds it.
    _machine: Option<MutexGuard<'static, ()>>,
}

/// What the kernel says about a process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessUsage {
    /// Time on a core, all living threads, since the start.
    pub(crate) cpu: Duration,
    /// Resident memory.
    pub(crate) rss_bytes: u64,
    /// Times that a living thread went to sleep or was sent away from its core.
    pub(crate) context_switches: u64,
    /// Threads alive.
    pub(crate) threads: usize,
}

impl Server {
    /// Fake stages, the energy detector and the echo of the scripted grammar instead of models.
    pub(crate) async fn fake(units: usize) -> Self {
        Self::fake_with(units, &[]).await
    }

    /// Fake stages with further arguments.
    pub(crate) async fn fake_with(units: usize, args: &[&str]) -> Self {
        Self::start(units, "fake", args, FAKE_START_LIMIT).await
    }

    /// Real models with further arguments.
    pub(crate) async fn real_with(units: usize, args: &[&str]) -> Self {
        Self::start(units, "real", args, REAL_START_LIMIT).await
    }

    async fn start(units: usize, stages: &str, args: &[&str], limit: Duration) -> Self {
        Self::launch(Some(machine().await), units, stages, args, limit).await
    }

    /// Real models, beside this server.
    #[cfg(feature = "builtin-llm")]
    pub(crate) async fn real_beside(&self, units: usize, args: &[&str]) -> Self {
        Self::launch(None, units, "real", args, REAL_START_LIMIT).await
    }

    async fn launch(
        machine: Option<MutexGuard<'static, ()>>,
        units: usize,
        stages: &str,
        args: &[&str],
        limit: Duration,
    ) -> Self {
        let number = NEXT_LOG.fetch_add(1, Ordering::Relaxed);
        let name = format!("server-{}-{number}.log", std::process::id());
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        let stderr = std::fs::File::create(&log).unwrap_or_else(|error| panic!("{}: {error}", log.display()));
        let mut child = Command::new(BINARY)
            .args(["serve", "--port", "0", "--units", &units.to_string(), "--stages", stages])
            .args(args)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(stderr)
            .kill_on_drop(true)
            .spawn()
            .unwrap_or_else(|error| panic!("{BINARY}: {error}"));
        let pid =
            child.id().and_then(|id| Pid::from_raw(id.cast_signed())).expect("it has just been started");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let ready_line = match timeout(limit, ready_line(&mut stdout)).await {
            Ok(Some(line)) => line,
            Ok(None) => panic!("the server ended before its ready line:\n{}", last_lines(&log)),
            Err(_) => panic!("no ready line within {limit:?}:\n{}", last_lines(&log)),
        };
        let addr = address(&ready_line);
        Self { child, stdout, pid, addr, ready_line, log, _machine: machine }
    }

    pub(crate) fn url(&self) -> String {
        format!("ws://{}/v1/realtime", self.addr)
    }

    pub(crate) fn addr(&self) -> SocketAddr {
        self.addr
    }

    pub(crate) fn ready_line(&self) -> &str {
        &self.ready_line
    }

    /// Status and body of `GET path`.
    pub(crate) async fn get(&self, path: &str) -> (u16, String) {
        http_get(self.addr, path).await.unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    /// The body of `GET path` as JSON; the status must be 200.
    pub(crate) async fn json(&self, path: &str) -> Value {
        let (status, body) = self.get(path).await;
        assert_eq!(status, 200, "GET {path}: {body}");
        serde_json::from_str(&body).unwrap_or_else(|error| panic!("GET {path}: {error}: {body}"))
    }

    /// Heap calls of the engine's own code on each stage thread, by the thread's name.
    pub(crate) async fn engine_heap_calls(&self) -> BTreeMap<String, u64> {
        let (_, metrics) = self.get("/metrics").await;
        let lines =
            metrics.lines().filter_map(|line| line.strip_prefix("antiphon_heap_calls_total{thread=\""));
        let engine = lines.filter_map(|line| line.split_once("\",code=\"engine\"} "));
        engine.map(|(thread, calls)| (thread.to_owned(), calls.parse().expect("a number"))).collect()
    }

    /// Waits until the pool says that no unit is in use.
    pub(crate) async fn all_units_free(&self) {
        let deadline = Instant::now() + RELEASE_LIMIT;
        loop {
            let pool = self.json("/v1/pool").await;
            if pool["in_use"] == 0 && states(&pool).iter().all(|state| state == "idle") {
                return;
            }
            assert!(Instant::now() < deadline, "units still in use after {RELEASE_LIMIT:?}: {pool}");
        }
    }

    /// Sends SIGTERM.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::TERM);
    }

    /// Sends a signal.
    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(self.pid, signal).expect("the process is ours and not reaped");
    }

    /// Waits for the end of the process.
    pub(crate) async fn exit(&mut self, limit: Duration) -> ExitStatus {
        let ended = timeout(limit, self.child.wait()).await;
        let ended = ended
            .unwrap_or_else(|_| panic!("the server still runs after {limit:?}:\n{}", last_lines(&self.log)));
        ended.expect("it is our child")
    }

    /// What the server has printed after the ready line; only once it has ended.
    pub(crate) async fn rest_of_stdout(&mut self) -> String {
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).await.expect("UTF-8");
        rest
    }

    /// The log so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }

    pub(crate) fn usage(&self) -> ProcessUsage {
        ProcessUsage::of(self.pid).expect("the server is alive")
    }

    /// Processes that the server has started and that are still there.
    #[cfg(feature = "builtin-llm")]
    pub(crate) fn children(&self) -> Vec<Pid> {
        let processes = std::fs::read_dir("/proc").expect("Linux");
        let pids = processes.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let parent = |pid: i32| {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            // The name, in parentheses, may hold anything; after it come the state and the parent.
            stat.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<i32>().ok()
        };
        let ours = self.pid.as_raw_nonzero().get();
        pids.filter(|&pid| parent(pid) == Some(ours)).filter_map(Pid::from_raw).collect()
    }
}

impl ProcessUsage {
    /// What any process of this machine has used.
    ///
    /// # Errors
    /// If there is none with this id.
    pub(crate) fn of(pid: Pid) -> std::io::Result<Self> {
        let proc = PathBuf::from(format!("/proc/{}", pid.as_raw_nonzero()));
        let tasks: Vec<_> = std::fs::read_dir(proc.join("task"))?.flatten().map(|task| task.path()).collect();
        // A thread may end while we look: its file is empty then.
        let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
        // Nanoseconds on a core; utime and stime of /proc/PID/stat count in steps of 10 ms.
        let on_core = |task: &PathBuf| {
            read(task.join("schedstat")).split(' ').next().and_then(|n| n.parse::<u64>().ok())
        };
        let switches = |task: &PathBuf| {
            let status = read(task.join("status"));
            let counts = status.lines().filter(|line| line.contains("ctxt_switches"));
            counts.filter_map(|line| line.split_whitespace().last()?.parse::<u64>().ok()).sum::<u64>()
        };
        let status = read(proc.join("status"));
        let kilobytes =
            status.lines().find_map(|line| line.strip_prefix("VmRSS:")).map(|rest| rest.replace("kB", ""));
        let rss_kb: Option<u64> = kilobytes.and_then(|n| n.trim().parse().ok());
        Ok(Self {
            cpu: Duration::from_nanos(tasks.iter().filter_map(on_core).sum()),
            rss_bytes: rss_kb.ok_or(std::io::ErrorKind::NotFound)? * 1_024,
            context_switches: tasks.iter().map(switches).sum(),
            threads: tasks.len(),
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("--- {} ---\n{}", self.log.display(), last_lines(&self.log));
        } else {
            let _ = std::fs::remove_file(&self.log);
        }
    }
}

/// States of the units in an answer of `/v1/pool`.
pub(crate) fn states(pool: &Value) -> Vec<String> {
    let units = pool["units"].as_array().unwrap_or_else(|| panic!("no units in {pool}"));
    units.iter().map(|unit| unit["state"].as_str().unwrap_or("?").to_owned()).collect()
}

/// Status and body of a plain HTTP request.
pub(crate) async fn http_get(addr: SocketAddr, path: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(addr).await?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {addr}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").ok_or(std::io::ErrorKind::UnexpectedEof)?;
    let status =
        head.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or(std::io::ErrorKind::InvalidData)?;
    Ok((status, body.to_owned()))
}

/// Holds the machine: no server that this suite starts runs meanwhile.
pub(crate) async fn machine() -> MutexGuard<'static, ()> {
    MACHINE.lock().await
}

/// The line that says that a server is ready; `None`: it has ended.
pub(crate) async fn ready_line(stdout: &mut BufReader<ChildStdout>) -> Option<String> {
    loop {
        let mut line = String::new();
        if stdout.read_line(&mut line).await.expect("UTF-8") == 0 {
            return None;
        }
        if line.starts_with("ready ") {
            return Some(line.trim_end().to_owned());
        }
    }
}

/// The address in a ready line.
pub(crate) fn address(ready_line: &str) -> SocketAddr {
    let url = ready_line.split(' ').nth(1).and_then(|url| url.strip_prefix("ws://"));
    let addr = url.and_then(|url| url.strip_suffix("/v1/realtime")).and_then(|addr| addr.parse().ok());
    addr.unwrap_or_else(|| panic!("no address in the ready line: {ready_line}"))
}

fn last_lines(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<_> = text.lines().collect();
    lines[lines.len().saturating_sub(60)..].join("\n")
}
