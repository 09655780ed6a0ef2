//! Rings `answer_in` (language model → TTS) and `answer_out` (TTS → edge). The first carries an answer as the model
//! writes it, the second as the client receives it.

use super::audio_frame::AudioFrame;
use super::envelope::{RingItem, assert_fits};
use super::failure::FailureCode;
use super::ids::AnswerStamp;
use super::text_chunk::TextChunk;
use super::usage::TokenUsage;

/// Ring `answer_in`: items from the language model.
#[derive(Clone, Copy, Debug)]
pub enum AnswerIn {
    /// Text to speak: a piece of one clause.
    Clause {
        /// The text.
        chunk: TextChunk,
        /// True if the clause is complete: TTS speaks it now.
        last: bool,
    },
    /// An event that is not spoken. TTS passes events on unchanged, in order.
    Event(AnswerEvent),
}

/// Ring `answer_out`: audio and events for the client, in the order in which they happened.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a ring slot has one size; boxing would put a heap call on the audio path"
)]
pub enum AnswerOut {
    /// Audio of the answer, at the session's output rate.
    Audio(AudioFrame),
    /// An event of the answer.
    Event(AnswerEvent),
}

/// A step of an answer besides its audio.
#[derive(Clone, Copy, Debug)]
pub enum AnswerEvent {
    /// Text as the model wrote it.
    Text(TextChunk),
    /// A piece of a function call.
    Call(CallPiece),
    /// The model server's limits on its caller.
    RateLimits(RateLimits),
    /// The end of a complete answer.
    End {
        /// The reason why the model stopped.
        finish: FinishReason,
        /// The cost of the answer.
        usage: TokenUsage,
    },
    /// The end of a failed answer.
    Failed {
        /// The reason.
        code: FailureCode,
        /// The beginning of the model server's own message, for the client.
        detail: TextChunk,
    },
}

/// A piece of a function call. The order is name, arguments (at least one piece), end. Calls do not interleave.
#[derive(Clone, Copy, Debug)]
pub enum CallPiece {
    /// The function's name; begins a call.
    Name(TextChunk),
    /// A part of the arguments' JSON.
    Arguments(TextChunk),
    /// The end of a complete call.
    End,
}

/// The reason why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FinishReason {
    /// The model ended its answer.
    Stop,
    /// The token limit was reached.
    Length,
    /// The model server's content filter cut the answer.
    ContentFilter,
}

/// A limit of the language model server on its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// The most that the server grants.
    pub limit: u32,
    /// The rest that the caller may still use.
    pub remaining: u32,
    /// Milliseconds until the full limit is available again.
    pub reset_ms: u32,
}

/// Limits of the language model server, as far as the server names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimits {
    /// Limit of requests.
    pub requests: Option<RateLimit>,
    /// Limit of tokens.
    pub tokens: Option<RateLimit>,
}

impl RingItem for AnswerIn {
    type Stamp = AnswerStamp;
}

impl RingItem for AnswerOut {
    type Stamp = AnswerStamp;
}

const _: () = {
    assert_fits::<AnswerIn>(272);
    assert_fits::<AnswerOut>(1_000);
};
