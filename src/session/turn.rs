//! One turn of the user, from its speech to a settled item.

use crate::language::Language;
use crate::message::{FailureCode, UtteranceId};
use crate::protocol::ItemId;

use super::transcript::words_of;

/// Longest transcript that is kept, bytes: an hour of speech. Without turn detection a client may never commit.
const TRANSCRIPT_BYTES_MAX: usize = 64 * 1_024;

/// State of a turn: `Speaking → Stopped → Committed`; a client's own commit begins at `Committed`. A turn is settled
/// once it is committed and its transcript is complete. Settled turns are not kept.
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

/// Speech whose beginning has been sent to the client.
#[derive(Clone, Debug)]
pub(super) struct OpenSpeech {
    /// Id of the later item.
    pub(super) item: ItemId,
    /// Start of the audio, prefix included, milliseconds of the session.
    pub(super) start_ms: u32,
}

/// The item of a committed turn.
#[derive(Clone, Debug)]
pub(super) struct CommittedItem {
    /// Id of the item.
    pub(super) item: ItemId,
    /// Length of the audio, milliseconds.
    pub(super) audio_ms: u32,
    /// True if the turn is answered without a request of the client.
    pub(super) answer: bool,
}

/// One turn of the user.
#[derive(Debug)]
pub(super) struct Turn {
    /// Number of the utterance at the detector and the recogniser.
    pub(super) utterance: UtteranceId,
    /// State of the turn.
    pub(super) state: TurnState,
    /// Text so far, as the recogniser sent it.
    text: String,
    /// Language that the recogniser has named.
    pub(super) language: Option<Language>,
    /// Bytes of the words that have been sent to the client.
    told: usize,
    /// End of the transcript; `None` while more text is to come.
    pub(super) outcome: Option<Result<(), FailureCode>>,
}

impl Turn {
    /// Creates a turn without text.
    pub(super) const fn new(utterance: UtteranceId, state: TurnState) -> Self {
        Self { utterance, state, text: String::new(), language: None, told: 0, outcome: None }
    }

    /// Returns true if the user is speaking, or has just stopped.
    pub(super) const fn is_open(&self) -> bool {
        matches!(self.state, TurnState::Speaking(_) | TurnState::Stopped(_))
    }

    /// Returns true if the turn is an item of the conversation.
    pub(super) const fn is_committed(&self) -> bool {
        matches!(self.state, TurnState::Committed(_))
    }

    /// Returns true if the turn is committed and its transcript is complete or has failed.
    pub(super) const fn is_settled(&self) -> bool {
        self.is_committed() && self.outcome.is_some()
    }

    /// Appends a piece of the transcript. Text beyond [`TRANSCRIPT_BYTES_MAX`] is dropped. The first piece with a
    /// language decides the language of the utterance.
    pub(super) fn write(&mut self, text: &str, language: Option<Language>) {
        if self.text.len() + text.len() <= TRANSCRIPT_BYTES_MAX {
            self.text.push_str(text);
        }
        self.language = self.language.or(language);
    }

    /// Returns the words so far, or `""` if the transcript has none.
    pub(super) fn words(&self) -> &str {
        words_of(&self.text)
    }

    /// Returns the item and the new words of a committed turn, and counts them as sent. Words only grow, so that no
    /// word is taken back.
    pub(super) fn tell(&mut self) -> Option<(ItemId, String)> {
        let TurnState::Committed(committed) = &self.state else { return None };
        let untold = words_of(&self.text).get(self.told..).filter(|words| !words.is_empty())?.to_owned();
        self.told += untold.len();
        Some((committed.item.clone(), untold))
    }
}
