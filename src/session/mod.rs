//! One client's protocol state: events and time in, events and commands out.
//!
//! A [`Session`] does no I/O and reads no clock. Its driver calls [`Session::handle`] with one input, then
//! [`Session::poll`] until it returns `None`. The driver must carry out the outputs **in that order**: a generation is
//! raised before the client receives news of the barge-in, and a stage receives its settings before the client does.
//! [`Session::next_timeout`] returns the latest moment for a call of `handle` with [`Input::Timeout`].
//!
//! # Audio
//! Samples do not pass through the session. The edge decodes an append straight into its ring and reports it with
//! [`Input::Appended`]. The edge reports the next frame of an answer with [`Input::Audio`]; [`Output::Audio`] then
//! names the place of those samples. If no [`Output::Audio`] comes, the frame is stale.
//!
//! # Decisions
//! - **One response at a time** has the unit: its voice and the place at the end of the conversation. Responses out of
//!   band and in text need neither and run beside it, at most [`ASIDES_MAX`].
//! - **Answering.** A turn that the detector ended is *owed* an answer once its transcript has words. The answer is
//!   created when no other response runs, no transcript is still to come, and no open speech would interrupt the answer
//!   at once. So two turns in quick succession get one answer, to both, and a cough after a question only delays the
//!   answer. A client's own commit never creates a response.
//! - **Context.** `response.create` is confirmed at once. Its prompt is made when all earlier commits have a
//!   transcript.
//! - **Barge-in.** Speech cancels the running response of the default conversation if `interrupt_response` is on: the
//!   generation is raised, then `speech_started` is sent, then the response is closed.
//! - **History.** Of a broken off answer the conversation holds only the text that can have been heard: the text whose
//!   audio had begun. The deltas and the item's `done` hold all text that was written. A client with better knowledge
//!   truncates the item, audio and text alike: each piece of text stands at the place of its audio. Of a piece that was
//!   heard in part, the whole words of that part stay. A forgotten item (see [`SessionConfig::history_bytes_max`]) is
//!   gone for good.
//! - **A cut** holds at once and for good, also in an answer that is being made: the client has stopped playing there.
//!   The response continues until it is cancelled, since only a cancel is a request to stop. Its deltas and the `done`
//!   of its transcript and part hold the written text, the item holds the heard text. A later cut can only be shorter.
//! - **Transcripts** without words are `""` on the wire, are never answered and never in a prompt. With
//!   `transcription: null` the client gets no transcription events; the model still sees the words.
//! - **Microphone gap.** If the client stops sending while speech is open, the clock ends the turn [`MICROPHONE_GAP`]
//!   after the silence that would have ended it.
//! - **Shutdown.** At [`Input::Shutdown`] a running response may finish; a second shutdown fails it.
//!
//! # Invariants
//! Every response ends with exactly one `response.done`, and nothing of it follows. Every committed item ends
//! in `transcription.completed` or `.failed` (unless the client switched these off) if STT answers for it.
#![warn(clippy::wildcard_enum_match_arm, reason = "a variant that is new is thought of everywhere")]

mod conversation;
mod hearing;
mod outbox;
mod prompt;
mod response;
mod responses;
mod settings;
mod spoken;
mod timer;
mod transcript;
mod turn;
mod user_language;

use std::time::Duration;

use crate::audio::{AudioFormat, SampleRate};
use crate::message::{
    AnswerEvent, ChatRequest, CommitId, Moment, ResponseKey, SpeechHints, SttEvent, TtsSettings, VadEvent,
    VadSettings,
};
use crate::protocol::{
    AudioDelta, ClientEvent, ClientEventKind, ClientItem, Content, ErrorObject, Fault, Item, ItemBody,
    ItemStatus, OnlyPart, ProtocolError, ServerEvent, SessionId, SessionKind, SessionObject, SessionUpdate,
};

use conversation::Conversation;
use hearing::Hearing;
use outbox::Outbox;
use response::Response;
use timer::{Timer, Timers};
use user_language::UserLanguage;

pub use settings::SessionConfig;

/// Time without audio, beyond the silence that ends a turn, after which the clock ends an open turn.
pub const MICROPHONE_GAP: Duration = Duration::from_secs(1);

/// Most responses that one session has beside the spoken one, out of band and in text.
pub const ASIDES_MAX: usize = 8;

/// WebSocket close code 1001, "going away": the session or the server has reached its end. Source: RFC 6455,
/// 7.4.1.
const GOING_AWAY: u16 = 1001;

