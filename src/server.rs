//! The composition root: check → bind → fetch → load → serve, and the way back. A start that must fail does so before
//! the cost of a download.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

use crate::audio::{Resampler, SampleRate};
use crate::config::{ServeArgs, SttFormat};
use crate::edge::dispatcher::{self, Wakers};
use crate::edge::inbound::entrance::Entrance;
use crate::edge::inbound::listener;
use crate::edge::inbound::roster::Roster;
use crate::edge::inbound::shared::Shared;
use crate::edge::outbound::http::{AddressError, ApiBase, CallError, key_from};
use crate::edge::outbound::language_model::{LanguageModelError, LanguageModelSettings};
use crate::edge::outbound::speech::{Recogniser, Synthesiser, VoiceNames, VoiceNamesError};
use crate::edge::tasks::{llm, stt, tts};
use crate::limits::{SHUTDOWN_MS_MAX, bytes_per_unit};
use crate::profile::{Choice, Counts, Machine, Nice, Profile, ProfileError};
use crate::rt::alloc::HeapCalls;
use crate::rt::thread::{StageThread, ThreadSpec, set_nice};
use crate::session::SessionConfig;
use crate::stage::{SttStage, TtsStage, VadStage, WorkerSpec, spawn_worker};
use crate::stage_models::{StageLoader, StageModels, StageModelsError};
use crate::sync::AlarmReader;
use crate::unit::{Bell, Bells, EdgeBell, EdgeSignal, StageBell, UnitSlab};

