//! One session that talks in real time, and the events that come back.

use std::cell::{Ref, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use antiphon::door::clock;
use antiphon::door::message::Moment;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::event::Event;
use crate::gauge::client_late;
use crate::report::Distribution;
use crate::session::{PROBE, Receiver, Sender, Session};
use crate::track::{LEAD_MS, Track};

/// A session whose append `n` is due at `start + n × chunk`.
#[derive(Debug)]
pub(crate) struct Talker {
    /// `None` once the connection is gone.
    sender: Option<Sender>,
    schedule: Schedule,
    /// Number of the next chunk to send.
    next: u64,
    /// True while the socket has not taken the probe that is due.
    probe_waits: bool,
    heard: Rc<RefCell<Heard>>,
    listening: JoinHandle<()>,
}

/// The quality of the client's own work.
#[derive(Debug)]
pub(crate) struct Diligence {
    /// Time from the due moment of an append until the client offered that append to the socket.
    pub(crate) late: Distribution,
    /// Number of times that a socket did not take a due append or probe.
    pub(crate) blocked: u64,
}

/// The due moments of a session's chunks and probes.
#[derive(Clone, Debug)]
struct Schedule {
    start: Moment,
    track: Rc<Track>,
    /// Chunk that is followed by the first probe.
    first_probe: u64,
}

impl Schedule {
    /// Returns the intended moment of a chunk.
    fn at(&self, chunk: u64) -> Moment {
        self.start + Duration::from_millis(chunk * self.track.chunk_ms())
    }

    /// Returns the last chunk that is due at `now`; `None` before the start.
    fn due(&self, now: Moment) -> Option<u64> {
        let since_ms = || u64::try_from(now.since(self.start).as_millis()).expect("a run of hours");
        (now >= self.start).then(|| since_ms() / self.track.chunk_ms())
    }

    fn onset(&self, utterance: u64) -> Moment {
        self.at(self.track.utterance(utterance).onset_chunk)
    }

    fn end(&self, utterance: u64) -> Moment {
        self.at(self.track.utterance(utterance).end_chunk)
    }

    /// Returns the intended moment of a probe.
    fn probe(&self, number: u64) -> Moment {
        self.at(self.first_probe + number * probe_chunks(&self.track))
    }

    fn has_probe_after(&self, chunk: u64) -> bool {
        chunk >= self.first_probe && (chunk - self.first_probe).is_multiple_of(probe_chunks(&self.track))
    }
}

/// Events of the server in one session, by number of utterance or probe.
#[derive(Debug, Default)]
pub(crate) struct Heard {
    pub(crate) started: BTreeMap<u64, Moment>,
    pub(crate) stopped: BTreeMap<u64, Moment>,
    pub(crate) first_audio: BTreeMap<u64, Moment>,
    pub(crate) probes: Vec<Moment>,
    pub(crate) faults: Vec<String>,
}

/// Records the events that come, until the task is aborted or the connection is lost.
async fn listen(mut receiver: Receiver, track: Rc<Track>, heard: Rc<RefCell<Heard>>) {
    let mut unanswered = None;
    loop {
        let next = receiver.next().await;
        let at = clock::now();
        let heard = &mut *heard.borrow_mut();
        let text = match &next {
            Ok(text) => text,
            Err(error) => return heard.faults.push(format!("{error:#}")),
        };
        let event = match Event::parse(text) {
            Ok(event) => event,
            Err(error) => return heard.faults.push(format!("{error:#}")),
        };
        match event.kind() {
            "input_audio_buffer.speech_started" => {
                // The server dates an onset up to its padding early; before that is silence.
                let dated = |ms| track.begun_by(ms + LEAD_MS as u64);
                let number = event.audio_start_ms.map_or(Some(heard.started.len() as u64), dated);
                number.into_iter().for_each(|number| _ = heard.started.entry(number).or_insert(at));
            }
            "input_audio_buffer.speech_stopped" => {
                let dated = |ms| {
                    track.begun_by(ms).filter(|&number| ms + END_MS_EARLY >= track.utterance(number).end_ms)
                };
                let number = event.audio_end_ms.map_or(Some(heard.stopped.len() as u64), dated);
                number.into_iter().for_each(|number| _ = heard.stopped.insert(number, at));
                unanswered = number;
            }
            "session.updated" => heard.probes.push(at),
            "error" => heard.faults.push(text.to_string()),
            _ if event.is_audio() => {
                let number = unanswered.take();
                number.into_iter().for_each(|number| _ = heard.first_audio.entry(number).or_insert(at));
            }
            _ => {}
        }
    }
}

/// Returns the number of chunks between two probes of a session.
fn probe_chunks(track: &Track) -> u64 {
    1_000 / track.chunk_ms()
}

/// Most by which a server may date the end of speech before our end.
const END_MS_EARLY: u64 = 100;

impl Diligence {
    pub(crate) fn new() -> Self {
        Self { late: client_late(), blocked: 0 }
    }
}

impl Talker {
    /// Begins to listen. Audio goes out only in [`Self::say_due`]. Needs a local task set.
    pub(crate) fn new(session: Session, start: Moment, first_probe: u64, track: &Rc<Track>) -> Self {
        let (sender, receiver) = session.split();
        let first_probe = first_probe % probe_chunks(track);
        let schedule = Schedule { start, track: Rc::clone(track), first_probe };
        let heard = Rc::new(RefCell::new(Heard::default()));
        let listening = tokio::task::spawn_local(listen(receiver, Rc::clone(track), Rc::clone(&heard)));
        Self { sender: Some(sender), schedule, next: 0, probe_waits: false, heard, listening }
    }

    pub(crate) fn start(&self) -> Moment {
        self.schedule.start
    }

    pub(crate) fn heard(&self) -> Ref<'_, Heard> {
        self.heard.borrow()
    }

    /// Offers the socket the appends and the probe that are due at `now` and not taken yet.
    pub(crate) async fn say_due(&mut self, now: Moment, diligence: &mut Diligence) {
        let Some(due) = self.schedule.due(now) else { return };
        let Some(sender) = &mut self.sender else { return };
        // Chunks that a blocked socket has put off are late because of the server.
        if self.next == due && !self.probe_waits {
            diligence.late.record(clock::now().since(self.schedule.at(due)));
        }
        let probe = Utf8Bytes::from_static(PROBE);
        while self.next <= due || self.probe_waits {
            let event = if self.probe_waits { &probe } else { self.schedule.track.append(self.next) };
            match sender.offer(event).await {
                Ok(true) if self.probe_waits => self.probe_waits = false,
                Ok(true) => {
                    self.probe_waits = self.schedule.has_probe_after(self.next);
                    self.next += 1;
                }
                Ok(false) => {
                    diligence.blocked += 1;
                    return;
                }
                Err(error) => {
                    self.heard.borrow_mut().faults.push(format!("{error:#}"));
                    self.sender = None;
                    return;
                }
            }
        }
    }

    /// Returns the numbers and moments that lie between `begin` and `end`, where number n lies `at(n)`.
    fn due_between(
        begin: Moment,
        end: Moment,
        at: impl Fn(u64) -> Moment,
    ) -> impl Iterator<Item = (u64, Moment)> {
        let numbered = (0..).map(move |number| (number, at(number)));
        numbered.skip_while(move |&(_, at)| at < begin).take_while(move |&(_, at)| at < end)
    }

    pub(crate) fn onsets(&self, begin: Moment, end: Moment) -> impl Iterator<Item = (u64, Moment)> {
        Self::due_between(begin, end, |number| self.schedule.onset(number))
    }

    pub(crate) fn ends(&self, begin: Moment, end: Moment) -> impl Iterator<Item = (u64, Moment)> {
        Self::due_between(begin, end, |number| self.schedule.end(number))
    }

    pub(crate) fn probes(&self, begin: Moment, end: Moment) -> impl Iterator<Item = (u64, Moment)> {
        Self::due_between(begin, end, |number| self.schedule.probe(number))
    }

    /// Returns true once the server has sent everything due for the speech and probes from `begin` to `end`.
    pub(crate) fn is_answered(&self, begin: Moment, end: Moment) -> bool {
        let heard = self.heard.borrow();
        let probes = heard.probes.len() as u64;
        self.onsets(begin, end).all(|(number, _)| heard.started.contains_key(&number))
            && self.ends(begin, end).all(|(number, _)| heard.first_audio.contains_key(&number))
            && self.probes(begin, end).all(|(number, _)| number < probes)
    }
}

impl Drop for Talker {
    fn drop(&mut self) {
        self.listening.abort();
    }
}
