//! The items that travel in rings, by ring.

use super::hint::SpeechHints;
use super::ids::{CommitId, Epoch, ResponseKey, Stamp, UtteranceId};
use crate::audio::SampleRate;
use crate::language::Language;

/// Samples of one frame between edge and stages: 20 ms at 24 kHz, the usual append of a Realtime client; 60 ms at 8 kHz,
/// 10 ms at 48 kHz.
pub const FRAME_SAMPLES: usize = 480;

/// Samples of one frame from VAD to STT: one detector window, 32 ms at 16 kHz.
pub const SPEECH_FRAME_SAMPLES: usize = 512;

/// Bytes of text in one item.
pub const TEXT_CHUNK_BYTES: usize = 240;

/// What every ring item can say about itself.
pub trait Stamped {
    /// The claim that the item belongs to.
    fn epoch(&self) -> Epoch;
}

/// Up to [`FRAME_SAMPLES`] samples, mono, signed 16 bit, at `rate`.
#[derive(Clone, Copy, Debug)]
pub struct AudioFrame {
    /// Samples in use, `0..=FRAME_SAMPLES`.
    pub len: u16,
    /// Rate of these samples.
    pub rate: SampleRate,
    /// The samples; those from `len` on are undefined (zero or old).
    pub samples: [i16; FRAME_SAMPLES],
}

impl AudioFrame {
    /// An empty frame at `rate`.
    #[must_use]
    pub const fn empty(rate: SampleRate) -> Self {
        Self { len: 0, rate, samples: [0; FRAME_SAMPLES] }
    }

    /// The samples in use.
    #[must_use]
    pub fn used(&self) -> &[i16] {
        &self.samples[..usize::from(self.len)]
    }
}

/// `audio_in`: edge → VAD.
#[derive(Clone, Copy, Debug)]
pub enum AudioIn {
    /// Audio of the client, decoded.
    Audio {
        /// When it was made.
        stamp: Stamp,
        /// The samples.
        frame: AudioFrame,
    },
    /// The client ends the utterance here.
    Commit {
        /// When it was made.
        stamp: Stamp,
        /// Which commit.
        commit: CommitId,
    },
    /// From this point of the audio on turns are detected so.
    Settings {
        /// When it was made.
        stamp: Stamp,
        /// The settings.
        settings: VadSettings,
    },
    /// From this point of the audio on the recogniser has these hints.
    Hints {
        /// When they were made.
        stamp: Stamp,
        /// The hints.
        hints: SpeechHints,
    },
    /// Audio of an item that the client has put into the conversation, at 16 kHz. It has nothing to do with the audio
    /// around it, and nothing else stands between it and its end.
    ItemAudio {
        /// When it was made.
        stamp: Stamp,
        /// The samples.
        frame: AudioFrame,
    },
    /// The audio of the item is complete.
    ItemEnd {
        /// When it was made.
        stamp: Stamp,
        /// What the answer names.
        commit: CommitId,
    },
    /// The client throws away what it has not committed.
    Clear {
        /// When it was made.
        stamp: Stamp,
        /// Which clear.
        commit: CommitId,
    },
    /// Nothing of this epoch follows.
    SessionEnd {
        /// The epoch that ends.
        epoch: Epoch,
    },
}

impl Default for AudioIn {
    fn default() -> Self {
        Self::SessionEnd { epoch: Epoch(0) }
    }
}

/// One detector window, mono, signed 16 bit, 16 kHz.
#[derive(Clone, Copy, Debug)]
pub struct SpeechFrame {
    /// Samples in use, `0..=SPEECH_FRAME_SAMPLES`.
    pub len: u16,
    /// The samples.
    pub samples: [i16; SPEECH_FRAME_SAMPLES],
}

/// `speech`: VAD → STT. An utterance is `Start`, any number of `Frame`, then `End` or `Abort`.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a ring slot has one size; boxing would put a heap call on the audio path"
)]
pub enum SpeechItem {
    /// An utterance begins.
    Start {
        /// Inherited from the audio.
        stamp: Stamp,
        /// Which.
        utterance: UtteranceId,
    },
    /// Audio of the open utterance.
    Frame {
        /// Inherited from the audio.
        stamp: Stamp,
        /// The samples.
        frame: SpeechFrame,
    },
    /// The open utterance is complete: transcribe it.
    End {
        /// Inherited from the audio.
        stamp: Stamp,
        /// Which.
        utterance: UtteranceId,
    },
    /// What follows, the open utterance included, is recognised with these hints.
    Hints {
        /// Inherited from the edge's.
        stamp: Stamp,
        /// The hints.
        hints: SpeechHints,
    },
    /// The open utterance was cleared by the client: forget it.
    Abort {
        /// Inherited from the audio.
        stamp: Stamp,
        /// Which.
        utterance: UtteranceId,
    },
    /// Nothing of this epoch follows.
    SessionEnd {
        /// The epoch that ends.
        epoch: Epoch,
    },
}

