//! The built-in language model: `antiphon llm`, a process of its own that serves the chat completions API.
//!
//! *Thread:* the main one runs the HTTP side, `llm-engine` owns the context and makes the tokens. A request crosses
//! over in an unbounded channel. An answer comes back in a channel with room for all of it, so neither side waits for
//! the other. *Never:* outlives its parent. If standard input is a pipe, the process ends when its other end is
//! closed.
#![expect(clippy::disallowed_methods, reason = "the language model's own process has no stage threads")]

mod api;
mod call_grammar;
mod call_parser;
mod engine_thread;
mod error;
mod routes;
mod toolbox;

use std::io::{IsTerminal as _, Read as _, Write as _};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use axum::serve::ListenerExt as _;

use crate::config::DEFAULT_INSTRUCTIONS;
use crate::limits::LLM_SLOTS_MAX;
use crate::model::ModelError;
use crate::model::llama::{Engine, EngineSettings, Weights};
use crate::rt::thread::set_nice;

/// Arguments of `antiphon llm`.
#[derive(Clone, Debug, clap::Args)]
pub struct LlmArgs {
    /// The model, a GGUF file.
    #[arg(long, value_name = "FILE")]
    pub gguf: PathBuf,
    /// Address to listen on; port 0 takes a free one, which the ready line names.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Answers made at a time; the others wait for their turn.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u16).range(1..=i64::from(LLM_SLOTS_MAX)))]
    pub slots: u16,
    /// Threads of one step; default: the physical cores.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Tokens of prompt and answer together, per slot.
    #[arg(long, default_value_t = 2_048, value_parser = clap::value_parser!(u32).range(256..))]
    pub context: u32,
    /// Instructions that most conversations begin with. They are read once, for all callers.
    #[arg(long, value_name = "TEXT", default_value = DEFAULT_INSTRUCTIONS)]
    pub instructions: String,
    /// Nice value of the process: stages that share the machine run before a higher one.
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=19))]
    pub nice: u16,
}

/// Errors that end the server of the built-in language model.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LlmServerError {
    /// The model could not be loaded.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// An operation of the system failed, such as listening on the address or starting the runtime.
    #[error("{context}: {source}")]
    Io {
        /// Operation that failed.
        context: &'static str,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The engine's thread has ended; only a new process helps.
    #[error("the engine's thread has ended")]
    EngineGone,
}

/// Serves until standard input, if it is a pipe, is closed. Prints `ready http://ADDRESS/v1` on standard output once
/// every part of the model has run.
///
/// # Errors
/// Returns [`LlmServerError`]. Requests have been served only if it is [`LlmServerError::EngineGone`].
pub fn run(args: &LlmArgs) -> Result<(), LlmServerError> {
    // First, while this is the only thread: the others inherit the value.
    set_nice("llm", args.nice.into());
    // An engine borrows its weights for as long as the process lives.
    let weights: &'static Weights = Box::leak(Box::new(Weights::load(&args.gguf)?));
    let threads = args.threads.unwrap_or_else(physical_cores);
    let settings = EngineSettings { slots: args.slots, context: args.context, threads };
    let instructions = weights.shared_beginning(&args.instructions)?;
    let mut engine = Engine::new(weights, settings, &instructions)?;
    engine_thread::warm_up(&mut engine, weights)?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|source| LlmServerError::Io { context: "runtime", source })?;
    let (requests, engine) = engine_thread::start(engine)
        .map_err(|source| LlmServerError::Io { context: "engine thread", source })?;
    let routes = routes::router(Arc::new(routes::Served::new(weights, requests, args.slots, args.context)));
    let outcome = runtime.block_on(async {
        let listener = tokio::net::TcpListener::bind(args.listen)
            .await
            .map_err(|source| LlmServerError::Io { context: "listen", source })?;
        let address =
            listener.local_addr().map_err(|source| LlmServerError::Io { context: "listen", source })?;
        if !address.ip().is_loopback() {
            tracing::warn!(%address, "the language model is served to the network, without a key");
        }
        tracing::info!(model = weights.name(), slots = args.slots, threads, %address, "language model ready");
        announce(address).map_err(|source| LlmServerError::Io { context: "standard output", source })?;
        let listener = listener.tap_io(|socket| {
            // A token is a small packet that must not wait for the next one.
            let _ = socket.set_nodelay(true);
        });
        tokio::select! {
            served = axum::serve(listener, routes) => {
                served.map_err(|source| LlmServerError::Io { context: "serve", source })
            }
            () = parent_gone() => Ok(()),
            () = engine.ended() => Err(LlmServerError::EngineGone),
        }
    });
    // Drops every connection, and with them the last senders to the engine.
    drop(runtime);
    engine.join();
    outcome
}

fn announce(address: SocketAddr) -> std::io::Result<()> {
    let mut output = std::io::stdout().lock();
    writeln!(output, "ready http://{address}/v1")?;
    output.flush()
}

/// Resolves when standard input is closed. Never resolves if standard input is no pipe, so that the command also runs
/// by hand and as a service.
async fn parent_gone() {
    let input = std::io::stdin();
    let is_pipe = rustix::fs::fstat(&input).is_ok_and(|status| {
        matches!(
            rustix::fs::FileType::from_raw_mode(status.st_mode),
            rustix::fs::FileType::Fifo | rustix::fs::FileType::Socket
        )
    });
    if input.is_terminal() || !is_pipe {
        return std::future::pending().await;
    }
    let (sender, closed) = tokio::sync::oneshot::channel::<()>();
    let reader = std::thread::Builder::new().name("llm-parent".to_owned()).spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut bytes = [0; 64];
        // The parent's input is discarded; an error also means that the parent is gone.
        while matches!(input.read(&mut bytes), Ok(1..)) {}
        drop(sender);
    });
    match reader {
        Ok(_) => drop(closed.await),
        Err(error) => tracing::warn!(%error, "cannot watch the parent process"),
    }
}

/// Returns the physical cores that this process may use. The hardware threads of one core share the units that a step
/// keeps busy.
fn physical_cores() -> u16 {
    let usable = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let siblings = (0..usable).filter_map(|cpu| {
        std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
            .ok()
    });
    let cores = siblings.collect::<std::collections::BTreeSet<_>>().len();
    let cores = if cores == 0 { usable } else { cores.min(usable) };
    u16::try_from(cores).unwrap_or(u16::MAX)
}
