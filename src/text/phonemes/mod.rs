//! From a sentence to the phonemes of the voice.
//!
//! ```text
//! sentence ─ normalise ─▶ words ─ token ─▶ letters and pauses ─┬ heteronym ┐
//!                                                              ├ exception ├▶ sounds (ARPAbet) ─ mapping ─▶ IPA
//!                                              dictionary, unknown, letter_rule ┘        weak_form ─────────▶
//! ```
//!
//! | file | content |
//! |---|---|
//! | `token` | words, folded to plain letters; acronyms among them |
//! | `heteronym` | words with two readings, told apart by their neighbours |
//! | `exception`, `dictionary` | own corrections; the CMU Pronouncing Dictionary |
//! | `unknown`, `letter_rule` | everything else: endings, compounds, letter-to-sound rules learned from the dictionary |
//! | `weak_form` | function words, and pairs that run together |
//! | `mapping` | sounds to the IPA that the voice was trained on |
//! | `inventory` | symbols of the voice; no other symbol comes out |

mod dictionary;
mod dictionary_phonemizer;
mod exception;
mod heteronym;
mod inventory;
#[cfg(test)]
mod learn;
mod letter_rule;
mod mapping;
mod phone;
mod token;
mod unknown;
mod weak_form;

pub use dictionary_phonemizer::DictionaryPhonemizer;
pub use inventory::is_voice_symbol;

/// Turns text into phonemes for a Piper voice of American English.
///
/// # Real-time
/// Thread: a `tts` worker, each with an instance of its own. May call the heap only while its buffers grow to the
/// longest sentence so far.
pub trait Phonemize: Send {
    /// Appends the phonemes of `sentence` to `out`: IPA as espeak-ng writes American English, in Unicode's decomposed
    /// form, words apart by one space, with the sentence's `, . ! ? ; :` behind the word before them.
    ///
    /// `sentence` is text to read aloud as [`crate::text::Speakable`] leaves it, at most
    /// [`crate::limits::CLAUSE_BYTES_MAX`] bytes in the server and any length here; numbers and abbreviations are read
    /// as [`crate::text::normalise()`] writes them. Only symbols of [`is_voice_symbol`] are written, and no word is left
    /// out. Text without a word appends nothing.
    fn phonemes(&mut self, sentence: &str, out: &mut String);
}