/// `text_events`, VAD's half: VAD → session. Times are milliseconds of audio written in the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VadEvent {
    /// Speech begins; the time includes the prefix padding.
    SpeechStarted {
        /// Inherited from the audio.
        stamp: Stamp,
        /// Which utterance.
        utterance: UtteranceId,
        /// Start of the utterance's audio, prefix included.
        start_ms: u32,
    },
    /// Speech has ended (server VAD only).
    SpeechStopped {
        /// Inherited from the audio.
        stamp: Stamp,
        /// Which utterance.
        utterance: UtteranceId,
        /// End of the utterance's audio.
        end_ms: u32,
    },
    /// The utterance is closed and goes to STT.
    Committed {
        /// Inherited from the audio.
        stamp: Stamp,
        /// Which utterance.
        utterance: UtteranceId,
        /// The client's commit that closed it; `None`: the server's own, by VAD.
        commit: Option<CommitId>,
        /// Length of the utterance's audio.
        audio_ms: u32,
    },
    /// There was not enough audio for the client's commit.
    CommitRefused {
        /// Inherited from the commit.
        stamp: Stamp,
        /// The client's commit.
        commit: CommitId,
        /// Audio that the buffer holds.
        audio_ms: u32,
    },
    /// The client's clear has been done. An utterance that was open is gone.
    Cleared {
        /// Inherited from the clear.
        stamp: Stamp,
        /// The client's clear.
        commit: CommitId,
        /// The utterance that was open, if `speech_started` had been said of it.
        utterance: Option<UtteranceId>,
    },
}

/// Up to [`TEXT_CHUNK_BYTES`] bytes of UTF-8, split at character boundaries.
#[derive(Clone, Copy)]
pub struct TextChunk {
    len: u8,
    bytes: [u8; TEXT_CHUNK_BYTES],
}

const _: () = assert!(TEXT_CHUNK_BYTES <= 255, "the length is one byte");

impl TextChunk {
    /// The longest prefix of `text` that fits, and the rest.
    #[must_use]
    pub fn split(text: &str) -> (Self, &str) {
        let mut cut = text.len().min(TEXT_CHUNK_BYTES);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let mut bytes = [0; TEXT_CHUNK_BYTES];
        bytes[..cut].copy_from_slice(&text.as_bytes()[..cut]);
        let len = u8::try_from(cut).expect("cut <= TEXT_CHUNK_BYTES <= 255");
        (Self { len, bytes }, &text[cut..])
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)])
            .expect("split at a character boundary of valid UTF-8")
    }
}

impl PartialEq for TextChunk {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl std::fmt::Debug for TextChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// Splits `text` into chunks; each comes with whether it is the last. Empty text gives one empty, last chunk.
pub fn text_chunks(text: &str) -> impl Iterator<Item = (TextChunk, bool)> + '_ {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (chunk, tail) = TextChunk::split(rest?);
        rest = (!tail.is_empty()).then_some(tail);
        Some((chunk, rest.is_none()))
    })
}

/// Why something failed, in a form that fits a ring; the session turns it into words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// Speech recognition failed.
    SttFailed,
    /// Speech synthesis failed.
    TtsFailed,
    /// A stage panicked while it worked on this; the unit goes on.
    StagePanicked,
    /// The language model server refused the connection or could not be reached.
    LlmUnreachable,
    /// The language model server answered with an HTTP error status.
    LlmStatus(u16),
    /// The language model sent nothing within the first-token time-out.
    LlmFirstTokenTimeout,
    /// The language model stopped sending between tokens for longer than the time-out.
    LlmStalled,
    /// The language model's stream ended early or was not what the API says.
    LlmBrokenStream,
}

