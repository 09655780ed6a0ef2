//! What travels in the rings: identifiers and fixed-size items.
//!
//! Every item is stamped when it is made ([`Stamp`]); whatever is derived from it inherits the stamp. Items of the
//! audio path are `Copy`, so nothing in a ring can free memory on a real-time thread.

mod hint;
mod ids;
mod item;
mod moment;
mod prompt;

pub use hint::SpeechHints;
pub use ids::{CommitId, Epoch, Generation, ResponseKey, Stamp, UnitId, UtteranceId};
pub use item::{
    AudioFrame, AudioIn, CallPiece, ClauseItem, FRAME_SAMPLES, FailureCode, FinishReason, RateLimit,
    RateLimits, SPEECH_FRAME_SAMPLES, SpeechFrame, SpeechItem, SpeechOut, Spent, Stamped, SttEvent,
    TEXT_CHUNK_BYTES, TextChunk, TokenUsage, TtsSettings, VadEvent, VadMode, VadSettings, text_chunks,
};
pub use moment::Moment;
pub use prompt::{
    ChatMessage, ChatRequest, FunctionCall, FunctionTool, ReasoningEffort, TextPrompt, ToolChoice, UserPart,
};
