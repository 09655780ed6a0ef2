//! Leaks between sessions. Each of many clients has a number of its own, which comes back as the value of its
//! samples; all clients leave at random.

use std::rc::Rc;
use std::time::Duration;

use antiphon::door::clock;
use antiphon::door::message::Moment;
use anyhow::{Context, bail, ensure};

use crate::Lines;
use crate::cancel::tag_in;
use crate::event::{Event, Samples};
use crate::gauge::{Gauge, Lateness};
use crate::rng::Rng;
use crate::session::{NoSession, RESPONSE_CANCEL, Session};
use crate::target::{Target, TargetArgs};
use crate::track::append;

/// Clients that come and go at random and look for audio, words and events of others
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct LeakArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Clients at once, more than there are units
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) clients: u16,
    /// Length of the run, seconds
    #[arg(long, default_value_t = 20.0, value_parser = crate::seconds)]
    pub(crate) seconds: f64,
    /// Part of the sessions that speak instead of writing
    #[arg(long, default_value_t = 0.25)]
    pub(crate) spoken: f64,
    /// Most by which the number that the server has heard may be off the level that was spoken, and samples off
    /// their tag if the server resamples
    #[arg(long, default_value_t = 200, value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) tolerance: i32,
    /// Most by which a sample may be off its tag: 0 is bit-exact
    #[arg(long, default_value_t = 0, value_parser = clap::value_parser!(i32).range(0..))]
    pub(crate) sample_tolerance: i32,
    /// Positive control of the check: each client expects another tag than its own, so everything is
    /// foreign
    #[arg(long)]
    pub(crate) control: bool,
    /// Seed of the random choices
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
}

/// Units of our server, unless --units is given.
const UNITS: usize = 4;

/// Range of the tags, loud enough for an energy detector.
const TAGS: std::ops::Range<i32> = 400..32_000;

/// Difference between a client's own tag and the tag that the control expects.
const CONTROL_OFFSET: i32 = 1_000;

/// Time after which a refused client calls again.
const REFUSED_PAUSE: Duration = Duration::from_millis(2);

/// Longest watch for unsolicited events, before the session's first request.
const LISTEN_MS_MAX: u64 = 20;

/// Length of a spoken level, and of the silence that ends the utterance. The level is long enough to be the median.
const SPEECH_MS: usize = 2_000;
const SILENCE_MS: usize = 1_500;

/// The way in which a client leaves.
#[derive(Clone, Copy, Debug)]
enum Leaving {
    AfterAnswer,
    Close,
    Fin,
    Rst,
    CancelAndClose,
}

#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    sessions: u64,
    spoken: u64,
    refused: u64,
    completed: u64,
    deltas: u64,
    samples: u64,
    foreign_deltas: u64,
    foreign_samples: u64,
    transcripts: u64,
    foreign_transcripts: u64,
    unsolicited: u64,
}

/// Tags of one client. Each client has a range of its own: the tags of two clients, and those of one client's two
/// sessions in a row, are farther apart than the tolerance.
#[derive(Clone, Copy, Debug)]
struct Tags {
    base: i32,
    width: i32,
    number: u32,
}

impl Tags {
    fn of(client: u16, args: &LeakArgs) -> anyhow::Result<Self> {
        let width = i32::try_from(TAGS.len())? / i32::from(args.clients) - 2 * args.tolerance;
        let least = 6 * args.tolerance.max(1);
        ensure!(
            width >= least,
            "--clients {} with --tolerance {}: {width} tags each, expected {least} or more",
            args.clients,
            args.tolerance
        );
        let base = TAGS.start + i32::from(client) * (width + 2 * args.tolerance);
        Ok(Self { base, width, number: 0 })
    }

    /// Steps through the range by the golden ratio; the smallest step is 0.38 of the width.
    fn next(&mut self) -> i16 {
        self.number += 1;
        let part = (f64::from(self.number) * 0.618_033_988_75).fract();
        #[expect(clippy::cast_possible_truncation, reason = "a part of the width")]
        let step = (part * f64::from(self.width)) as i32;
        i16::try_from(self.base + step).expect("TAGS fit")
    }
}

