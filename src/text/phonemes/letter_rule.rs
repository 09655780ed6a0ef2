//! Letters to sounds, for words that no list has.
//!
//! Each letter gets the sounds of the rule with the widest matching context. The rules are learned from the dictionary,
//! so names sound as names do. `learn.rs` learns the rules and measures their accuracy.

use super::dictionary;
use super::phone::{self, Phone, Sound, Stress};

/// One rule per line: left context, the letter in parentheses, right context, a space, its sounds (`-`: silent);
/// `_` is the border of the word. Sorted by byte value.
///
/// # Source
/// Written by `cargo test --release --lib learn_the_letter_rules -- --ignored` from `cmudict.txt`.
const TEXT: &str = include_str!("letter_rule.txt");

/// Letters of context to the left and to the right, from the narrowest rule to the widest.
pub(super) const CONTEXTS: [(usize, usize); 9] =
    [(0, 0), (0, 1), (1, 1), (1, 2), (2, 2), (2, 3), (3, 3), (3, 4), (4, 4)];

/// Most letters of context on either side of a letter.
pub(super) const REACH: usize = 4;

/// Longest key of a rule, bytes.
const KEY_BYTES_MAX: usize = 2 * REACH + 3;

/// Most letters of a word that are read; further ones are dropped. `token` passes on words of at most 24 letters and
/// has longer ones spelled.
const WORD_LETTERS_MAX: usize = 64;

/// Appends the sounds of the lower-case letters of `word`; other characters are skipped.
pub(super) fn pronounce(word: &str, out: &mut Vec<Sound>) {
    let start = out.len();
    let mut padded = [b'_'; WORD_LETTERS_MAX + 2 * REACH];
    let mut length = 0;
    for letter in word.bytes().filter(u8::is_ascii_lowercase).take(WORD_LETTERS_MAX) {
        padded[REACH + length] = letter;
        length += 1;
    }
    let mut letters = Letters::default();
    for at in REACH..REACH + length {
        for &(left, right) in CONTEXTS.iter().rev() {
            let mut key = [0; KEY_BYTES_MAX];
            if let Some(sounds) = dictionary::find(TEXT, write_key(&padded, at, left, right, &mut key)) {
                if sounds != "-" {
                    let from = out.len();
                    phone::append(sounds, out);
                    // "tt" and "oo" are said once.
                    if from > start && out[from].phone == out[from - 1].phone {
                        out.remove(from);
                    }
                    letters.resize(out.len() - start, padded[at]);
                }
                break;
            }
        }
    }
    settle_stress(&mut out[start..], letters.as_slice());
}

/// Writes the key of the rule for the letter at `at` of `padded` into `key` and returns the key.
fn write_key<'a>(
    padded: &[u8],
    at: usize,
    left: usize,
    right: usize,
    key: &'a mut [u8; KEY_BYTES_MAX],
) -> &'a str {
    key[..left].copy_from_slice(&padded[at - left..at]);
    key[left] = b'(';
    key[left + 1] = padded[at];
    key[left + 2] = b')';
    key[left + 3..left + 3 + right].copy_from_slice(&padded[at + 1..at + 1 + right]);
    std::str::from_utf8(&key[..left + 3 + right]).expect("ASCII letters and borders")
}

/// The letter that made each sound.
pub(super) struct Letters {
    letters: [u8; 2 * WORD_LETTERS_MAX],
    length: usize,
}

impl Default for Letters {
    fn default() -> Self {
        Self { letters: [0; 2 * WORD_LETTERS_MAX], length: 0 }
    }
}

impl Letters {
    /// Sets the number of sounds to `length`. Added sounds come from `letter`.
    pub(super) fn resize(&mut self, length: usize, letter: u8) {
        if length > self.length {
            self.letters[self.length..length].fill(letter);
        }
        self.length = length;
    }

    pub(super) fn as_slice(&self) -> &[u8] {
        &self.letters[..self.length]
    }
}

/// Leaves exactly one primary stress, if there is a vowel. The rules judge letters one by one, and may set none or
/// several.
///
/// `letters` are the letters that made the sounds. A weak vowel that gets the stress becomes the full vowel of its
/// letter.
pub(super) fn settle_stress(sounds: &mut [Sound], letters: &[u8]) {
    let mut seen = false;
    for sound in sounds.iter_mut().filter(|sound| sound.stress == Stress::Primary) {
        if seen {
            sound.stress = Stress::Secondary;
        }
        seen = true;
    }
    if seen {
        return;
    }
    let full = |sound: &Sound| sound.is_vowel() && !matches!(sound.phone, Phone::AH | Phone::ER | Phone::IH);
    let at = sounds.iter().position(|sound| sound.stress == Stress::Secondary);
    let at = at.or_else(|| sounds.iter().position(full));
    let at = at.or_else(|| sounds.iter().position(|sound| sound.is_vowel()));
    let Some(at) = at else { return };
    if sounds[at].stress == Stress::None {
        sounds[at].phone = match (sounds[at].phone, letters[at]) {
            (Phone::AH | Phone::IH, b'e') => Phone::EH,
            (Phone::AH | Phone::IH, b'a') => Phone::AE,
            (Phone::AH, b'i' | b'y') => Phone::IH,
            (Phone::AH, b'o') => Phone::AA,
            (phone, _) => phone,
        };
    }
    sounds[at].stress = Stress::Primary;
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_letter_has_a_rule() {
        for letter in 'a'..='z' {
            assert!(dictionary::find(TEXT, &format!("({letter})")).is_some(), "{letter}");
        }
        assert!(TEXT.lines().is_sorted_by_key(|line| line.split(' ').next()));
    }

    proptest! {
        #[test]
        fn any_word_is_said_with_one_primary_stress(word in "[a-z]{1,80}") {
            let mut sounds = Vec::new();
            pronounce(&word, &mut sounds);
            let primary = sounds.iter().filter(|sound| sound.stress == Stress::Primary).count();
            prop_assert!(primary == usize::from(sounds.iter().any(|sound| sound.is_vowel())));
        }
    }
}
