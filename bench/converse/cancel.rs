//! Cancels and barge-ins: the time until the answer ends, and its audio and events that come later.

use std::time::Duration;

use antiphon::door::clock;
use antiphon::door::message::Moment;
use anyhow::{Context, bail, ensure};

use crate::Lines;
use crate::event::{Event, Samples};
use crate::gauge::{Gauge, Lateness};
use crate::report::Distribution;
use crate::session::{RESPONSE_CANCEL, Session};
use crate::target::{Target, TargetArgs};
use crate::track::{SPEECH_LEVEL, append};

/// response.cancel, or speech, in an answer that is going out
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct CancelArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Answers that are stopped
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) cancels: u32,
    /// Pace of the answer in times of real time; 0 is a burst
    #[arg(long, default_value_t = 0.0)]
    pub(crate) rt: f64,
    /// Length of an answer that is not stopped, seconds: longer than a burst can be out in --after-ms
    #[arg(long, default_value_t = 3_600.0, value_parser = crate::seconds)]
    pub(crate) dur: f64,
    /// Time between the first audio and the stop
    #[arg(long, value_name = "MS", default_value_t = 20)]
    pub(crate) after_ms: u32,
    /// Speak instead of sending response.cancel
    #[arg(long)]
    pub(crate) barge_in: bool,
    /// Length of that speech, sent in one piece
    #[arg(long, value_name = "MS", default_value_t = 400)]
    pub(crate) speech_ms: u32,
    /// Most by which a sample may be off the tag of its answer: 0 is bit-exact; a server that resamples needs some
    #[arg(long, default_value_t = 0)]
    pub(crate) tolerance: u16,
}

/// Longest wait for late events after a response is over.
const AFTERMATH: Duration = Duration::from_millis(20);

/// Silence that ends the speech of a barge-in.
const SILENCE_MS: u32 = 1_500;

/// Length of the answer after the one that was stopped.
const NEXT_SECONDS: f64 = 0.3;

#[derive(Debug)]
struct Tally {
    /// Moment of the last stop; `None` once the server has reported speech since.
    stop: Option<Moment>,
    to_done: Distribution,
    to_started: Distribution,
    /// Times from the stop to each delta that still came.
    stale: Distribution,
    stale_samples: u64,
    after_done: u64,
    wrong_tag: u64,
    next_samples: u64,
    /// Answers that were complete before the stop.
    too_late: u64,
}

impl Tally {
    /// Records the report of speech. Some servers send it before the end of the answer that the speech stops, some
    /// after.
    fn note_speech(&mut self, event: &Event<'_>) {
        if event.kind() == "input_audio_buffer.speech_started"
            && let Some(stop) = self.stop.take()
        {
            self.to_started.record(clock::now().since(stop));
        }
    }
}

pub(crate) async fn run(args: &CancelArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let target = Target::start(&args.target, 1).await?;
    let mut session = Session::ready(&target).await?;
    let mut tally = Tally {
        stop: None,
        to_done: Distribution::new("stop_to_done"),
        to_started: Distribution::new("stop_to_speech_started"),
        stale: Distribution::new("stop_to_stale_delta"),
        stale_samples: 0,
        after_done: 0,
        wrong_tag: 0,
        next_samples: 0,
        too_late: 0,
    };
    let rate_hz = target.rate_hz();
    let (lateness, gauge) = (Lateness::watch()?, Gauge::start(&target)?);
    for round in 0..args.cancels {
        // Tags are far apart, and two in a row are never the same.
        let tag = 1_000 + 10_000 * (round % 3) as i16;
        let old = stop_answer(args, rate_hz, &mut session, tag, &mut tally).await?;
        watch_aftermath(&mut session, &old.id, &mut tally).await?;
        if old.is_spoken_over {
            session.send(append(&vec![0; SILENCE_MS as usize * rate_hz / 1_000])).await?;
        } else {
            session.ask(&format!("say dur={NEXT_SECONDS} tag={} rt=0", tag + 5_000)).await?;
        }
        check_next(args.tolerance, &mut session, &old.id, tag + 5_000, &mut tally).await?;
    }
    let (reading, late) = (gauge.stop(&target)?, lateness.stop());
    session.close().await;

    let mut line = target.line("cancel");
    line.dimension("by", if args.barge_in { "speech" } else { "response.cancel" });
    line.dimension("cancels", args.cancels);
    line.dimension("rt", args.rt);
    line.dimension("after_ms", args.after_ms);
    line.metric(tally.to_done);
    if args.barge_in {
        line.dimension("speech_ms", args.speech_ms);
        line.metric(tally.to_started);
    }
    line.value("stale_audio", "s", tally.stale_samples as f64 / rate_hz as f64);
    line.metric(tally.stale);
    line.value("after_done", "events", tally.after_done as f64);
    line.value("wrong_tag", "samples", tally.wrong_tag as f64);
    line.value("next_samples", "samples", tally.next_samples as f64);
    line.value("too_late", "answers", tally.too_late as f64);
    reading.write(&late, &mut line);
    lines.add(line);
    Ok(())
}

