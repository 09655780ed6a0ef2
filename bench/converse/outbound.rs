//! Answers: the time to their first audio, their cost, and the time of a frame from the voice to the client.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use antiphon::door::clock;
use antiphon::door::message::Moment;
use anyhow::bail;

use crate::Lines;
use crate::event::{Event, Samples};
use crate::gauge::{Gauge, Lateness};
use crate::report::Distribution;
use crate::session::{EVENT_LIMIT, Session};
use crate::target::{Target, TargetArgs};

/// Sessions that ask for answers, in a burst or at the pace of speech
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct OutboundArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Sessions at once; a list gives a line each
    #[arg(long, value_delimiter = ',', default_value = "1,4,16", value_parser = crate::session_count)]
    pub(crate) sessions: Vec<usize>,
    /// Answers per session
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) answers: u32,
    /// Length of an answer, seconds
    #[arg(long, default_value_t = 30.0, value_parser = crate::seconds)]
    pub(crate) dur: f64,
    /// Pace of the fake voice in times of real time; 0 is a burst
    #[arg(long, default_value_t = 0.0)]
    pub(crate) rt: f64,
    /// Let the voice write the moment of a frame into that frame
    #[arg(long)]
    pub(crate) stamp: bool,
    /// Samples of a stamped frame: 480 is ours, 512 that of the stub of huggingface/speech-to-speech
    #[arg(long, default_value_t = 480, value_parser = clap::value_parser!(u32).range(4..))]
    pub(crate) frame: u32,
}

/// Value of the samples.
const TAG: i16 = 1_234;

/// Most by which the length of a whole answer may be off, as a part and in seconds. A server that resamples may lose
/// the edges, and one that speaks in blocks a part of a block.
const LENGTH_TOLERANCE: f64 = 0.02;
const LENGTH_TOLERANCE_S: f64 = 0.04;

/// Time within which paced sessions begin, so that their frames are not all due at once.
const SPREAD: Duration = Duration::from_secs(1);

pub(crate) async fn run(args: &OutboundArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let most = args.sessions.iter().copied().max().unwrap_or(1);
    let target = Target::start(&args.target, most).await?;
    for &sessions in &args.sessions {
        measure(args, &target, sessions, lines).await?;
    }
    Ok(())
}

/// Measurements of all sessions.
#[derive(Debug)]
struct Tally {
    first_delta: Distribution,
    stage_to_socket: Distribution,
    samples: u64,
    deltas: u64,
    incomplete: u64,
}

async fn measure(
    args: &OutboundArgs,
    target: &Target,
    sessions: usize,
    lines: &mut Lines,
) -> anyhow::Result<()> {
    let mut opened = Vec::new();
    for _ in 0..sessions {
        opened.push(Session::ready(target).await?);
    }
    let tally = Rc::new(RefCell::new(Tally {
        first_delta: Distribution::new("first_delta"),
        stage_to_socket: Distribution::new("stage_to_socket"),
        samples: 0,
        deltas: 0,
        incomplete: 0,
    }));
    let (lateness, gauge) = (Lateness::watch()?, Gauge::start(target)?);
    let mut asking = tokio::task::JoinSet::new();
    for (number, session) in opened.into_iter().enumerate() {
        let part = (number as f64 * 0.618_033_988_75).fract();
        let delay = if args.rt > 0.0 { SPREAD.mul_f64(part) } else { Duration::ZERO };
        asking.spawn_local(ask(session, delay, args.clone(), target.rate_hz(), Rc::clone(&tally)));
    }
    while let Some(asked) = asking.join_next().await {
        asked??;
    }
    let (reading, late) = (gauge.stop(target)?, lateness.stop());
    let tally = Rc::into_inner(tally).expect("all sessions have ended").into_inner();

    let mut line = target.line("outbound");
    line.dimension("sessions", sessions);
    line.dimension("answers", args.answers);
    line.dimension("dur_s", args.dur);
    line.dimension("rt", args.rt);
    let audio_s = tally.samples as f64 / target.rate_hz() as f64;
    line.value("audio", "s", audio_s);
    line.value("audio_per_wall", "s/s", audio_s / reading.seconds);
    if let Some(cpu_s) = reading.server_cpu_s() {
        line.value("audio_per_cpu", "s/s", audio_s / cpu_s);
        let answers = f64::from(args.answers) * sessions as f64;
        line.value("cpu_per_answer", "ms", 1_000.0 * cpu_s / answers);
    }
    line.value("deltas", "deltas", tally.deltas as f64);
    line.value("incomplete", "answers", tally.incomplete as f64);
    line.metric(tally.first_delta);
    if args.stamp {
        line.dimension("frame_samples", args.frame);
        line.metric(tally.stage_to_socket);
    }
    reading.write(&late, &mut line);
    lines.add(line);
    Ok(())
}

async fn ask(
    mut session: Session,
    delay: Duration,
    args: OutboundArgs,
    rate_hz: usize,
    tally: Rc<RefCell<Tally>>,
) -> anyhow::Result<()> {
    tokio::time::sleep(delay).await;
    let question = format!("say dur={} tag={TAG} rt={} stamp={}", args.dur, args.rt, u8::from(args.stamp));
    let limit = EVENT_LIMIT + Duration::from_secs_f64(args.dur / if args.rt > 0.0 { args.rt } else { 1.0 });
    let mut decoded = Samples::default();
    for number in 0..args.answers {
        let asked = clock::now();
        session.ask(&question).await?;
        let answer = read_answer(&mut session, asked, &args, &tally, &mut decoded);
        let samples = match tokio::time::timeout(limit, answer).await {
            Ok(samples) => samples?,
            Err(_) => bail!("answer {number} is not done after {limit:?}"),
        };
        let off_s = (samples as f64 / rate_hz as f64 - args.dur).abs();
        let is_whole = off_s <= (LENGTH_TOLERANCE * args.dur).max(LENGTH_TOLERANCE_S);
        tally.borrow_mut().incomplete += u64::from(!is_whole);
        tally.borrow_mut().samples += samples;
    }
    session.close().await;
    Ok(())
}

/// Reads one answer to its end; returns the number of its samples.
async fn read_answer(
    session: &mut Session,
    asked: Moment,
    args: &OutboundArgs,
    tally: &RefCell<Tally>,
    decoded: &mut Samples,
) -> anyhow::Result<u64> {
    let mut samples = 0;
    loop {
        let text = session.next_unlimited().await?;
        let at = clock::now();
        let event = Event::parse(&text)?;
        if event.is_audio() {
            if samples == 0 {
                tally.borrow_mut().first_delta.record(at.since(asked));
            }
            samples += event.samples();
            tally.borrow_mut().deltas += 1;
            if args.stamp {
                event.decode(decoded)?;
                for nanos in decoded.stamps(args.frame as usize) {
                    tally.borrow_mut().stage_to_socket.record(at.since(Moment::from_nanos(nanos)));
                }
            }
            // A burst always has more to read; the other sessions' audio shall not wait until this one's is read.
            tokio::task::yield_now().await;
        } else if event.kind() == "response.done" {
            return Ok(samples);
        } else if event.kind() == "error" {
            bail!("{text}");
        }
    }
}
