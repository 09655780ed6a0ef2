//! Recognition and synthesis by an OpenAI-compatible server: `/v1/audio/transcriptions` and `/v1/audio/speech`.
//!
//! Nothing here knows a ring or a session: audio goes in and text comes out, or the other way round, and dropping the
//! future or the stream closes the socket.
//!
//! # Source
//! OpenAI API reference, "Audio".

mod error;
mod pcm;
mod recogniser;
mod voice;
mod voice_names;

use std::time::Duration;

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE};

use super::api_base::ApiBase;
use super::http::{self, root_cause};
use super::llm::error_message;

pub use error::SpeechError;
pub use recogniser::{Heard, Recogniser};
pub use voice::{Voice, VoiceStream};
pub use voice_names::VoiceNames;

/// Until a connection stands, TLS included.
const CONNECT_WAIT: Duration = Duration::from_secs(3);

/// Where requests go. Cheap to clone; clones share the idle connections.
#[derive(Clone, Debug)]
struct Caller {
    http: reqwest::Client,
    base: ApiBase,
    /// Value of the `model` field; `None`: the field is left out.
    model: Option<String>,
}

impl Caller {
    fn new(base: ApiBase, model: Option<String>) -> Result<Self, String> {
        Ok(Self { http: http::client(base.is_loopback(), base.is_tls(), CONNECT_WAIT)?, base, model })
    }

    /// Sends what `fill` makes of a request to `path`, and waits for the head of a good answer: that, and its content
    /// type without blanks and in small letters.
    async fn post(
        &self,
        path: &str,
        fill: impl FnOnce(reqwest::RequestBuilder) -> reqwest::RequestBuilder,
    ) -> Result<(reqwest::Response, String), SpeechError> {
        let mut request = fill(self.http.post(self.base.call(path)));
        if let Some(authorization) = self.base.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        let mut response = request.send().await.map_err(|error| {
            let cause = root_cause(&error);
            if error.is_connect() || error.is_timeout() {
                SpeechError::Unreachable(cause)
            } else {
                SpeechError::Broken(cause)
            }
        })?;
        let status = response.status();
        if status != reqwest::StatusCode::OK {
            let message = error_message(&http::error_body(&mut response).await)
                .unwrap_or_else(|| status.canonical_reason().unwrap_or("unknown status").to_owned());
            return Err(SpeechError::Status { status: status.as_u16(), message });
        }
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let content_type = content_type.unwrap_or_default().to_ascii_lowercase().replace(' ', "");
        Ok((response, content_type))
    }
}

/// What `work` gives, if it does so in time.
async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, SpeechError>>,
) -> Result<T, SpeechError> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(SpeechError::Timeout(limit)))
}
