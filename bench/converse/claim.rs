//! Time to get a session, and time to be refused one.

use antiphon::door::clock;
use std::time::Duration;

use anyhow::{bail, ensure};

use crate::Lines;
use crate::gauge::{Gauge, Lateness};
use crate::report::Distribution;
use crate::session::{NoSession, Session};
use crate::target::{Target, TargetArgs};

/// Connect → session.created, one client after the other
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ClaimArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Sessions, one at a time, each closed before the next
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) calls: u32,
    /// Keep each session, so that the pool fills up; --units of them, and --calls is ignored
    #[arg(long)]
    pub(crate) fill: bool,
}

/// Connect → error event, on a pool that is full
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RefuseArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Clients, one at a time
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) calls: u32,
}

/// Units of our server, unless --units is given.
const UNITS: usize = 4;

/// Time after which a refused caller that is not measured calls again.
const REFUSED_PAUSE: Duration = Duration::from_millis(10);

/// Refusals in a row after which no unit can be on its way back: huggingface/speech-to-speech takes 60 ms.
const REFUSALS_WHEN_FULL: u32 = 20;

/// Most refusals that units on their way back can explain.
const REFUSALS_MAX: u32 = 10_000;

/// Close code of a refusal. Source: huggingface/speech-to-speech 1.1.0; OpenAI has no pool to be full.
const CLOSE_POLICY: u16 = 1_008;

pub(crate) async fn claim(args: &ClaimArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let target = Target::start(&args.target, UNITS).await?;
    let mut created = Distribution::new("connect_to_created");
    let (lateness, gauge) = (Lateness::watch()?, Gauge::start(&target)?);
    let calls = match (args.fill, target.units()) {
        (false, _) => args.calls as usize,
        (true, Some(units)) => units,
        (true, None) => bail!("--fill with --url and no --units, expected the number of units"),
    };
    let (mut kept, mut refused) = (Vec::new(), 0);
    while created.count() < calls as u64 {
        let called = clock::now();
        match Session::open(&target).await {
            Ok(session) => {
                created.record(clock::now().since(called));
                if args.fill { kept.push(session) } else { session.close().await }
            }
            // The units are on their way back, which is not measured here.
            Err(NoSession::Refused { .. }) if refused < REFUSALS_MAX => {
                refused += 1;
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
            Err(NoSession::Refused { .. }) => bail!("refused with {} sessions of {calls}", created.count()),
            Err(NoSession::Failed(error)) => return Err(error),
        }
    }
    let (reading, late) = (gauge.stop(&target)?, lateness.stop());
    let mut line = target.line("claim");
    line.dimension("calls", calls);
    line.dimension("fill", args.fill);
    line.value("refused", "calls", f64::from(refused));
    if let Some(cpu_s) = reading.server_cpu_s() {
        line.value("cpu_per_call", "ms", 1_000.0 * cpu_s / calls as f64);
    }
    line.metric(created);
    reading.write(&late, &mut line);
    lines.add(line);
    Ok(())
}

/// Takes sessions until the server has none left, those on their way back included.
pub(crate) async fn fill(target: &Target) -> anyhow::Result<Vec<Session>> {
    let mut sessions = Vec::new();
    let mut refused_in_a_row = 0;
    while refused_in_a_row < REFUSALS_WHEN_FULL {
        match Session::open(target).await {
            Ok(session) => {
                sessions.push(session);
                refused_in_a_row = 0;
            }
            Err(NoSession::Refused { .. }) => {
                refused_in_a_row += 1;
                tokio::time::sleep(REFUSED_PAUSE).await;
            }
            Err(NoSession::Failed(error)) => return Err(error),
        }
    }
    Ok(sessions)
}

pub(crate) async fn refuse(args: &RefuseArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let target = Target::start(&args.target, UNITS).await?;
    let sessions = fill(&target).await?;
    ensure!(!sessions.is_empty(), "{}: refuses everybody", target.url());
    let (mut refused, mut other_close) = (Distribution::new("connect_to_refusal"), 0);
    let (lateness, gauge) = (Lateness::watch()?, Gauge::start(&target)?);
    for _ in 0..args.calls {
        let called = clock::now();
        match Session::open(&target).await {
            Ok(_) => bail!("a session beside {} others, expected a refusal", sessions.len()),
            Err(NoSession::Refused { at, close }) => {
                refused.record(at.since(called));
                other_close += u32::from(close != Some(CLOSE_POLICY));
            }
            Err(NoSession::Failed(error)) => return Err(error),
        }
    }
    let (reading, late) = (gauge.stop(&target)?, lateness.stop());
    let mut line = target.line("refuse");
    line.dimension("calls", args.calls);
    line.dimension("sessions", sessions.len());
    line.metric(refused);
    line.value("other_close", "refusals without close 1008", f64::from(other_close));
    if let Some(cpu_s) = reading.server_cpu_s() {
        line.value("cpu_per_call", "ms", 1_000.0 * cpu_s / f64::from(args.calls));
    }
    reading.write(&late, &mut line);
    lines.add(line);
    Ok(())
}