/// `text_events`, STT's half: STT → session.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a ring slot has one size; boxing would put a heap call on the way"
)]
pub enum SttEvent {
    /// A piece of the final transcript.
    Transcript {
        /// Inherited from the audio.
        stamp: Stamp,
        /// Of which utterance.
        utterance: UtteranceId,
        /// The text.
        chunk: TextChunk,
        /// The language that it is in; `None`: the recogniser does not say.
        language: Option<Language>,
        /// Nothing of this transcript follows.
        last: bool,
    },
    /// The utterance could not be transcribed.
    Failed {
        /// Inherited from the audio.
        stamp: Stamp,
        /// Which utterance.
        utterance: UtteranceId,
        /// Why.
        code: FailureCode,
    },
    /// Nothing of this epoch follows.
    SessionEnd {
        /// The epoch that ends.
        epoch: Epoch,
    },
}

/// Tokens of one completion, as the language model server counts them; 0 when it does not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenUsage {
    /// Tokens of the prompt.
    pub input: u32,
    /// Of these, tokens that were in the server's cache.
    pub input_cached: u32,
    /// Tokens of the completion.
    pub output: u32,
}

/// Language model → session, by triple buffer, ahead of the answer in the rings: what it has cost. An answer that is
/// broken off after its last token and before its last audio has cost as much.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spent {
    /// In which session.
    pub epoch: Epoch,
    /// On which response.
    pub response: ResponseKey,
    /// How much.
    pub usage: TokenUsage,
}

/// How a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model was done.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model server's content filter cut it.
    ContentFilter,
}

/// A piece of a function call, in this order: name, arguments (at least one piece), end. Calls do not interleave.
#[derive(Clone, Copy, Debug)]
pub enum CallPiece {
    /// A call begins: the function's name.
    Name(TextChunk),
    /// Part of the JSON of its arguments.
    Arguments(TextChunk),
    /// The call is whole.
    End,
}

/// A limit of the language model server on its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The most.
    pub limit: u32,
    /// What is left of it.
    pub remaining: u32,
    /// Milliseconds until all of it is there again.
    pub reset_ms: u32,
}

/// Limits of the language model server, as far as it names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Of requests.
    pub requests: Option<RateLimit>,
    /// Of tokens.
    pub tokens: Option<RateLimit>,
}

/// `clauses`: language model → TTS.
#[derive(Clone, Copy, Debug)]
pub enum ClauseItem {
    /// Text of the answer as the model wrote it; TTS passes it on in order.
    Text {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// The text.
        chunk: TextChunk,
    },
    /// Text to speak, a piece of one clause.
    Clause {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// The text.
        chunk: TextChunk,
        /// The clause is complete: speak it.
        last: bool,
    },
    /// A function call of the answer, piece by piece; TTS passes it on in order.
    Call {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// The piece.
        piece: CallPiece,
    },
    /// What the model server allows its caller.
    RateLimits {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// The limits.
        limits: RateLimits,
    },
    /// The answer is complete.
    End {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// How it ended.
        finish: FinishReason,
        /// What it cost.
        usage: TokenUsage,
    },
    /// The answer ends here, in failure.
    Failed {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// Why.
        code: FailureCode,
        /// The first words of the model server's own message, for the client.
        detail: TextChunk,
    },
    /// Nothing of this epoch follows.
    SessionEnd {
        /// The epoch that ends.
        epoch: Epoch,
    },
}

/// `audio_out`: TTS → edge. The answer's audio and its events, in the order in which they happened.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a ring slot has one size; boxing would put a heap call on the audio path"
)]
pub enum SpeechOut {
    /// Text of the answer.
    Text {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// The text.
        chunk: TextChunk,
    },
    /// Audio of the answer, at the session's output rate.
    Audio {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// The samples.
        frame: AudioFrame,
    },
    /// A function call of the answer, piece by piece.
    Call {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// The piece.
        piece: CallPiece,
    },
    /// What the model server allows its caller.
    RateLimits {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// The limits.
        limits: RateLimits,
    },
    /// The answer is complete.
    End {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// How it ended.
        finish: FinishReason,
        /// What it cost.
        usage: TokenUsage,
    },
    /// The answer ends here, in failure.
    Failed {
        /// Inherited from the prompt.
        stamp: Stamp,
        /// Of which response.
        response: ResponseKey,
        /// Why.
        code: FailureCode,
        /// The first words of the model server's own message, for the client.
        detail: TextChunk,
    },
    /// Nothing of this epoch follows.
    SessionEnd {
        /// The epoch that ends.
        epoch: Epoch,
    },
}

