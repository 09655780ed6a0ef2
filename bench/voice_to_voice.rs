//! From the end of the user's speech to the first audio of the answer, on the real models, one caller, part by part.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench reads clocks and starts processes"
)]

#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../tests/it/llm.rs"]
mod llm;
mod report;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../tests/it/server.rs"]
mod server;

use std::path::{Path, PathBuf};
use std::time::Duration;

use antiphon::edge::talk::{Question, Recording, Times, converse};
use serde_json::json;

use report::Series;
use server::Server;

/// Turns of a measurement; turns of a smoke run.
const TURNS: [usize; 2] = [20, 1];

/// Turns before the measured ones: first use of every buffer.
const WARM_UP_TURNS: usize = 2;

/// No answer takes longer.
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
    let turns = TURNS[usize::from(!report::is_measurement())];
    // Without the built-in model, one that repeats the question at once stands in, and the line says so.
    let (llm, server) = if cfg!(feature = "builtin-llm") {
        (None, Server::real_with(2, &[]).await)
    } else {
        let llm = llm::ScriptedLlm::start().await;
        let server = Server::real_with(2, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
        (Some(llm), server)
    };
    let clips: Vec<Recording> =
        clips().iter().map(|path| Recording::load(path).expect("a clip of the repository")).collect();
    let mut times = Vec::new();
    let mut late = Series::new("client_late", "ms");
    for (number, clip) in clips.iter().cycle().take(WARM_UP_TURNS + turns).enumerate() {
        let answer = converse(&server.url(), &Question::Spoken(clip.clone()), ANSWER_LIMIT).await;
        let answer = answer.unwrap_or_else(|error| panic!("turn {number}: {error}"));
        if number >= WARM_UP_TURNS {
            times.push(answer.times);
            late.values.push(answer.client_late_ms);
        }
    }
    let model = if llm.is_some() { "echo" } else { "built-in" };
    let dimensions =
        json!({ "callers": 1, "clips": clips.len(), "llm": model, "warm_up_turns": WARM_UP_TURNS });
    report::print("voice_to_voice", server.ready_line(), dimensions, &parts(&times, late));
}

/// The whole way and its parts; a part ends with the event that the client sees.
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
