//! Words that the dictionary lacks, or whose common reading is not the dictionary's.

use super::dictionary;

/// One row per line: a word, a space, its pronunciation in ARPAbet; sorted.
///
/// # Source
/// Own list: product and technical names as their makers say them, and corrections to first entries of the dictionary.
const TEXT: &str = include_str!("exception.txt");

/// Returns the pronunciation of `word` (lower case).
pub(super) fn find(word: &str) -> Option<&'static str> {
    dictionary::find(TEXT, word)
}

#[cfg(test)]
mod tests {
    use super::super::phone;
    use super::*;

    #[test]
    fn rows_are_sorted_and_readable() {
        assert!(TEXT.lines().is_sorted());
        let mut sounds = Vec::new();
        for line in TEXT.lines() {
            let (word, arpabet) = line.split_once(' ').expect("a word and its pronunciation");
            phone::append(arpabet, &mut sounds);
            assert_eq!(find(word), Some(arpabet));
        }
    }
}