impl ClauseItem {
    /// What the voice passes on without speaking it; `None`: a clause, or the marker.
    #[must_use]
    pub const fn passed_on(self) -> Option<SpeechOut> {
        Some(match self {
            Self::Text { stamp, response, chunk } => SpeechOut::Text { stamp, response, chunk },
            Self::Call { stamp, response, piece } => SpeechOut::Call { stamp, response, piece },
            Self::RateLimits { stamp, response, limits } => SpeechOut::RateLimits { stamp, response, limits },
            Self::End { stamp, response, finish, usage } => SpeechOut::End { stamp, response, finish, usage },
            Self::Failed { stamp, response, code, detail } => {
                SpeechOut::Failed { stamp, response, code, detail }
            }
            Self::Clause { .. } | Self::SessionEnd { .. } => return None,
        })
    }
}

macro_rules! stamped {
    ($item:ident { $($variant:ident),+ }, $($end:ident)?) => {
        impl Stamped for $item {
            fn epoch(&self) -> Epoch {
                match self {
                    $(Self::$variant { stamp, .. } => stamp.epoch,)+
                    $(Self::$end { epoch } => *epoch,)?
                }
            }
        }
    };
}

stamped!(AudioIn { Audio, Commit, ItemAudio, ItemEnd, Settings, Hints, Clear }, SessionEnd);
stamped!(SpeechItem { Start, Frame, End, Hints, Abort }, SessionEnd);
stamped!(VadEvent { SpeechStarted, SpeechStopped, Committed, CommitRefused, Cleared },);
stamped!(SttEvent { Transcript, Failed }, SessionEnd);
stamped!(ClauseItem { Text, Clause, Call, RateLimits, End, Failed }, SessionEnd);
stamped!(SpeechOut { Text, Audio, Call, RateLimits, End, Failed }, SessionEnd);

const _: () = {
    const fn fits<T: Copy>(bytes_max: usize) {
        assert!(size_of::<T>() <= bytes_max && !std::mem::needs_drop::<T>());
    }
    fits::<AudioIn>(1_024);
    fits::<SpeechItem>(1_088);
    fits::<VadEvent>(64);
    fits::<SttEvent>(288);
    fits::<ClauseItem>(288);
    fits::<SpeechOut>(1_024);
};

/// How turns are detected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum VadMode {
    /// The client commits by itself.
    Off,
    /// Silence ends a turn.
    Server {
        /// Speech probability at which speech begins, `0.0..=1.0`.
        threshold: f32,
        /// Audio kept before the onset.
        prefix_ms: u32,
        /// Silence that ends the utterance.
        silence_ms: u32,
    },
    /// What was said sounds complete: the turn model decides at a short silence.
    Semantic {
        /// Silence that ends an utterance that does not sound complete.
        patience_ms: u32,
    },
}

/// Session → VAD, in `audio_in`: they hold from their place in the audio on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VadSettings {
    /// How turns are detected.
    pub mode: VadMode,
}

impl Default for VadSettings {
    /// The defaults of the OpenAI Realtime reference.
    fn default() -> Self {
        Self { mode: VadMode::Server { threshold: 0.5, prefix_ms: 300, silence_ms: 500 } }
    }
}

/// Session → TTS, by triple buffer: the latest value wins, and holds for answers whose first clause comes after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TtsSettings {
    /// Rate of the audio that the client wants.
    pub rate: SampleRate,
    /// Speed of speech, `0.25..=4.0`.
    pub speed: f32,
    /// The language that the user speaks, for text that does not show its own; `None`: it is not known.
    pub language: Option<Language>,
}

impl Default for TtsSettings {
    fn default() -> Self {
        Self { rate: SampleRate::HZ_24K, speed: 1.0, language: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cut_between_characters_and_join_to_the_same_text() {
        for text in ["", "a", &"é".repeat(500), &"你好🚀".repeat(99)] {
            let chunks: Vec<_> = text_chunks(text).collect();
            assert!(
                chunks.iter().rev().skip(1).all(|(_, last)| !last)
                    && chunks.last().is_some_and(|(_, last)| *last)
            );
            assert_eq!(chunks.iter().map(|(chunk, _)| chunk.as_str()).collect::<String>(), text);
        }
    }
}
