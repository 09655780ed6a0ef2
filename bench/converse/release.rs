//! Time from a client's leaving until its unit can be claimed again, measured over sockets.

use antiphon::door::clock;
use antiphon::door::message::Moment;
use anyhow::{Context, ensure};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::Lines;
use crate::claim;
use crate::event::Event;
use crate::gauge::{Gauge, Lateness};
use crate::report::Distribution;
use crate::session::{NoSession, Session};
use crate::target::{Target, TargetArgs};

/// A client leaves → the next caller has its session
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ReleaseArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Leavings of each kind
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) leavings: u32,
    /// Ways in which the client leaves
    #[arg(long, value_delimiter = ',', default_value = "close,fin,rst,fin-in-answer")]
    pub(crate) by: Vec<Leaving>,
    /// Ask GET /v1/pool as well, over a kept connection, when the unit is idle
    #[arg(long)]
    pub(crate) watch_pool: bool,
}

/// A way in which a client leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Leaving {
    /// WebSocket close.
    Close,
    /// TCP FIN without a WebSocket close.
    Fin,
    /// TCP RST without a WebSocket close.
    Rst,
    /// FIN in the middle of a paced answer.
    FinInAnswer,
    /// FIN in the middle of an answer that comes in a burst.
    FinInBurst,
}

pub(crate) async fn run(args: &ReleaseArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let target = Target::start(&args.target, 1).await?;
    for &leaving in &args.by {
        measure(args, &target, leaving, lines).await?;
    }
    Ok(())
}

async fn measure(
    args: &ReleaseArgs,
    target: &Target,
    leaving: Leaving,
    lines: &mut Lines,
) -> anyhow::Result<()> {
    let mut next_session = Distribution::new("leave_to_next_session");
    let mut pool_idle = Distribution::new("leave_to_pool_idle");
    let mut refusals = 0;
    let mut pool = if args.watch_pool { Some(PoolWatch::open(target).await?) } else { None };
    // All others stay, so that only the unit of the one that leaves can be claimed next.
    let mut others = claim::fill(target).await?;
    let mut last = others.pop().context("the server refuses everybody")?;
    let in_use = others.len() as u64;
    let (lateness, gauge) = (Lateness::watch()?, Gauge::start(target)?);
    for _ in 0..args.leavings {
        if let Some(pool) = &mut pool {
            let left = leave(last, leaving).await?;
            while pool.in_use().await? > in_use {}
            pool_idle.record(clock::now().since(left));
            last = call(target, &mut refusals).await?;
        }
        let left = leave(last, leaving).await?;
        last = call(target, &mut refusals).await?;
        next_session.record(clock::now().since(left));
    }
    let (reading, late) = (gauge.stop(target)?, lateness.stop());
    last.close().await;
    for session in others {
        session.close().await;
    }

    let mut line = target.line("release");
    line.dimension("leaving", format!("{leaving:?}"));
    line.dimension("leavings", args.leavings);
    if args.watch_pool {
        line.metric(pool_idle);
    }
    line.metric(next_session);
    line.value("refused_calls", "calls", f64::from(refusals));
    reading.write(&late, &mut line);
    lines.add(line);
    Ok(())
}

/// Calls until the server gives a session. The next caller does not ask first if a unit is free.
async fn call(target: &Target, refusals: &mut u32) -> anyhow::Result<Session> {
    loop {
        match Session::open(target).await {
            Ok(session) => return Ok(session),
            Err(NoSession::Refused { .. }) => *refusals += 1,
            Err(NoSession::Failed(error)) => return Err(error),
        }
    }
}

/// Leaves, in the middle of an answer if `leaving` requires it; returns the moment right before.
async fn leave(mut session: Session, leaving: Leaving) -> anyhow::Result<Moment> {
    match leaving {
        Leaving::FinInAnswer => begin_answer(&mut session, 1).await?,
        Leaving::FinInBurst => begin_answer(&mut session, 0).await?,
        Leaving::Close | Leaving::Fin | Leaving::Rst => {}
    }
    let begin = clock::now();
    match leaving {
        Leaving::Close => session.close().await,
        Leaving::Fin | Leaving::FinInAnswer | Leaving::FinInBurst => session.cut(),
        Leaving::Rst => session.reset()?,
    }
    Ok(begin)
}

async fn begin_answer(session: &mut Session, rt: u8) -> anyhow::Result<()> {
    session.ask(&format!("say dur=600 tag=7 rt={rt}")).await?;
    loop {
        let text = session.next().await?;
        let event = Event::parse(&text)?;
        ensure!(event.kind() != "error", "{text}");
        if event.is_audio() {
            return Ok(());
        }
    }
}

/// A kept connection for requests to `/v1/pool`, so that a request costs little.
struct PoolWatch {
    stream: TcpStream,
    request: String,
}

impl PoolWatch {
    async fn open(target: &Target) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(target.addr()).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, request: format!("GET /v1/pool HTTP/1.1\r\nHost: {}\r\n\r\n", target.addr()) })
    }

    async fn in_use(&mut self) -> anyhow::Result<u64> {
        self.stream.write_all(self.request.as_bytes()).await?;
        let mut answer = Vec::new();
        let body = loop {
            let read = self.stream.read_buf(&mut answer).await?;
            ensure!(read > 0, "GET /v1/pool: the server closed a kept connection");
            if let Some(body) = whole_body(&answer) {
                break body;
            }
        };
        let pool: Value = serde_json::from_str(body).with_context(|| format!("GET /v1/pool: {body}"))?;
        pool["in_use"].as_u64().with_context(|| format!("GET /v1/pool: {body}, expected in_use"))
    }
}

/// Returns the body of an HTTP answer once all of it has come.
fn whole_body(answer: &[u8]) -> Option<&str> {
    let (head, body) = std::str::from_utf8(answer).ok()?.split_once("\r\n\r\n")?;
    let length = head
        .to_lowercase()
        .lines()
        .find_map(|line| line.strip_prefix("content-length:")?.trim().parse().ok());
    (Some(body.len()) == length).then_some(body)
}
