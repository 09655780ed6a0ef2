//! Real-time talkers, open loop: append `n` of a session goes out at `start + n × chunk`, whatever the server
//! does.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use antiphon::door::clock;
use antiphon::door::message::Moment;
use anyhow::ensure;

use crate::Lines;
use crate::gauge::{Gauge, Reading};
use crate::pacer::Pacer;
use crate::report::Distribution;
use crate::session::Session;
use crate::talker::{Diligence, Talker};
use crate::target::{Target, TargetArgs};
use crate::track::Track;

/// Real-time talkers; with several numbers of sessions, the largest that the server keeps up with
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct TalkArgs {
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    /// Sessions at once; a list is a ramp, which ends with the first number that is too many
    #[arg(long, value_delimiter = ',', default_value = "1,8,32", value_parser = crate::session_count)]
    pub(crate) sessions: Vec<usize>,
    /// Seconds measured for each number of sessions
    #[arg(long, default_value_t = 10.0, value_parser = crate::seconds)]
    pub(crate) seconds: f64,
    /// Length of an append
    #[arg(long, default_value_t = 20)]
    pub(crate) chunk_ms: usize,
    /// Recordings to play in turn [default: 640 ms of one level every 3.2 s]
    #[arg(long, value_name = "FILE.wav")]
    pub(crate) speech: Vec<PathBuf>,
    /// A server keeps up while the excess lag of 95 % of the events is not above this
    #[arg(long, value_name = "MS", default_value_t = 100.0)]
    pub(crate) budget_ms: f64,
    /// Rounds of the track that a lone session plays first, to measure the lag without load
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) calibration_rounds: u32,
}

/// Time after the measured part for the server to report the speech in that part.
const GRACE: Duration = Duration::from_secs(4);

/// Grid on which sessions begin, so that one wake-up of the client serves many.
const SLOT: Duration = Duration::from_millis(1);

pub(crate) async fn run(args: &TalkArgs, lines: &mut Lines) -> anyhow::Result<()> {
    ensure!(args.sessions.is_sorted(), "--sessions {:?}, expected a ramp that rises", args.sessions);
    let track = Rc::new(Track::new(&args.speech, args.chunk_ms, args.target.rate_hz())?);
    let most = args.sessions.iter().copied().max().unwrap_or(1);
    let target = Target::start(&args.target, most).await?;
    let alone = Duration::from_millis(u64::from(args.calibration_rounds) * track.period_ms());
    let mut usual = Usual::new(&track);
    usual.learn(&run_step(&target, &track, 1, alone).await?, &track);

    let (mut kept_up, mut broken_at, mut cores) = (0, None, None);
    for &sessions in &args.sessions {
        let step = run_step(&target, &track, sessions, Duration::from_secs_f64(args.seconds)).await?;
        usual.learn(&step, &track);
        if !step.write(args, &track, &usual, &target, lines) {
            broken_at = Some(sessions);
            break;
        }
        kept_up = sessions;
        cores = step.reading.server_cpu_s().map(|cpu_s| cpu_s / step.reading.seconds);
    }
    if args.sessions.len() > 1 {
        let mut line = target.line("talk capacity");
        line.dimension("chunk_ms", args.chunk_ms);
        line.dimension("budget_ms", args.budget_ms);
        line.dimension("ramp", args.sessions.clone());
        line.dimension("broken_at", broken_at);
        // The bottleneck of the step that was too much.
        line.bottleneck = broken_at.and(lines.last().bottleneck);
        line.value("sessions_max", "sessions", kept_up as f64);
        if let Some(cores) = cores {
            line.value("sessions_per_core", "sessions", kept_up as f64 / cores);
        }
        lines.add(line);
    }
    Ok(())
}

/// One step of the ramp: a number of sessions for a while.
struct Step {
    begin: Moment,
    end: Moment,
    /// Moment at which the client stopped listening.
    given_up: Moment,
    talkers: Vec<Talker>,
    diligence: Diligence,
    reading: Reading,
}

