//! Hints to the recogniser about the speech to come.

use super::text_chunk::TextChunk;
use crate::language::Language;

/// Hints to the recogniser, valid from their place in the audio until the session ends. The built-in recogniser
/// transcribes one language and ignores all hints.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpeechHints {
    /// The language spoken; `None`: the recogniser detects it.
    pub language: Option<Language>,
    /// The language that was spoken before, for speech too short to detect one; `None`: unknown.
    pub recent: Option<Language>,
    /// Words that may come, or the text before; `None`: unknown. Longer text is cut.
    pub prompt: Option<TextChunk>,
}
