//! One turn of the user: where it is on its way from speech to a settled item.

use crate::language::Language;
use crate::message::{FailureCode, UtteranceId};
use crate::protocol::ItemId;

use super::transcript::words_of;

/// Longest transcript that is kept, bytes: an hour of speech. Without turn detection a client may never commit.
const TRANSCRIPT_BYTES_MAX: usize = 64 * 1_024;

/// Where a turn is. `Speaking → Stopped → Committed`; a client's own commit begins at `Committed`. A turn is settled, and
/// no longer kept, when it is committed and its transcript is complete.
#[derive(Clone, Debug)]
pub(super) enum TurnState {
    /// The detector hears speech.
    Speaking(OpenSpeech),
    /// The speech has ended; the detector's commit is on its way.
    Stopped(OpenSpeech),
    /// The transcript has come first, through another ring; the detector's commit is on its way.
    Early,
    /// The turn is an item of the conversation.
    Committed(CommittedItem),
}

/// Speech that the client has been told of.
#[derive(Clone, Debug)]
pub(super) struct OpenSpeech {
    /// Item that the speech will be.
    pub(super) item: ItemId,
    /// Start of the audio, prefix included, milliseconds of the session.
    pub(super) start_ms: u32,
}

/// The item that a committed turn is.
#[derive(Clone, Debug)]
pub(super) struct CommittedItem {
    /// Its id.
    pub(super) item: ItemId,
    /// Length of its audio.
    pub(super) audio_ms: u32,
    /// Whether the turn is answered by itself.
    pub(super) answer: bool,
}

/// One turn of the user.
#[derive(Debug)]
pub(super) struct Turn {
    /// Utterance that the turn is for detector and recogniser.
    pub(super) utterance: UtteranceId,
    /// Where the turn is.
    pub(super) state: TurnState,
    /// Text so far, as the recogniser gave it.
    text: String,
    /// Language that the recogniser has named.
    pub(super) language: Option<Language>,
    /// Bytes of the words that the client has been told.
    told: usize,
    /// End of the transcript; `None` while more text is to come.
    pub(super) outcome: Option<Result<(), FailureCode>>,
}

impl Turn {
    /// A turn without text.
    pub(super) const fn new(utterance: UtteranceId, state: TurnState) -> Self {
        Self { utterance, state, text: String::new(), language: None, told: 0, outcome: None }
    }

    /// Whether the user is speaking, or has just stopped.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, TurnState::Speaking(_) | TurnState::Stopped(_))
    }

    /// Whether the turn is an item of the conversation.
    pub(super) const fn is_committed(&self) -> bool {
        matches!(self.state, TurnState::Committed(_))
    }

    /// Whether nothing is to come.
    pub(super) const fn is_settled(&self) -> bool {
        self.is_committed() && self.outcome.is_some()
    }

    /// Appends a piece of the transcript; what is longer than [`TRANSCRIPT_BYTES_MAX`] is dropped. Of a very long utterance
    /// the first piece says the language.
    pub(super) fn write(&mut self, text: &str, language: Option<Language>) {
        if self.text.len() + text.len() <= TRANSCRIPT_BYTES_MAX {
            self.text.push_str(text);
        }
        self.language = self.language.or(language);
    }

    /// The transcript so far, without what stands for silence.
    pub(super) fn words(&self) -> &str {
        words_of(&self.text)
    }

    /// Item and words of a committed turn that the client has not been told. Words only grow: nothing that was told is
    /// taken back.
    pub(super) fn tell(&mut self) -> Option<(ItemId, String)> {
        let TurnState::Committed(committed) = &self.state else { return None };
        let untold = words_of(&self.text).get(self.told..).filter(|words| !words.is_empty())?.to_owned();
        self.told += untold.len();
        Some((committed.item.clone(), untold))
    }
}