async fn run_step(
    target: &Target,
    track: &Rc<Track>,
    sessions: usize,
    length: Duration,
) -> anyhow::Result<Step> {
    let mut opened = Vec::new();
    for _ in 0..sessions {
        opened.push(Session::ready(target).await?);
    }
    let first = clock::now() + Duration::from_millis(50);
    let talkers = opened.into_iter().zip(0_u32..).map(|(session, number)| {
        // The golden ratio spreads any number of sessions evenly over a round.
        let part = (f64::from(number) * 0.618_033_988_75).fract();
        let start = first + Duration::from_millis(track.period_ms()).mul_f64(part);
        Talker::new(session, start, number.into(), track)
    });
    let talkers: Vec<_> = talkers.collect();
    // The moment from which on all have begun.
    let begin = first + Duration::from_millis(if sessions == 1 { 0 } else { track.period_ms() });
    // Each write shall go out when due, so the runtime must not make this task yield.
    let speak = speak(target, talkers, track.chunk_ms(), first, begin, begin + length);
    tokio::task::coop::unconstrained(speak).await
}

/// Sends the appends that are due, until the server has reported all speech from `begin` to `end`, or the grace is
/// over.
async fn speak(
    target: &Target,
    mut talkers: Vec<Talker>,
    chunk_ms: u64,
    first: Moment,
    begin: Moment,
    end: Moment,
) -> anyhow::Result<Step> {
    let mut slots: Vec<Vec<usize>> = vec![Vec::new(); usize::try_from(chunk_ms)?];
    for (number, talker) in talkers.iter().enumerate() {
        let offset_ms = u64::try_from(talker.start().since(first).as_millis())?;
        slots[usize::try_from(offset_ms % chunk_ms)?].push(number);
    }
    let pacer = Pacer::new()?;
    let mut diligence = Diligence::new();
    let (mut gauge, mut reading) = (None, None);
    for (slot, due) in (0_u32..).zip(slots.iter().cycle()) {
        if due.is_empty() {
            continue;
        }
        let now = first + SLOT * slot;
        pacer.until(now).await?;
        if now >= begin && gauge.is_none() {
            gauge = Some(Gauge::start(target)?);
        }
        if let Some(gauge) = &gauge
            && now >= end
            && reading.is_none()
        {
            reading = Some(gauge.stop(target)?);
        }
        for &number in due {
            talkers[number].say_due(now, &mut diligence).await;
        }
        let is_over = || {
            // Session 0 has an append in every slot that is a multiple of its chunk.
            let may_look = u64::from(slot) % (5 * chunk_ms) == 0;
            now >= end + GRACE || may_look && talkers.iter().all(|talker| talker.is_answered(begin, end))
        };
        if let Some(reading) = reading
            && is_over()
        {
            let given_up = clock::now();
            return Ok(Step { begin, end, given_up, talkers, diligence, reading });
        }
    }
    unreachable!("the slots come round for ever")
}

/// A lag of one edge of an utterance.
struct Lag {
    /// Number of the utterance within its round.
    utterance: usize,
    lag: Duration,
    /// True if the event never came: the lag is then at least `lag`.
    is_open: bool,
}

impl Step {
    fn lags(&self, edge: Edge, track: &Track) -> Vec<Lag> {
        let mut lags = Vec::new();
        for talker in &self.talkers {
            let heard = talker.heard();
            let (due, seen): (Vec<_>, _) = match edge {
                Edge::Onset => (talker.onsets(self.begin, self.end).collect(), &heard.started),
                Edge::End => (talker.ends(self.begin, self.end).collect(), &heard.stopped),
            };
            lags.extend(due.into_iter().map(|(number, intended)| {
                let at = seen.get(&number);
                Lag {
                    utterance: usize::try_from(number).expect("an utterance of this run")
                        % track.utterances(),
                    lag: at.unwrap_or(&self.given_up).since(intended),
                    is_open: at.is_none(),
                }
            }));
        }
        lags
    }

    fn probe_lags(&self) -> Vec<(Duration, bool)> {
        let mut lags = Vec::new();
        for talker in &self.talkers {
            let heard = talker.heard();
            lags.extend(talker.probes(self.begin, self.end).map(|(number, intended)| {
                let at = heard.probes.get(usize::try_from(number).expect("a probe of this run"));
                (at.unwrap_or(&self.given_up).since(intended), at.is_none())
            }));
        }
        lags
    }