/// Input of a session.
#[derive(Debug)]
pub enum Input {
    /// An event of the client, other than an append.
    Event(ClientEvent),
    /// A message of the client that is not an event, or an append that was refused.
    Rejected(ProtocolError),
    /// Audio of the client has been put into the ring, or waits for room in it.
    Appended {
        /// Number of samples, in the session's input format.
        samples: usize,
    },
    /// An event of the detector, in order.
    Vad(VadEvent),
    /// An event of the recogniser, in order.
    Stt(SttEvent),
    /// An event of the voice, or of the model of a response that needs no voice, in order.
    Answer(ResponseKey, AnswerEvent),
    /// A frame of an answer is ready to be sent, in its place among the events of [`Input::Answer`].
    Audio {
        /// Response that the audio belongs to.
        response: ResponseKey,
        /// Number of samples.
        samples: usize,
        /// Rate of the samples.
        rate: SampleRate,
    },
    /// The moment that [`Session::next_timeout`] returned has come.
    Timeout,
    /// The server stops: finish the running responses, then close. The second time: close now.
    Shutdown,
}

/// Output of a session, to be carried out by its driver.
#[derive(Debug)]
pub enum Output {
    /// Send this to the client.
    Send(ServerEvent),
    /// Send the samples of [`Input::Audio`] to the client; they count as sent.
    Audio(AudioDelta),
    /// Do this to the unit or to the connection.
    Command(Command),
}

/// A command to the session's unit or connection.
#[derive(Debug)]
pub enum Command {
    /// Publish these to the detector.
    VadSettings(VadSettings),
    /// Publish these to the recogniser.
    SpeechHints(Box<SpeechHints>),
    /// Publish these to the voice.
    TtsSettings(TtsSettings),
    /// Take the client's audio to be in this format from now on.
    InputFormat(AudioFormat),
    /// Put a commit into the audio ring.
    Commit(CommitId),
    /// Put the audio of an item into the audio ring, and `commit` as its end.
    Hear {
        /// Number that the detector's reply names.
        commit: CommitId,
        /// Base64 of whole samples in the session's input format.
        audio: String,
    },
    /// Put a clear into the audio ring.
    Clear(CommitId),
    /// Raise the unit's generation, so that any answer on its way is stale.
    BumpGeneration,
    /// Ask the language model.
    Prompt {
        /// The response that the answer belongs to.
        response: ResponseKey,
        /// The prompt.
        request: Box<ChatRequest>,
    },
    /// Ask the language model beside the unit. The answer is not spoken and comes as [`Input::Answer`].
    Aside {
        /// The response that the answer belongs to.
        response: ResponseKey,
        /// The prompt.
        request: Box<ChatRequest>,
    },
    /// Cancel the request of [`Command::Aside`].
    DropAside(ResponseKey),
    /// Close the WebSocket. Nothing follows.
    Close {
        /// Close code.
        code: u16,
        /// Close reason.
        reason: String,
    },
}

/// Remaining life of the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Open until further notice.
    Open,
    /// Open until the running response is done.
    Closing,
    /// Closed: inputs are ignored.
    Closed,
}

/// Settings that the client can no longer change.
#[derive(Debug)]
struct Fixed {
    /// Purpose of the session, once the client has named one.
    kind: bool,
    /// Voice, once audio has been sent.
    voice: bool,
}

/// Speech of the user that no response has answered.
#[derive(Debug, Default)]
struct Unanswered {
    /// True if a response is due: the detector has ended a turn, and its transcript has words.
    is_owed: bool,
    /// Audio of the committed turns, milliseconds.
    audio_ms: u32,
}

/// One client's protocol state. The module's documentation describes the calls.
#[derive(Debug)]
pub struct Session {
    outbox: Outbox,
    session_max: Option<Duration>,
    /// True if the model accepts images.
    images: bool,
    image_urls: bool,
    settings: SessionObject,
    /// The first value of `settings`.
    defaults: Box<SessionObject>,
    fixed: Fixed,
    conversation: Conversation,
    hearing: Hearing,
    /// The response that has the unit: its voice, or the place at the end of the conversation.
    response: Option<Response>,
    /// Responses out of band and in text, oldest first.
    asides: Vec<Response>,
    next_response: u32,
    unanswered: Unanswered,
    /// Settings that the voice received last.
    voice: TtsSettings,
    /// Hints that the recogniser received last.
    hints: SpeechHints,
    user_language: UserLanguage,
    /// True if the prompt names the user's language.
    language_prompt: bool,
    /// Arrival of the present input.
    now: Moment,
    timers: Timers,
    phase: Phase,
}

