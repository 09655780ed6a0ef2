//! The user's side of a turn: speech, commits, transcripts.
//!
//! The detector is the authority on the audio buffer. A commit or clear of the client goes to it through the
//! audio ring and takes effect when its answer comes back.

use std::collections::VecDeque;
use std::time::Duration;

use crate::audio::SampleRate;
use crate::language::Language;
use crate::message::{CommitId, FailureCode, Moment, SttEvent, UtteranceId, VadEvent};
use crate::protocol::{
    Content, ErrorObject, Fault, Item, ItemId, ItemStatus, OnlyPart, ProtocolError, ResponseRequest,
    ServerEvent, SessionKind, Speaker, StatusDetails, TranscriptionUsage, TurnMode, fresh_segment_id,
};

use super::response::{Wait, failure};
use super::settings::{patience_ms, set_language};
use super::timer::Timer;
use super::transcript::words_of;
use super::{Command, MICROPHONE_GAP, Phase, Session};

/// Transcripts that may arrive before the commit that they belong to; they come through another ring. One per
/// worker of STT would do.
const EARLY_TRANSCRIPTS_MAX: usize = 8;

/// Longest transcript that is kept, an hour of speech: without turn detection a client may never commit.
const TRANSCRIPT_BYTES_MAX: usize = 64 * 1_024;

/// What has been heard and is not yet settled.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// Speech that has begun and is not committed.
    open: Option<OpenSpeech>,
    /// Commits and clears that the detector has not answered, oldest first.
    asked: VecDeque<(CommitId, Asked)>,
    next_commit: u32,
    /// Utterances whose transcript is not complete, in the order of their commits.
    transcripts: Vec<Transcript>,
    /// The last utterance that was committed.
    last_committed: Option<UtteranceId>,
    /// When the last audio of the client came.
    heard_at: Moment,
    /// Audio that has come, microseconds.
    audio_us: u64,
}

#[derive(Debug)]
struct OpenSpeech {
    utterance: UtteranceId,
    item: ItemId,
    start_ms: u32,
    stopped: bool,
}

/// What was asked of the detector.
#[derive(Debug)]
enum Asked {
    Commit {
        /// The client's name for its event.
        event_id: Option<String>,
    },
    Clear,
    /// Audio of an item that the client has put into the conversation.
    Item(ItemId),
    /// The session's own commit: the microphone went silent in the middle of speech.
    Gap,
}

#[derive(Debug)]
struct Transcript {
    utterance: UtteranceId,
    /// `None`: the commit has not been seen yet.
    committed: Option<CommittedItem>,
    text: String,
    /// The language that the recogniser has named.
    language: Option<Language>,
    /// Bytes of its words that the client has been told.
    told: usize,
    /// `None`: more text is to come.
    outcome: Option<Result<(), FailureCode>>,
}

#[derive(Clone, Debug)]
struct CommittedItem {
    item: ItemId,
    audio_ms: u32,
    /// Whether the turn is answered by itself.
    answer: bool,
}

impl Hearing {
    /// Whether the user is speaking.
    pub(super) const fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Audio of the client has come.
    pub(super) fn append(&mut self, samples: usize, rate: SampleRate, now: Moment) {
        self.heard_at = now;
        self.audio_us += samples as u64 * 1_000_000 / u64::from(rate.hz());
    }

    /// Audio that has come in the session, milliseconds.
    pub(super) fn audio_ms(&self) -> u32 {
        u32::try_from(self.audio_us / 1_000).unwrap_or(u32::MAX)
    }

    /// Everything that was committed, or that the client has asked to commit, and that has no transcript yet.
    pub(super) fn unsettled(&self) -> Vec<Wait> {
        let commits =
            self.asked.iter().filter(|(_, asked)| matches!(asked, Asked::Commit { .. } | Asked::Item(_)));
        let commits = commits.map(|(commit, _)| Wait::Commit(*commit));
        commits.chain(self.owing().map(|entry| Wait::Transcript(entry.utterance))).collect()
    }

