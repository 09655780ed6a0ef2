//! Where completions come from: an OpenAI-compatible server over HTTP, remote or our own child; or, with fake stages, an
//! echo.

use super::chat::{ChatClient, ChatDelta, ChatError, ChatStream};
use super::llm_child::LlmChild;
use crate::message::{ChatRequest, FinishReason, Role, TokenUsage, UnitId};

/// The language model of this server.
#[derive(Debug)]
pub enum ModelServer {
    /// A server that somebody else runs.
    Remote(ChatClient),
    /// Our own child process with the built-in model.
    Child(LlmChild),
    /// Fake stages only: answers with the last line of the last user message. Not a model.
    Echo,
}

impl ModelServer {
    /// Begins a completion for `unit`. Dropping the stream ends it.
    pub fn stream(&self, request: &ChatRequest, unit: UnitId) -> CompletionStream {
        match self {
            Self::Remote(client) => CompletionStream::Http(client.stream(request, unit)),
            Self::Child(child) => CompletionStream::Http(child.client().stream(request, unit)),
            Self::Echo => CompletionStream::Echo(Some(echo(request))),
        }
    }
}

/// One completion on its way.
#[derive(Debug)]
pub enum CompletionStream {
    /// From a server.
    Http(ChatStream),
    /// Fake: the text that is still to come.
    Echo(Option<String>),
}

impl CompletionStream {
    /// The next piece. After `Done` or an error nothing follows.
    ///
    /// # Errors
    /// What went wrong between us and the server.
    pub async fn next(&mut self) -> Result<ChatDelta, ChatError> {
        match self {
            Self::Http(stream) => stream.next().await,
            Self::Echo(text) => Ok(match text.take() {
                Some(text) if !text.is_empty() => ChatDelta::Text(text),
                _ => ChatDelta::Done { finish: FinishReason::Stop, usage: TokenUsage::default() },
            }),
        }
    }
}

fn echo(request: &ChatRequest) -> String {
    let last = request.messages.iter().rev().find(|message| message.role == Role::User);
    last.and_then(|message| message.content.lines().last()).unwrap_or_default().to_owned()
}
