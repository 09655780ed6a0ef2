//! Words that the dictionary lacks: endings, beginnings, compounds, letter-to-sound rules, letters.

use super::exception;
use super::letter_rule;
use super::phone::{self, Phone, Sound, Stress};
use super::{dictionary, phone::Phone::AH};

/// Shortest part of a compound, letters. Shorter words fit into almost any word.
const PART_LETTERS_MIN: usize = 3;

/// Names of the letters in ARPAbet, `a` to `z`.
#[rustfmt::skip]
const LETTERS: [&str; 26] = [
    "EY1", "B IY1", "S IY1", "D IY1", "IY1", "EH1 F", "JH IY1", "EY1 CH", "AY1", "JH EY1", "K EY1", "EH1 L", "EH1 M",
    "EH1 N", "OW1", "P IY1", "K Y UW1", "AA1 R", "EH1 S", "T IY1", "Y UW1", "V IY1", "D AH1 B AH0 L Y UW0", "EH1 K S",
    "W AY1", "Z IY1",
];

/// Beginnings that leave the rest of the word as it is, and their sounds.
const PREFIXES: &[(&str, &str)] = &[
    ("anti", "AE2 N T IY0"),
    ("auto", "AO2 T OW0"),
    ("bio", "B AY2 OW0"),
    ("counter", "K AW2 N T ER0"),
    ("cyber", "S AY2 B ER0"),
    ("de", "D IY0"),
    ("dis", "D IH0 S"),
    ("hyper", "HH AY2 P ER0"),
    ("inter", "IH2 N T ER0"),
    ("macro", "M AE2 K R OW0"),
    ("mega", "M EH2 G AH0"),
    ("micro", "M AY2 K R OW0"),
    ("mid", "M IH2 D"),
    ("mini", "M IH2 N IY0"),
    ("mis", "M IH0 S"),
    ("mono", "M AA2 N OW0"),
    ("multi", "M AH2 L T IY0"),
    ("nano", "N AE2 N OW0"),
    ("neuro", "N UH2 R OW0"),
    ("non", "N AA2 N"),
    ("out", "AW2 T"),
    ("over", "OW2 V ER0"),
    ("photo", "F OW2 T OW0"),
    ("poly", "P AA2 L IY0"),
    ("post", "P OW2 S T"),
    ("pre", "P R IY2"),
    ("pro", "P R OW2"),
    ("pseudo", "S UW2 D OW0"),
    ("re", "R IY0"),
    ("semi", "S EH2 M IY0"),
    ("sub", "S AH2 B"),
    ("super", "S UW2 P ER0"),
    ("techno", "T EH2 K N OW0"),
    ("tele", "T EH2 L AH0"),
    ("thermo", "TH ER2 M OW0"),
    ("trans", "T R AE2 N Z"),
    ("tri", "T R AY2"),
    ("ultra", "AH2 L T R AH0"),
    ("un", "AH0 N"),
    ("under", "AH2 N D ER0"),
    ("uni", "Y UW2 N AH0"),
    ("up", "AH2 P"),
];

/// Endings that leave the stress where it is, and their sounds.
const SUFFIXES: &[(&str, &str)] = &[
    ("ability", "AH0 B IH1 L AH0 T IY0"),
    ("able", "AH0 B AH0 L"),
    ("ably", "AH0 B L IY0"),
    ("al", "AH0 L"),
    ("ally", "AH0 L IY0"),
    ("dom", "D AH0 M"),
    ("er", "ER0"),
    ("ers", "ER0 Z"),
    ("est", "AH0 S T"),
    ("ful", "F AH0 L"),
    ("fully", "F AH0 L IY0"),
    ("hood", "HH UH2 D"),
    ("ie", "IY0"),
    ("ing", "IH0 NG"),
    ("ings", "IH0 NG Z"),
    ("ish", "IH0 SH"),
    ("ism", "IH2 Z AH0 M"),
    ("ist", "AH0 S T"),
    ("ists", "AH0 S T S"),
    ("ization", "AH0 Z EY1 SH AH0 N"),
    ("izations", "AH0 Z EY1 SH AH0 N Z"),
    ("ize", "AY2 Z"),
    ("ized", "AY2 Z D"),
    ("izer", "AY2 Z ER0"),
    ("izing", "AY2 Z IH0 NG"),
    ("less", "L AH0 S"),
    ("like", "L AY2 K"),
    ("ly", "L IY0"),
    ("man", "M AH0 N"),
    ("men", "M EH0 N"),
    ("ment", "M AH0 N T"),
    ("ments", "M AH0 N T S"),
    ("ness", "N AH0 S"),
    ("or", "ER0"),
    ("ship", "SH IH2 P"),
    ("some", "S AH0 M"),
    ("ward", "W ER0 D"),
    ("wards", "W ER0 D Z"),
    ("wise", "W AY2 Z"),
    ("y", "IY0"),
];

