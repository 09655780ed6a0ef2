//! One task per client, which owns the lease and the session.
//!
//! The task repeats five steps: take the output of the stages (rings → session), carry out the session's outputs
//! (session → rings and backlog), fill the backlog with the answer (`answer_out` → session → backlog), hand the backlog
//! to the socket, wait for the next wake-up and handle it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::watch;
use tokio_tungstenite::tungstenite;

use super::aside::Asides;
use super::backlog::Backlog;
use super::downlink::{Downlink, Pulled};
use super::liveness::{Liveness, Pulse};
use super::shared::Shared;
use super::uplink::Uplink;
use crate::audio::AudioFormat;
use crate::clock;
use crate::message::{AnswerEvent, AnswerStamp, AudioIn, Envelope, ResponseKey, TextPrompt, UnitId};
use crate::protocol::{
    AudioDelta, Decoded, Decoder, EventIds, Fault, ProtocolError, ServerEvent, SessionKind,
    encode_audio_delta,
};
use crate::session::{Command, Input, Output, Session};
use crate::unit::UnitLease;

/// Deltas in a row after which the other connections of this thread come first.
const BURST_DELTAS_MAX: u32 = 4;

/// Code and reason of the close frame that the server sends.
#[derive(Debug)]
struct Close {
    code: u16,
    reason: String,
}

/// Serves `socket` until the socket or the session ends. The lease is dropped on every path out. `kind` is the type of
/// session that the query asks for, if any.
pub(super) async fn serve(
    socket: WebSocket,
    lease: UnitLease,
    shared: Arc<Shared>,
    kind: Option<SessionKind>,
) {
    let (sink, stream) = socket.split();
    let now = clock::now();
    let session = Session::new(&shared.session, kind, now);
    let unit = lease.id();
    shared.roster.enter(unit, session.id().as_str());
    let roster_entry = RosterEntry(unit, Arc::clone(&shared));
    tracing::info!(%unit, session = %session.id(), "session begins");
    let connection = Connection {
        session,
        uplink: Uplink::new(AudioFormat::DEFAULT, lease.epoch()),
        roster_entry,
        shutdown: shared.shutdown.clone(),
        asides: Asides::new(Arc::clone(&shared.model), unit, lease.epoch()),
        lease,
        shared,
        sink,
        stream,
        decoder: Decoder::new(),
        event_ids: EventIds::new(),
        downlink: Downlink::new(),
        prompt: None,
        backlog: Backlog::default(),
        burst: 0,
        liveness: Liveness::new(now),
        close: None,
    };
    connection.run().await;
    tracing::info!(%unit, "session ends");
}

/// Entry in the roster. Its drop leaves the roster on every path out, a cancelled task included.
struct RosterEntry(UnitId, Arc<Shared>);

impl Drop for RosterEntry {
    fn drop(&mut self) {
        self.1.roster.leave(self.0);
    }
}

struct Connection {
    lease: UnitLease,
    roster_entry: RosterEntry,
    session: Session,
    shared: Arc<Shared>,
    shutdown: watch::Receiver<bool>,
    sink: SplitSink<WebSocket, Message>,
    stream: SplitStream<WebSocket>,
    decoder: Decoder,
    event_ids: EventIds,
    uplink: Uplink,
    downlink: Downlink,
    /// A prompt that waits for room in the ring. A later prompt replaces an earlier one, which it has cancelled.
    prompt: Option<(AnswerStamp, TextPrompt)>,
    asides: Asides,
    backlog: Backlog,
    /// Deltas in a row without a pause.
    burst: u32,
    liveness: Liveness,
    close: Option<Close>,
}

/// Reasons for a wake-up of the task.
enum Woken {
    Written(Result<(), axum::Error>),
    Message(Option<Result<Message, axum::Error>>),
    Stage,
    Aside(ResponseKey, Vec<AnswerEvent>),
    Timer,
    Shutdown,
}

/// Ends of a connection.
enum ConnectionEnd {
    /// The socket is of no use any more.
    Gone,
    /// The client has sent a close frame.
    ByClient,
    /// The server sends a close frame.
    ByServer(Close),
}