    /// Committed utterances without their whole transcript. What comes early may never be committed.
    fn owing(&self) -> impl Iterator<Item = &Transcript> {
        self.transcripts.iter().filter(|entry| entry.committed.is_some())
    }

    fn ask(&mut self, asked: Asked) -> CommitId {
        let commit = CommitId(self.next_commit);
        self.next_commit = self.next_commit.wrapping_add(1);
        self.asked.push_back((commit, asked));
        commit
    }

    fn answered(&mut self, commit: CommitId) -> Option<Asked> {
        let at = self.asked.iter().position(|(asked, _)| *asked == commit)?;
        self.asked.remove(at).map(|(_, asked)| asked)
    }

    /// The entry of an utterance that is not settled; a new one if its commit may still be on its way.
    fn transcript(&mut self, utterance: UtteranceId) -> Option<&mut Transcript> {
        if let Some(at) = self.transcripts.iter().position(|entry| entry.utterance == utterance) {
            return self.transcripts.get_mut(at);
        }
        let settled = self.last_committed.is_some_and(|last| utterance <= last);
        let early = self.transcripts.iter().filter(|entry| entry.committed.is_none()).count();
        if settled || early >= EARLY_TRANSCRIPTS_MAX {
            return None;
        }
        self.transcripts.push(Transcript {
            utterance,
            committed: None,
            text: String::new(),
            language: None,
            told: 0,
            outcome: None,
        });
        self.transcripts.last_mut()
    }
}

impl Session {
    /// `input_audio_buffer.commit`.
    pub(super) fn commit(&mut self, event_id: Option<String>) {
        let commit = self.hearing.ask(Asked::Commit { event_id });
        self.command(Command::Commit(commit));
    }

    /// Has the audio of an item recognised, which is in the conversation already.
    pub(super) fn hear(&mut self, item: ItemId, audio: String) {
        let commit = self.hearing.ask(Asked::Item(item));
        self.command(Command::Hear { commit, audio });
    }

    /// `input_audio_buffer.clear`.
    pub(super) fn clear(&mut self) {
        let commit = self.hearing.ask(Asked::Clear);
        self.command(Command::Clear(commit));
    }

    pub(super) fn vad_event(&mut self, event: VadEvent, now: Moment) {
        match event {
            VadEvent::SpeechStarted { utterance, start_ms } => self.speech_started(utterance, start_ms, now),
            VadEvent::SpeechStopped { utterance, end_ms } => self.speech_stopped(utterance, end_ms),
            VadEvent::Committed { utterance, commit, audio_ms } => {
                self.committed(utterance, commit, audio_ms);
            }
            VadEvent::CommitRefused { commit, audio_ms } => self.commit_refused(commit, audio_ms, now),
            VadEvent::Cleared { commit, utterance } => self.cleared(commit, utterance),
        }
    }

    fn speech_started(&mut self, utterance: UtteranceId, start_ms: u32, now: Moment) {
        let item = ItemId::fresh();
        self.hearing.open = Some(OpenSpeech { utterance, item: item.clone(), start_ms, stopped: false });
        self.hearing.heard_at = now;
        if let Some(gap) = self.microphone_gap_after() {
            self.timers.set(Timer::MicrophoneGap, now + gap);
        }
        let interrupts = self.settings.turn_detection.is_some_and(|detection| detection.interrupt_response)
            && self.response.as_ref().is_some_and(|response| !response.out_of_band);
        self.timers.stop(Timer::Idle);
        if interrupts {
            self.command(Command::BumpGeneration);
        }
        self.send(ServerEvent::SpeechStarted { audio_start_ms: start_ms, item_id: item });
        if interrupts {
            self.stop_response(StatusDetails::TurnDetected);
        }
    }