/// The way in which a word was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordReading {
    /// Read as a word.
    Word,
    /// Read by the names of its letters.
    Spelled,
}

/// Appends the sounds of any `word` of lower-case letters a to z and apostrophes.
///
/// `is_name` is true if the word has a capital. Names may begin as English words do not ("Zbigniew"). Other words with
/// such a beginning are abbreviations ("fnmatch").
pub(super) fn pronounce(word: &str, is_name: bool, out: &mut Vec<Sound>) -> WordReading {
    if known(word, out) {
        return WordReading::Word;
    }
    let mut letters = word.trim_matches('\'');
    let start = out.len();
    loop {
        if !letters.contains(['a', 'e', 'i', 'o', 'u', 'y']) {
            out.truncate(start);
            return spell(word, out);
        }
        let rest = out.len();
        // "cpython": once a letter has been split off, the rest may be a word.
        if rest > start && known(letters, out) || compound(letters, out) {
            return WordReading::Word;
        }
        letter_rule::pronounce(letters, out);
        if !out[rest..].iter().any(|sound| sound.is_vowel()) {
            out.truncate(start);
            return spell(word, out);
        }
        if is_name || begins_well(&out[rest..]) {
            return WordReading::Word;
        }
        out.truncate(rest);
        spell(&letters[..1], out);
        letters = &letters[1..];
    }
}

/// Returns true if English words begin with the consonants at the start of `sounds`.
fn begins_well(sounds: &[Sound]) -> bool {
    use Phone::{B, D, F, G, HH, K, L, M, N, P, R, S, SH, T, TH, V, W, Y};
    let count = sounds.iter().take_while(|sound| !sound.is_vowel()).count();
    let at = |at: usize| sounds[at].phone;
    match count {
        0 | 1 => true,
        2 => match at(1) {
            L => matches!(at(0), P | B | K | G | F | S | SH | V),
            R => matches!(at(0), P | B | T | D | K | G | F | TH | SH | V),
            W => matches!(at(0), T | D | K | G | S | TH | SH),
            Y => matches!(at(0), P | B | K | F | V | M | N | HH | T | D | L | S),
            P | T | K | M | N | F => matches!(at(0), S | SH),
            _ => false,
        },
        3 => at(0) == S && matches!(at(1), P | T | K) && matches!(at(2), L | R | W | Y),
        _ => false,
    }
}

/// Appends the names of the letters of `word`; the last one carries the stress: "ˌɛfbˌiːˈaɪ".
pub(super) fn spell(word: &str, out: &mut Vec<Sound>) -> WordReading {
    let mut last = out.len();
    for letter in word.bytes().filter(u8::is_ascii_lowercase) {
        out[last..]
            .iter_mut()
            .filter(|sound| sound.is_stressed())
            .for_each(|sound| sound.stress = Stress::Secondary);
        last = out.len();
        phone::append(LETTERS[usize::from(letter - b'a')], out);
    }
    WordReading::Spelled
}

/// Appends the sounds of a word of the dictionary, or of one with a known beginning or ending. Returns false and leaves
/// `out` unchanged for any other word.
fn known(word: &str, out: &mut Vec<Sound>) -> bool {
    if listed(word, out) {
        return true;
    }
    let start = out.len();
    if inflected(word, out) || suffixed(word, out) {
        return true;
    }
    for (prefix, sounds) in PREFIXES {
        let Some(rest) = word.strip_prefix(prefix).filter(|rest| rest.len() > PART_LETTERS_MIN) else {
            continue;
        };
        phone::append(sounds, out);
        if listed(rest, out) || inflected(rest, out) || suffixed(rest, out) {
            return true;
        }
        out.truncate(start);
    }
    false
}

/// Appends the sounds of a word of our own list or of the dictionary; returns false for any other word.
pub(super) fn listed(word: &str, out: &mut Vec<Sound>) -> bool {
    if let Some(arpabet) = exception::find(word) {
        phone::append(arpabet, out);
        return true;
    }
    dictionary::look_up(word, out)
}

