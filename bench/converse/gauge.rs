//! The cost of a run to the server and the client, and the client's lateness.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use antiphon::door::clock;
use antiphon::door::message::Moment;
use rustix::time::{ClockId, clock_gettime};
use tokio::task::JoinHandle;

use crate::pacer::Pacer;
use crate::report::{Distribution, Line};
use crate::server::ProcessUsage;
use crate::target::Target;

/// Lateness of the client at the 99th percentile above which the client is the bottleneck, ms.
const CLIENT_LATE_MS_MAX: f64 = 10.0;

/// Part of the time on a core above which the client's thread is the bottleneck.
const CLIENT_CPU_MAX: f64 = 0.9;

/// Time between two measurements of lateness, for a client without a schedule of its own.
const TICK: Duration = Duration::from_millis(10);

/// Processor time of both sides from one moment on.
#[derive(Debug)]
pub(crate) struct Gauge {
    begin: Moment,
    client: Duration,
    server: Option<ProcessUsage>,
}

/// The measurements of a [`Gauge`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    pub(crate) seconds: f64,
    /// Time of the client on a core, as a part of one core.
    client_cpu: f64,
    server: Option<Load>,
}

#[derive(Clone, Copy, Debug)]
struct Load {
    cpu_s: f64,
    context_switches_per_s: f64,
    threads: usize,
    rss_bytes: u64,
}

impl Gauge {
    pub(crate) fn start(target: &Target) -> anyhow::Result<Self> {
        Ok(Self { server: target.usage()?, client: thread_time(), begin: clock::now() })
    }

    pub(crate) fn stop(&self, target: &Target) -> anyhow::Result<Reading> {
        let seconds = clock::now().since(self.begin).as_secs_f64();
        let client_cpu = (thread_time() - self.client).as_secs_f64() / seconds;
        let server = self.server.zip(target.usage()?).map(|(before, after)| Load {
            cpu_s: after.cpu.saturating_sub(before.cpu).as_secs_f64(),
            context_switches_per_s: after.context_switches.saturating_sub(before.context_switches) as f64
                / seconds,
            threads: after.threads,
            rss_bytes: after.rss_bytes,
        });
        Ok(Reading { seconds, client_cpu, server })
    }
}

impl Reading {
    /// Returns the server's time on cores, seconds; `None` if its process is not known.
    pub(crate) fn server_cpu_s(&self) -> Option<f64> {
        self.server.map(|server| server.cpu_s)
    }

    pub(crate) fn server_rss_bytes(&self) -> Option<u64> {
        self.server.map(|server| server.rss_bytes)
    }

    /// Writes the cost of both sides, and the bottleneck.
    pub(crate) fn write(&self, late: &Distribution, line: &mut Line) {
        self.write_server(line);
        line.value("client_cpu", "percent of a core", 100.0 * self.client_cpu);
        line.metric(late.clone());
        if late.millis_at(0.99) > CLIENT_LATE_MS_MAX || self.client_cpu > CLIENT_CPU_MAX {
            line.bottleneck = Some("client");
        }
    }

    pub(crate) fn write_server(&self, line: &mut Line) {
        let Some(server) = self.server else { return };
        line.value("server_cpu", "percent of a core", 100.0 * server.cpu_s / self.seconds);
        line.value("context_switches", "1/s", server.context_switches_per_s);
        line.value("threads", "threads", server.threads as f64);
        line.value("rss", "MiB", server.rss_bytes as f64 / 1_048_576.0);
    }
}

/// Lateness of this thread, measured by a task that wakes on a fixed beat.
#[derive(Debug)]
pub(crate) struct Lateness {
    seen: Rc<RefCell<Distribution>>,
    task: JoinHandle<()>,
}

impl Lateness {
    /// Begins to measure. Needs a local task set.
    pub(crate) fn watch() -> anyhow::Result<Self> {
        let seen = Rc::new(RefCell::new(client_late()));
        let pacer = Pacer::new()?;
        let task = tokio::task::spawn_local({
            let seen = Rc::clone(&seen);
            async move {
                let mut due = clock::now();
                loop {
                    due = due + TICK;
                    let Ok(late) = pacer.until(due).await else { return };
                    seen.borrow_mut().record(late);
                }
            }
        });
        Ok(Self { seen, task })
    }

    /// Ends the measurement; returns the lateness so far.
    pub(crate) fn stop(self) -> Distribution {
        self.task.abort();
        self.seen.borrow().clone()
    }
}

/// Returns an empty distribution of the client's lateness.
pub(crate) fn client_late() -> Distribution {
    Distribution::new("client_late")
}

/// Returns the time that this thread has been on a core.
fn thread_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanos) =
        (u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
    Duration::new(seconds, nanos)
}
