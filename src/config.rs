//! The arguments of `antiphon serve`. They are parsed once and do not change afterwards.

use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;

use crate::audio::{SampleRate, pcm_rate};
use crate::language::Language;

/// Starts the server.
///
/// The texts of the fields are what `antiphon serve --help` prints.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub struct ServeArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 takes a free one, which the ready line names
    #[arg(long, default_value_t = 8765)]
    pub port: u16,
    /// Conversations at a time [default: as the hardware profile says]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u16).range(1..=crate::limits::UNITS_MAX as i64))]
    pub units: Option<u16>,
    /// Hardware profile: auto for the best match, the name of a built-in one, or a TOML file
    #[arg(long, value_name = "auto|NAME|FILE", default_value = "auto")]
    pub profile: String,
    /// Folder of the model files [default: ANTIPHON_CACHE, else antiphon/models in the user's cache directory]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Serve /v1/audio/transcriptions and /v1/audio/speech on this server's models, and pass /v1/chat/completions,
    /// /v1/responses and /v1/models on to its language model
    #[arg(long)]
    pub serve_endpoints: bool,

    /// Sample rate, in and out, of a session that names no audio format, or PCM without a rate: 8000, 16000, 24000 or 48000;
    /// clients of huggingface/speech-to-speech mean 16000
    #[arg(long, value_name = "HZ", default_value = "24000", value_parser = pcm_rate, help_heading = SESSIONS)]
    pub default_rate: SampleRate,
    /// Instructions of a session that brings none
    #[arg(long, value_name = "TEXT", default_value = DEFAULT_INSTRUCTIONS, help_heading = SESSIONS)]
    pub instructions: String,
    /// Tell the language model which language the user speaks, where that is known, and to answer in it
    #[arg(long, help_heading = SESSIONS)]
    pub language_prompt: bool,
    /// Longest session, after which the client is told session_expired and the connection closed [default: no limit]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=604_800), help_heading = SESSIONS)]
    pub session_max_s: Option<u64>,

    /// OpenAI-compatible server of the language model, up to and including /v1 [default: the built-in model]
    #[arg(long, value_name = "URL", help_heading = LANGUAGE_MODEL)]
    pub llm_url: Option<String>,
    /// API of the language model's server [default: as the end of --llm-url says, else chat]
    #[arg(long, value_name = "API", value_enum, requires = "llm_url", help_heading = LANGUAGE_MODEL)]
    pub llm_api: Option<LlmApi>,
    /// Model to ask the language model's server for [default: its only one]
    #[arg(long, value_name = "NAME", requires = "llm_url", help_heading = LANGUAGE_MODEL)]
    pub llm_model: Option<String>,
    /// Environment variable that holds the key of the language model's server [default: no key]
    #[arg(long, value_name = "VARIABLE", requires = "llm_url", help_heading = LANGUAGE_MODEL)]
    pub llm_key_env: Option<String>,
    /// Model file for the built-in language model [default: SmolLM2-135M-Instruct]
    #[arg(long, value_name = "FILE", conflicts_with = "llm_url", help_heading = LANGUAGE_MODEL)]
    pub llm_gguf: Option<PathBuf>,
    /// Tokens of prompt and answer together [default: what the server's list of models says, else 32768; built-in: 2048]
    #[arg(long, value_name = "TOKENS", value_parser = clap::value_parser!(u32).range(512..=16_777_216), help_heading = LANGUAGE_MODEL)]
    pub llm_context: Option<u32>,
    /// Refuse pictures, because the model sees none; without this flag they are passed on to the server
    #[arg(long, requires = "llm_url", conflicts_with = "llm_image_urls", help_heading = LANGUAGE_MODEL)]
    pub llm_no_images: bool,
    /// Accept web addresses of pictures, which the language model's server then fetches
    #[arg(long, requires = "llm_url", help_heading = LANGUAGE_MODEL)]
    pub llm_image_urls: bool,
    /// Seconds until the language model's first token [default: 20]
    #[arg(long, value_name = "SECONDS", help_heading = LANGUAGE_MODEL)]
    pub llm_first_token_s: Option<f64>,
    /// Seconds between two tokens of the language model [default: 10]
    #[arg(long, value_name = "SECONDS", help_heading = LANGUAGE_MODEL)]
    pub llm_between_tokens_s: Option<f64>,

    /// Server with /audio/transcriptions, up to and including /v1 [default: the built-in recogniser]
    #[arg(long, value_name = "URL", help_heading = RECOGNITION)]
    pub stt_url: Option<String>,
    /// Model to ask the recognition server for
    #[arg(long, value_name = "NAME", requires = "stt_url", help_heading = RECOGNITION)]
    pub stt_model: Option<String>,
    /// Answer to ask the recognition server for; verbose_json names the language spoken, and not every server has it
    #[arg(long, value_name = "FORMAT", value_enum, requires = "stt_url", default_value_t = SttFormat::Json, help_heading = RECOGNITION)]
    pub stt_format: SttFormat,
    /// Environment variable that holds the key of the recognition server [default: no key]
    #[arg(long, value_name = "VARIABLE", requires = "stt_url", help_heading = RECOGNITION)]
    pub stt_key_env: Option<String>,
    /// Seconds until the recognition server has answered
    #[arg(long, value_name = "SECONDS", requires = "stt_url", default_value_t = 30.0, help_heading = RECOGNITION)]
    pub stt_timeout_s: f64,

    /// Server with /audio/speech, up to and including /v1 [default: the built-in voice]
    #[arg(long, value_name = "URL", help_heading = SYNTHESIS)]
    pub tts_url: Option<String>,
    /// Model to ask the synthesis server for
    #[arg(long, value_name = "NAME", requires = "tts_url", help_heading = SYNTHESIS)]
    pub tts_model: Option<String>,
    /// Voice to ask the synthesis server for; again as fr=NAME for text in that language
    #[arg(long, value_name = "[LANGUAGE=]NAME", requires = "tts_url", help_heading = SYNTHESIS)]
    pub tts_voice: Vec<VoiceName>,
    /// Environment variable that holds the key of the synthesis server [default: no key]
    #[arg(long, value_name = "VARIABLE", requires = "tts_url", help_heading = SYNTHESIS)]
    pub tts_key_env: Option<String>,
    /// Seconds until the synthesis server's first audio, and between two pieces of it
    #[arg(long, value_name = "SECONDS", requires = "tts_url", default_value_t = 10.0, help_heading = SYNTHESIS)]
    pub tts_timeout_s: f64,
    /// How the built-in voice turns text into phonemes: its dictionary, or espeak-ng (GPL) if that is installed
    #[arg(long, value_name = "NAME", value_enum, default_value_t = Phonemizer::Dictionary, help_heading = SYNTHESIS)]
    pub phonemizer: Phonemizer,

    /// Real models, or deterministic fakes that need no files
    #[arg(long, value_name = "KIND", value_enum, default_value_t = Stages::Real, help_heading = TESTS_AND_BENCHES)]
    pub stages: Stages,
    /// Voice activity detector; energy is a fake and needs --stages fake [default: silero, with fake stages energy]
    #[arg(long, value_name = "DETECTOR", value_enum, help_heading = TESTS_AND_BENCHES)]
    pub vad: Option<Detector>,
}