/// Appends the sounds of the base word of `stem`: `stem` itself, with an e, with one of two like consonants, or with y
/// for i. Returns false if none of them is listed.
fn base(stem: &str, out: &mut Vec<Sound>) -> bool {
    if stem.len() < PART_LETTERS_MIN {
        return false;
    }
    let bytes = stem.as_bytes();
    let last = bytes[bytes.len() - 1];
    let doubled = bytes[bytes.len() - 2] == last && !b"aeiousl".contains(&last);
    let mut buffer = [0_u8; 48];
    let mut with = |stem: &str, end: &str, out: &mut Vec<Sound>| {
        let length = stem.len() + end.len();
        let Some(word) = buffer.get_mut(..length) else { return false };
        word[..stem.len()].copy_from_slice(stem.as_bytes());
        word[stem.len()..].copy_from_slice(end.as_bytes());
        std::str::from_utf8(word).is_ok_and(|word| listed(word, out))
    };
    // "writable" is from "write": "writ" would have doubled its t.
    let is_vowel = |at: usize| stem.len() >= at && b"aeiou".contains(&bytes[stem.len() - at]);
    let silent_e = !is_vowel(1) && is_vowel(2) && !is_vowel(3);
    doubled && listed(&stem[..stem.len() - 1], out)
        || last == b'i' && with(&stem[..stem.len() - 1], "y", out)
        || silent_e && with(stem, "e", out)
        || listed(stem, out)
        || with(stem, "e", out)
}

/// Appends the sounds of a plural, a possessive or a past form; returns false for any other word.
fn inflected(word: &str, out: &mut Vec<Sound>) -> bool {
    for ending in ["'s", "s'", "s"] {
        let Some(stem) = word.strip_suffix(ending) else { continue };
        if stem.len() < PART_LETTERS_MIN || stem.ends_with('s') && ending == "s" {
            continue;
        }
        let found = listed(stem, out)
            || suffixed(stem, out)
            || stem.strip_suffix("ie").is_some_and(|stem| base_in_y(stem, out))
            || stem.strip_suffix('e').is_some_and(|stem| stem.len() >= PART_LETTERS_MIN && listed(stem, out));
        if found {
            plural(out);
            return true;
        }
    }
    if let Some(stem) = word.strip_suffix("ed")
        && (base(stem, out) || suffixed(stem, out))
    {
        past(out);
        return true;
    }
    if let Some(stem) =
        word.strip_suffix("'d").or_else(|| word.strip_suffix("'ll")).or_else(|| word.strip_suffix("'ve"))
        && listed(stem, out)
    {
        phone::append(
            if word.ends_with('d') {
                "D"
            } else if word.ends_with('l') {
                "AH0 L"
            } else {
                "AH0 V"
            },
            out,
        );
        return true;
    }
    false
}

fn base_in_y(stem: &str, out: &mut Vec<Sound>) -> bool {
    let mut buffer = [0_u8; 48];
    let Some(word) = buffer.get_mut(..=stem.len()) else { return false };
    word[..stem.len()].copy_from_slice(stem.as_bytes());
    word[stem.len()] = b'y';
    std::str::from_utf8(word).is_ok_and(|word| listed(word, out))
}

/// Appends the sound of a plural s.
pub(super) fn plural(out: &mut Vec<Sound>) {
    match out.last().map(|sound| sound.phone) {
        Some(last) if last.is_sibilant() => phone::append("IH0 Z", out),
        Some(last) if last.is_voiceless() => phone::append("S", out),
        _ => phone::append("Z", out),
    }
}

/// Appends the sound of a past -ed.
fn past(out: &mut Vec<Sound>) {
    match out.last().map(|sound| sound.phone) {
        Some(Phone::T | Phone::D) => phone::append("IH0 D", out),
        Some(last) if last.is_voiceless() => phone::append("T", out),
        _ => phone::append("D", out),
    }
}

/// Appends the sounds of a base word and one of [`SUFFIXES`]; returns false for any other word.
fn suffixed(word: &str, out: &mut Vec<Sound>) -> bool {
    for (suffix, sounds) in SUFFIXES {
        let Some(stem) = word.strip_suffix(suffix) else { continue };
        if !base(stem, out) {
            continue;
        }
        // "simple" and "ly" share one l, and the schwa before it goes.
        if suffix.starts_with("ly") && out.ends_with(&[Sound::plain(AH), Sound::plain(Phone::L)]) {
            out.truncate(out.len() - 2);
        }
        phone::append(sounds, out);
        return true;
    }
    false
}