/// A response that is over.
struct Old {
    id: String,
    /// True if speech has stopped the response and now waits for its own answer.
    is_spoken_over: bool,
}

/// Waits until an answer begins, and stops that answer.
async fn stop_answer(
    args: &CancelArgs,
    rate_hz: usize,
    session: &mut Session,
    tag: i16,
    tally: &mut Tally,
) -> anyhow::Result<Old> {
    session.ask(&format!("say dur={} tag={tag} rt={}", args.dur, args.rt)).await?;
    let after = Duration::from_millis(args.after_ms.into());
    let mut stop_at: Option<Moment> = None;
    while stop_at.is_none_or(|at| clock::now() < at) {
        let text = match stop_at {
            Some(at) => session.next_within(at.since(clock::now())).await?,
            None => Some(session.next().await?),
        };
        let Some(text) = text else { break };
        let event = Event::parse(&text)?;
        match event.kind() {
            "error" => bail!("{text}"),
            "response.done" => {
                tally.too_late += 1;
                return Ok(Old { id: event.response_id().to_owned(), is_spoken_over: false });
            }
            _ if event.is_audio() => _ = stop_at.get_or_insert_with(|| clock::now() + after),
            _ => {}
        }
    }
    let stop = clock::now();
    tally.stop = Some(stop);
    if args.barge_in {
        let samples = args.speech_ms as usize * rate_hz / 1_000;
        session.send(append(&vec![SPEECH_LEVEL; samples])).await?;
    } else {
        session.send(RESPONSE_CANCEL.into()).await?;
    }
    let id = end_of_stopped(session, stop, tally).await?;
    Ok(Old { id, is_spoken_over: args.barge_in })
}

/// Reads to the end of the response that is being stopped; returns its id.
async fn end_of_stopped(session: &mut Session, stop: Moment, tally: &mut Tally) -> anyhow::Result<String> {
    loop {
        let text = session.next().await?;
        let at = clock::now();
        let event = Event::parse(&text)?;
        tally.note_speech(&event);
        match event.kind() {
            "response.done" => {
                match event.status() {
                    "completed" => tally.too_late += 1,
                    _ => tally.to_done.record(at.since(stop)),
                }
                return Ok(event.response_id().to_owned());
            }
            "error" => bail!("{text}"),
            _ if event.is_audio() => {
                tally.stale.record(at.since(stop));
                tally.stale_samples += event.samples();
            }
            _ => {}
        }
    }
}

/// Counts the late events of the old response.
async fn watch_aftermath(session: &mut Session, old: &str, tally: &mut Tally) -> anyhow::Result<()> {
    let end = clock::now() + AFTERMATH;
    while let Some(text) = session.next_within(end.since(clock::now())).await? {
        let event = Event::parse(&text)?;
        tally.note_speech(&event);
        tally.after_done += u64::from(event.response_id() == old);
        // The answer to a cancel that came too late.
        let is_late_cancel =
            event.error.as_ref().is_some_and(|fault| &*fault.code == "response_cancel_not_active");
        ensure!(event.kind() != "error" || is_late_cancel, "{text}");
    }
    Ok(())
}

/// Reads the next answer. Its samples are `tag`, or the tag in the server's transcript if there is one.
async fn check_next(
    tolerance: u16,
    session: &mut Session,
    old: &str,
    tag: i16,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let mut tag = i32::from(tag);
    let mut samples = Samples::default();
    loop {
        let text = session.next().await?;
        let event = Event::parse(&text)?;
        tally.note_speech(&event);
        let is_old = event.response_id() == old;
        tally.after_done += u64::from(is_old);
        match event.kind() {
            "conversation.item.input_audio_transcription.completed" => {
                tag = tag_in(&event.transcript).with_context(|| format!("{text}, expected a tag"))?;
            }
            "error" => bail!("{text}"),
            "response.done" if !is_old => return Ok(()),
            _ if event.is_audio() => {
                event.decode(&mut samples)?;
                let is_wrong = |sample: i16| (i32::from(sample) - tag).unsigned_abs() > tolerance.into();
                tally.wrong_tag += samples.iter().filter(|&sample| is_wrong(sample)).count() as u64;
                tally.next_samples += samples.iter().len() as u64;
            }
            _ => {}
        }
    }
}

/// Returns the `tag` in an order to the fake stages.
pub(crate) fn tag_in(transcript: &str) -> Option<i32> {
    transcript.split("tag=").nth(1)?.split(' ').next()?.parse().ok()
}