/// Errors of the server's start and run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// The profile cannot be used.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The models of the stages cannot be used.
    #[error(transparent)]
    Models(#[from] StageModelsError),
    /// The language model cannot be used.
    #[error(transparent)]
    LanguageModel(#[from] LanguageModelError),
    /// Wrong address or key of the recognition or synthesis server.
    #[error("{what} {source}")]
    SpeechAddress {
        /// Work of the server: speech recognition or speech synthesis.
        what: &'static str,
        /// Error in the address or the key.
        source: AddressError,
    },
    /// The HTTP client of the recognition or synthesis server cannot be made.
    #[error("{what}: {source}")]
    SpeechClient {
        /// Work of the server: speech recognition or speech synthesis.
        what: &'static str,
        /// Error of the client.
        source: CallError,
    },
    /// Contradictory names of voices for synthesis.
    #[error(transparent)]
    VoiceNames(#[from] VoiceNamesError),
    /// A time-out out of range.
    #[error("{what}: found a time-out of {seconds} s, expected more than 0 and at most 3600")]
    Timeout {
        /// Work of the server with this time-out.
        what: &'static str,
        /// The time-out given, seconds.
        seconds: f64,
    },
    /// The address to listen on cannot be bound.
    #[error("{address}: {source}")]
    Listen {
        /// Address of `--host` and `--port`.
        address: SocketAddr,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The system refuses a resource of the server.
    #[error("{what}: {source}")]
    System {
        /// Resource that the server needs.
        what: &'static str,
        /// Error of the system.
        source: std::io::Error,
    },
}

fn system(what: &'static str) -> impl FnOnce(std::io::Error) -> ServeError {
    move |source| ServeError::System { what, source }
}

/// Runs the server until a signal stops it.
///
/// # Errors
/// Returns an error if the server cannot start, or if the listening socket fails.
pub fn serve(args: &ServeArgs) -> Result<(), ServeError> {
    let machine = Machine::detect();
    let choice = Profile::load(&args.profile, &machine)?;
    let profile = &choice.profile;
    let counts = profile.plan.counts(machine.cores());
    log_profile(&choice, &counts, &machine);
    let start = Start {
        args,
        profile,
        counts,
        loader: StageLoader::check(args, &profile.plan, &counts)?,
        language_model: LanguageModelSettings::check(args, &counts, &profile.plan.nice)?,
        speech_servers: SpeechServers::check(args)?,
    };
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(usize::from(counts.edge_threads)).thread_name("edge").enable_all();
    let nice = profile.plan.nice.edge.value().into();
    runtime.on_thread_start(move || set_nice("edge", nice));
    let runtime = runtime.build().map_err(system("edge runtime"))?;
    let result = start.run(&runtime);
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

/// The checked arguments of a start. Nothing is fetched or loaded yet.
struct Start<'a> {
    args: &'a ServeArgs,
    profile: &'a Profile,
    counts: Counts,
    loader: StageLoader<'a>,
    language_model: LanguageModelSettings,
    speech_servers: SpeechServers,
}

impl Start<'_> {
    /// Binds, fetches, loads, and serves until a signal stops the server.
    fn run(self, runtime: &Runtime) -> Result<(), ServeError> {
        let Self { args, profile, counts, loader, mut language_model, speech_servers } = self;
        let address = SocketAddr::new(args.host, args.port);
        let entrance = runtime.block_on(Entrance::bind(address));
        let entrance = entrance.map_err(|source| ServeError::Listen { address, source })?;
        tracing::info!(address = %entrance.address(), "bound; clients are told that the server starts");
        runtime.block_on(async { tokio::join!(language_model.look(), speech_servers.look()) });

        let files = loader.fetch()?;
        Resampler::prepare();
        let models = loader.load(&files)?;
        if let Some(reason) = &models.whole_because {
            tracing::warn!(%reason, "the voice is run whole: first sounds come late");
        }
        let units = usize::from(args.units.unwrap_or(counts.units));
        tracing::info!(
            units,
            bytes_per_unit = bytes_per_unit(),
            "units, reserved; untouched pages cost nothing"
        );
        let (slab, rings) = build_slab(units, args, &counts, models.voice_rate)?;
        let workers = start_workers(slab, models, &profile.plan.nice)?;
        let heap_calls = workers.iter().map(|worker| worker.heap_calls).collect();
        let edge = Edge { args, profile, slab, rings, heap_calls, language_model, speech_servers };
        let result = runtime.block_on(edge.serve(entrance));
        stop_workers(slab, workers);
        result
    }
}

fn log_profile(Choice { profile, reason }: &Choice, counts: &Counts, machine: &Machine) {
    tracing::info!(profile = profile.meta.name, status = %profile.meta.status, reason, plan = %counts, "hardware profile");
    let differences = machine.differences_that_matter(&profile.machine);
    if !differences.is_empty() {
        let differences = differences.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        tracing::warn!(profile = profile.meta.name, differences, "the profile is of another machine");
    }
}

/// Builds the units. Returns them and the reader of the edge's bell.
fn build_slab(
    units: usize,
    args: &ServeArgs,
    counts: &Counts,
    voice_rate: SampleRate,
) -> Result<(&'static UnitSlab, AlarmReader), ServeError> {
    let (edge, rings) = EdgeBell::new(units).map_err(system("pipe"))?;
    let edge: &'static EdgeBell = Box::leak(Box::new(edge));
    let stage =
        |workers: u16| -> &'static StageBell { Box::leak(Box::new(StageBell::new(units, workers.into()))) };
    let bell = |is_remote: bool, signal, workers| match is_remote {
        true => Bell::Task(edge, signal),
        false => Bell::Workers(stage(workers)),
    };
    let bells = Bells {
        vad: stage(counts.vad_workers),
        stt: bell(args.stt_url.is_some(), EdgeSignal::Stt, counts.stt_workers),
        tts: bell(args.tts_url.is_some(), EdgeSignal::Tts, counts.tts_workers),
        edge,
    };
    Ok((UnitSlab::leak(units, bells, voice_rate), rings))
}

fn start_workers(
    slab: &'static UnitSlab,
    models: StageModels,
    nice: &Nice,
) -> Result<Vec<StageThread>, ServeError> {
    let mut workers = Vec::new();
    let bells = slab.bells;
    let spec = |bell, name: &str, worker: usize, nice: u16| WorkerSpec {
        thread: ThreadSpec { name: format!("{name}-{worker}"), nice: nice.into() },
        bell,
        worker,
    };
    let spawned = system("stage thread");
    let spawn = || -> std::io::Result<()> {
        for (worker, model) in models.vad.into_iter().enumerate() {
            workers.push(spawn_worker(
                spec(bells.vad, "vad", worker, nice.vad.value()),
                slab,
                VadStage::new(model),
            )?);
        }
        for (worker, model) in models.stt.into_iter().enumerate() {
            let bell = bells.stt.workers().expect("there are no models of a stage that a server does");
            workers.push(spawn_worker(
                spec(bell, "stt", worker, nice.stt.value()),
                slab,
                SttStage::new(model),
            )?);
        }
        for (worker, model) in models.tts.into_iter().enumerate() {
            let bell = bells.tts.workers().expect("there are no models of a stage that a server does");
            workers.push(spawn_worker(
                spec(bell, "tts", worker, nice.tts.value()),
                slab,
                TtsStage::new(model),
            )?);
        }
        Ok(())
    };
    spawn().map_err(spawned)?;
    Ok(workers)
}

fn stop_workers(slab: &UnitSlab, workers: Vec<StageThread>) {
    let bells = [Some(slab.bells.vad), slab.bells.stt.workers(), slab.bells.tts.workers()];
    bells.into_iter().flatten().for_each(StageBell::stop);
    for worker in workers {
        // A worker's panics are caught in its loop. The hook has printed a panic outside the loop.
        let _ = worker.handle.join();
    }
}

/// The parts of the edge after the models are loaded.
struct Edge<'a> {
    args: &'a ServeArgs,
    profile: &'a Profile,
    slab: &'static UnitSlab,
    rings: AlarmReader,
    heap_calls: Vec<&'static HeapCalls>,
    language_model: LanguageModelSettings,
    speech_servers: SpeechServers,
}

impl Edge<'_> {
    /// Starts the language model, and serves until a signal stops the server.
    async fn serve(self, entrance: Entrance) -> Result<(), ServeError> {
        let Self { args, profile, slab, rings, heap_calls, language_model, speech_servers } = self;
        let mut stop = StopSignals::new().map_err(system("signal handler"))?;
        let server = tokio::select! {
            server = language_model.start() => Arc::new(server?),
            () = stop.next() => return Ok(()),
        };
        let wakers = Wakers::new(slab.len());
        tokio::spawn(watch_bell(slab, Arc::clone(&wakers), rings));
        for (unit, _) in slab.iter() {
            tokio::spawn(llm::attend(slab, unit, Arc::clone(&wakers), Arc::clone(&server)));
        }
        speech_servers.attend(slab, &wakers);
        let (stopping, shutdown) = watch::channel(false);
        let (alive, gone) = mpsc::channel(1);
        let session = Arc::new(SessionConfig {
            default_rate: args.default_rate,
            instructions: args.instructions.clone(),
            language_prompt: args.language_prompt,
            history_bytes_max: server.history_bytes_max(),
            images: server.sees_images() && !args.llm_no_images,
            image_urls: args.llm_image_urls,
            session_max: args.session_max_s.map(Duration::from_secs),
        });
        let roster = Roster::new(slab.len());
        let shared = Arc::new(Shared {
            slab,
            heap_calls,
            wakers,
            model: server,
            session,
            roster,
            shutdown: shutdown.clone(),
            alive,
        });
        let closed = async move {
            let mut shutdown = shutdown;
            // An error means that the sender is gone, which has the same effect.
            let _ = shutdown.wait_for(|stopping| *stopping).await;
        };
        let address = entrance.address();
        let socket = entrance.open().map_err(system("listening socket"))?;
        let listening = tokio::spawn(listener::listen(socket, shared, args.serve_endpoints, closed));
        println!("ready ws://{address}/v1/realtime units={} profile={}", slab.len(), profile.meta.name);

        stop.next().await;
        tracing::info!("stopping: no new sessions, running answers may finish");
        let _ = stopping.send(true);
        finish(listening, gone, stop).await
    }
}

