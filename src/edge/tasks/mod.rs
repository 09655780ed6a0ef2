//! Tasks that own a port of a unit for the unit's whole life. Each unit has one for the language model, and one each
//! for recognition and synthesis if a server does them.

pub mod llm;
pub mod stt;
pub mod tts;

/// Error for an answer whose response was cancelled or whose session has ended.
struct Stale;
