//! Tasks that own a port of a unit for the unit's whole life: one per unit for the language model, one for recognition and
//! for synthesis where a server does it.

pub mod llm;
pub mod stt;
pub mod tts;

/// The response was cancelled, or the session ended.
struct Stale;
