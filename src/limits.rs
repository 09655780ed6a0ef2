//! Every capacity, as a sum with a comment per holder.

use crate::message::FRAME_SAMPLES;

/// Longest clause of text that goes to TTS at once, bytes. The clause splitter cuts before it.
pub const CLAUSE_BYTES_MAX: usize = 400;

/// Longest audio of one clause: 400 bytes are about 70 words, 30 s at a slow voice's pace.
pub const CLAUSE_SECONDS_MAX: usize = 40;

/// Samples of one synthesised clause at the fastest model rate (24 kHz).
pub const CLAUSE_SAMPLES_MAX: usize = CLAUSE_SECONDS_MAX * 24_000;

/// Longest utterance that is kept; a longer one is committed in pieces.
pub const UTTERANCE_SECONDS_MAX: usize = 30;

/// Samples of one utterance at 16 kHz.
pub const UTTERANCE_SAMPLES_MAX: usize = UTTERANCE_SECONDS_MAX * 16_000;

/// Largest audio of one append, as the OpenAI Realtime reference says, bytes decoded.
pub const APPEND_BYTES_MAX: usize = 15 * 1_024 * 1_024;

const _: () = assert!(CLAUSE_SAMPLES_MAX > FRAME_SAMPLES);
