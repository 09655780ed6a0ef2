//! What `antiphon serve` is asked to do. Parsed once; nothing changes afterwards.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::language::Language;

/// Starts the server.
#[derive(Clone, Debug, clap::Args)]
pub struct ServeArgs {
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one, the ready line names it
    #[arg(long, default_value_t = 8765)]
    pub port: u16,
    /// Conversations at a time [default: as the profile says]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=crate::limits::UNITS_MAX as i64))]
    pub units: Option<u16>,
    /// Hardware profile: auto, the name of a built-in one, or a TOML file
    #[arg(long, value_name = "auto|NAME|FILE", default_value = "auto")]
    pub profile: String,
    /// Real models, or deterministic fakes for engine tests and benches
    #[arg(long, value_enum, default_value_t = Stages::Real)]
    pub stages: Stages,
    /// Voice activity detector; energy is a fake and needs --stages fake [default: silero, with fake stages energy]
    #[arg(long, value_enum)]
    pub vad: Option<Detector>,
    /// Base address of an OpenAI-compatible server, up to and including /v1 [default: the built-in model]
    #[arg(long, value_name = "URL")]
    pub llm_url: Option<String>,
    /// API of that server [default: as the address ends, else chat]
    #[arg(long, value_enum, requires = "llm_url")]
    pub llm_api: Option<LlmApi>,
    /// Model to ask that server for
    #[arg(long, value_name = "NAME", requires = "llm_url")]
    pub llm_model: Option<String>,
    /// Environment variable that holds that server's key
    #[arg(long, value_name = "VARIABLE", requires = "llm_url")]
    pub llm_key_env: Option<String>,
    /// Model file for the built-in language model [default: SmolLM2-135M-Instruct]
    #[arg(long, value_name = "FILE", conflicts_with = "llm_url")]
    pub llm_gguf: Option<PathBuf>,
    /// Tokens of prompt and answer together [default: as that server's list of models says, else 32768; built-in: 2048]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(512..=16_777_216))]
    pub llm_context: Option<u32>,
    /// That server's model sees no pictures: refuse them; else they are passed on, and what comes of it is that server's
    #[arg(long, requires = "llm_url", conflicts_with = "llm_image_urls")]
    pub llm_no_images: bool,
    /// Pass web addresses of pictures on to that server, which then fetches them; else only pictures within the message
    #[arg(long, requires = "llm_url")]
    pub llm_image_urls: bool,
    /// Seconds until the language model's first token [default: 20]
    #[arg(long, value_name = "SECONDS")]
    pub llm_first_token_s: Option<f64>,
    /// Seconds between two tokens of the language model [default: 10]
    #[arg(long, value_name = "SECONDS")]
    pub llm_between_tokens_s: Option<f64>,
    /// Base address of a server with /audio/transcriptions, up to and including /v1 [default: the built-in recogniser]
    #[arg(long, value_name = "URL")]
    pub stt_url: Option<String>,
    /// Model to ask that server for
    #[arg(long, value_name = "NAME", requires = "stt_url")]
    pub stt_model: Option<String>,
    /// What that server is asked for; verbose_json names the language spoken, and not every server has it
    #[arg(long, value_enum, requires = "stt_url", default_value_t = SttFormat::Json)]
    pub stt_format: SttFormat,
    /// Environment variable that holds that server's key
    #[arg(long, value_name = "VARIABLE", requires = "stt_url")]
    pub stt_key_env: Option<String>,
    /// Seconds until that server has answered
    #[arg(long, value_name = "SECONDS", requires = "stt_url", default_value_t = 30.0)]
    pub stt_timeout_s: f64,
    /// Base address of a server with /audio/speech, up to and including /v1 [default: the built-in voice]
    #[arg(long, value_name = "URL")]
    pub tts_url: Option<String>,
    /// Model to ask that server for
    #[arg(long, value_name = "NAME", requires = "tts_url")]
    pub tts_model: Option<String>,
    /// Voice to ask that server for; again with a language before it, fr=NAME, for text in that language
    #[arg(long, value_name = "[LANGUAGE=]NAME", requires = "tts_url")]
    pub tts_voice: Vec<VoiceName>,
    /// Environment variable that holds that server's key
    #[arg(long, value_name = "VARIABLE", requires = "tts_url")]
    pub tts_key_env: Option<String>,
    /// Seconds until that server's first audio, and between two pieces of it
    #[arg(long, value_name = "SECONDS", requires = "tts_url", default_value_t = 10.0)]
    pub tts_timeout_s: f64,
    /// Serve /v1/audio/transcriptions and /v1/audio/speech on this server's models, and pass /v1/chat/completions,
    /// /v1/responses and /v1/models on to its language model
    #[arg(long)]
    pub serve_endpoints: bool,
    /// How text becomes phonemes: the built-in dictionary, or espeak-ng (GPL) if it is installed
    #[arg(long, value_enum, default_value_t = Phonemizer::Dictionary)]
    pub phonemizer: Phonemizer,
    /// Instructions of a session that brings none
    #[arg(long, value_name = "TEXT", default_value = DEFAULT_INSTRUCTIONS)]
    pub instructions: String,
    /// Tell the language model which language the user speaks, where that is known, and to answer in it
    #[arg(long)]
    pub language_prompt: bool,
    /// Folder of the model files [default: ANTIPHON_CACHE, else antiphon/models in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

/// Instructions of a session that brings none; the built-in model has them in its cache from the start.
///
/// A model of 135 million parameters takes every word for a hint: told that it is friendly, or reminded of a voice, it
/// answers "What is the capital of France?" in broken French. Four simple questions with four seeds each and the default
/// sampling gave 13 right answers of 16; two other wordings gave 9 and 10 (`SmolLM2-135M-Instruct`, Q4_1).
pub const DEFAULT_INSTRUCTIONS: &str =
    "You are a helpful assistant. Answer in plain English, in one or two short sentences.";

/// Which stages run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stages {
    /// Models.
    Real,
    /// Deterministic fakes.
    Fake,
}

/// Which voice activity detector runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Detector {
    /// The network.
    Silero,
    /// Loud is speech: a fake.
    Energy,
}

/// How a language model server is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LlmApi {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
}

/// What a recognition server is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SttFormat {
    /// The text.
    Json,
    /// The text, and its language.
    #[value(name = "verbose_json")]
    VerboseJson,
}

/// A voice of a synthesis server, and what it is for: `NAME` or `fr=NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoiceName {
    /// The language that it speaks; `None`: every other one.
    pub language: Option<Language>,
    /// What the server calls it.
    pub name: String,
}

impl FromStr for VoiceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (language, name) = match text.split_once('=') {
            None => (None, text),
            Some((code, name)) => {
                let language = Language::new(code).filter(|language| language.name().is_some());
                let problem = || format!("found the language {code:?}, expected a code such as fr");
                (Some(language.ok_or_else(problem)?), name)
            }
        };
        if name.is_empty() {
            return Err("found no name, expected NAME or LANGUAGE=NAME".to_owned());
        }
        Ok(Self { language, name: name.to_owned() })
    }
}

/// How text becomes phonemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Phonemizer {
    /// CMUdict and rules, without GPL code.
    Dictionary,
    /// libespeak-ng, opened at run time.
    Espeak,
}

impl ServeArgs {
    /// The detector to run.
    #[must_use]
    pub fn detector(&self) -> Detector {
        self.vad.unwrap_or(match self.stages {
            Stages::Real => Detector::Silero,
            Stages::Fake => Detector::Energy,
        })
    }
}
