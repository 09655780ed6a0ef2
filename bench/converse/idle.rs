//! The cost of silent sessions: no part of the server may poll.

use std::time::Duration;

use anyhow::bail;

use crate::Lines;
use crate::gauge::{Gauge, Reading};
use crate::report::Line;
use crate::session::{NoSession, Session};
use crate::target::{Target, TargetArgs};

/// Silent sessions
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct IdleArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Sessions, and units of our server: each number is measured without and with them connected
    #[arg(long, value_delimiter = ',', default_value = "1,64", value_parser = crate::session_count)]
    pub(crate) sessions: Vec<usize>,
    /// Seconds for each measurement
    #[arg(long, default_value_t = 10.0, value_parser = crate::seconds)]
    pub(crate) seconds: f64,
}

/// Time until the server has settled: connections are open, buffers touched.
const SETTLE: Duration = Duration::from_secs(1);

/// Resident memory of a server with `units` units, bytes.
#[derive(Clone, Copy, Debug)]
struct Size {
    units: usize,
    empty: u64,
    connected: u64,
}

pub(crate) async fn run(args: &IdleArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let mut smallest: Option<Size> = None;
    for &sessions in &args.sessions {
        let target = Target::start(&args.target, sessions).await?;
        let empty = measure(args, &target, 0, lines).await?;
        let mut open = Vec::new();
        for _ in 0..sessions {
            match Session::open(&target).await {
                Ok(session) => open.push(session),
                Err(NoSession::Refused { .. }) => {
                    bail!("refused after {} sessions of {sessions}", open.len())
                }
                Err(NoSession::Failed(error)) => return Err(error),
            }
        }
        let connected = measure(args, &target, sessions, lines).await?;
        if args.target.url.is_none()
            && let Some(units) = target.units()
            && let Some((empty, connected)) = empty.server_rss_bytes().zip(connected.server_rss_bytes())
        {
            let size = Size { units, empty, connected };
            let small = *smallest.get_or_insert(size);
            if small.units < size.units {
                lines.add(per_unit(&target, small, size));
            }
        }
        for session in open {
            session.close().await;
        }
    }
    Ok(())
}

/// Returns the line with the cost of one more unit, from two sizes of pool.
fn per_unit(target: &Target, small: Size, large: Size) -> Line {
    let mut line = target.line("idle, per unit");
    line.dimension("units", vec![small.units, large.units]);
    let more = (large.units - small.units) as f64 * 1_024.0;
    line.value("rss_per_unit", "KiB", (large.empty as f64 - small.empty as f64) / more);
    line.value("rss_per_connected_unit", "KiB", (large.connected as f64 - small.connected as f64) / more);
    line
}

async fn measure(
    args: &IdleArgs,
    target: &Target,
    connected: usize,
    lines: &mut Lines,
) -> anyhow::Result<Reading> {
    let window = Duration::from_secs_f64(args.seconds);
    tokio::time::sleep(SETTLE.min(window)).await;
    let gauge = Gauge::start(target)?;
    tokio::time::sleep(window).await;
    let reading = gauge.stop(target)?;
    let mut line = target.line("idle");
    line.dimension("connected", connected);
    line.dimension("seconds", args.seconds);
    reading.write_server(&mut line);
    lines.add(line);
    Ok(reading)
}