/// Waits until the last session ends, a limited time has passed, or a second signal comes.
async fn finish(
    listening: JoinHandle<std::io::Result<()>>,
    mut gone: mpsc::Receiver<()>,
    mut stop: StopSignals,
) -> Result<(), ServeError> {
    let over = async {
        let listened = listening.await;
        // `recv` ends when the last connection has dropped its sender.
        while gone.recv().await.is_some() {}
        listened
    };
    tokio::select! {
        listened = over => match listened {
            Ok(result) => result.map_err(system("listening socket")),
            Err(error) => Err(system("listening task")(std::io::Error::other(error))),
        },
        () = tokio::time::sleep(Duration::from_millis(SHUTDOWN_MS_MAX)) => {
            tracing::warn!(limit_ms = SHUTDOWN_MS_MAX, "stopped with sessions still open");
            Ok(())
        }
        () = stop.next() => {
            tracing::warn!("second signal, stopped at once");
            Ok(())
        }
    }
}

/// Other servers for recognition and synthesis; `None` if this server does the work.
struct SpeechServers {
    recogniser: Option<Arc<Recogniser>>,
    synthesiser: Option<Arc<Synthesiser>>,
}

impl SpeechServers {
    /// Checks the flags in `args`. Opens no connection.
    fn check(args: &ServeArgs) -> Result<Self, ServeError> {
        Ok(Self {
            recogniser: recogniser(args)?.map(Arc::new),
            synthesiser: synthesiser(args)?.map(Arc::new),
        })
    }