/// Appends the sounds of two words of the dictionary written as one; the second part loses its stress to the first.
fn compound(word: &str, out: &mut Vec<Sound>) -> bool {
    let longest = word.len().saturating_sub(PART_LETTERS_MIN);
    // The most even split wins: accidents such as "flim berwick" have one short part.
    let best = (PART_LETTERS_MIN..=longest)
        .rev() // of two, "name space" rather than "names pace"
        .filter(|&at| is_part(&word[..at]) && is_part(&word[at..]))
        .max_by_key(|&at| {
            // "name spaces" rather than "names paces"
            let borrowed = word[..at].ends_with('s') && is_part(&word[..at - 1]) && is_part(&word[at - 1..]);
            at.min(word.len() - at).saturating_sub(if borrowed { 2 } else { 0 })
        });
    let Some(at) = best else { return false };
    let start = out.len();
    if !listed(&word[..at], out) {
        return false;
    }
    let middle = out.len();
    if !listed(&word[at..], out) && !inflected(&word[at..], out) {
        out.truncate(start);
        return false;
    }
    for sound in &mut out[middle..] {
        sound.stress = if sound.stress == Stress::Primary { Stress::Secondary } else { Stress::None };
    }
    true
}

/// Returns true if `part` can be one half of a compound: in the dictionary, with a vowel, and not only a surname's
/// ending.
fn is_part(part: &str) -> bool {
    let letters = part.chars().any(|c| "aeiouy".contains(c)) && !part.contains('\'');
    letters
        && (part.len() > PART_LETTERS_MIN || SHORT_PARTS.contains(&part))
        && (dictionary::has(part) || exception::find(part).is_some())
}

/// Words of three letters that make compounds. Source: own list; the dictionary's other short words are mostly names.
const SHORT_PARTS: &[&str] = &[
    "air", "all", "arm", "bag", "bar", "bed", "bee", "big", "bit", "bot", "box", "bug", "bus", "cab", "cam",
    "cap", "car", "cat", "cup", "cut", "day", "dog", "dry", "ear", "egg", "end", "eye", "fan", "fly", "fox",
    "fun", "gas", "god", "gun", "hat", "hot", "hub", "ice", "ink", "jet", "job", "key", "kit", "lab", "law",
    "leg", "lip", "lit", "log", "low", "man", "map", "mud", "net", "new", "nut", "off", "oil", "old", "one",
    "out", "pad", "pan", "pay", "pen", "pet", "pie", "pig", "pin", "pop", "pot", "raw", "red", "rib", "run",
    "sea", "set", "sky", "sub", "sun", "tap", "tax", "tea", "tip", "toe", "top", "toy", "two", "van", "war",
    "way", "web", "wet", "win", "zip",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn said(word: &str) -> String {
        let mut sounds = Vec::new();
        pronounce(word, false, &mut sounds);
        let mut out = String::new();
        for sound in sounds {
            if !out.is_empty() {
                out.push(' ');
            }
            sound.write(&mut out);
        }
        out
    }

    #[test]
    fn tables_are_readable() {
        let mut sounds = Vec::new();
        for text in LETTERS.iter().copied().chain(PREFIXES.iter().chain(SUFFIXES).map(|row| row.1)) {
            phone::append(text, &mut sounds);
        }
        assert!(sounds.iter().any(|sound| sound.is_stressed()));
        assert!(SHORT_PARTS.iter().all(|part| dictionary::has(part) || exception::find(part).is_some()));
    }

    #[test]
    fn chain() {
        for (word, arpabet) in [
            ("tomatoey", "T AH0 M EY1 T OW0 IY0"),
            ("reindexed", "R IY0 IH1 N D EH0 K S T"),
            ("jumpable", "JH AH1 M P AH0 B AH0 L"),
            ("blogged", "B L AO1 G D"),
            ("wizard's", "W IH1 Z ER0 D Z"),
            ("namespace", "N EY1 M S P EY2 S"),
            ("writable", "R AY1 T AH0 B AH0 L"),
            ("candlelit", "K AE1 N D AH0 L L IH2 T"),
            ("cpython", "S IY1 P AY1 TH AA0 N"),
            ("xptr", "EH2 K S P IY2 T IY2 AA1 R"),
            ("teacup", "T IY1 K AH2 P"),
            ("bcd", "B IY2 S IY2 D IY1"),
            ("unfriendable", "AH0 N F R EH1 N D AH0 B AH0 L"),
        ] {
            assert_eq!(said(word), arpabet, "{word}");
        }
    }
}
