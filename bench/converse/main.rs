//! Open-loop load on any server that speaks the OpenAI Realtime protocol; `README.md` in this folder describes each
//! case.
//!
//! The client has one thread. It shares the machine with the server, so its lines also give the client's own cost, its
//! lateness, and the runs in which the client was the bottleneck.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench waits, and starts processes"
)]

mod cancel;
mod churn;
mod claim;
mod event;
mod flood;
mod gauge;
mod idle;
mod leak;
mod outbound;
mod pacer;
mod release;
#[path = "../report.rs"]
mod report;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../../tests/it/rng.rs"]
mod rng;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../../tests/it/server.rs"]
mod server;
mod session;
mod smoke;
mod talk;
mod talker;
mod target;
mod track;

use std::process::ExitCode;

use clap::Parser;
use tokio::task::LocalSet;

use report::Line;
use target::TargetArgs;

/// Measures a Realtime server from outside; one JSON object per line on stdout, the same for people on stderr
#[derive(Debug, Parser)]
#[command(name = "converse")]
struct Cli {
    #[command(subcommand)]
    case: Option<Case>,
    /// Passed by `cargo bench`: this is a measurement
    #[arg(long, global = true, hide = true)]
    bench: bool,
}

#[derive(Clone, Debug, clap::Subcommand)]
enum Case {
    Talk(talk::TalkArgs),
    Outbound(outbound::OutboundArgs),
    Flood(flood::FloodArgs),
    Claim(claim::ClaimArgs),
    Refuse(claim::RefuseArgs),
    Release(release::ReleaseArgs),
    Churn(churn::ChurnArgs),
    Cancel(cancel::CancelArgs),
    Leak(leak::LeakArgs),
    Idle(idle::IdleArgs),
}

/// All cases, with their defaults.
const CASES: [&str; 10] =
    ["talk", "outbound", "flood", "claim", "refuse", "release", "churn", "cancel", "leak", "idle"];

/// The lines of one command.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    repeat: u32,
    lines: Vec<Line>,
}

impl Lines {
    /// Prints and keeps a line.
    pub(crate) fn add(&mut self, mut line: Line) {
        line.dimension("repeat", self.repeat);
        line.print();
        eprint!("{}", line.summary());
        self.lines.push(line);
    }

    /// Returns the last line.
    pub(crate) fn last(&self) -> &Line {
        self.lines.last().expect("a case prints a line")
    }
}

impl Case {
    /// Returns the case of a command line.
    pub(crate) fn parse(command: &str) -> Self {
        let words = std::iter::once("converse").chain(command.split(' '));
        Cli::try_parse_from(words).ok().and_then(|cli| cli.case).expect("a command line of ours")
    }

    fn target(&self) -> &TargetArgs {
        match self {
            Self::Talk(args) => &args.target,
            Self::Outbound(args) => &args.target,
            Self::Flood(args) => &args.target,
            Self::Claim(args) => &args.target,
            Self::Refuse(args) => &args.target,
            Self::Release(args) => &args.target,
            Self::Churn(args) => &args.target,
            Self::Cancel(args) => &args.target,
            Self::Leak(args) => &args.target,
            Self::Idle(args) => &args.target,
        }
    }

    pub(crate) async fn run(&self, lines: &mut Lines) -> anyhow::Result<()> {
        for repeat in 0..self.target().repeats {
            lines.repeat = repeat;
            match self {
                Self::Talk(args) => talk::run(args, lines).await?,
                Self::Outbound(args) => outbound::run(args, lines).await?,
                Self::Flood(args) => flood::run(args, lines).await?,
                Self::Claim(args) => claim::claim(args, lines).await?,
                Self::Refuse(args) => claim::refuse(args, lines).await?,
                Self::Release(args) => release::run(args, lines).await?,
                Self::Churn(args) => churn::run(args, lines).await?,
                Self::Cancel(args) => cancel::run(args, lines).await?,
                Self::Leak(args) => leak::run(args, lines).await?,
                Self::Idle(args) => idle::run(args, lines).await?,
            }
        }
        Ok(())
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let cli = Cli::parse();
    match LocalSet::new().run_until(run(&cli)).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("converse: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: &Cli) -> anyhow::Result<()> {
    match &cli.case {
        Some(case) => case.run(&mut Lines::default()).await,
        None if cli.bench => {
            for case in CASES {
                Case::parse(case).run(&mut Lines::default()).await?;
            }
            Ok(())
        }
        None => smoke::run().await,
    }
}

/// Parses a number of sessions from the command line.
pub(crate) fn session_count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count @ 1..=16_384) => Ok(count),
        _ => Err(format!("found {text}, expected a number of sessions in 1..=16384")),
    }
}

/// Parses a length of time from the command line, seconds.
pub(crate) fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && seconds <= 86_400.0 => Ok(seconds),
        _ => Err(format!("found {text}, expected seconds, more than 0 and at most 86400")),
    }
}
