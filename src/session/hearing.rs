//! The user's side of a turn: speech, commits, transcripts.
//!
//! The detector decides the content of the audio buffer. A commit or clear of the client goes to the detector through
//! the audio ring and takes effect when the detector's reply comes back.

use std::collections::VecDeque;
use std::time::Duration;

use crate::audio::SampleRate;
use crate::message::{CommitId, Moment, SttEvent, UtteranceId, VadEvent};
use crate::protocol::{
    Content, ErrorObject, Fault, Item, ItemId, ItemStatus, OnlyPart, ProtocolError, ResponseRequest,
    ServerEvent, SessionKind, Speaker, StatusDetails, TranscriptionUsage, TurnMode, fresh_segment_id,
};

use super::response::{Wait, failure};
use super::settings::{patience_ms, set_language};
use super::timer::Timer;
use super::turn::{CommittedItem, OpenSpeech, Turn, TurnState};
use super::{Command, MICROPHONE_GAP, Phase, Session};

/// Most transcripts that may arrive before their commit, which comes through another ring. One per STT worker would do.
const EARLY_TRANSCRIPTS_MAX: usize = 8;

/// Speech that has been heard and is not settled.
#[derive(Debug, Default)]
pub(super) struct Hearing {
    /// Turns that are not settled, at most one of them open.
    turns: Vec<Turn>,
    /// Commits and clears that the detector has not answered, oldest first.
    asked: VecDeque<(CommitId, Asked)>,
    next_commit: u32,
    /// The last utterance that was committed.
    last_committed: Option<UtteranceId>,
    /// Arrival of the client's last audio.
    heard_at: Moment,
    /// Audio received, microseconds.
    audio_us: u64,
    /// Audio received by the end of the last answer, milliseconds.
    idle_from_ms: u32,
}

/// A request to the detector.
#[derive(Debug)]
enum Asked {
    Commit {
        /// The client's id of its event.
        event_id: Option<String>,
    },
    Clear,
    /// Audio of an item that the client has put into the conversation.
    Item(ItemId),
    /// The session's own commit: the client stopped sending audio in the middle of speech.
    Gap,
}

impl Hearing {
    /// Returns true if the user is speaking.
    pub(super) fn is_open(&self) -> bool {
        self.turns.iter().any(Turn::is_open)
    }

    /// Counts audio of the client.
    pub(super) fn append(&mut self, samples: usize, rate: SampleRate, now: Moment) {
        self.heard_at = now;
        self.audio_us += samples as u64 * 1_000_000 / u64::from(rate.hz());
    }

    /// Returns the audio received in the session, milliseconds.
    pub(super) fn audio_ms(&self) -> u32 {
        u32::try_from(self.audio_us / 1_000).unwrap_or(u32::MAX)
    }

    /// Begins the silence that may become a turn of its own.
    pub(super) fn begin_idle(&mut self) {
        self.idle_from_ms = self.audio_ms();
    }

    /// Returns all commits, confirmed or asked for by the client, that have no transcript yet.
    pub(super) fn unsettled(&self) -> Vec<Wait> {
        let commits =
            self.asked.iter().filter(|(_, asked)| matches!(asked, Asked::Commit { .. } | Asked::Item(_)));
        let commits = commits.map(|(commit, _)| Wait::Commit(*commit));
        commits.chain(self.owing().map(|turn| Wait::Transcript(turn.utterance))).collect()
    }

    /// Iterates over the committed turns without a complete transcript. An early transcript is left out: its commit may
    /// never come.
    fn owing(&self) -> impl Iterator<Item = &Turn> {
        self.turns.iter().filter(|turn| turn.is_committed())
    }

    fn turn(&mut self, utterance: UtteranceId) -> Option<&mut Turn> {
        self.turns.iter_mut().find(|turn| turn.utterance == utterance)
    }

    /// Moves the turn of `utterance` to `state`. Makes a new turn if there is none or if it is committed.
    fn set(&mut self, utterance: UtteranceId, state: TurnState) {
        match self.turn(utterance).filter(|turn| !turn.is_committed()) {
            Some(turn) => turn.state = state,
            None => self.turns.push(Turn::new(utterance, state)),
        }
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

    /// Returns the turn for a piece of transcript. Makes a new turn if the commit may still be on its way.
    fn transcribed(&mut self, utterance: UtteranceId) -> Option<&mut Turn> {
        if self.turn(utterance).is_none() {
            let settled = self.last_committed.is_some_and(|last| utterance <= last);
            let early = self.turns.iter().filter(|turn| matches!(turn.state, TurnState::Early)).count();
            if settled || early >= EARLY_TRANSCRIPTS_MAX {
                return None;
            }
            self.turns.push(Turn::new(utterance, TurnState::Early));
        }
        self.turn(utterance).filter(|turn| turn.outcome.is_none())
    }
}

impl Session {
    /// Handles `input_audio_buffer.commit`.
    pub(super) fn commit(&mut self, event_id: Option<String>) {
        let commit = self.hearing.ask(Asked::Commit { event_id });
        self.command(Command::Commit(commit));
    }

