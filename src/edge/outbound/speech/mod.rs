//! Recognition and synthesis by an OpenAI-compatible server: `/v1/audio/transcriptions` and `/v1/audio/speech`.
//!
//! Nothing here touches a ring or a session: audio goes in and text comes out, or the other way round. Dropping the
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
pub use synthesiser::Synthesiser;
pub use voice_names::{VoiceNames, VoiceNamesError};

/// Wait for any answer to a request that only checks for the server.
const LOOK_WAIT: Duration = Duration::from_secs(5);

/// A server, and the model to use there. Cheap to clone; clones share the idle connections.
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

    /// Sends a request to `path` with the additions of `fill`, and waits for the head of an answer with status 200.
    async fn post(
        &self,
        path: &str,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Reply, CallError> {
        self.http.call(&self.base, Method::POST, path, fill).await
    }
}