// Headings of `--help`, in the order of the fields of `ServeArgs`.
const SESSIONS: &str = "Sessions";
const LANGUAGE_MODEL: &str = "Language model";
const RECOGNITION: &str = "Speech recognition";
const SYNTHESIS: &str = "Speech synthesis";
const TESTS_AND_BENCHES: &str = "Tests and benches";

/// The last lines of `antiphon serve --help`.
const AFTER_HELP: &str = "\
Environment:
  ANTIPHON_LOG    What is logged, as in ANTIPHON_LOG=debug [default: info]
  ANTIPHON_CACHE  Folder of the model files, where --cache is not given";

/// Instructions of a session without instructions of its own. The built-in model has them in its cache from the start.
///
/// A model of 135 million parameters takes every word for a hint. With the word "friendly" or a mention of a voice, it
/// answers "What is the capital of France?" in broken French. Four simple questions with four seeds each and the
/// default sampling gave 13 right answers of 16; two other wordings gave 9 and 10 (`SmolLM2-135M-Instruct`, Q4_1).
pub const DEFAULT_INSTRUCTIONS: &str =
    "You are a helpful assistant. Answer in plain English, in one or two short sentences.";

/// Kind of the stages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stages {
    /// Real models.
    Real,
    /// Deterministic fakes, which hear and speak levels instead of words.
    Fake,
}

/// Kind of the voice activity detector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Detector {
    /// The network Silero VAD.
    Silero,
    /// A fake: what is loud is speech.
    Energy,
}

/// API of a language model server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LlmApi {
    /// `POST /v1/chat/completions`.
    Chat,
    /// `POST /v1/responses`.
    Responses,
}

/// Format of a recognition server's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum SttFormat {
    /// The text.
    Json,
    /// The text, and its language.
    #[value(name = "verbose_json")]
    VerboseJson,
}

/// A voice of a synthesis server, with or without its language: `fr=NAME` or `NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoiceName {
    /// Language of the voice; `None`: all languages without a voice of their own.
    pub language: Option<Language>,
    /// The server's name of the voice.
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

/// Source of the phonemes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Phonemizer {
    /// CMUdict and rules, without GPL code.
    Dictionary,
    /// libespeak-ng, opened at run time.
    Espeak,
}

impl ServeArgs {
    /// Returns the detector to run.
    #[must_use]
    pub fn detector(&self) -> Detector {
        self.vad.unwrap_or(match self.stages {
            Stages::Real => Detector::Silero,
            Stages::Fake => Detector::Energy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Flags that begin a row of a table, as in "| `--port PORT` |".
    fn flags_of(text: &str) -> Vec<&str> {
        let cells = text.lines().filter_map(|line| line.strip_prefix("| `--"));
        cells.filter_map(|cell| cell.split(['`', ' ']).next()).collect()
    }

    #[test]
    fn the_guide_has_every_flag_and_no_other() {
        let command = <ServeArgs as clap::Args>::augment_args(clap::Command::new("serve"));
        let mut flags: Vec<_> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        let chapter = include_str!("guide/flags.md");
        let mut told = flags_of(chapter.split("## Other commands").next().unwrap_or(chapter));
        flags.sort_unstable();
        told.sort_unstable();
        assert_eq!(told, flags);
    }
}