    fn speech_stopped(&mut self, utterance: UtteranceId, end_ms: u32) {
        let Some(open) =
            self.hearing.open.as_mut().filter(|open| open.utterance == utterance && !open.stopped)
        else {
            return;
        };
        open.stopped = true;
        let item_id = open.item.clone();
        self.timers.stop(Timer::MicrophoneGap);
        self.send(ServerEvent::SpeechStopped { audio_end_ms: end_ms, item_id });
    }

    fn committed(&mut self, utterance: UtteranceId, commit: Option<CommitId>, audio_ms: u32) {
        let asked = commit.and_then(|commit| self.hearing.answered(commit));
        if let (Some(Asked::Item(item)), Some(commit)) = (&asked, commit) {
            self.hearing.last_committed = self.hearing.last_committed.max(Some(utterance));
            let committed = CommittedItem { item: item.clone(), audio_ms, answer: false };
            self.await_transcript(utterance, committed, Some(commit));
            return;
        }
        let by_detector = commit.is_none() || matches!(asked, Some(Asked::Gap));
        let open = self.hearing.open.take_if(|open| open.utterance == utterance);
        if let Some(open) = &open {
            if by_detector && !open.stopped {
                let audio_end_ms = open.start_ms.saturating_add(audio_ms);
                self.send(ServerEvent::SpeechStopped { audio_end_ms, item_id: open.item.clone() });
            }
            self.timers.stop(Timer::MicrophoneGap);
        }
        let item = open.map_or_else(ItemId::fresh, |open| open.item);
        // Utterances are counted up: an older one that was not committed has been cleared.
        self.hearing.transcripts.retain(|entry| entry.committed.is_some() || entry.utterance >= utterance);
        self.hearing.last_committed = self.hearing.last_committed.max(Some(utterance));
        self.timers.stop(Timer::Idle);
        self.heard_ms = self.heard_ms.saturating_add(audio_ms);
        let previous_item_id = self.conversation.last();
        self.send(ServerEvent::Committed { previous_item_id, item_id: item.clone() });
        let message = Item::heard(item.clone(), ItemStatus::InProgress, Content::InputAudio(None));
        let previous_item_id = self.conversation.push(message.clone());
        self.send(ServerEvent::ItemAdded { previous_item_id, item: Box::new(message) });

        let answer =
            by_detector && self.settings.turn_detection.is_some_and(|detection| detection.create_response);
        let committed = CommittedItem { item, audio_ms, answer };
        self.await_transcript(utterance, committed, commit);
    }

    /// The utterance is the item's; its transcript is on its way, or here already.
    fn await_transcript(
        &mut self,
        utterance: UtteranceId,
        committed: CommittedItem,
        commit: Option<CommitId>,
    ) {
        let early = |entry: &&mut Transcript| entry.utterance == utterance && entry.committed.is_none();
        match self.hearing.transcripts.iter_mut().find(early) {
            Some(early) => early.committed = Some(committed),
            None => self.hearing.transcripts.push(Transcript {
                utterance,
                committed: Some(committed),
                text: String::new(),
                language: None,
                told: 0,
                outcome: None,
            }),
        }
        if let Some(commit) = commit {
            self.replace_wait(Wait::Commit(commit), Some(Wait::Transcript(utterance)));
        }
        self.tell_words(utterance);
        self.settle(utterance);
    }

    fn commit_refused(&mut self, commit: CommitId, audio_ms: u32, now: Moment) {
        match self.hearing.answered(commit) {
            Some(Asked::Commit { event_id }) => {
                let fault = Fault::CommitEmpty { audio_ms };
                let error = ProtocolError::from(fault).with_event_id(event_id.as_deref());
                self.send(ServerEvent::Error { error });
            }
            // The speech is still open: look again later.
            Some(Asked::Gap) => self.watch_microphone(now),
            Some(Asked::Item(item)) => {
                let why = if audio_ms == 0 { Fault::Speaking } else { Fault::CommitEmpty { audio_ms } };
                self.leave_unheard(item, &why);
            }
            Some(Asked::Clear) | None => {}
        }
        self.replace_wait(Wait::Commit(commit), None);
    }

