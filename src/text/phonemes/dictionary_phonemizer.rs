//! The default phonemizer: dictionary, rules and tables of our own.

use super::heteronym;
use super::mapping;
use super::phone::{self, Sound};
use super::token::{Style, Words};
use super::unknown::{self, WordReading};
use super::weak_form;
use super::{Phonemize, is_voice_symbol};
use crate::text::normalise;

/// American English phonemes from the CMU Pronouncing Dictionary and rules.
///
/// Needs no file and no set-up: the dictionary lies in the binary. Each TTS worker owns one phonemizer. The phonemizers
/// share only the read-only text of the dictionary.
#[derive(Debug, Default)]
pub struct DictionaryPhonemizer {
    /// The sentence in words.
    text: String,
    words: Words,
    /// The sounds of all words, one after the other.
    sounds: Vec<Sound>,
    /// For each word: the end of its sounds in `sounds`, and its reading.
    ends: Vec<(usize, WordReading)>,
}

impl DictionaryPhonemizer {
    /// Creates a phonemizer with empty buffers, which grow to the longest sentence.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Finds the sounds of all words, since a word's form depends on the first sound of the next.
    fn pronounce(&mut self) {
        self.sounds.clear();
        self.ends.clear();
        for at in 0..self.words.words.len() {
            let word = self.words.words[at];
            let letters = self.words.letters(at);
            let reading = match word.style {
                Style::Letters => unknown::spell(letters, &mut self.sounds),
                Style::Capitals { plural } => capitals(letters, plural, &mut self.sounds),
                Style::Word if letters.len() == 1 && letters != "a" => {
                    unknown::spell(letters, &mut self.sounds)
                }
                Style::Word => {
                    let near = |back: usize| {
                        let at = at.checked_sub(back)?;
                        self.words.words[at].pause.is_none().then(|| self.words.letters(at))
                    };
                    let before = near(1).unwrap_or("");
                    let before = [before, if before.is_empty() { "" } else { near(2).unwrap_or("") }];
                    let after = if word.pause.is_some() { "" } else { self.words.letters(at + 1) };
                    match heteronym::reading(letters, before, after) {
                        Some(arpabet) => {
                            phone::append(arpabet, &mut self.sounds);
                            WordReading::Word
                        }
                        None => unknown::pronounce(letters, word.is_name, &mut self.sounds),
                    }
                }
            };
            self.ends.push((self.sounds.len(), reading));
        }
    }

    fn sounds(&self, at: usize) -> &[Sound] {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before].0);
        &self.sounds[start..self.ends[at].0]
    }

    /// Returns true if word number `at` begins with a vowel and no pause stands before the word.
    fn vowel_at(&self, at: usize) -> bool {
        let closely = self.words.words[at - 1].pause.is_none();
        closely && at < self.ends.len() && self.sounds(at).first().is_some_and(|sound| sound.is_vowel())
    }

    /// Appends word number `at`, or that word joined with the next. Returns the number of words appended.
    fn write(&self, at: usize, out: &mut String) -> usize {
        let word = self.words.words[at];
        let letters = self.words.letters(at);
        let pause = word.pause.is_some() || at + 1 == self.words.words.len();
        let vowel = self.vowel_at(at + 1);
        if word.style == Style::Word {
            let next_is_close = !pause && self.words.words[at + 1].style == Style::Word;
            let last_is_close =
                next_is_close && self.words.words[at + 1].pause.is_none() && at + 2 < self.words.words.len();
            if last_is_close && let Some(form) = weak_form::joined(letters, self.words.letters(at + 1)) {
                match form.strip_suffix("ðə") {
                    Some(start) if self.vowel_at(at + 2) => {
                        out.push_str(start);
                        out.push_str("ðɪ");
                    }
                    _ => out.push_str(form),
                }
                return 2;
            }
            let opens = at == 0 || self.words.words[at - 1].pause.is_some();
            if let Some(form) = weak_form::form(letters, opens, pause, vowel) {
                out.push_str(form);
                if vowel && form.ends_with(['ɚ', 'ː']) && (form.ends_with('ɚ') || form.ends_with("ɜː")) {
                    out.push('ɹ');
                }
                return 1;
            }
        }
        let spelling = if self.ends[at].1 == WordReading::Spelled { "" } else { letters };
        mapping::write(self.sounds(at), spelling, vowel, out);
        1
    }
}

