//! Clients that come and go without a pause: the number that the server lets in.

use std::rc::Rc;
use std::time::Duration;

use antiphon::door::clock;
use antiphon::door::message::Moment;

use crate::Lines;
use crate::gauge::{Gauge, Lateness};
use crate::report::Distribution;
use crate::session::{NoSession, Session};
use crate::target::{Target, TargetArgs};

/// Clients that connect, see session.created, close, and connect again
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ChurnArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Clients at once; a list gives a line each
    #[arg(long, value_delimiter = ',', default_value = "1,4,16", value_parser = crate::session_count)]
    pub(crate) clients: Vec<usize>,
    /// Seconds for each number of clients
    #[arg(long, default_value_t = 5.0, value_parser = crate::seconds)]
    pub(crate) seconds: f64,
}

/// Units of our server, unless --units is given.
const UNITS: usize = 4;

#[derive(Debug)]
struct Tally {
    created: Distribution,
    refused: u64,
}

impl Tally {
    fn new() -> Self {
        Self { created: Distribution::new("connect_to_created"), refused: 0 }
    }
}

pub(crate) async fn run(args: &ChurnArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let target = Rc::new(Target::start(&args.target, UNITS).await?);
    for &clients in &args.clients {
        let (lateness, gauge) = (Lateness::watch()?, Gauge::start(&target)?);
        let end = clock::now() + Duration::from_secs_f64(args.seconds);
        let mut coming = tokio::task::JoinSet::new();
        for _ in 0..clients {
            coming.spawn_local(come_and_go(Rc::clone(&target), end));
        }
        let mut sum = Tally::new();
        while let Some(tally) = coming.join_next().await {
            let tally = tally??;
            sum.created.add(&tally.created);
            sum.refused += tally.refused;
        }
        let (reading, late) = (gauge.stop(&target)?, lateness.stop());

        let mut line = target.line("churn");
        line.dimension("clients", clients);
        line.dimension("seconds", args.seconds);
        let claims = sum.created.count() as f64;
        line.value("claims", "1/s", claims / reading.seconds);
        if let Some(units) = target.units() {
            line.value("claims_per_unit", "1/s", claims / reading.seconds / units as f64);
        }
        line.value("refusals", "1/s", sum.refused as f64 / reading.seconds);
        if let Some(cpu_s) = reading.server_cpu_s() {
            line.value("cpu_per_connection", "ms", 1_000.0 * cpu_s / (claims + sum.refused as f64));
        }
        line.metric(sum.created);
        reading.write(&late, &mut line);
        lines.add(line);
    }
    Ok(())
}

async fn come_and_go(target: Rc<Target>, end: Moment) -> anyhow::Result<Tally> {
    let mut tally = Tally::new();
    while clock::now() < end {
        let called = clock::now();
        match Session::open(&target).await {
            Ok(session) => {
                tally.created.record(clock::now().since(called));
                session.close().await;
            }
            Err(NoSession::Refused { .. }) => tally.refused += 1,
            Err(NoSession::Failed(error)) => return Err(error),
        }
    }
    Ok(tally)
}
