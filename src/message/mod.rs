//! Items of the rings: identifiers and fixed-size items, a file for each ring.
//!
//! Every item goes in an [`Envelope`] with its stamp. The stamp is set when the item is made, and everything that a
//! stage derives from the item inherits the stamp. Items of the audio path are `Copy`, so that nothing in a ring can
//! free memory on a real-time thread.

mod answer;
mod audio_frame;
mod audio_in;
mod caller;
mod envelope;
mod failure;
mod hint;
mod ids;
mod moment;
mod prompt;
mod settings;
mod speech;
mod stt_event;
mod text_chunk;
mod usage;
mod vad_event;

pub use answer::{AnswerEvent, AnswerIn, AnswerOut, CallPiece, FinishReason, RateLimit, RateLimits};
pub use audio_frame::{AudioFrame, FRAME_SAMPLES};
pub use audio_in::AudioIn;
pub use caller::{Caller, Rank};
pub use envelope::{Envelope, RingItem};
pub use failure::FailureCode;
pub use hint::SpeechHints;
pub use ids::{AnswerStamp, CommitId, Epoch, Generation, ResponseKey, UnitId, UtteranceId};
pub use moment::Moment;
pub use prompt::{
    ChatMessage, ChatRequest, FunctionCall, FunctionTool, ReasoningEffort, TextPrompt, ToolChoice, UserPart,
};
pub use settings::{TtsSettings, VadMode, VadSettings};
pub use speech::{SPEECH_FRAME_SAMPLES, SpeechFrame, SpeechItem};
pub use stt_event::SttEvent;
pub use text_chunk::{TEXT_CHUNK_BYTES, TextChunk, text_chunks};
pub use usage::{Spent, TokenUsage};
pub use vad_event::VadEvent;