    /// Ends an item whose audio nobody listens to.
    fn leave_unheard(&mut self, item: ItemId, why: &Fault) {
        if let Some((done, previous_item_id)) = self.conversation.hear(&item, ItemStatus::Incomplete, None) {
            self.send(ServerEvent::ItemDone { previous_item_id, item: Box::new(done) });
        }
        if self.settings.transcription.is_some() {
            let (kind, code) = (why.kind(), why.code().unwrap_or_default());
            let error = ErrorObject { kind, code, message: why.to_string() };
            self.send(ServerEvent::TranscriptionFailed { item_id: item, content_index: OnlyPart, error });
        }
    }

    fn cleared(&mut self, commit: CommitId, utterance: Option<UtteranceId>) {
        let asked = self.hearing.answered(commit);
        if self.hearing.open.take_if(|open| Some(open.utterance) == utterance).is_some() {
            self.timers.stop(Timer::MicrophoneGap);
        }
        if asked.is_some() {
            self.send(ServerEvent::Cleared);
        }
        self.answer_if_owed();
    }

    pub(super) fn stt_event(&mut self, event: SttEvent) {
        let (utterance, text, language, outcome) = match &event {
            SttEvent::Transcript { utterance, chunk, language, last } => {
                (*utterance, chunk.as_str(), *language, last.then_some(Ok(())))
            }
            SttEvent::Failed { utterance, code } => (*utterance, "", None, Some(Err(*code))),
        };
        let Some(entry) = self.hearing.transcript(utterance).filter(|entry| entry.outcome.is_none()) else {
            return;
        };
        if entry.text.len() + text.len() <= TRANSCRIPT_BYTES_MAX {
            entry.text.push_str(text);
        }
        // Of a very long utterance the first piece says it.
        entry.language = entry.language.or(language);
        entry.outcome = outcome;
        self.tell_words(utterance);
        self.settle(utterance);
    }

    /// Tells the client what is new in a transcript. Words only grow: nothing that was told is taken back.
    fn tell_words(&mut self, utterance: UtteranceId) {
        if self.settings.transcription.is_none() {
            return;
        }
        let transcript = self.hearing.transcripts.iter_mut().find(|entry| entry.utterance == utterance);
        if let Some(Transcript { committed: Some(committed), text, told, .. }) = transcript {
            let words = words_of(text);
            if words.len() > *told {
                let (item_id, delta) = (committed.item.clone(), words[*told..].to_owned());
                *told = words.len();
                self.send(ServerEvent::TranscriptionDelta { item_id, content_index: OnlyPart, delta });
            }
        }
    }

    /// Ends the item of an utterance once both its commit and its whole transcript are there.
    fn settle(&mut self, utterance: UtteranceId) {
        let ready = |entry: &mut Transcript| {
            entry.utterance == utterance && entry.committed.is_some() && entry.outcome.is_some()
        };
        let Some(Transcript { committed: Some(committed), text, language, outcome: Some(outcome), .. }) =
            self.hearing.transcripts.extract_if(.., ready).next()
        else {
            return;
        };
        let CommittedItem { item, audio_ms, answer } = committed;
        let words = words_of(&text).to_owned();
        let (status, heard) = match outcome {
            Ok(()) => (ItemStatus::Completed, Some(words.as_str())),
            Err(_) => (ItemStatus::Incomplete, None),
        };
        if outcome.is_ok() {
            self.user_language.hear(&words, set_language(&self.settings), language);
            self.tell_recogniser();
        }
        if let Some((done, previous_item_id)) = self.conversation.hear(&item, status, heard) {
            self.send(ServerEvent::ItemDone { previous_item_id, item: Box::new(done) });
        }
        self.owed |= answer && outcome.is_ok() && !words.is_empty();
        if self.settings.transcription.is_some() {
            let (item_id, content_index) = (item, OnlyPart);
            if self.settings.kind == SessionKind::Transcription && !words.is_empty() {
                self.send(ServerEvent::TranscriptionSegment {
                    item_id: item_id.clone(),
                    content_index,
                    id: fresh_segment_id(),
                    text: words.clone(),
                    speaker: Speaker::User,
                    start_ms: 0,
                    end_ms: audio_ms,
                });
            }
            self.send(match outcome {
                Ok(()) => {
                    let usage = TranscriptionUsage { audio_ms };
                    ServerEvent::TranscriptionCompleted { item_id, content_index, transcript: words, usage }
                }
                Err(code) => {
                    ServerEvent::TranscriptionFailed { item_id, content_index, error: failure(code, "") }
                }
            });
        }
        self.replace_wait(Wait::Transcript(utterance), None);
        self.answer_if_owed();
    }

