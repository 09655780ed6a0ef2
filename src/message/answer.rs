//! Rings `answer_in` (language model → TTS) and `answer_out` (TTS → edge): one answer as the model writes it, and as the
//! client gets it.

use super::audio_frame::AudioFrame;
use super::envelope::{RingItem, assert_fits};
use super::failure::FailureCode;
use super::ids::AnswerStamp;
use super::text_chunk::TextChunk;
use super::usage::TokenUsage;

/// Ring `answer_in`: what comes into the unit from the language model.
#[derive(Clone, Copy, Debug)]
pub enum AnswerIn {
    /// Text to speak, a piece of one clause.
    Clause {
        /// The text.
        chunk: TextChunk,
        /// The clause is complete: speak it.
        last: bool,
    },
    /// Everything that is not spoken. TTS passes it on unchanged, in order.
    Event(AnswerEvent),
}

/// Ring `answer_out`: what leaves the unit for the client, audio and events in the order in which they happened.
#[derive(Clone, Copy, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a ring slot has one size; boxing would put a heap call on the audio path"
)]
pub enum AnswerOut {
    /// Audio of the answer, at the session's output rate.
    Audio(AudioFrame),
    /// Everything else.
    Event(AnswerEvent),
}

/// A step of an answer beside its audio.
#[derive(Clone, Copy, Debug)]
pub enum AnswerEvent {
    /// Text as the model wrote it.
    Text(TextChunk),
    /// A piece of a function call.
    Call(CallPiece),
    /// Limits of the model server on its caller.
    RateLimits(RateLimits),
    /// The answer is complete.
    End {
        /// The reason why the model stopped.
        finish: FinishReason,
        /// The cost of the answer.
        usage: TokenUsage,
    },
    /// The answer ends here, in failure.
    Failed {
        /// The reason.
        code: FailureCode,
        /// The first words of the model server's own message, for the client.
        detail: TextChunk,
    },
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