    /// Sends the audio of an item to the recogniser. The item is in the conversation already.
    pub(super) fn hear(&mut self, item: ItemId, audio: String) {
        let commit = self.hearing.ask(Asked::Item(item));
        self.command(Command::Hear { commit, audio });
    }

    /// Handles `input_audio_buffer.clear`.
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
        self.hearing.turns.retain(|turn| !turn.is_open());
        self.hearing.set(utterance, TurnState::Speaking(OpenSpeech { item: item.clone(), start_ms }));
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
        let Some(turn) = self.hearing.turn(utterance) else { return };
        let TurnState::Speaking(speech) = turn.state.clone() else { return };
        let item_id = speech.item.clone();
        turn.state = TurnState::Stopped(speech);
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
        let state = self.hearing.turn(utterance).map(|turn| turn.state.clone());
        let item = match state {
            Some(TurnState::Speaking(OpenSpeech { item, start_ms })) => {
                self.timers.stop(Timer::MicrophoneGap);
                if by_detector {
                    let audio_end_ms = start_ms.saturating_add(audio_ms);
                    self.send(ServerEvent::SpeechStopped { audio_end_ms, item_id: item.clone() });
                }
                item
            }
            Some(TurnState::Stopped(OpenSpeech { item, .. })) => item,
            Some(TurnState::Early | TurnState::Committed(_)) | None => ItemId::fresh(),
        };
        // Utterances are counted up: an older one that was not committed has been cleared.
        self.hearing.turns.retain(|turn| turn.is_committed() || turn.utterance >= utterance);
        self.hearing.last_committed = self.hearing.last_committed.max(Some(utterance));
        self.timers.stop(Timer::Idle);
        self.unanswered.audio_ms = self.unanswered.audio_ms.saturating_add(audio_ms);
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

    /// Assigns the utterance to the item. Its transcript is on its way, or has come already.
    fn await_transcript(
        &mut self,
        utterance: UtteranceId,
        committed: CommittedItem,
        commit: Option<CommitId>,
    ) {
        self.hearing.set(utterance, TurnState::Committed(committed));
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
            // The speech is still open: check again later.
            Some(Asked::Gap) => self.watch_microphone(now),
            Some(Asked::Item(item)) => {
                let why = if audio_ms == 0 { Fault::Speaking } else { Fault::CommitEmpty { audio_ms } };
                self.leave_unheard(item, &why);
            }
            Some(Asked::Clear) | None => {}
        }
        self.replace_wait(Wait::Commit(commit), None);
    }

    /// Ends an item whose audio is not recognised.
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
        let gone = |turn: &mut Turn| turn.is_open() && Some(turn.utterance) == utterance;
        if self.hearing.turns.extract_if(.., gone).next().is_some() {
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
        let Some(turn) = self.hearing.transcribed(utterance) else { return };
        turn.write(text, language);
        turn.outcome = outcome;
        self.tell_words(utterance);
        self.settle(utterance);
    }

    /// Sends the client the new words of a transcript.
    fn tell_words(&mut self, utterance: UtteranceId) {
        if self.settings.transcription.is_some()
            && let Some((item_id, delta)) = self.hearing.turn(utterance).and_then(Turn::tell)
        {
            self.send(ServerEvent::TranscriptionDelta { item_id, content_index: OnlyPart, delta });
        }
    }

    /// Ends the item of a turn after its commit and its complete transcript.
    fn settle(&mut self, utterance: UtteranceId) {
        let ready = |turn: &mut Turn| turn.utterance == utterance && turn.is_settled();
        let Some(turn) = self.hearing.turns.extract_if(.., ready).next() else { return };
        let words = turn.words().to_owned();
        let Turn { state: TurnState::Committed(committed), outcome: Some(outcome), language, .. } = turn
        else {
            return;
        };
        let CommittedItem { item, audio_ms, answer } = committed;
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
        self.unanswered.is_owed |= answer && outcome.is_ok() && !words.is_empty();
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

    /// Creates the answer that the user waits for, unless a response, a pending transcript or open speech prevents it.
    pub(super) fn answer_if_owed(&mut self) {
        let detection = self.settings.turn_detection;
        let interrupted =
            self.hearing.is_open() && detection.is_some_and(|detection| detection.interrupt_response);
        if !self.unanswered.is_owed
            || interrupted
            || self.response.is_some()
            || self.hearing.owing().next().is_some()
        {
            return;
        }
        if self.phase == Phase::Open && self.settings.kind == SessionKind::Realtime {
            self.start_response(ResponseRequest::default());
        }
    }

    /// Makes a turn of the silence since the last answer, and answers it.
    pub(super) fn fall_idle(&mut self) {
        if self.response.is_some() || self.hearing.is_open() || self.phase != Phase::Open {
            return;
        }
        let (item_id, audio_start_ms, audio_end_ms) =
            (ItemId::fresh(), self.hearing.idle_from_ms, self.hearing.audio_ms());
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

    /// Commits open speech if the client has sent no audio for the time of the gap.
    pub(super) fn microphone_gap(&mut self, now: Moment) {
        let Some(gap) = self.microphone_gap_after() else {
            return;
        };
        if !self.hearing.turns.iter().any(|turn| matches!(turn.state, TurnState::Speaking(_))) {
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
