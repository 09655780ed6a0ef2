//! The command line: arguments in, exit code out.

use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use antiphon::program::{self, ModelsCommand, PhaseAllocator, ProfileCommand, ServeArgs, TalkArgs};
use clap::{Parser, Subcommand};

#[global_allocator]
static ALLOCATOR: PhaseAllocator<mimalloc::MiMalloc> = PhaseAllocator(mimalloc::MiMalloc);

/// Real-time speech-to-speech server, compatible with the OpenAI Realtime API.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    Serve(Box<ServeArgs>),
    /// Stream a recording to a server and keep its answer
    Talk(TalkArgs),
    /// Look after the model files
    #[command(subcommand)]
    Models(ModelsCommand),
    /// Look at hardware profiles
    #[command(subcommand)]
    Profile(ProfileCommand),
    /// Check profile files
    Validate {
        /// TOML files
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
    /// Serve the built-in language model (started by `serve`)
    #[cfg(feature = "builtin-llm")]
    Llm(program::LlmArgs),
}

/// Log filter without `ANTIPHON_LOG`. llama.cpp's own lines are logged only if they are errors.
const LOG_FILTER: &str = "info,llama-cpp-2=error,llama_cpp_2=error";

fn main() -> ExitCode {
    // First, while this is the only thread. If it fails, the library is not opened, and that error is reported.
    let _ = program::disable_telemetry();
    let filter = tracing_subscriber::EnvFilter::try_from_env("ANTIPHON_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(LOG_FILTER));
    let ansi = std::io::stderr().is_terminal();
    tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(ansi).init();
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // No backtrace of the error's origin: the message holds all that helps, the value found and the value
            // expected.
            eprintln!("antiphon: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Serve(args) => program::serve(&args)?,
        Command::Talk(args) => program::talk(args)?,
        Command::Models(command) => program::models(command)?,
        Command::Profile(command) => program::profile(command)?,
        Command::Validate { files } => program::validate(&files)?,
        #[cfg(feature = "builtin-llm")]
        Command::Llm(args) => program::llm(&args)?,
    }
    Ok(())
}