    /// Returns the times from the end of speech to the first audio of its answer, and the number of ends without audio.
    fn first_audio(&self) -> (Distribution, usize) {
        let (mut lags, mut unanswered) = (Distribution::new("first_audio"), 0);
        for talker in &self.talkers {
            let heard = talker.heard();
            for (number, intended) in talker.ends(self.begin, self.end) {
                match heard.first_audio.get(&number) {
                    Some(at) => lags.record(at.since(intended)),
                    None => unanswered += 1,
                }
            }
        }
        (lags, unanswered)
    }

    /// Writes the line; returns true if the server has kept up.
    fn write(
        &self,
        args: &TalkArgs,
        track: &Track,
        usual: &Usual,
        target: &Target,
        lines: &mut Lines,
    ) -> bool {
        let mut line = target.line("talk");
        line.dimension("sessions", self.talkers.len());
        line.dimension("chunk_ms", args.chunk_ms);
        line.dimension("seconds", args.seconds);
        line.dimension(
            "speech",
            args.speech.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        );
        line.dimension("budget_ms", args.budget_ms);
        let mut excess = Distribution::new("excess_lag");
        let mut unheard = 0;
        for (edge, name) in [(Edge::Onset, "onset_lag"), (Edge::End, "end_lag")] {
            let mut lags = Distribution::new(name);
            for Lag { utterance, lag, is_open } in self.lags(edge, track) {
                lags.record(lag);
                excess.record(lag.saturating_sub(usual.of(edge)[utterance]));
                unheard += usize::from(is_open);
            }
            line.metric(lags);
        }
        let keeps_up = excess.count() > 0 && excess.millis_at(0.95) <= args.budget_ms;
        line.metric(excess);
        let mut probes = Distribution::new("probe");
        let mut unanswered_probes = 0;
        for (lag, is_open) in self.probe_lags() {
            probes.record(lag);
            unanswered_probes += usize::from(is_open);
        }
        line.metric(probes);
        let (first_audio, unanswered) = self.first_audio();
        line.metric(first_audio);
        let faults: Vec<_> = self.talkers.iter().flat_map(|talker| talker.heard().faults.clone()).collect();
        line.value("unheard", "onsets and ends", unheard as f64);
        line.value("unanswered", "ends", unanswered as f64);
        line.value("unanswered_probes", "probes", unanswered_probes as f64);
        line.value("faults", "error events and broken connections", faults.len() as f64);
        line.value("blocked", "times that a socket took nothing", self.diligence.blocked as f64);
        if let Some(cpu_s) = self.reading.server_cpu_s() {
            let session_s = self.talkers.len() as f64 * self.reading.seconds;
            line.value("cpu_per_session_second", "s", cpu_s / session_s);
        }
        self.reading.write(&self.diligence.late, &mut line);
        line.dimension("keeps_up", keeps_up);
        if let Some(fault) = faults.first() {
            eprintln!("converse talk: {} faults, the first: {fault}", faults.len());
        }
        lines.add(line);
        keeps_up
    }
}

/// An edge of an utterance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    Onset,
    End,
}

/// The smallest lag measured of each utterance of a round: the detector's own time, without load.
#[derive(Debug)]
struct Usual {
    onsets: Vec<Duration>,
    ends: Vec<Duration>,
}

impl Usual {
    fn new(track: &Track) -> Self {
        let unknown = vec![Duration::MAX; track.utterances()];
        Self { onsets: unknown.clone(), ends: unknown }
    }

    fn of(&self, edge: Edge) -> &[Duration] {
        match edge {
            Edge::Onset => &self.onsets,
            Edge::End => &self.ends,
        }
    }

    fn learn(&mut self, step: &Step, track: &Track) {
        for (edge, usual) in [(Edge::Onset, &mut self.onsets), (Edge::End, &mut self.ends)] {
            for Lag { utterance, lag, .. } in step.lags(edge, track) {
                usual[utterance] = usual[utterance].min(lag);
            }
        }
    }
}
