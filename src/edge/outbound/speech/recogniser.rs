//! Speech → text.

use std::time::Duration;

use reqwest::multipart::{Form, Part};

use super::SpeechServer;
use crate::audio::SampleRate;
use crate::audio::wav;
use crate::edge::outbound::http::{ApiBase, CallError, within};
use crate::language::Language;
use crate::message::SpeechHints;

/// Longest answer that is read, bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1_024;

/// Samples of the shortest recording that is sent, 16 kHz; silence is added to a shorter one. Source: OpenAI's server
/// refuses less than 0.1 s.
const SAMPLES_MIN: usize = 1_600;

/// Length below which speech is too short to detect its language, samples at 16 kHz: 1.2 s between the usual 0.3 s
/// before and 0.5 s after.
const SHORT_SAMPLES: usize = 32_000;

/// Words that were recognised.
#[derive(Clone, Debug)]
pub struct Recognition {
    /// The words.
    pub text: String,
    /// Language of the words; `None`: the server names none.
    pub language: Option<Language>,
}

/// A server that recognises speech.
#[derive(Clone, Debug)]
pub struct Recogniser {
    server: SpeechServer,
    /// True if the server is asked for `verbose_json`.
    verbose: bool,
    limit: Duration,
}

impl Recogniser {
    /// Makes a client of the server at `base` and its `model`. Each answer must be complete within `limit`. With
    /// `verbose` the server is asked for `verbose_json`, which names the language.
    ///
    /// # Errors
    /// [`CallError::Setup`] if the system has no trusted root certificates and the address needs them.
    pub fn new(
        base: ApiBase,
        model: Option<String>,
        verbose: bool,
        limit: Duration,
    ) -> Result<Self, CallError> {
        Ok(Self { server: SpeechServer::new(base, model)?, verbose, limit })
    }

    /// Checks that the server is there, for at most 5 s. A server that does not answer is named in the log.
    pub async fn look(&self) {
        self.server.look("speech recognition", "turns have no transcript").await;
    }

    /// Recognises the words in `audio`, mono, 16 kHz. Speech that is too short to detect its language is recognised in
    /// the recent one. Dropping the future ends the request.
    ///
    /// # Errors
    /// Each of [`CallError`].
    pub async fn transcribe(&self, audio: &[i16], hints: SpeechHints) -> Result<Recognition, CallError> {
        within(self.limit, self.ask(audio, hints)).await
    }

    async fn ask(&self, audio: &[i16], hints: SpeechHints) -> Result<Recognition, CallError> {
        let format = if self.verbose { "verbose_json" } else { "json" };
        let file = Part::bytes(recording(audio)).file_name("audio.wav");
        let file = file.mime_str("audio/wav").map_err(|error| CallError::Broken(error.to_string()))?;
        let mut form = Form::new().part("file", file).text("response_format", format);
        if let Some(model) = &self.server.model {
            form = form.text("model", model.clone());
        }
        let recent = hints.recent.filter(|_| audio.len() < SHORT_SAMPLES);
        // Not every server takes a region; the client's own code is sent unchanged.
        let recent = recent.and_then(|recent| Language::named(recent.code()));
        let asked = hints.language.or(recent);
        if let Some(language) = asked {
            form = form.text("language", language.code().to_owned());
        }
        if let Some(prompt) = hints.prompt {
            form = form.text("prompt", prompt.as_str().to_owned());
        }
        let reply = self.server.post("audio/transcriptions", |request| request.multipart(form)).await?;
        let content_type = reply.content_type();
        let body = reply.whole(ANSWER_BYTES_MAX).await?;
        match content_type.split(';').next() {
            Some("application/json") => {
                let heard = heard(&body)?;
                // A language that the request names is only repeated by the server; that is no finding.
                Ok(Recognition { language: heard.language.filter(|_| asked.is_none()), ..heard })
            }
            Some("text/plain") => {
                Ok(Recognition { text: trimmed(&String::from_utf8_lossy(&body)), language: None })
            }
            _ => {
                let problem = format!("found content type {content_type:?}, expected application/json");
                Err(CallError::Broken(problem))
            }
        }
    }
}

fn recording(audio: &[i16]) -> Vec<u8> {
    let bytes = 2 * audio.len().max(SAMPLES_MIN);
    let header = wav::header(SampleRate::HZ_16K, u32::try_from(bytes).ok());
    let mut file = Vec::with_capacity(header.len() + bytes);
    file.extend_from_slice(&header);
    file.extend(audio.iter().flat_map(|sample| sample.to_le_bytes()));
    file.resize(header.len() + bytes, 0);
    file
}

fn heard(body: &[u8]) -> Result<Recognition, CallError> {
    let answer: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| CallError::Broken(format!("JSON: {error}")))?;
    let Some(serde_json::Value::String(text)) = answer.get("text") else {
        let problem = "found no text in the answer, expected {\"text\": \"…\"}";
        return Err(CallError::Broken(problem.to_owned()));
    };
    let language = answer.get("language").and_then(serde_json::Value::as_str).and_then(Language::named);
    Ok(Recognition { text: trimmed(text), language })
}

fn trimmed(text: &str) -> String {
    text.trim().to_owned()
}
