//! Programs that people already use, unchanged, against the real server: fake stages, and real models for the whole way.

use std::path::Path;

use antiphon::door::audio::SampleRate;
use antiphon::door::talk::{Recording, store};

use crate::installed::{Client, utf8};
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
#[cfg(feature = "builtin-llm")]
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

/// `RealtimeRunner` of the agents SDK for Python.
const AGENTS_PYTHON: Client =
    Client { interpreter: "python", program: "agents_runner.py", pins: &["requirements/openai-agents.txt"] };

/// The realtime model of LiveKit's agents.
const LIVEKIT: Client =
    Client { interpreter: "python", program: "livekit_agent.py", pins: &["requirements/livekit.txt"] };

/// pipecat's realtime service.
const PIPECAT: Client =
    Client { interpreter: "python", program: "pipecat_pipeline.py", pins: &["requirements/pipecat.txt"] };

impl Client {
    /// Runs the program with `utterance` as a file; it fails unless everything that its user would check is right.
    async fn converse(self, server: &Server, utterance: &[i16], args: &[&str]) {
        let temporary = tempfile::tempdir().expect("a temporary folder");
        let wav = temporary.path().join("utterance.wav");
        store(&wav, utterance, SampleRate::HZ_24K).expect("stored");
        self.run(&[&["--url", &server.url(), "--wav", utf8(&wav)], args].concat()).await;
        server.all_units_free().await;
    }
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
    let recording = Recording::load(&clip, SampleRate::HZ_24K).expect("a clip of the repository");
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
async fn openai_agents_for_python() {
    on_fake_stages(AGENTS_PYTHON, &[]).await;
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