impl Connection {
    async fn run(mut self) {
        let end = self.converse().await;
        self.take_spent();
        // The last outputs of the session reach no client, but are counted.
        self.follow_session();
        self.shared.roster.count_tokens(self.session.cost_so_far());
        match end {
            ConnectionEnd::Gone => {}
            ConnectionEnd::ByClient => self.closed_by_client().await,
            ConnectionEnd::ByServer(Close { code, reason }) => self.close(code, &reason).await,
        }
    }

    /// Repeats the five steps until the connection ends.
    async fn converse(&mut self) -> ConnectionEnd {
        loop {
            self.take_from_stages();
            self.follow_session();
            self.fill_backlog();
            if self.write().await.is_err() {
                return ConnectionEnd::Gone;
            }
            if !self.liveness.is_writing()
                && let Some(close) = self.close.take()
            {
                return ConnectionEnd::ByServer(close);
            }
            let woken = self.wait().await;
            if let ControlFlow::Break(end) = self.take(woken).await {
                return end;
            }
        }
    }

    async fn wait(&mut self) -> Woken {
        let due = self.liveness.next_timeout();
        let due = self.session.next_timeout().map_or(due, |at| at.min(due));
        let timer = tokio::time::sleep(due.since(clock::now()));
        let reading = !self.uplink.is_waiting() && !self.backlog.is_full();
        // Not biased: a burst of audio must not keep a cancel from being read, and a flood of messages must not keep
        // the audio from going out.
        tokio::select! {
            result = self.sink.flush(), if self.liveness.is_writing() => Woken::Written(result),
            () = self.shared.wakers.session(self.lease.id()).notified() => Woken::Stage,
            (response, events) = self.asides.next() => Woken::Aside(response, events),
            message = self.stream.next(), if reading => Woken::Message(message),
            // An error: the sender is gone, the process is about to end.
            _ = self.shutdown.changed() => Woken::Shutdown,
            () = timer => Woken::Timer,
        }
    }

    /// Handles one wake-up. Breaks if the connection is over.
    async fn take(&mut self, woken: Woken) -> ControlFlow<ConnectionEnd> {
        self.take_spent();
        match woken {
            Woken::Written(Ok(())) => {
                self.liveness.end_write();
                if self.burst >= BURST_DELTAS_MAX {
                    self.burst = 0;
                    tokio::task::yield_now().await;
                }
            }
            Woken::Written(Err(_)) | Woken::Message(None) => return ControlFlow::Break(ConnectionEnd::Gone),
            Woken::Message(Some(Ok(message))) => return self.take_message(message),
            Woken::Message(Some(Err(error))) => {
                let (code, reason) = fault_of(&error);
                return ControlFlow::Break(ConnectionEnd::ByServer(Close { code, reason }));
            }
            Woken::Stage => {}
            Woken::Aside(response, events) => {
                let now = clock::now();
                for event in events {
                    self.session.handle(Input::Answer(response, event), now);
                }
            }
            Woken::Timer => return self.tick(),
            Woken::Shutdown => self.session.handle(Input::Shutdown, clock::now()),
        }
        ControlFlow::Continue(())
    }

    /// Handles one message of the client. Breaks if the client has sent a close frame.
    fn take_message(&mut self, message: Message) -> ControlFlow<ConnectionEnd> {
        let now = clock::now();
        self.liveness.hear(now);
        match message {
            Message::Text(text) => self.take_text(&text),
            Message::Binary(_) => self.reject(Fault::BinaryMessage.into()),
            // The WebSocket layer has the pong ready and sends it with the next flush.
            Message::Ping(_) => self.liveness.begin_write(now),
            Message::Pong(_) => {}
            Message::Close(_) => return ControlFlow::Break(ConnectionEnd::ByClient),
        }
        ControlFlow::Continue(())
    }

