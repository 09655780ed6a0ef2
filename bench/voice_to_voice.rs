//! Time from the end of the user's speech to the first audio of the answer, on the real models, part by part.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench reads clocks and starts processes"
)]

#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../tests/it/llm/mod.rs"]
mod llm;
mod report;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../tests/it/server.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon::door::talk::{Question, Recording, TalkRate, Times, converse};
use clap::Parser;
use futures_util::future::join_all;
use serde_json::json;

use report::Series;
use server::Server;

/// Arguments behind `cargo bench --bench voice_to_voice --`.
#[derive(Debug, Parser)]
struct Args {
    /// Callers at a time
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=64))]
    callers: u16,
    /// Further argument of the server, as in --server-arg=--profile=FILE; may be given several times
    #[arg(long, value_name = "ARG", allow_hyphen_values = true)]
    server_arg: Vec<String>,
    /// Passed by `cargo bench`
    #[arg(long, hide = true)]
    bench: bool,
}

/// Turns per caller of a measurement, and of a smoke run.
const TURNS: [usize; 2] = [20, 1];

/// Turns before the measured ones, which are the first use of every buffer.
const WARM_UP_TURNS: usize = 2;

/// Longest wait for an answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(120);

fn clips() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech");
    let entries = std::fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut clips: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    clips.retain(|path| path.extension().is_some_and(|extension| extension == "wav"));
    clips.sort();
    clips
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args = Args::parse();
    let turns = TURNS[usize::from(!report::is_measurement())];
    let units = usize::from(args.callers.max(2));
    let mut server_args: Vec<_> = args.server_arg.iter().map(String::as_str).collect();
    // Without the built-in model, one that repeats the question at once stands in, as the line then shows.
    let echo = if cfg!(feature = "builtin-llm") { None } else { Some(llm::ScriptedLlm::start().await) };
    let url = echo.as_ref().map(llm::ScriptedLlm::url);
    if let Some(url) = &url {
        server_args.extend(["--llm-url", url, "--llm-model", "scripted"]);
    }
    let server = Server::real_with(units, &server_args).await;
    let clips: Vec<Recording> = clips()
        .iter()
        .map(|path| Recording::load(path, TalkRate::Named.get()).expect("a clip of the repository"))
        .collect();
    let url = server.url();
    let callers = join_all((0..args.callers).map(|caller| call(&url, &clips, caller.into(), turns))).await;
    let (times, late): (Vec<_>, Vec<_>) = callers.into_iter().flatten().unzip();
    let model = if echo.is_some() { "echo" } else { "built-in" };
    let dimensions = json!({ "callers": args.callers, "clips": clips.len(), "llm": model,
                             "warm_up_turns": WARM_UP_TURNS });
    let mut client_late = Series::new("client_late", "ms");
    client_late.values = late;
    report::print("voice_to_voice", server.ready_line(), dimensions, &parts(&times, client_late));
}

/// Plays the turns of one caller; returns their times, each with the client's own lateness, ms. Each caller begins
/// with another clip, so that the callers do not end in step.
async fn call(url: &str, clips: &[Recording], caller: usize, turns: usize) -> Vec<(Times, f64)> {
    let mut heard = Vec::new();
    for (number, clip) in clips.iter().cycle().skip(caller).take(WARM_UP_TURNS + turns).enumerate() {
        let answer = converse(url, &Question::Spoken(clip.clone()), TalkRate::Named, ANSWER_LIMIT).await;
        let answer = answer.unwrap_or_else(|error| panic!("caller {caller}, turn {number}: {error}"));
        if number >= WARM_UP_TURNS {
            heard.push((answer.times, answer.client_late_ms));
        }
    }
    heard
}

/// Returns the whole time and its parts. A part ends with an event at the client.
fn parts(times: &[Times], late: Series) -> Vec<Series> {
    let series = |name, from: fn(&Times) -> Option<f64>, to: fn(&Times) -> Option<f64>| {
        let values = times.iter().filter_map(|t| Some(to(t)? - from(t)?)).collect();
        Series { name, unit: "ms", values }
    };
    vec![
        series("voice_to_voice", |_| Some(0.0), |t| t.first_audio_ms),
        series("endpoint_wait", |_| Some(0.0), |t| t.endpoint_ms),
        series("stt", |t| t.endpoint_ms, |t| t.transcript_ms),
        series("llm_first_clause", |t| t.transcript_ms, |t| t.first_text_ms),
        series("tts_first_audio", |t| t.first_text_ms, |t| t.first_audio_ms),
        series("answer_complete", |_| Some(0.0), |t| Some(t.done_ms)),
        late,
    ]
}
