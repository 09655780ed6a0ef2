//! From the language model's text to phonemes.

pub mod abbreviation;
mod amount;
pub mod clause;
pub mod normalise;
mod number;
pub mod phonemes;
mod roman;
pub mod speakable;
mod spelling;
pub mod symbol;
pub mod thoughts;
mod unit;
pub mod word_errors;

pub use clause::ClauseSplitter;
pub use normalise::normalise;
pub use phonemes::{DictionaryPhonemizer, Phonemize};
pub use speakable::Speakable;
pub use thoughts::ThoughtFilter;
pub use word_errors::{WordErrors, word_errors};
