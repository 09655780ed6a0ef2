//! Ring `text_events`, VAD's half: VAD → session.

use super::envelope::{RingItem, assert_fits};
use super::ids::{CommitId, Epoch, UtteranceId};

/// Events of the detector in the client's audio. Times are milliseconds of audio received in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VadEvent {
    /// Start of speech.
    SpeechStarted {
        /// The utterance that begins.
        utterance: UtteranceId,
        /// Start of the utterance's audio, prefix padding included.
        start_ms: u32,
    },
    /// End of speech, set by VAD and not by a commit of the client.
    SpeechStopped {
        /// The utterance that ends.
        utterance: UtteranceId,
        /// End of the utterance's audio.
        end_ms: u32,
    },
    /// The utterance is closed and goes to STT.
    Committed {
        /// The utterance that is closed.
        utterance: UtteranceId,
        /// The client's commit that closed the utterance; `None`: VAD closed it.
        commit: Option<CommitId>,
        /// Length of the utterance's audio.
        audio_ms: u32,
    },
    /// The audio was too short for the client's commit.
    CommitRefused {
        /// The client's commit.
        commit: CommitId,
        /// Length of the audio in the buffer.
        audio_ms: u32,
    },
    /// The client's clear has been done. An open utterance is dropped.
    Cleared {
        /// The client's clear.
        commit: CommitId,
        /// The utterance that was open, if its `SpeechStarted` had been sent.
        utterance: Option<UtteranceId>,
    },
}

impl RingItem for VadEvent {
    type Stamp = Epoch;
}

const _: () = assert_fits::<VadEvent>(24);
