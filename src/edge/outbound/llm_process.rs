//! Supervision of the built-in language model's process.
//!
//! The process runs `antiphon llm` (`llm_server`). If the process dies, the answers under way fail by their broken
//! sockets. Requests wait or fail at [`ChatClient`](super::llm::ChatClient) until another process has started; the
//! server goes on. The process ends when its standard input is closed, so it cannot outlive this one, however this one
//! ends.
#![expect(clippy::disallowed_types, reason = "edge zone: never touched by a stage thread")]
#![expect(
    clippy::disallowed_methods,
    reason = "edge zone: how long the process has run is read off the runtime's clock"
)]

use std::collections::VecDeque;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};

use super::http::AddressError;
use super::llm::ChatEndpoint;

/// Longest wait for the process to load its model and run it once.
const READY_WAIT: Duration = Duration::from_secs(120);

/// Longest wait for the process to end by itself, once its standard input is closed; a step is far shorter.
const END_WAIT: Duration = Duration::from_secs(2);

/// Pause before the process is started again; doubles with every failure in a row.
const RESTART_PAUSE: Duration = Duration::from_millis(100);

/// Longest pause before the process is started again.
const RESTART_PAUSE_MAX: Duration = Duration::from_secs(10);

/// Time of service after which the next pause is the shortest again.
const STEADY: Duration = Duration::from_secs(30);

/// Lines of the process's standard error that are kept for the message about its end.
const LAST_LINES: usize = 8;

/// Settings of the process.
#[derive(Clone, Debug)]
pub struct LlmProcessSettings {
    /// The program, as a rule [`std::env::current_exe`].
    pub program: PathBuf,
    /// The model, a GGUF file.
    pub gguf: PathBuf,
    /// Number of answers made at a time.
    pub slots: u16,
    /// Threads of one step; `None`: the physical cores.
    pub threads: Option<u16>,
    /// Tokens of prompt and answer together, per slot; `None`: the default of `antiphon llm`.
    pub context: Option<u32>,
    /// Instructions that most sessions begin with; `None`: the default of `antiphon llm`.
    pub instructions: Option<String>,
    /// Nice value of the process, `0..=19`.
    pub nice: u16,
}

/// Errors of the start of the process.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LlmProcessError {
    /// The program cannot be run.
    #[error("{program}: {source}")]
    Spawn {
        /// Path of the program.
        program: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The process ended before it was ready.
    #[error("the built-in language model ended with {status} before it was ready{}", said(.last_lines))]
    Ended {
        /// Exit status of the process.
        status: ExitStatus,
        /// The last lines of its standard error.
        last_lines: Vec<String>,
    },
    /// The process was not ready in time and has been killed.
    #[error("the built-in language model was not ready after {} s{}", .wait.as_secs(), said(.last_lines))]
    NotReady {
        /// Length of the wait.
        wait: Duration,
        /// The last lines of its standard error.
        last_lines: Vec<String>,
    },
    /// The process printed something other than an address.
    #[error("the built-in language model printed {found:?}, expected \"ready http://ADDRESS/v1\"")]
    BadReadyLine {
        /// Line that was printed.
        found: String,
    },
}

fn said(lines: &[String]) -> String {
    if lines.is_empty() { String::new() } else { format!("; it said:\n{}", lines.join("\n")) }
}

/// The process, and the task that starts it again. The drop kills the process.
#[derive(Debug)]
pub struct LlmProcess {
    endpoint: watch::Receiver<Option<ChatEndpoint>>,
    process: watch::Receiver<Option<u32>>,
    restarts: watch::Receiver<u32>,
    /// Dropped to end the supervision.
    stop: Option<oneshot::Sender<()>>,
    supervisor: JoinHandle<()>,
}

impl LlmProcess {
    /// Starts the process and waits until it is ready.
    ///
    /// # Errors
    /// [`LlmProcessError`]. Later failures are logged and retried, never returned.
    pub async fn start(settings: LlmProcessSettings) -> Result<Self, LlmProcessError> {
        let running = Running::start(&settings).await?;
        let (endpoint_sender, endpoint) = watch::channel(Some(running.endpoint.clone()));
        let (process_sender, process) = watch::channel(running.child.id());
        let (restarts_sender, restarts) = watch::channel(0);
        let (stop, stopped) = oneshot::channel();
        let supervisor = Supervisor {
            settings,
            endpoint: endpoint_sender,
            process: process_sender,
            restarts: restarts_sender,
        };
        let supervisor = tokio::spawn(supervisor.run(running, stopped));
        Ok(Self { endpoint, process, restarts, stop: Some(stop), supervisor })
    }

