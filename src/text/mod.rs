//! From the language model's text to phonemes.
//!
//! ```text
//! deltas ─┬─ ClauseSplitter ─▶ clauses ─ Speakable ─▶ text to read ─ Phonemize (normalise, then phonemes) ─▶ IPA
//!         └──▶ transcript and history, as the model wrote them
//! ```
//!
//! [`ClauseSplitter`] and [`Speakable`] run on the edge's language model task, one pair per answer. [`Phonemize`] runs
//! on the `tts` threads, one instance per worker, behind the ring of clauses. All three are pure: no I/O, no clock, no
//! thread, no lock. Their results never depend on the cut of the text into deltas. They keep their buffers, so they
//! stop calling the heap after the longest sentence. The crate that decomposes letters with accents is an exception: it
//! may.
//!
//! The voice reads American English. Texts in other languages that use Latin, Greek or Cyrillic letters are read as an
//! American would read them; a stretch in another script is named ("some Chinese text"), not skipped.
//!
//! [`word_errors()`] counts the wrong words of a transcript, for tests and benches.

mod abbreviation;
mod amount;
mod around;
mod calendar;
mod clause;
mod markup;
mod measure;
mod normalise;
mod number;
pub mod phonemes;
mod roman;
mod speakable;
mod spelling;
mod symbol;
mod word_errors;

pub use clause::ClauseSplitter;
pub use normalise::normalise;
pub use phonemes::{DictionaryPhonemizer, Phonemize};
pub use speakable::Speakable;
pub use word_errors::{WordErrors, word_errors};
