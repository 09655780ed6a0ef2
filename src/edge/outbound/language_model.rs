//! Source of completions: an OpenAI-compatible server over HTTP, remote or our own child; or, with fake stages, an
//! echo.

use std::time::Duration;

use super::http::{AddressError, CallError, key_from};
use super::llm::{ChatClient, ChatDelta, ChatEndpoint, ChatStream, ChatTimeouts};
use super::llm_process::{LlmProcess, LlmProcessError, LlmProcessSettings};
use crate::config::{ServeArgs, Stages};
use crate::message::{Caller, ChatMessage, ChatRequest, FinishReason, TokenUsage, UserPart};
use crate::profile::{Counts, Nice};
use crate::store::{Artefact, Cache, StoreError};

/// Errors of the language model's setup.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LanguageModelError {
    /// The address or the key is not valid.
    #[error("language model {0}")]
    Address(#[from] AddressError),
    /// The HTTP client cannot be made.
    #[error("language model: {0}")]
    Client(#[from] CallError),
    /// The process of the built-in model does not start.
    #[error(transparent)]
    Child(#[from] LlmProcessError),
    /// The file of the built-in model cannot be located.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A time-out is out of range.
    #[error("found a time-out of {0} s, expected more than 0 and at most 3600")]
    Timeout(f64),
    /// The build has no built-in model.
    #[error("this build has no built-in language model (feature builtin-llm), expected --llm-url")]
    NotBuiltIn,
    /// The path of this program is not known.
    #[error("path of this program: {0}")]
    Program(std::io::Error),
}

/// Default number of tokens of prompt and answer that the built-in model keeps per slot. SmolLM2 was trained on 8,192.
const CHILD_CONTEXT_TOKENS: u32 = 2_048;

/// Context that is assumed for a server that does not report one, tokens. Most models of the last years have at least
/// as many.
const REMOTE_CONTEXT_TOKENS: u32 = 32_768;

/// Least bytes of text per token, in an unknown vocabulary. English has more than 4; JSON, numbers and languages of
/// other scripts have some 2 to 3.
const TOKEN_BYTES: usize = 2;

/// Least bytes of text per token for the built-in model, which is small, and speaks only English.
const CHILD_TOKEN_BYTES: usize = 3;

/// The language model of this server.
#[derive(Debug)]
pub enum LanguageModel {
    /// An external server.
    Remote {
        /// Client of the server.
        client: ChatClient,
        /// Tokens of prompt and answer together.
        context: u32,
    },
    /// Our own process with the built-in model.
    Child {
        /// Client of the process.
        client: ChatClient,
        /// The process; dropping the value ends the process.
        #[expect(dead_code, reason = "held for its end")]
        child: LlmProcess,
        /// Tokens of prompt and answer together.
        context: u32,
    },
    /// Fake stages only: an echo of the last line of the last user message. Not a model.
    Echo,
}

/// Longest conversation of a session without a model, bytes.
const ECHO_HISTORY_BYTES: usize = 256 * 1_024;

/// Settings of the language model: checked, not started.
#[derive(Debug)]
pub enum LanguageModelSettings {
    /// An external server.
    Remote {
        /// Client of the server.
        client: ChatClient,
        /// Address of the server, for log lines.
        url: String,
        /// Tokens of prompt and answer together, from `--llm-context`.
        context: Option<u32>,
        /// Tokens of prompt and answer together, as the server's list reports them; `None` before the request.
        said: Option<Result<Option<u32>, CallError>>,
    },
    /// Our own process with the built-in model.
    Child {
        /// Settings of the process.
        settings: LlmProcessSettings,
        /// Time-outs of a completion.
        timeouts: ChatTimeouts,
        /// Tokens of prompt and answer together.
        context: u32,
    },
    /// Echo, for fake stages only.
    Echo,
}

impl LanguageModelSettings {
    /// Checks the language model that `args` ask for. Touches neither the network nor a model file.
    ///
    /// # Errors
    /// Returns an error for an argument that is missing or not valid.
    pub fn check(args: &ServeArgs, counts: &Counts, nice: &Nice) -> Result<Self, LanguageModelError> {
        let timeouts = timeouts(args)?;
        if let Some(url) = &args.llm_url {
            let key = key_from(args.llm_key_env.as_deref())?;
            let endpoint = ChatEndpoint::new(url, args.llm_api, args.llm_model.clone(), key.as_deref())?;
            let url = endpoint.url();
            let client = ChatClient::new(endpoint, timeouts)?;
            return Ok(Self::Remote { client, url, context: args.llm_context, said: None });
        }
        if args.stages == Stages::Fake {
            return Ok(Self::Echo);
        }
        if !cfg!(feature = "builtin-llm") {
            return Err(LanguageModelError::NotBuiltIn);
        }
        let gguf = match &args.llm_gguf {
            Some(path) => path.clone(),
            None => Cache::open(args.cache.clone())?.path(Artefact::LanguageModel),
        };
        let context = args.llm_context.unwrap_or(CHILD_CONTEXT_TOKENS);
        let settings = LlmProcessSettings {
            program: std::env::current_exe().map_err(LanguageModelError::Program)?,
            gguf,
            slots: counts.llm_slots,
            threads: Some(counts.llm_threads),
            context: Some(context),
            instructions: Some(args.instructions.clone()),
            nice: nice.llm.value(),
        };
        Ok(Self::Child { settings, timeouts, context })
    }

    /// Asks an external server for its context. A server that does not answer is named in the log. That is no error:
    /// the server may be there when the first answer is due.
    pub async fn look(&mut self) {
        let Self::Remote { client, url, said, .. } = self else { return };
        let answer = client.context_tokens().await;
        if let Err(error) = &answer
            && is_unreachable(error)
        {
            tracing::warn!(url, "language model: {error}; answers fail until it answers");
        }
        *said = Some(answer);
    }

    /// Makes the language model and starts the process of a built-in one. The built-in model has run once when this
    /// returns.
    ///
    /// # Errors
    /// [`LanguageModelError::Child`] if the process does not become ready.
    pub async fn start(self) -> Result<LanguageModel, LanguageModelError> {
        match self {
            Self::Remote { client, url, context, said } => {
                let context = match (context, said) {
                    (Some(tokens), _) => tokens,
                    (None, Some(said)) if !said.as_ref().is_err_and(is_unreachable) => known_context(said),
                    // The server may have come up while our own models were loaded.
                    (None, _) => known_context(client.context_tokens().await),
                };
                tracing::info!(url, context, "language model");
                Ok(LanguageModel::Remote { client, context })
            }
            Self::Child { settings, timeouts, context } => {
                let child = LlmProcess::start(settings).await?;
                let client = ChatClient::following(child.endpoint(), timeouts)?;
                Ok(LanguageModel::Child { client, child, context })
            }
            Self::Echo => Ok(LanguageModel::Echo),
        }
    }
}

/// Returns true if the server has not answered.
const fn is_unreachable(error: &CallError) -> bool {
    matches!(error, CallError::Unreachable(_) | CallError::Timeout(_))
}

/// Returns the tokens of a remote server's context, as the server reports them; an assumption if it does not.
fn known_context(said: Result<Option<u32>, CallError>) -> u32 {
    let problem = match said {
        Ok(Some(tokens)) => return tokens,
        Ok(None) => "the list of models does not say".to_owned(),
        Err(error) => error.to_string(),
    };
    tracing::info!("the language model's context is not known, see --llm-context: {problem}");
    REMOTE_CONTEXT_TOKENS
}

impl LanguageModel {
    /// Returns the bytes of conversation text that fit the model's context beside instructions, tools and the answer:
    /// half of the context, at 2 bytes to the token (3 with the built-in model). 32 KiB for 32,768 tokens.
    #[must_use]
    pub const fn history_bytes_max(&self) -> usize {
        match self {
            Self::Remote { context, .. } => *context as usize / 2 * TOKEN_BYTES,
            Self::Child { context, .. } => *context as usize / 2 * CHILD_TOKEN_BYTES,
            // No model reads the conversation.
            Self::Echo => ECHO_HISTORY_BYTES,
        }
    }

    /// Returns true if pictures may be passed on. A remote server whose model reads no pictures reports an error. The
    /// built-in model reads none.
    #[must_use]
    pub const fn sees_images(&self) -> bool {
        match self {
            Self::Remote { .. } => true,
            Self::Child { .. } | Self::Echo => false,
        }
    }

    /// Returns the client of the server; `None` for the echo.
    #[must_use]
    pub const fn client(&self) -> Option<&ChatClient> {
        match self {
            Self::Remote { client, .. } | Self::Child { client, .. } => Some(client),
            Self::Echo => None,
        }
    }

    /// Begins a completion. Dropping the stream ends the completion.
    #[must_use]
    pub fn stream(&self, request: &ChatRequest, caller: Caller) -> CompletionStream {
        match self {
            Self::Remote { client, .. } | Self::Child { client, .. } => {
                CompletionStream::Http(Box::new(client.stream(request, Some(caller))))
            }
            Self::Echo => CompletionStream::Echo(Some(echo(request))),
        }
    }
}

fn timeouts(args: &ServeArgs) -> Result<ChatTimeouts, LanguageModelError> {
    let seconds = |given: Option<f64>, default: Duration| match given {
        None => Ok(default),
        Some(s) if s > 0.0 && s <= 3_600.0 => Ok(Duration::from_secs_f64(s)),
        Some(s) => Err(LanguageModelError::Timeout(s)),
    };
    let default = ChatTimeouts::default();
    Ok(ChatTimeouts {
        first_token: seconds(args.llm_first_token_s, default.first_token)?,
        between_tokens: seconds(args.llm_between_tokens_s, default.between_tokens)?,
        ..default
    })
}

/// One completion as it arrives.
#[derive(Debug)]
pub enum CompletionStream {
    /// Completion of a server.
    Http(Box<ChatStream>),
    /// Fake: the text that is still to come; `None`: all has been returned.
    Echo(Option<String>),
}

impl CompletionStream {
    /// Waits for the next piece. Nothing follows `Done` or an error.
    ///
    /// # Errors
    /// Each of [`CallError`].
    pub async fn next(&mut self) -> Result<ChatDelta, CallError> {
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
    let last = request.messages.iter().rev().find_map(|message| match message {
        ChatMessage::User(parts) => parts.iter().rev().find_map(|part| match part {
            UserPart::Text(text) => text.lines().last(),
            UserPart::Image { .. } => None,
        }),
        _ => None,
    });
    last.unwrap_or_default().to_owned()
}
