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

pub use clause::ClauseSplitter;
pub use normalise::normalise;
pub use speakable::Speakable;
pub use thoughts::ThoughtFilter;
/// stub
pub trait Phonemize: Send { /// stub
    fn phonemes(&mut self, sentence: &str, out: &mut String); }
/// stub
#[derive(Debug, Clone)]
pub struct DictionaryPhonemizer;
impl DictionaryPhonemizer { /// stub
    pub fn new() -> Self { Self } }
impl Phonemize for DictionaryPhonemizer { fn phonemes(&mut self, s: &str, out: &mut String) { out.push_str(s) } }
