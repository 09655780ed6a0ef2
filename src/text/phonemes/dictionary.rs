//! The CMU Pronouncing Dictionary, searched in place in the binary.
//!
//! The text is sorted, so a look-up is a binary search over it: nothing to parse at start, no heap, no lock. All
//! threads share the text. Of its 3.4 MB only the pages that a search has touched are in memory.

use super::phone::{self, Sound};

/// One word per line, in lower case, a space, its first pronunciation in ARPAbet; sorted by byte value.
///
/// # Source
/// The CMU Pronouncing Dictionary as the crate `cmudict-fast` 0.8.0 carries it (`resources/cmudict.dict`, SHA-256
/// `59d6398f55297e59afb2ca3276380827524c0940fcbbfcd19022bb76fd55f719`), without comments and further pronunciations:
/// `sed 's/ *#.*//' cmudict.dict | grep -v '^[^ ]*(' | LC_ALL=C sort`. Its licence is `cmudict.LICENSE` beside it.
pub(super) const TEXT: &str = include_str!("cmudict.txt");

/// Appends the pronunciation of `word` (lower case); returns `false` if the dictionary lacks `word`.
pub(super) fn look_up(word: &str, out: &mut Vec<Sound>) -> bool {
    match find(TEXT, word) {
        Some(arpabet) => {
            phone::append(arpabet, out);
            true
        }
        None => false,
    }
}

/// Returns true if the dictionary has `word` (lower case).
pub(super) fn has(word: &str) -> bool {
    find(TEXT, word).is_some()
}

/// Returns the rest of the line that begins with `key` and a space. The lines of `text` are sorted by their first
/// field.
pub(super) fn find<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    let bytes = text.as_bytes();
    let (mut low, mut high) = (0, bytes.len());
    while low < high {
        let middle = low.midpoint(high);
        let start = bytes[low..middle].iter().rposition(|&b| b == b'\n').map_or(low, |at| low + at + 1);
        let end = bytes[middle..].iter().position(|&b| b == b'\n').map_or(bytes.len(), |at| middle + at);
        let line = &text[start..end];
        let (word, value) = line.split_once(' ').unwrap_or((line, ""));
        match word.cmp(key) {
            std::cmp::Ordering::Less => low = (end + 1).min(high),
            std::cmp::Ordering::Greater => high = start,
            std::cmp::Ordering::Equal => return Some(value),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_found_and_read() {
        let mut sounds = Vec::new();
        for line in TEXT.lines() {
            let (word, arpabet) = line.split_once(' ').expect("a word and its pronunciation");
            assert_eq!(find(TEXT, word), Some(arpabet), "{word}");
            sounds.clear();
            phone::append(arpabet, &mut sounds);
            assert!(!sounds.is_empty());
        }
        for word in ["", "!", "aardvarkk", "zzzzz", "é", "a b"] {
            assert_eq!(find(TEXT, word), None, "{word}");
        }
    }
}
