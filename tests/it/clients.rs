//! Programs that people already use, unchanged, against the real server: fake stages, and real models for the whole way.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use antiphon::edge::talk::{Recording, store};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::llm::ScriptedLlm;
use crate::server::Server;
use crate::signal::{level, silence};

/// Units of the server; the last scenario of the official client takes all of them.
const UNITS: usize = 2;

/// About 50 s of speech, so that there is something to interrupt.
const LONG_SPEECH: &str = "It was a bright cold day in spring, and the clocks of the old town were striking one. \
    A man came down the street with a basket of apples on his arm. He stopped at every door and knocked three times. \
    Nobody opened, because everybody was at the market, where the fair had come to town. There was music in the air. \
    The children ran from one tent to the next, and the dogs ran after them. A woman sold warm bread and sweet milk. \
    In the evening the lamps were lit along the river, and the boats came home one by one with their nets full of fish.";

/// The official package, every event checked strictly.
const OPENAI: Client =
    Client { interpreter: "python", program: "realtime.py", pins: &["requirements/openai.txt"] };

/// The same package against the endpoints beside the Realtime one.
const ENDPOINTS: Client =
    Client { interpreter: "python", program: "endpoints.py", pins: &["requirements/openai.txt"] };

/// And its types against the guide's tables of events.
const EVENTS: Client =
    Client { interpreter: "python", program: "events.py", pins: &["requirements/openai.txt"] };

/// `RealtimeSession` of the agents SDK; node and npm come from PyPI too.
const AGENTS: Client = Client {
    interpreter: "node",
    program: "agents.mjs",
    pins: &["requirements/agents.txt", "package.json", "package-lock.json"],
};

/// The realtime model of LiveKit's agents.
const LIVEKIT: Client =
    Client { interpreter: "python", program: "livekit_agent.py", pins: &["requirements/livekit.txt"] };

/// pipecat's realtime service.
const PIPECAT: Client =
    Client { interpreter: "python", program: "pipecat_pipeline.py", pins: &["requirements/pipecat.txt"] };

/// One environment is made at a time: two clients may share it.
static INSTALLING: Mutex<()> = Mutex::const_new(());

/// A client as its makers publish it, and the program of ours that talks through it.
#[derive(Clone, Copy, Debug)]
struct Client {
    /// Name in the `bin` of the environment.
    interpreter: &'static str,
    /// File in `tests/clients`.
    program: &'static str,
    /// Files in `tests/clients` that say what is installed, the Python packages first.
    pins: &'static [&'static str],
}

impl Client {
    /// A folder that is a virtual environment with exactly the pinned packages; those of npm are in its `node_modules`.
    async fn environment(self) -> PathBuf {
        let pins: Vec<_> = self.pins.iter().map(|pin| source(pin)).collect();
        let wanted: String =
            pins.iter().map(|pin| std::fs::read_to_string(pin).expect("in the repository")).collect();
        let (requirements, packages) = pins.split_first().expect("Python packages");
        let name = requirements.file_stem().expect("a file");
        let home = Path::new(env!("CARGO_TARGET_TMPDIR")).join("clients").join(name);
        let _one_at_a_time = INSTALLING.lock().await;
        let stamp = home.join("installed.txt");
        if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
            return home;
        }
        run("python3".as_ref(), &["-m", "venv", "--clear", utf8(&home)]).await;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"];
        run(&home.join("bin/python"), &[&pip[..], &["--requirement", utf8(requirements)]].concat()).await;
        for file in packages {
            copy(file, &home);
        }
        if !packages.is_empty() {
            let npm = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--prefix", utf8(&home)];
            run(&home.join("bin/npm"), &npm).await;
        }
        std::fs::write(&stamp, wanted).expect("the environment has just been made");
        home
    }

    /// Runs the program with `utterance` as a file; it fails unless everything that its user would check is right.
    async fn converse(self, server: &Server, utterance: &[i16], args: &[&str]) {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let wav = temporary.path().join("utterance.wav");
        store(&wav, utterance).expect("stored");
        self.run(&[&["--url", &server.url(), "--wav", utf8(&wav)], args].concat()).await;
        server.all_units_free().await;
    }

    async fn run(self, args: &[&str]) {
        let home = self.environment().await;
        // Node looks for packages beside the program, Python in its environment.
        let program = if self.interpreter == "node" {
            copy(&source(self.program), &home)
        } else {
            source(self.program)
        };
        let args = [&[utf8(&program)], args].concat();
        print!("{}", run(&home.join("bin").join(self.interpreter), &args).await);
    }
}

fn source(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(file)
}

fn utf8(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn copy(file: &Path, folder: &Path) -> PathBuf {
    let copied = folder.join(file.file_name().expect("a file"));
    std::fs::copy(file, &copied).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    copied
}

/// Runs to the end and gives what was printed; that is in the message if it fails.
async fn run(program: &Path, args: &[&str]) -> String {
    let mut command = Command::new(program);
    command.args(args).stdin(Stdio::null()).kill_on_drop(true);
    let output = command.output().await;
    let output = output.unwrap_or_else(|error| panic!("{}: {error}; this test needs it", program.display()));
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{} {args:?}: {}\n{printed}{error}", program.display(), output.status);
    printed
}

/// Fake stages and the scripted language model, which echoes, or calls the function that it is told to call.
async fn on_fake_stages(client: Client, args: &[&str]) {
    let llm = ScriptedLlm::start().await;
    let server = Server::fake_with(UNITS, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    // What the energy detector hears for one and a half seconds.
    let utterance = [silence(200), level(1_500, 6_000), silence(100)].concat();
    client.converse(&server, &utterance, args).await;
}

#[tokio::test]
async fn the_official_client_and_fake_stages() {
    let questions = ["--question", "say dur=0.5 tag=321", "--long-question", "say dur=60 tag=123 rt=1"];
    let units = UNITS.to_string();
    on_fake_stages(OPENAI, &[&questions[..], &["--units", &units]].concat()).await;
}

#[tokio::test]
async fn the_official_client_and_real_models() {
    let llm = ScriptedLlm::start().await;
    let server = Server::real_with(UNITS, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let clip = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech/austen-0880.wav");
    let recording = Recording::load(&clip).expect("a clip of the repository");
    let questions = ["--question", "What is the weather like today?", "--long-question", LONG_SPEECH];
    let units = UNITS.to_string();
    let args = [&questions[..], &["--units", &units]].concat();
    OPENAI.converse(&server, recording.samples(), &args).await;
}

#[tokio::test]
async fn the_guide_knows_every_event_of_the_official_client() {
    EVENTS.run(&["--root", env!("CARGO_MANIFEST_DIR")]).await;
}

#[tokio::test]
async fn openai_agents() {
    on_fake_stages(AGENTS, &[]).await;
}

#[tokio::test]
async fn livekit() {
    on_fake_stages(LIVEKIT, &[]).await;
}

#[tokio::test]
async fn pipecat() {
    on_fake_stages(PIPECAT, &[]).await;
}

/// The endpoints beside the Realtime one, on real models and the built-in language model.
#[cfg(feature = "builtin-llm")]
#[tokio::test]
async fn the_official_client_and_the_other_endpoints() {
    let server = Server::real_with(1, &["--serve-endpoints"]).await;
    let url = format!("http://{}/v1", server.addr());
    let clip = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech/austen-0880.wav");
    let args = ["--url", &url, "--wav", utf8(&clip), "--words", "young man", "--understands"];
    ENDPOINTS.run(&args).await;
    server.all_units_free().await;
}
