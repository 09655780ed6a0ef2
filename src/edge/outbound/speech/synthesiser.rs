//! Text → speech, as it arrives.

use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use serde_json::json;

use super::pcm::PcmReader;
use super::{SpeechServer, VoiceNames};
use crate::audio::SampleRate;
use crate::edge::outbound::http::{ApiBase, CallError, Reply, within};
use crate::language::Language;
use crate::limits::CLAUSE_SECONDS_MAX;

/// Longest speech of one clause: [`CLAUSE_SECONDS_MAX`] at the slowest speed, a quarter of the voice's own.
const SPEECH_SECONDS_MAX: usize = 4 * CLAUSE_SECONDS_MAX;

/// A server that synthesises speech.
#[derive(Clone, Debug)]
pub struct Synthesiser {
    server: SpeechServer,
    names: VoiceNames,
    limit: Duration,
}

impl Synthesiser {
    /// Makes a client of the voices `names` of `model` at `base`. `limit` is the longest wait for the first audio, and
    /// between two pieces.
    ///
    /// # Errors
    /// [`CallError::Setup`] if the system has no trusted root certificates and the address needs them.
    pub fn new(
        base: ApiBase,
        model: Option<String>,
        names: VoiceNames,
        limit: Duration,
    ) -> Result<Self, CallError> {
        Ok(Self { server: SpeechServer::new(base, model)?, names, limit })
    }

    /// Checks that the server is there, for at most 5 s. A server that does not answer is named in the log.
    pub async fn look(&self) {
        self.server.look("speech synthesis", "answers fail").await;
    }

    /// Returns true if the voice depends on the language.
    #[must_use]
    pub fn depends_on_language(&self) -> bool {
        self.names.depends_on_language()
    }

    /// Requests the speech of `text` at `speed`, 1.0 for the voice's own pace, in the voice for `language`. Dropping
    /// the future or the stream ends the request.
    ///
    /// # Errors
    /// Each of [`CallError`]: status and content type are checked before any byte counts as audio.
    pub async fn speak(
        &self,
        text: &str,
        speed: f32,
        language: Option<Language>,
    ) -> Result<VoiceStream, CallError> {
        let mut body = json!({"input": text, "response_format": "pcm", "speed": speed});
        if let Some(model) = &self.server.model {
            body["model"] = json!(model);
        }
        if let Some(name) = self.names.of(language) {
            body["voice"] = json!(name);
        }
        let post = self.server.post("audio/speech", |request| {
            request.header(CONTENT_TYPE, "application/json").body(body.to_string())
        });
        let reply = within(self.limit, post).await?;
        let pcm = PcmReader::new(&reply.content_type())?;
        Ok(VoiceStream { reply, pcm, limit: self.limit, samples: 0 })
    }
}

/// Speech as it arrives.
#[derive(Debug)]
pub struct VoiceStream {
    reply: Reply,
    pcm: PcmReader,
    limit: Duration,
    /// Samples so far.
    samples: usize,
}

impl VoiceStream {
    /// Waits for the next samples, mono, and their rate; `None` at the end.
    ///
    /// # Errors
    /// Each of [`CallError`] but a status; the samples before the error are good.
    pub async fn next(&mut self) -> Result<Option<(Vec<f32>, SampleRate)>, CallError> {
        loop {
            let chunk = within(self.limit, self.reply.chunk()).await?;
            let is_end = chunk.is_none();
            let mut samples = Vec::new();
            match chunk {
                Some(bytes) => self.pcm.push(&bytes, &mut samples),
                None => self.pcm.finish(&mut samples),
            }?;
            self.samples += samples.len();
            let rate = self.pcm.rate();
            if self.samples > SPEECH_SECONDS_MAX * rate.hz() as usize {
                let problem = format!("found more than {SPEECH_SECONDS_MAX} s of speech for one clause");
                return Err(CallError::Broken(problem));
            }
            if !samples.is_empty() {
                return Ok(Some((samples, rate)));
            }
            if is_end {
                return Ok(None);
            }
        }
    }
}
