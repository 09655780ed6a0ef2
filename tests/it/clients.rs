//! The official client package against the real server: fake stages for the protocol, real models for the whole way.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use antiphon::edge::talk::{Recording, store};
use tokio::process::Command;

use crate::llm::ScriptedLlm;
use crate::server::Server;
use crate::signal::{level, silence};

/// Units of the server; the last scenario takes all of them.
const UNITS: usize = 2;

/// About 50 s of speech, so that there is something to interrupt.
const LONG_SPEECH: &str = "It was a bright cold day in spring, and the clocks of the old town were striking one. \
    A man came down the street with a basket of apples on his arm. He stopped at every door and knocked three times. \
    Nobody opened, because everybody was at the market, where the fair had come to town. There was music in the air. \
    The children ran from one tent to the next, and the dogs ran after them. A woman sold warm bread and sweet milk. \
    In the evening the lamps were lit along the river, and the boats came home one by one with their nets full of fish.";

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients")
}

/// Runs to the end; what it printed is in the message if it fails.
async fn run(program: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await;
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; this test needs it", program.display()));
    let printed = String::from_utf8_lossy(&output.stdout);
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {args:?}: {}\n{printed}{error}", program.display(), output.status);
    output
}

/// The Python of a virtual environment that has exactly the pinned packages.
async fn python() -> PathBuf {
    let requirements = folder().join("requirements.txt");
    let wanted = std::fs::read_to_string(&requirements).expect("the file is in the repository");
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients-venv");
    let (python, stamp) = (venv.join("bin/python"), venv.join("installed.txt"));
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return python;
    }
    let venv = venv.to_str().expect("UTF-8");
    run(Path::new("python3"), &["-m", "venv", "--clear", venv]).await;
    let requirements = requirements.to_str().expect("UTF-8");
    let install =
        ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--requirement", requirements];
    run(&python, &install).await;
    std::fs::write(&stamp, wanted).expect("the environment has just been made");
    python
}

async fn run_scenarios(server: &Server, wav: &Path, question: &str, long_question: &str) {
    let python = python().await;
    let script = folder().join("realtime.py");
    let (url, units) = (server.url(), UNITS.to_string());
    let args = [
        script.to_str().expect("UTF-8"),
        "--url",
        &url,
        "--wav",
        wav.to_str().expect("UTF-8"),
        "--question",
        question,
        "--long-question",
        long_question,
        "--units",
        &units,
    ];
    let output = run(&python, &args).await;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    server.all_units_free().await;
}

#[tokio::test]
async fn the_official_client_and_fake_stages() {
    let server = Server::fake(UNITS).await;
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let wav = temporary.path().join("utterance.wav");
    store(&wav, &[silence(200), level(1_500, 6_000), silence(100)].concat()).expect("stored");
    run_scenarios(&server, &wav, "say dur=0.5 tag=321", "say dur=60 tag=123 rt=1").await;
}

#[tokio::test]
async fn the_official_client_and_real_models() {
    let llm = ScriptedLlm::start().await;
    let server = Server::real_with(UNITS, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let temporary = tempfile::tempdir().expect("a temporary folder");
    let wav = temporary.path().join("utterance.wav");
    let clip = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech/austen-0880.wav");
    let recording = Recording::load(&clip).expect("a clip of the repository");
    store(&wav, recording.samples()).expect("stored");
    run_scenarios(&server, &wav, "What is the weather like today?", LONG_SPEECH).await;
}

/// The endpoints beside the Realtime one, on real models and the built-in language model.
#[cfg(feature = "builtin-llm")]
#[tokio::test]
async fn the_official_client_and_the_other_endpoints() {
    let server = Server::real_with(1, &["--serve-endpoints"]).await;
    let python = python().await;
    let (script, url) = (folder().join("endpoints.py"), format!("http://{}/v1", server.addr()));
    let clip = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech/austen-0880.wav");
    let (script, clip) = (script.to_str().expect("UTF-8"), clip.to_str().expect("UTF-8"));
    let output =
        run(&python, &[script, "--url", &url, "--wav", clip, "--words", "young man", "--understands"]).await;
    print!("{}", String::from_utf8_lossy(&output.stdout));
    server.all_units_free().await;
}