pub(crate) async fn run(args: &LeakArgs, lines: &mut Lines) -> anyhow::Result<()> {
    let target = Rc::new(Target::start(&args.target, UNITS).await?);
    let (lateness, gauge) = (Lateness::watch()?, Gauge::start(&target)?);
    let end = clock::now() + Duration::from_secs_f64(args.seconds);
    let mut visiting = tokio::task::JoinSet::new();
    for client in 0..args.clients {
        let visitor = Visitor {
            target: Rc::clone(&target),
            args: args.clone(),
            tags: Tags::of(client, args)?,
            rng: Rng::new(args.seed ^ u64::from(client) << 32),
            tally: Tally::default(),
            samples: Samples::default(),
        };
        visiting.spawn_local(visitor.visit(end));
    }
    let mut sum = Tally::default();
    while let Some(tally) = visiting.join_next().await {
        sum.add(&tally??);
    }
    let (reading, late) = (gauge.stop(&target)?, lateness.stop());

    let mut line = target.line("leak");
    line.dimension("clients", args.clients);
    line.dimension("seconds", args.seconds);
    line.dimension("spoken", args.spoken);
    line.dimension("tolerance", args.tolerance);
    line.dimension("sample_tolerance", args.sample_tolerance);
    line.dimension("seed", args.seed);
    line.dimension("control", args.control);
    for (name, unit, value) in [
        ("sessions", "sessions", sum.sessions),
        ("spoken_sessions", "sessions", sum.spoken),
        ("refused", "calls", sum.refused),
        ("completed", "answers", sum.completed),
        ("deltas", "deltas", sum.deltas),
        ("samples", "samples", sum.samples),
        ("foreign_deltas", "deltas", sum.foreign_deltas),
        ("foreign_samples", "samples", sum.foreign_samples),
        ("transcripts", "transcripts", sum.transcripts),
        ("foreign_transcripts", "transcripts", sum.foreign_transcripts),
        ("unsolicited", "events", sum.unsolicited),
    ] {
        line.value(name, unit, value as f64);
    }
    reading.write(&late, &mut line);
    lines.add(line);
    Ok(())
}

impl Tally {
    fn add(&mut self, other: &Self) {
        let Self {
            sessions,
            spoken,
            refused,
            completed,
            deltas,
            samples,
            foreign_deltas,
            foreign_samples,
            transcripts,
            foreign_transcripts,
            unsolicited,
        } = other;
        self.sessions += sessions;
        self.spoken += spoken;
        self.refused += refused;
        self.completed += completed;
        self.deltas += deltas;
        self.samples += samples;
        self.foreign_deltas += foreign_deltas;
        self.foreign_samples += foreign_samples;
        self.transcripts += transcripts;
        self.foreign_transcripts += foreign_transcripts;
        self.unsolicited += unsolicited;
    }
}

struct Visitor {
    target: Rc<Target>,
    args: LeakArgs,
    tags: Tags,
    rng: Rng,
    tally: Tally,
    samples: Samples,
}

impl Visitor {
    async fn visit(mut self, end: Moment) -> anyhow::Result<Tally> {
        while clock::now() < end {
            match Session::open(&self.target).await {
                Ok(session) => self.use_session(session).await?,
                Err(NoSession::Refused { .. }) => {
                    self.tally.refused += 1;
                    tokio::time::sleep(REFUSED_PAUSE).await;
                }
                Err(NoSession::Failed(error)) => return Err(error),
            }
        }
        Ok(self.tally)
    }