/// Appends the sounds of a word in capitals. A known word is read ("NASA"); a short unknown one is spelled ("XKB").
fn capitals(letters: &str, plural: bool, out: &mut Vec<Sound>) -> WordReading {
    /// Longest acronym that is spelled rather than read by rule.
    const SPELLED_LETTERS_MAX: usize = 5;
    let stem =
        if plural { letters.strip_suffix('s').unwrap_or(letters).trim_end_matches('\'') } else { letters };
    if stem.len() > 1 && unknown::listed(letters, out) {
        return as_letters(letters, out);
    }
    if stem.len() > SPELLED_LETTERS_MAX {
        return unknown::pronounce(letters, true, out);
    }
    let reading = if stem.len() > 1 && unknown::listed(stem, out) {
        as_letters(stem, out)
    } else {
        unknown::spell(stem, out)
    };
    if plural {
        unknown::plural(out);
    }
    reading
}

/// Returns [`WordReading::Spelled`] if the sounds at the end of `out` are the names of `letters` ("FBI"). Their stress
/// is then set as [`unknown::spell`] sets it.
fn as_letters(letters: &str, out: &mut Vec<Sound>) -> WordReading {
    let end = out.len();
    unknown::spell(letters, out);
    let count = out.len() - end;
    let same = end >= count && out[end - count..end].iter().zip(&out[end..]).all(|(a, b)| a.phone == b.phone);
    if same {
        out.drain(end - count..end);
        return WordReading::Spelled;
    }
    out.truncate(end);
    WordReading::Word
}

impl Phonemize for DictionaryPhonemizer {
    fn phonemes(&mut self, sentence: &str, out: &mut String) {
        normalise(sentence, &mut self.text);
        self.words.read(&self.text);
        self.pronounce();
        let start = out.len();
        let mut at = 0;
        while at < self.words.words.len() {
            if out.len() > start {
                out.push(' ');
            }
            at += self.write(at, out);
            out.extend(self.words.words[at - 1].pause);
        }
        debug_assert!(out[start..].chars().all(is_voice_symbol));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn phonemes(sentence: &str) -> String {
        let mut out = String::new();
        DictionaryPhonemizer::new().phonemes(sentence, &mut out);
        out
    }

    #[test]
    fn sentences() {
        for (sentence, expected) in [
            ("Hello, world!", "həlˈoʊ, wˈɜːld!"),
            ("The apple of the old man.", "ðɪ ˈæpəl ʌvðɪ ˈoʊld mˈæn."),
            ("Is it over? It is.", "ɪz ɪɾ ˈoʊvɚ? ɪɾ ɪz."),
            ("I have read it; read it to me.", "ˈaɪ hæv ɹˈɛd ɪt; ɹˈiːd ɪt tə mˌiː."),
            ("A plan", "ɐ plˈæn"),
            ("the FBI", "ðɪ ˌɛfbˌiːˈaɪ"),
            ("her old car", "hɜːɹ ˈoʊld kˈɑːɹ"),
            ("It is $3.50.", "ɪɾ ɪz θɹˈiː dˈɑːlɚz ænd fˈɪfti sˈɛnts."),
            ("", ""),
            ("—", ""),
        ] {
            assert_eq!(phonemes(sentence), expected, "{sentence}");
        }
    }

    #[test]
    fn appends_behind_what_is_there() {
        let mut out = String::from("x ");
        DictionaryPhonemizer::new().phonemes("yes", &mut out);
        assert_eq!(out, "x jˈɛs");
    }

    #[test]
    fn rc_046_long_words_are_said_whole() {
        let letters = |count: usize| phonemes(&"b".repeat(count)).matches('b').count();
        assert_eq!(letters(300), 300);
        assert!(phonemes(&"字".repeat(300)).contains("tʃaɪnˈiːz"));
    }

    proptest! {
        #[test]
        fn any_text_gives_symbols_of_the_voice_only(text in "\\PC{0,120}") {
            prop_assert!(phonemes(&text).chars().all(is_voice_symbol));
        }

        #[test]
        fn any_words_give_sounds(text in "[A-Za-z' ,.é0-9-]{0,80}") {
            let out = phonemes(&text);
            prop_assert!(out.chars().all(is_voice_symbol));
            prop_assert_eq!(out.is_empty(), !text.contains(char::is_alphanumeric), "{} -> {}", text, out);
        }
    }
}
