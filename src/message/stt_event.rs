//! Ring `text_events`, STT's half: STT → session.

use super::envelope::{RingItem, assert_fits};
use super::failure::FailureCode;
use super::ids::{Epoch, UtteranceId};
use super::text_chunk::TextChunk;
use crate::language::Language;

/// Result of an utterance.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a ring slot has one size; boxing would put a heap call on the way"
)]
pub enum SttEvent {
    /// A piece of the final transcript.
    Transcript {
        /// The utterance that was transcribed.
        utterance: UtteranceId,
        /// The text.
        chunk: TextChunk,
        /// The language of the text; `None`: the recogniser does not name one.
        language: Option<Language>,
        /// True if no more of this transcript follows.
        last: bool,
    },
    /// The utterance could not be transcribed.
    Failed {
        /// The utterance.
        utterance: UtteranceId,
        /// The reason.
        code: FailureCode,
    },
}

impl RingItem for SttEvent {
    type Stamp = Epoch;
}

const _: () = assert_fits::<SttEvent>(272);
