//! The count of wrong words in a transcript, for tests of speech and benches.

use super::normalise;
use unicode_normalization::UnicodeNormalization as _;

/// Spellings that sound alike and mean the same, each with the spelling that stands for both.
const SAME: &[(&str, &str)] = &[
    ("alright", "allright"),
    ("centre", "center"),
    ("colour", "color"),
    ("grey", "gray"),
    ("mom", "mum"),
    ("ok", "okay"),
    ("programme", "program"),
    ("theatre", "theater"),
    ("tonight", "tonite"),
    ("traveller", "traveler"),
];

/// Most words of one side that may be joined to one word of the other.
const JOIN_MAX: usize = 3;

/// The result of a comparison. The sum over sentences gives the rate of a corpus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WordErrors {
    /// Words substituted, left out or put in.
    pub errors: u32,
    /// Words of the reference.
    pub words: u32,
}

impl WordErrors {
    /// Returns the errors per word of the reference; 0 for an empty reference without errors, 1 with.
    #[must_use]
    pub fn rate(self) -> f64 {
        if self.words == 0 {
            f64::from(self.errors.min(1))
        } else {
            f64::from(self.errors) / f64::from(self.words)
        }
    }
}

impl std::ops::Add for WordErrors {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { errors: self.errors + other.errors, words: self.words + other.words }
    }
}

impl std::ops::AddAssign for WordErrors {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl std::iter::Sum for WordErrors {
    fn sum<I: Iterator<Item = Self>>(items: I) -> Self {
        items.fold(Self::default(), |sum, item| sum + item)
    }
}

/// Compares `hypothesis`, a transcript, with `reference`, the words that were spoken.
///
/// Both texts are normalised first, so that only audible differences count:
/// - case, punctuation, apostrophes, hyphens and accents do not count;
/// - numbers, signs and abbreviations count as the words that [`normalise()`] reads them as: "3:45 PM" is "three forty
///   five p m";
/// - letters that are spelled are one word: "F B I", "F.B.I." and "FBI" are alike;
/// - a compound may be written in up to three words: "to day", "back yard";
/// - a few spellings are alike (`SAME`).
#[must_use]
pub fn word_errors(reference: &str, hypothesis: &str) -> WordErrors {
    let reference = plain_words(reference);
    let hypothesis = plain_words(hypothesis);
    let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
    WordErrors { errors: count(distance(&reference, &hypothesis)), words: count(reference.len()) }
}

/// Returns the words of `text` in the form in which they are compared.
fn plain_words(text: &str) -> Vec<String> {
    let mut read = String::new();
    normalise(text, &mut read);
    let mut words: Vec<String> = Vec::new();
    let mut spelled = false;
    for word in read.split(|c: char| c.is_whitespace() || c == '-') {
        let letters: String =
            word.nfd().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect();
        if letters.is_empty() {
            continue;
        }
        // "F B Is": a letter with a plural s goes on with the letters before it. "I" and "a" stay words of their own
        // unless they stand in a row.
        let is_letter =
            letters.len() == 1 && word != "a" || spelled && letters.len() == 2 && letters.ends_with('s');
        match words.last_mut() {
            Some(last) if is_letter && spelled => last.push_str(&letters),
            _ => {
                let same = SAME.iter().find(|(spelling, _)| *spelling == letters);
                words.push(same.map_or(letters, |(_, other)| (*other).to_owned()));
            }
        }
        spelled = is_letter;
    }
    words
}

/// Returns the number of edits between two lists of words. A word may stand for up to [`JOIN_MAX`] with the same
/// letters.
fn distance(reference: &[String], hypothesis: &[String]) -> usize {
    let mut costs = vec![vec![usize::MAX; hypothesis.len() + 1]; reference.len() + 1];
    costs[0][0] = 0;
    for i in 0..=reference.len() {
        for j in 0..=hypothesis.len() {
            let cost = costs[i][j];
            let mut step = |di: usize, dj: usize, extra: usize| {
                if i + di <= reference.len() && j + dj <= hypothesis.len() {
                    let cell = &mut costs[i + di][j + dj];
                    *cell = (*cell).min(cost + extra);
                }
            };
            step(1, 0, 1);
            step(0, 1, 1);
            if i < reference.len() && j < hypothesis.len() {
                step(1, 1, usize::from(reference[i] != hypothesis[j]));
            }
            for n in 2..=JOIN_MAX {
                if reference
                    .get(i..i + n)
                    .is_some_and(|words| hypothesis.get(j).is_some_and(|one| words.concat() == *one))
                {
                    step(n, 1, 0);
                }
                if hypothesis
                    .get(j..j + n)
                    .is_some_and(|words| reference.get(i).is_some_and(|one| words.concat() == *one))
                {
                    step(1, n, 0);
                }
            }
        }
    }
    costs[reference.len()][hypothesis.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn errors(reference: &str, hypothesis: &str) -> u32 {
        word_errors(reference, hypothesis).errors
    }

    #[test]
    fn what_cannot_be_heard_does_not_count() {
        for (reference, hypothesis) in [
            ("Hello, world!", "hello world"),
            ("it is three forty five", "It is 3:45."),
            ("twenty five percent of it", "25% of it"),
            ("the F B I and its I Ds", "The FBI and its IDs."),
            ("the USA", "the U.S.A."),
            ("back yard to day", "backyard today"),
            ("a well-known cafe", "A well known café"),
            ("doctor smith", "Dr. Smith"),
            ("okay that's it", "OK, thats it."),
            ("I am A B C", "I am ABC"),
        ] {
            assert_eq!(errors(reference, hypothesis), 0, "{reference} | {hypothesis}");
        }
    }

    #[test]
    fn errors_are_counted() {
        assert_eq!(word_errors("one two three", "one too three four"), WordErrors { errors: 2, words: 3 });
        assert_eq!(errors("one two three", ""), 3);
        assert_eq!(errors("", "one"), 1);
        let sum: WordErrors = [word_errors("a b", "a b"), word_errors("yes no", "yes yes")].into_iter().sum();
        assert_eq!(sum, WordErrors { errors: 1, words: 4 });
        assert!((sum.rate() - 0.25).abs() < 1e-9);
        assert_eq!(WordErrors::default().rate(), 0.0);
    }

    proptest! {
        #[test]
        fn a_text_equals_itself_and_all_words_can_be_wrong(text in "[a-z ]{0,40}", other in "\\PC{0,40}") {
            prop_assert_eq!(errors(&text, &text), 0);
            let WordErrors { errors, words } = word_errors(&text, &other);
            prop_assert!(errors as usize <= (words as usize).max(plain_words(&other).len()));
        }
    }
}
