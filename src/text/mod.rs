//! From the language model's text to phonemes.

pub mod abbreviation;
pub mod clause;
pub mod speakable;
pub mod symbol;
pub mod thoughts;

pub use clause::ClauseSplitter;
pub use speakable::Speakable;
pub use thoughts::ThoughtFilter;