    async fn use_session(&mut self, mut session: Session) -> anyhow::Result<()> {
        self.tally.sessions += 1;
        let listen = Duration::from_millis(self.rng.below(LISTEN_MS_MAX + 1));
        let end = clock::now() + listen;
        while let Some(text) = session.next_within(end.since(clock::now())).await? {
            self.unsolicited(&text);
        }
        if let Some(update) = self.target.session_update() {
            session.send(update).await?;
            session.expect("session.updated").await?;
        }
        let tag = self.tags.next();
        let is_spoken = (self.rng.below(1_000) as f64) < 1_000.0 * self.args.spoken;
        let leaving = match self.rng.below(8) {
            0..=2 => Leaving::AfterAnswer,
            3 => Leaving::Close,
            4 | 5 => Leaving::Fin,
            6 => Leaving::Rst,
            _ => Leaving::CancelAndClose,
        };
        let events = self.rng.below(30);
        if is_spoken {
            self.tally.spoken += 1;
            let samples = |ms: usize| ms * self.target.rate_hz() / 1_000;
            let sound = [vec![tag; samples(SPEECH_MS)], vec![0; samples(SILENCE_MS)]].concat();
            for chunk in sound.chunks(samples(200)) {
                session.send(append(chunk)).await?;
            }
        } else {
            let seconds = 0.05 + self.rng.below(40) as f64 / 100.0;
            session.ask(&format!("say dur={seconds:.2} tag={tag} rt=0")).await?;
        }
        self.listen(session, tag, is_spoken, leaving, events).await
    }

    /// Reads until the time to leave, and leaves.
    async fn listen(
        &mut self,
        mut session: Session,
        tag: i16,
        is_spoken: bool,
        leaving: Leaving,
        events: u64,
    ) -> anyhow::Result<()> {
        let offset = if self.args.control { CONTROL_OFFSET } else { 0 };
        // The samples must be the number that was written, or the one in the server's transcript.
        let mut expected = (!is_spoken).then_some(i32::from(tag) + offset);
        let mut heard = 0;
        loop {
            match leaving {
                Leaving::Close if heard >= events => break,
                Leaving::Fin if heard >= events => {
                    session.cut();
                    return Ok(());
                }
                Leaving::Rst if heard >= events => return session.reset(),
                Leaving::CancelAndClose if heard >= events => {
                    session.send(RESPONSE_CANCEL.into()).await?;
                    break;
                }
                _ => {}
            }
            let text = session.next().await.with_context(|| format!("tag {tag}, {leaving:?}"))?;
            heard += 1;
            let event = Event::parse(&text)?;
            match event.kind() {
                "conversation.item.input_audio_transcription.completed" => {
                    let Some(number) = tag_in(&event.transcript).filter(|_| is_spoken) else {
                        self.unsolicited(&text);
                        continue;
                    };
                    self.tally.transcripts += 1;
                    let distance = (number - i32::from(tag) - offset).abs();
                    self.tally.foreign_transcripts += u64::from(distance > self.args.tolerance);
                    expected = Some(number + offset);
                }
                "input_audio_buffer.speech_started" if !is_spoken => self.unsolicited(&text),
                "error" => bail!("tag {tag}, {leaving:?}: {text}"),
                "response.done" => {
                    self.tally.completed += 1;
                    break;
                }
                _ if event.is_audio() => match expected {
                    Some(expected) => self.check(&event, expected)?,
                    None => self.unsolicited(&text),
                },
                _ => {}
            }
        }
        session.close().await;
        Ok(())
    }

    fn check(&mut self, event: &Event<'_>, expected: i32) -> anyhow::Result<()> {
        event.decode(&mut self.samples)?;
        let tolerance = self.args.sample_tolerance;
        let is_foreign = |sample: &i16| (i32::from(*sample) - expected).abs() > tolerance;
        let foreign = self.samples.iter().filter(is_foreign).count() as u64;
        self.tally.deltas += 1;
        self.tally.samples += self.samples.iter().len() as u64;
        self.tally.foreign_deltas += u64::from(foreign > 0);
        self.tally.foreign_samples += foreign;
        Ok(())
    }

    fn unsolicited(&mut self, text: &str) {
        if self.tally.unsolicited == 0 {
            eprintln!("converse leak: nobody asked for {text:.300}");
        }
        self.tally.unsolicited += 1;
    }
}