    /// Creates the answer that the user waits for, unless something stands against it.
    pub(super) fn answer_if_owed(&mut self) {
        let detection = self.settings.turn_detection;
        let interrupted =
            self.hearing.is_open() && detection.is_some_and(|detection| detection.interrupt_response);
        if !self.owed || interrupted || self.response.is_some() || self.hearing.owing().next().is_some() {
            return;
        }
        if self.phase == Phase::Open && self.settings.kind == SessionKind::Realtime {
            self.start_response(ResponseRequest::default());
        }
    }

    /// Nobody has said anything since the last answer: the silence is a turn, and is answered.
    pub(super) fn fall_idle(&mut self) {
        if self.response.is_some() || self.hearing.is_open() || self.phase != Phase::Open {
            return;
        }
        let (item_id, audio_start_ms, audio_end_ms) =
            (ItemId::fresh(), self.idle_from_ms, self.hearing.audio_ms());
        self.send(ServerEvent::TimeoutTriggered { audio_start_ms, audio_end_ms, item_id: item_id.clone() });
        let previous_item_id = self.conversation.last();
        self.send(ServerEvent::Committed { previous_item_id, item_id: item_id.clone() });
        let silence = Item::heard(item_id.clone(), ItemStatus::Completed, Content::Silence);
        let previous_item_id = self.conversation.push(silence.clone());
        let item = Box::new(silence);
        self.send(ServerEvent::ItemAdded { previous_item_id: previous_item_id.clone(), item: item.clone() });
        self.send(ServerEvent::ItemDone { previous_item_id, item });
        if self.settings.transcription.is_some() {
            let usage = TranscriptionUsage { audio_ms: audio_end_ms.saturating_sub(audio_start_ms) };
            let (content_index, transcript) = (OnlyPart, String::new());
            self.send(ServerEvent::TranscriptionCompleted { item_id, content_index, transcript, usage });
        }
        self.start_response(ResponseRequest::default());
    }

    /// The client has sent nothing for a while in the middle of speech.
    pub(super) fn microphone_gap(&mut self, now: Moment) {
        let Some(gap) = self.microphone_gap_after() else {
            return;
        };
        if self.hearing.open.as_ref().is_none_or(|open| open.stopped) {
            return;
        }
        if now.since(self.hearing.heard_at) < gap {
            self.timers.set(Timer::MicrophoneGap, self.hearing.heard_at + gap);
            return;
        }
        let commit = self.hearing.ask(Asked::Gap);
        self.command(Command::Commit(commit));
    }

    fn watch_microphone(&mut self, now: Moment) {
        if let Some(gap) = self.microphone_gap_after() {
            self.timers.set(Timer::MicrophoneGap, now + gap);
        }
    }

    fn microphone_gap_after(&self) -> Option<Duration> {
        let detection = self.settings.turn_detection?;
        let silence_ms = match detection.mode {
            TurnMode::Server { silence_ms, .. } => silence_ms,
            TurnMode::Semantic { eagerness } => patience_ms(eagerness),
        };
        Some(Duration::from_millis(silence_ms.into()) + MICROPHONE_GAP)
    }
}
