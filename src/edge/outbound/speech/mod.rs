//! Recognition and synthesis by an OpenAI-compatible server: `/v1/audio/transcriptions` and `/v1/audio/speech`.
//!
//! Nothing here knows a ring or a session: audio goes in and text comes out, or the other way round, and dropping the
//! future or the stream closes the socket.
//!
//! # Source
//! OpenAI API reference, "Audio".

mod pcm;
mod recogniser;
mod synthesiser;
mod voice_names;

use std::time::Duration;

use reqwest::{Method, RequestBuilder};

use super::http::{ApiBase, CONNECT_WAIT, CallError, HttpClient, Reply, within};

pub use recogniser::{Recogniser, Recognition};
pub use synthesiser::{Synthesiser, VoiceStream};
pub use voice_names::{VoiceNames, VoiceNamesError};

/// Wait for any answer, when the server is only looked for.
const LOOK_WAIT: Duration = Duration::from_secs(5);

/// A server, and the model that it is asked for. Cheap to clone; clones share the idle connections.
#[derive(Clone, Debug)]
struct SpeechServer {
    http: HttpClient,
    base: ApiBase,
    /// Value of the `model` field; `None`: the field is left out.
    model: Option<String>,
}

impl SpeechServer {
    fn new(base: ApiBase, model: Option<String>) -> Result<Self, CallError> {
        Ok(Self { http: HttpClient::new(&base, CONNECT_WAIT)?, base, model })
    }

    /// Asks the server that does `what` for its list of models. Any answer counts, since few speech servers have that list.
    /// A server that does not answer is named in the log, with the `effect`.
    async fn look(&self, what: &str, effect: &str) {
        let answer = self.http.send(&self.base, Method::GET, "models", |request| request);
        if let Err(error) = within(LOOK_WAIT, answer).await {
            tracing::warn!(url = self.base.url(), "{what}: {error}; {effect} until it answers");
        }
    }

    /// Sends what `fill` makes of a request to `path`, and waits for the head of a good answer.
    async fn post(
        &self,
        path: &str,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Reply, CallError> {
        self.http.call(&self.base, Method::POST, path, fill).await
    }
}
