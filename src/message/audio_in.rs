//! Ring `audio_in`: edge → VAD.

use super::audio_frame::AudioFrame;
use super::envelope::{RingItem, assert_fits};
use super::hint::SpeechHints;
use super::ids::{CommitId, Epoch};
use super::settings::VadSettings;

/// Audio of the client, and commands to the detector at a place in the audio.
#[derive(Clone, Copy, Debug)]
pub enum AudioIn {
    /// Audio of the client, decoded.
    Audio(AudioFrame),
    /// End of the utterance, set by the client.
    Commit(CommitId),
    /// Settings of turn detection from here on.
    Settings(VadSettings),
    /// Hints to the recogniser from here on.
    Hints(SpeechHints),
    /// Audio of an item that the client has put into the conversation, at 16 kHz. The audio is independent of the audio
    /// around it. No other item stands between it and its [`AudioIn::ItemEnd`].
    ItemAudio(AudioFrame),
    /// End of the item's audio. VAD's reply names this commit.
    ItemEnd(CommitId),
    /// The client discards all audio that is not committed.
    Clear(CommitId),
}

impl RingItem for AudioIn {
    type Stamp = Epoch;
}

const _: () = assert_fits::<AudioIn>(984);
