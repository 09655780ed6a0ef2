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

use reqwest::{Method, RequestBuilder};

use super::http::{ApiBase, CONNECT_WAIT, CallError, HttpClient, Reply};

pub use recogniser::{Recogniser, Recognition};
pub use synthesiser::{Synthesiser, VoiceStream};
pub use voice_names::{VoiceNames, VoiceNamesError};

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

    /// Sends what `fill` makes of a request to `path`, and waits for the head of a good answer.
    async fn post(
        &self,
        path: &str,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Reply, CallError> {
        self.http.call(&self.base, Method::POST, path, fill).await
    }
}