    fn take_text(&mut self, text: &Utf8Bytes) {
        let now = clock::now();
        match self.decoder.decode(text.as_str()) {
            Ok(Decoded::Append(append)) => {
                match self.uplink.append(text, append, &mut self.lease.port().audio_in) {
                    Ok(samples) => self.session.handle(Input::Appended { samples }, now),
                    Err(error) => self.reject(error),
                }
            }
            Ok(Decoded::Event(event)) => self.session.handle(Input::Event(event), now),
            Err(error) => self.reject(error),
        }
    }

    fn reject(&mut self, error: ProtocolError) {
        self.session.handle(Input::Rejected(error), clock::now());
    }

    /// Pushes waiting items into the rings, and hands the events of VAD and STT to the session.
    fn take_from_stages(&mut self) {
        let now = clock::now();
        if self.uplink.is_waiting() {
            self.uplink.resume(&mut self.lease.port().audio_in);
            // Audio that waits for room is no silence.
            self.session.handle(Input::Appended { samples: 0 }, now);
        }
        self.push_prompt();
        let unit = self.lease.status();
        loop {
            // VAD sends the commit before STT gets the utterance. So a commit is there before its transcript.
            let stt_event = self.lease.port().stt_events.next_live(unit).and_then(Envelope::into_item);
            while let Some(Envelope::Item { item, .. }) = self.lease.port().vad_events.next_live(unit) {
                self.session.handle(Input::Vad(item), now);
            }
            let Some(event) = stt_event else { break };
            self.session.handle(Input::Stt(event), now);
        }
    }

    /// Hands the usage of the answer to the session, if the usage has become known. This comes before any input that
    /// may end the answer.
    fn take_spent(&mut self) {
        let epoch = self.lease.epoch();
        let cell = &mut self.lease.port().spent;
        if cell.updated() {
            let spent = *cell.read();
            if spent.stamp.epoch == epoch {
                self.session.spent(spent.stamp.response, spent.usage);
            }
        }
    }

    /// Carries out the outputs of the session, in their order.
    fn follow_session(&mut self) {
        while let Some(output) = self.session.poll() {
            match output {
                Output::Send(event) => self.send(&event),
                Output::Audio(delta) => self.send_audio(&delta),
                Output::Command(command) => self.execute(command),
            }
        }
    }

    fn send(&mut self, event: &ServerEvent) {
        self.shared.roster.count(event);
        let mut text = String::new();
        event.encode(self.event_ids.fresh(), &mut text);
        self.backlog.push(text);
    }

    /// Puts the samples of the last pull into the backlog.
    fn send_audio(&mut self, delta: &AudioDelta) {
        let mut text = String::new();
        encode_audio_delta(delta, self.event_ids.fresh(), self.downlink.samples(), &mut text);
        self.burst += 1;
        self.backlog.push(text);
    }

    /// Pushes the waiting prompt as soon as there is room.
    fn push_prompt(&mut self) {
        if self.prompt.is_some()
            && self.lease.port().text_prompts.has_room_or_ring(1)
            && let Some((stamp, prompt)) = self.prompt.take()
        {
            self.lease.port().text_prompts.push(stamp, prompt).expect("there is room");
        }
    }

    fn execute(&mut self, command: Command) {
        match command {
            Command::VadSettings(settings) => self.control(AudioIn::Settings(settings)),
            Command::SpeechHints(hints) => self.control(AudioIn::Hints(*hints)),
            Command::TtsSettings(settings) => self.lease.port().tts_settings.write(settings),
            Command::InputFormat(format) => self.uplink.format = format,
            Command::Commit(commit) => self.control(AudioIn::Commit(commit)),
            Command::Hear { commit, audio } => {
                self.uplink.item(audio, commit, &mut self.lease.port().audio_in);
            }
            Command::Clear(commit) => self.control(AudioIn::Clear(commit)),
            Command::BumpGeneration => {
                self.lease.cancel();
            }
            Command::Prompt { response, request } => {
                self.prompt = Some((self.lease.stamp(response), TextPrompt::Generate(request)));
                self.push_prompt();
            }
            Command::Aside { response, request } => self.asides.begin(response, &request),
            Command::DropAside(response) => self.asides.give_up(response),
            Command::Close { code, reason } => self.close = Some(Close { code, reason }),
        }
    }