impl Session {
    /// Creates a session that begins now. The first output is `session.created`, then come the settings of the stages,
    /// so that no setting of the unit's last session is left. `kind` is the purpose that the client has named with the
    /// connection.
    #[must_use]
    pub fn new(config: &SessionConfig, kind: Option<SessionKind>, now: Moment) -> Self {
        let settings = config.session_object(kind.unwrap_or_default());
        let mut session = Self {
            outbox: Outbox::default(),
            session_max: config.session_max,
            images: config.images,
            image_urls: config.image_urls,
            defaults: Box::new(settings.clone()),
            settings,
            fixed: Fixed { kind: kind.is_some(), voice: false },
            conversation: Conversation::new(config.history_bytes_max),
            hearing: Hearing::default(),
            response: None,
            asides: Vec::new(),
            next_response: 0,
            unanswered: Unanswered::default(),
            voice: TtsSettings::default(),
            hints: SpeechHints::default(),
            user_language: UserLanguage::default(),
            language_prompt: config.language_prompt,
            now,
            timers: Timers::default(),
            phase: Phase::Open,
        };
        session.send(ServerEvent::SessionCreated { session: Box::new(session.settings.clone()) });
        session.command(Command::InputFormat(session.settings.input_format));
        session.command(Command::VadSettings(settings::vad_settings(&session.settings)));
        session.command(Command::TtsSettings(session.voice));
        if let Some(longest) = config.session_max {
            session.timers.set(Timer::SessionEnd, now + longest);
        }
        session
    }

    /// Takes one input. Call [`Session::poll`] afterwards until it is empty.
    pub fn handle(&mut self, input: Input, now: Moment) {
        if self.phase == Phase::Closed {
            return;
        }
        self.now = now;
        match input {
            Input::Event(event) => self.client_event(event),
            Input::Rejected(error) => self.send(ServerEvent::Error { error }),
            Input::Appended { samples } => {
                self.hearing.append(samples, self.settings.input_format.rate(), now);
            }
            Input::Vad(event) => self.vad_event(event, now),
            Input::Stt(event) => self.stt_event(event),
            Input::Answer(response, event) => self.answer_event(response, event),
            Input::Audio { response, samples, rate } => self.answer_audio(response, samples, rate),
            Input::Timeout => self.timeout(now),
            Input::Shutdown => self.shutdown(),
        }
    }

    /// Returns the next output, oldest first.
    pub fn poll(&mut self) -> Option<Output> {
        self.outbox.pop()
    }

