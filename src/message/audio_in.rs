//! Ring `audio_in`: edge → VAD.

use super::audio_frame::AudioFrame;
use super::envelope::{RingItem, assert_fits};
use super::hint::SpeechHints;
use super::ids::{CommitId, Epoch};
use super::settings::VadSettings;

/// Audio of the client, and what the client asks of the detector at a place in its audio.
#[derive(Clone, Copy, Debug)]
pub enum AudioIn {
    /// Audio of the client, decoded.
    Audio(AudioFrame),
    /// The client ends the utterance here.
    Commit(CommitId),
    /// From here on turns are detected so.
    Settings(VadSettings),
    /// From here on the recogniser has these hints.
    Hints(SpeechHints),
    /// Audio of an item that the client has put into the conversation, at 16 kHz. It has nothing to do with the audio
    /// around it, and nothing else stands between it and its end.
    ItemAudio(AudioFrame),
    /// The audio of the item is complete; the answer of VAD names this commit.
    ItemEnd(CommitId),
    /// The client throws away what it has not committed.
    Clear(CommitId),
}

impl RingItem for AudioIn {
    type Stamp = Epoch;
}

const _: () = assert_fits::<AudioIn>(984);