    /// Puts `item` behind the audio that has come.
    fn control(&mut self, item: AudioIn) {
        self.uplink.control(item, &mut self.lease.port().audio_in);
    }

    /// Takes the next part of the answer, at most one delta of audio, once the socket has taken everything before it.
    fn fill_backlog(&mut self) {
        while self.backlog.is_empty() && !self.liveness.is_writing() {
            let input = match self.downlink.pull(self.lease.status(), self.lease.port()) {
                Pulled::Nothing => {
                    self.burst = 0;
                    return;
                }
                Pulled::Event(response, event) => Input::Answer(response, event),
                Pulled::Audio(response, rate) => {
                    Input::Audio { response, samples: self.downlink.samples().len(), rate }
                }
            };
            self.session.handle(input, clock::now());
            self.follow_session();
        }
    }

    /// Hands the backlog to the socket.
    async fn write(&mut self) -> Result<(), axum::Error> {
        if self.backlog.is_empty() || self.liveness.is_writing() {
            return Ok(());
        }
        self.liveness.begin_write(clock::now());
        while let Some(message) = self.backlog.pop() {
            // This does not wait: the buffer of the WebSocket layer holds all that can be outstanding.
            self.sink.feed(message).await?;
        }
        Ok(())
    }

    /// Handles the time-outs that are due. Breaks if the connection is over.
    fn tick(&mut self) -> ControlFlow<ConnectionEnd> {
        let now = clock::now();
        if self.session.next_timeout().is_some_and(|at| at <= now) {
            self.session.handle(Input::Timeout, now);
        }
        match self.liveness.check(now) {
            Pulse::Steady => {}
            Pulse::Ping => self.backlog.push_ping(),
            Pulse::Dead(dead) => {
                tracing::info!(unit = %self.lease.id(), "{}, connection closed", dead.as_str());
                return ControlFlow::Break(ConnectionEnd::Gone);
            }
        }
        ControlFlow::Continue(())
    }

    /// Answers the client's close frame; the unit drains meanwhile.
    async fn closed_by_client(self) {
        let Self { lease, roster_entry, mut sink, mut stream, .. } = self;
        drop((lease, roster_entry));
        // The WebSocket layer has the answer ready.
        let close = async {
            if sink.flush().await.is_ok() {
                while stream.next().await.is_some_and(|message| message.is_ok()) {}
            }
        };
        // The client may be gone already; nothing is lost then.
        let _ = tokio::time::timeout(Duration::from_secs(1), close).await;
    }

    /// Closes the socket; the unit drains meanwhile.
    async fn close(self, code: u16, reason: &str) {
        let Self { lease, roster_entry, mut sink, mut stream, .. } = self;
        drop((lease, roster_entry));
        close_socket(&mut sink, &mut stream, code, reason).await;
    }
}

/// Sends a close frame and waits for the client's, 1 s at most, so that earlier messages are not lost to a reset.
pub(super) async fn close_socket(
    sink: &mut SplitSink<WebSocket, Message>,
    stream: &mut SplitStream<WebSocket>,
    code: u16,
    reason: &str,
) {
    let frame = Message::Close(Some(CloseFrame { code, reason: reason.into() }));
    let close = async {
        if sink.send(frame).await.is_ok() {
            while stream.next().await.is_some_and(|message| message.is_ok()) {}
        }
    };
    // The client may be gone or silent; nothing is lost then.
    let _ = tokio::time::timeout(Duration::from_secs(1), close).await;
}

/// Returns the close code and the reason for an error of the WebSocket layer.
fn fault_of(error: &axum::Error) -> (u16, String) {
    use std::error::Error as _;
    match error.source().and_then(|source| source.downcast_ref::<tungstenite::Error>()) {
        Some(tungstenite::Error::Capacity(error)) => (1009, error.to_string()),
        Some(tungstenite::Error::Utf8(_)) => (1007, "text message is not valid UTF-8".to_owned()),
        _ => (1002, "protocol error".to_owned()),
    }
}