    /// Logs each server that does not answer. That is no error, as services start in any order.
    async fn look(&self) {
        let recogniser = async {
            if let Some(recogniser) = &self.recogniser {
                recogniser.look().await;
            }
        };
        let synthesiser = async {
            if let Some(synthesiser) = &self.synthesiser {
                synthesiser.look().await;
            }
        };
        tokio::join!(recogniser, synthesiser);
    }

    /// Starts one task per unit and stage that a server does.
    fn attend(self, slab: &'static UnitSlab, wakers: &Arc<Wakers>) {
        for (unit, _) in slab.iter() {
            if let Some(recogniser) = &self.recogniser {
                tokio::spawn(stt::attend(slab, unit, Arc::clone(wakers), Arc::clone(recogniser)));
            }
            if let Some(synthesiser) = &self.synthesiser {
                tokio::spawn(tts::attend(slab, unit, Arc::clone(wakers), Arc::clone(synthesiser)));
            }
        }
    }
}

fn recogniser(args: &ServeArgs) -> Result<Option<Recogniser>, ServeError> {
    let Some(url) = &args.stt_url else { return Ok(None) };
    let what = "speech recognition";
    let base = speech_base(what, url, args.stt_key_env.as_deref())?;
    let (model, verbose) = (args.stt_model.clone(), args.stt_format == SttFormat::VerboseJson);
    let recogniser = Recogniser::new(base, model, verbose, time_limit(what, args.stt_timeout_s)?);
    recogniser.map(Some).map_err(|source| ServeError::SpeechClient { what, source })
}

fn synthesiser(args: &ServeArgs) -> Result<Option<Synthesiser>, ServeError> {
    let Some(url) = &args.tts_url else { return Ok(None) };
    let what = "speech synthesis";
    let base = speech_base(what, url, args.tts_key_env.as_deref())?;
    let names = VoiceNames::new(&args.tts_voice)?;
    let limit = time_limit(what, args.tts_timeout_s)?;
    let synthesiser = Synthesiser::new(base, args.tts_model.clone(), names, limit);
    synthesiser.map(Some).map_err(|source| ServeError::SpeechClient { what, source })
}

/// Reads the address and the key of the server that does `what`.
fn speech_base(what: &'static str, url: &str, key_env: Option<&str>) -> Result<ApiBase, ServeError> {
    let base = key_from(key_env).and_then(|key| ApiBase::new(url, key.as_deref()));
    let base = base.map_err(|source| ServeError::SpeechAddress { what, source })?;
    tracing::info!(url = base.url(), "{what}");
    Ok(base)
}

fn time_limit(what: &'static str, seconds: f64) -> Result<Duration, ServeError> {
    if seconds > 0.0 && seconds <= 3_600.0 {
        Ok(Duration::from_secs_f64(seconds))
    } else {
        Err(ServeError::Timeout { what, seconds })
    }
}

async fn watch_bell(slab: &'static UnitSlab, wakers: Arc<Wakers>, rings: AlarmReader) {
    if let Err(error) = dispatcher::dispatch(slab, wakers, rings).await {
        tracing::error!(%error, "the edge's doorbell cannot be watched");
        std::process::exit(1);
    }
}

/// SIGINT and SIGTERM.
struct StopSignals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

impl StopSignals {
    fn new() -> std::io::Result<Self> {
        Ok(Self { interrupt: signal(SignalKind::interrupt())?, terminate: signal(SignalKind::terminate())? })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}