    /// Returns the moment for a call of [`Session::handle`] with [`Input::Timeout`], if no other input comes first. The
    /// moment may be in the past.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Moment> {
        if self.phase == Phase::Closed { None } else { self.timers.next() }
    }

    /// Returns the session's id, as the client receives it.
    #[must_use]
    pub const fn id(&self) -> &SessionId {
        &self.settings.id
    }

    fn client_event(&mut self, event: ClientEvent) {
        let ClientEvent { event_id, kind } = event;
        let outcome = match kind {
            ClientEventKind::SessionUpdate(update) => self.update(*update),
            ClientEventKind::Commit => {
                self.commit(event_id.clone());
                Ok(())
            }
            ClientEventKind::Clear => {
                self.clear();
                Ok(())
            }
            ClientEventKind::ItemCreate { previous_item_id, item } => {
                self.create_item(*item, previous_item_id.as_deref())
            }
            ClientEventKind::ItemRetrieve { item_id } => self.retrieve_item(&item_id),
            ClientEventKind::ItemDelete { item_id } => self.delete_item(&item_id),
            ClientEventKind::ItemTruncate { item_id, audio_end_ms } => {
                self.truncate_item(&item_id, audio_end_ms)
            }
            ClientEventKind::ResponseCreate(request) => self.create_response(*request),
            ClientEventKind::ResponseCancel { response_id } => self.cancel_response(response_id.as_deref()),
        };
        if let Err(fault) = outcome {
            let error = ProtocolError::from(fault).with_event_id(event_id.as_deref());
            self.send(ServerEvent::Error { error });
        }
    }

    fn update(&mut self, update: SessionUpdate) -> Result<(), Fault> {
        let kind = update.kind.unwrap_or(self.settings.kind);
        let has_begun = self.next_response > 0 || self.conversation.last().is_some();
        if kind != self.settings.kind && (self.fixed.kind || has_begun) {
            return Err(Fault::KindFixed { current: self.settings.kind.as_str() });
        }
        let named = update.kind.is_some();
        let mut next = settings::updated(&self.settings, &self.defaults, update, self.fixed.voice)?;
        next.kind = kind;
        self.fixed.kind |= named;
        if next.input_format != self.settings.input_format {
            self.command(Command::InputFormat(next.input_format));
        }
        let vad = settings::vad_settings(&next);
        if vad != settings::vad_settings(&self.settings) {
            self.command(Command::VadSettings(vad));
        }
        if settings::idle_timeout(&next).is_none() {
            self.timers.stop(Timer::Idle);
        }
        self.conversation.truncation = next.truncation;
        self.settings = next;
        self.tell_recogniser();
        self.send(ServerEvent::SessionUpdated { session: Box::new(self.settings.clone()) });
        Ok(())
    }

    /// Sends the recogniser its hints if they have changed.
    fn tell_recogniser(&mut self) {
        let hints = settings::speech_hints(&self.settings, self.user_language.known());
        if hints != self.hints {
            self.hints = hints;
            self.command(Command::SpeechHints(Box::new(hints)));
        }
    }

    fn create_item(&mut self, item: ClientItem, place: Option<&str>) -> Result<(), Fault> {
        self.check_images(&item.body, "item.content")?;
        let audio = item.audio.clone();
        let mut item = Item::from(item);
        if let Some(audio) = &audio {
            check_samples(audio, self.settings.input_format)?;
            item.status = ItemStatus::InProgress;
        }
        let previous_item_id = self.conversation.insert(item.clone(), place)?;
        if let Some(audio) = audio {
            let id = item.id.clone();
            self.send(ServerEvent::ItemAdded { previous_item_id, item: Box::new(item) });
            self.hear(id, audio);
            return Ok(());
        }
        let item = Box::new(item);
        self.send(ServerEvent::ItemAdded { previous_item_id: previous_item_id.clone(), item: item.clone() });
        self.send(ServerEvent::ItemDone { previous_item_id, item });
        Ok(())
    }

    /// Checks that the model accepts the images of an item.
    fn check_images(&self, body: &ItemBody, param: &'static str) -> Result<(), Fault> {
        let ItemBody::Message { content, .. } = body else {
            return Ok(());
        };
        for part in content {
            let Content::InputImage { url, .. } = part else {
                continue;
            };
            if !self.images {
                return Err(Fault::ImagesNotSeen { param });
            }
            if !self.image_urls && !url.starts_with("data:") {
                return Err(Fault::ImageAddress { param });
            }
        }
        Ok(())
    }

    fn retrieve_item(&mut self, id: &str) -> Result<(), Fault> {
        let item = Box::new(self.conversation.item(id)?.clone());
        self.send(ServerEvent::ItemRetrieved { item });
        Ok(())
    }

    fn delete_item(&mut self, id: &str) -> Result<(), Fault> {
        let item_id = self.conversation.delete(id)?;
        self.send(ServerEvent::ItemDeleted { item_id });
        Ok(())
    }

    fn truncate_item(&mut self, id: &str, audio_end_ms: u32) -> Result<(), Fault> {
        let open = self.response.as_mut().and_then(|response| response.spoken_so_far(id));
        let item = self.conversation.truncate(id, audio_end_ms, open)?;
        if let Some(response) = &mut self.response {
            response.show_cut(item);
        }
        let item_id = item.id.clone();
        self.send(ServerEvent::ItemTruncated { item_id, content_index: OnlyPart, audio_end_ms });
        Ok(())
    }

    fn timeout(&mut self, now: Moment) {
        while let Some(timer) = self.timers.take_due(now) {
            match timer {
                Timer::SessionEnd => {
                    let seconds = self.session_max.map_or(0, |longest| longest.as_secs());
                    self.end(Fault::SessionExpired { seconds });
                    return;
                }
                Timer::MicrophoneGap => self.microphone_gap(now),
                Timer::Idle => self.fall_idle(),
            }
        }
    }

    fn shutdown(&mut self) {
        if self.phase == Phase::Open && self.is_responding() {
            self.phase = Phase::Closing;
        } else {
            self.end(Fault::ShuttingDown);
        }
    }

    fn is_responding(&self) -> bool {
        self.response.is_some() || !self.asides.is_empty()
    }

    /// Ends the session. Sends the reason, the end of each running response, and the close.
    fn end(&mut self, reason: Fault) {
        let error = ProtocolError::from(reason);
        let code = error.fault().code().unwrap_or_default();
        self.phase = Phase::Closed;
        if self.response.is_some() {
            self.command(Command::BumpGeneration);
        }
        self.send(ServerEvent::Error { error: error.clone() });
        self.fail_responses(&ErrorObject { kind: error.fault().kind(), code, message: error.to_string() });
        self.command(Command::Close { code: GOING_AWAY, reason: error.to_string() });
    }

    fn send(&mut self, event: ServerEvent) {
        self.outbox.send(event);
    }

    fn command(&mut self, command: Command) {
        self.outbox.command(command);
    }
}

/// Checks that valid base64 holds whole samples.
fn check_samples(audio: &str, format: AudioFormat) -> Result<(), Fault> {
    let padding = audio.bytes().rev().take_while(|byte| *byte == b'=').count();
    let found = audio.len() / 4 * 3 - padding;
    if found == 0 || !found.is_multiple_of(format.sample_bytes()) {
        return Err(Fault::ItemSamples { found, sample_bytes: format.sample_bytes() });
    }
    Ok(())
}

const _: () = {
    const fn may_move_between_threads<T: Send>() {}
    may_move_between_threads::<Session>();
    may_move_between_threads::<Output>();
    // One queue entry; large objects are boxed.
    assert!(size_of::<Output>() <= 128);
};
