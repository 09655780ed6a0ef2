//! Speech → text.

use std::time::Duration;

use reqwest::multipart::{Form, Part};

use super::{Caller, SpeechError, root_cause, within};
use crate::audio::SampleRate;
use crate::edge::api_base::ApiBase;
use crate::edge::wav;
use crate::message::SpeechHints;

/// Longest answer that is read, bytes.
const ANSWER_BYTES_MAX: usize = 256 * 1_024;

/// Samples of the shortest recording that is sent, 16 kHz; silence is added to a shorter one. Source: OpenAI's server
/// refuses less than 0.1 s.
const SAMPLES_MIN: usize = 1_600;

/// A server that recognises speech.
#[derive(Clone, Debug)]
pub struct Recogniser {
    caller: Caller,
    limit: Duration,
}

impl Recogniser {
    /// The server at `base`, asked for `model`; each answer must be complete within `limit`.
    ///
    /// # Errors
    /// What is wrong, if the system has no trusted root certificates and the address needs them.
    pub fn new(base: ApiBase, model: Option<String>, limit: Duration) -> Result<Self, String> {
        Ok(Self { caller: Caller::new(base, model)?, limit })
    }

    /// What was said in `audio`, mono, 16 kHz. Dropping the future ends the request.
    ///
    /// # Errors
    /// Each of [`SpeechError`].
    pub async fn transcribe(&self, audio: &[i16], hints: SpeechHints) -> Result<String, SpeechError> {
        within(self.limit, self.ask(audio, hints)).await
    }

    async fn ask(&self, audio: &[i16], hints: SpeechHints) -> Result<String, SpeechError> {
        let file = Part::bytes(recording(audio)).file_name("audio.wav");
        let file = file.mime_str("audio/wav").map_err(|error| SpeechError::Broken(error.to_string()))?;
        let mut form = Form::new().part("file", file).text("response_format", "json");
        if let Some(model) = &self.caller.model {
            form = form.text("model", model.clone());
        }
        if let Some(language) = hints.language {
            form = form.text("language", language.code().to_owned());
        }
        if let Some(prompt) = hints.prompt {
            form = form.text("prompt", prompt.as_str().to_owned());
        }
        let (response, content_type) =
            self.caller.post("audio/transcriptions", |request| request.multipart(form)).await?;
        let body = whole(response).await?;
        let text = match content_type.split(';').next() {
            Some("application/json") => text_of(&body)?,
            Some("text/plain") => String::from_utf8_lossy(&body).into_owned(),
            _ => {
                let problem = format!("found content type {content_type:?}, expected application/json");
                return Err(SpeechError::Broken(problem));
            }
        };
        Ok(text.trim().to_owned())
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

async fn whole(mut response: reqwest::Response) -> Result<Vec<u8>, SpeechError> {
    let mut body = Vec::new();
    while let Some(bytes) = response.chunk().await.map_err(|error| SpeechError::Broken(root_cause(&error)))? {
        body.extend_from_slice(&bytes);
        if body.len() > ANSWER_BYTES_MAX {
            return Err(SpeechError::Broken(format!(
                "found a transcript of more than {ANSWER_BYTES_MAX} bytes"
            )));
        }
    }
    Ok(body)
}

fn text_of(body: &[u8]) -> Result<String, SpeechError> {
    let answer: serde_json::Value =
        serde_json::from_slice(body).map_err(|error| SpeechError::Broken(format!("JSON: {error}")))?;
    match answer.get("text") {
        Some(serde_json::Value::String(text)) => Ok(text.clone()),
        _ => Err(SpeechError::Broken("found no text in the answer, expected {\"text\": \"…\"}".to_owned())),
    }
}