    /// Returns the endpoint of the process; `None` while the process is being started again. For
    /// [`ChatClient::following`](super::llm::ChatClient::following).
    #[must_use]
    pub fn endpoint(&self) -> watch::Receiver<Option<ChatEndpoint>> {
        self.endpoint.clone()
    }

    /// Returns the id of the process; `None` while it is being started again.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        *self.process.borrow()
    }

    /// Returns the number of times that the process was started again.
    #[must_use]
    pub fn restarts(&self) -> u32 {
        *self.restarts.borrow()
    }

    /// Ends the process: closes its standard input, then kills it if it does not end.
    pub async fn shutdown(mut self) {
        drop(self.stop.take());
        // The task does not panic and is not cancelled before the drop below.
        let _ = (&mut self.supervisor).await;
    }
}

impl Drop for LlmProcess {
    fn drop(&mut self) {
        // Drops the task's process handle, which kills the process.
        self.supervisor.abort();
    }
}

struct Supervisor {
    settings: LlmProcessSettings,
    endpoint: watch::Sender<Option<ChatEndpoint>>,
    process: watch::Sender<Option<u32>>,
    restarts: watch::Sender<u32>,
}

impl Supervisor {
    async fn run(self, mut running: Running, mut stopped: oneshot::Receiver<()>) {
        let mut pause = RESTART_PAUSE;
        loop {
            let since = Instant::now();
            tokio::select! {
                _ = &mut stopped => return running.end().await,
                status = running.child.wait() => {
                    self.endpoint.send_replace(None);
                    self.process.send_replace(None);
                    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
                    let said = said(&running.last_lines.copy());
                    tracing::error!("the built-in language model ended with {status}; it is started again{said}");
                }
            }
            if since.elapsed() >= STEADY {
                pause = RESTART_PAUSE;
            }
            running = tokio::select! {
                _ = &mut stopped => return,
                running = self.restart(&mut pause) => running,
            };
            self.process.send_replace(running.child.id());
            self.endpoint.send_replace(Some(running.endpoint.clone()));
            self.restarts.send_modify(|restarts| *restarts += 1);
        }
    }

    /// Starts the process again, until that succeeds.
    async fn restart(&self, pause: &mut Duration) -> Running {
        loop {
            sleep(*pause).await;
            *pause = (*pause * 2).min(RESTART_PAUSE_MAX);
            match Running::start(&self.settings).await {
                Ok(running) => return running,
                Err(error) => tracing::error!("{error}"),
            }
        }
    }
}

/// A process that is ready.
struct Running {
    child: Child,
    /// Standard input, closed to make the process end.
    input: Option<ChildStdin>,
    /// Kept so that a line printed later finds a reader's end and not a broken pipe.
    _output: BufReader<ChildStdout>,
    endpoint: ChatEndpoint,
    last_lines: LastLines,
}

impl Running {
    async fn start(settings: &LlmProcessSettings) -> Result<Self, LlmProcessError> {
        let mut child = command(settings)
            .spawn()
            .map_err(|source| LlmProcessError::Spawn { program: settings.program.clone(), source })?;
        let input = child.stdin.take();
        let output = child.stdout.take().expect("standard output is piped");
        let errors = child.stderr.take().expect("standard error is piped");
        let last_lines = LastLines::default();
        let forwarder = tokio::spawn(forward(errors, last_lines.clone()));
        let mut output = BufReader::new(output);
        let mut line = String::new();
        // A failed read is the end of the process as well, and the exit status explains more.
        match timeout(READY_WAIT, output.read_line(&mut line)).await {
            Ok(Ok(1..)) => {}
            Ok(_) => {
                let status = child
                    .wait()
                    .await
                    .map_err(|source| LlmProcessError::Spawn { program: settings.program.clone(), source })?;
                // The last lines may still be in the pipe.
                let _ = timeout(END_WAIT, forwarder).await;
                return Err(LlmProcessError::Ended { status, last_lines: last_lines.copy() });
            }
            Err(_) => {
                return Err(LlmProcessError::NotReady { wait: READY_WAIT, last_lines: last_lines.copy() });
            }
        }
        let endpoint = endpoint(&line).map_err(|_| LlmProcessError::BadReadyLine { found: line })?;
        Ok(Self { child, input, _output: output, endpoint, last_lines })
    }

