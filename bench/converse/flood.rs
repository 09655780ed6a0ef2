//! Audio as fast as the server takes it: the cost of a second of audio on the way in.

use std::time::Duration;

use antiphon::door::clock;
use anyhow::bail;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::Lines;
use crate::event::Event;
use crate::gauge::{Gauge, Lateness};
use crate::report::Distribution;
use crate::session::{EVENT_LIMIT, PROBE, Receiver, Sender, Session};
use crate::target::{Target, TargetArgs};
use crate::track::{SPEECH_LEVEL, append};

/// Sessions that send audio without a pace
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct FloodArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Sessions at once; a list gives a line each
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = crate::session_count)]
    pub(crate) sessions: Vec<usize>,
    /// Audio per session, seconds
    #[arg(long, default_value_t = 3_000.0, value_parser = crate::seconds)]
    pub(crate) audio_s: f64,
    /// Length of an append
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) chunk_ms: u32,
}

/// Length of the utterance after the flood. Once its end is reported, the detector has taken all of the flood.
const LAST_SPEECH_MS: usize = 640;

/// Silence behind the utterance, longer than any server waits for the end of a turn by default.
const LAST_SILENCE_MS: usize = 1_500;

pub(crate) async fn run(args: &FloodArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let most = args.sessions.iter().copied().max().unwrap_or(1);
    let target = Target::start(&args.target, most).await?;
    for &sessions in &args.sessions {
        measure(args, &target, sessions, lines).await?;
    }
    Ok(())
}

async fn measure(
    args: &FloodArgs,
    target: &Target,
    sessions: usize,
    lines: &mut Lines,
) -> anyhow::Result<()> {
    let chunk = args.chunk_ms as usize * target.rate_hz() / 1_000;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seconds are few and not negative"
    )]
    let chunks = (args.audio_s * 1_000.0 / f64::from(args.chunk_ms)).ceil() as u64;
    let silence = append(&vec![0; chunk]);
    let samples = |ms: usize| ms * target.rate_hz() / 1_000;
    let last = [vec![SPEECH_LEVEL; samples(LAST_SPEECH_MS)], vec![0; samples(LAST_SILENCE_MS)]].concat();
    let last: Vec<_> = last.chunks(chunk).map(append).collect();

    let mut opened = Vec::new();
    for _ in 0..sessions {
        opened.push(Session::ready(target).await?.split());
    }
    let (lateness, gauge) = (Lateness::watch()?, Gauge::start(target)?);
    let begin = clock::now();
    let mut flooding = tokio::task::JoinSet::new();
    for (sender, receiver) in opened {
        let (silence, last) = (silence.clone(), last.clone());
        flooding.spawn_local(async move {
            let ((), ended) = tokio::try_join!(flood(sender, silence, chunks, last), end_of_flood(receiver))?;
            anyhow::Ok(ended)
        });
    }
    let mut ends = Distribution::new("time_to_end");
    while let Some(ended) = flooding.join_next().await {
        ends.record(ended??.since(begin));
    }
    let (reading, late) = (gauge.stop(target)?, lateness.stop());

    let mut line = target.line("flood");
    line.dimension("sessions", sessions);
    line.dimension("chunk_ms", args.chunk_ms);
    line.dimension("audio_s", args.audio_s);
    let audio_s = sessions as f64
        * (chunks as f64 * f64::from(args.chunk_ms) + (LAST_SPEECH_MS + LAST_SILENCE_MS) as f64)
        / 1_000.0;
    let messages = sessions as f64 * (chunks as f64 + last.len() as f64);
    line.value("audio", "s", audio_s);
    line.value("audio_per_wall", "s/s", audio_s / reading.seconds);
    if let Some(cpu_s) = reading.server_cpu_s() {
        line.value("audio_per_cpu", "s/s", audio_s / cpu_s);
        line.value("cpu_per_append", "ms", 1_000.0 * cpu_s / messages);
    }
    line.metric(ends);
    reading.write(&late, &mut line);
    lines.add(line);
    Ok(())
}

async fn flood(
    mut sender: Sender,
    silence: Utf8Bytes,
    chunks: u64,
    last: Vec<Utf8Bytes>,
) -> anyhow::Result<()> {
    for _ in 0..chunks {
        sender.feed(&silence).await?;
    }
    for append in &last {
        sender.feed(append).await?;
    }
    sender.feed(&Utf8Bytes::from_static(PROBE)).await?;
    sender.flush().await
}

/// Returns the moment at which both of two events have come: the answer to the probe, before which the server has
/// read all, and the end of the last utterance, before which its detector has taken all.
async fn end_of_flood(mut receiver: Receiver) -> anyhow::Result<antiphon::door::message::Moment> {
    let (mut is_read, mut is_heard) = (false, false);
    while !(is_read && is_heard) {
        // The first event may take as long as the flood; the other follows soon.
        let limit = if is_read || is_heard { EVENT_LIMIT } else { Duration::from_secs(600) };
        let text = match timeout(limit, receiver.next()).await {
            Ok(text) => text?,
            Err(_) => {
                bail!("no end after {limit:?}: probe answered: {is_read}, end of speech reported: {is_heard}")
            }
        };
        let event = Event::parse(&text)?;
        match event.kind() {
            "session.updated" => is_read = true,
            "input_audio_buffer.speech_stopped" => is_heard = true,
            "error" => bail!("{text}"),
            _ => {}
        }
    }
    Ok(clock::now())
}
