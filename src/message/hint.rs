//! What is known about the speech that is to be recognised.

use super::text_chunk::TextChunk;
use crate::language::Language;

/// Hints to the recogniser: they hold from their place in the audio on, until the session ends. The built-in recogniser
/// knows one language and takes none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpeechHints {
    /// The language spoken; `None`: the recogniser finds out.
    pub language: Option<Language>,
    /// The language that was spoken before, for speech too short to tell; `None`: nothing is known.
    pub recent: Option<Language>,
    /// Words that may come, or the text before; `None`: nothing is known. What does not fit is not used.
    pub prompt: Option<TextChunk>,
}