    async fn end(mut self) {
        drop(self.input.take());
        if timeout(END_WAIT, self.child.wait()).await.is_err() {
            // The process may have ended just now, which is as good.
            let _ = self.child.kill().await;
        }
    }
}

fn command(settings: &LlmProcessSettings) -> Command {
    let mut command = Command::new(&settings.program);
    command.arg("llm").arg("--gguf").arg(&settings.gguf).arg("--slots").arg(settings.slots.to_string());
    command.arg("--nice").arg(settings.nice.to_string());
    if let Some(threads) = settings.threads {
        command.arg("--threads").arg(threads.to_string());
    }
    if let Some(context) = settings.context {
        command.arg("--context").arg(context.to_string());
    }
    if let Some(instructions) = &settings.instructions {
        // One argument, since the instructions may begin with a dash.
        command.arg(format!("--instructions={instructions}"));
    }
    command
        // The last lines are to hold the error message, not a backtrace of the place where it was made.
        .env("RUST_LIB_BACKTRACE", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        // A Ctrl-C at the terminal is for the server, which then ends the process in order.
        .process_group(0)
        .kill_on_drop(true);
    command
}

fn endpoint(ready_line: &str) -> Result<ChatEndpoint, AddressError> {
    let url = ready_line.trim_end().strip_prefix("ready ").unwrap_or_default();
    Ok(ChatEndpoint::new(url, None, None, None)?.with_caller())
}

/// Passes the process's log on, line by line.
async fn forward(errors: impl AsyncRead + Unpin, last_lines: LastLines) {
    let mut errors = BufReader::new(errors);
    let mut line = Vec::new();
    while matches!(errors.read_until(b'\n', &mut line).await, Ok(1..)) {
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        line.clear();
        tracing::info!(target: "antiphon::llm", "{text}");
        last_lines.push(text);
    }
}

/// The last lines that the process wrote, shared with the task that reads them.
#[derive(Clone, Debug, Default)]
struct LastLines(Arc<Mutex<VecDeque<String>>>);

impl LastLines {
    fn push(&self, line: String) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == LAST_LINES {
            lines.pop_front();
        }
        lines.push_back(line);
    }

    fn copy(&self) -> Vec<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ready_line_is_an_endpoint() {
        let ready = endpoint("ready http://127.0.0.1:4711/v1\n").expect("an address");
        assert_eq!(ready.url(), "http://127.0.0.1:4711/v1/chat/completions");
        for line in ["", "ready", "ready soon\n", "http://127.0.0.1:4711/v1"] {
            assert!(endpoint(line).is_err(), "{line:?}");
        }
    }

    #[test]
    fn only_the_last_lines_are_kept() {
        let lines = LastLines::default();
        for number in 0..20 {
            lines.push(number.to_string());
        }
        assert_eq!(lines.copy(), (12..20).map(|number| number.to_string()).collect::<Vec<_>>());
    }

    #[tokio::test]
    async fn a_program_that_does_not_serve_is_a_clear_error() {
        let settings = |program: &str| LlmProcessSettings {
            program: program.into(),
            gguf: "none.gguf".into(),
            slots: 1,
            threads: None,
            context: None,
            instructions: None,
            nice: 0,
        };
        let missing =
            LlmProcess::start(settings("/nonexistent/antiphon")).await.expect_err("no such program");
        assert!(missing.to_string().starts_with("/nonexistent/antiphon: "), "{missing}");
        let ended = LlmProcess::start(settings("ls")).await.expect_err("ls cannot list these");
        let LlmProcessError::Ended { status, last_lines } = &ended else { panic!("{ended}") };
        assert!(!status.success() && !last_lines.is_empty(), "{ended}");
        let wrong = LlmProcess::start(settings("echo")).await.expect_err("echo prints its arguments");
        assert!(
            matches!(&wrong, LlmProcessError::BadReadyLine { found } if found.starts_with("llm --gguf")),
            "{wrong}"
        );
    }
}
