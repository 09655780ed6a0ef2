//! Word errors between two texts, as speech recognition counts them.

/// What became of the words of a reference text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct WordErrors {
    /// Words replaced, left out or put in.
    pub(crate) errors: usize,
    /// Words of the reference.
    pub(crate) words: usize,
}

impl WordErrors {
    pub(crate) fn rate(self) -> f64 {
        self.errors as f64 / self.words.max(1) as f64
    }
}

impl std::ops::AddAssign for WordErrors {
    fn add_assign(&mut self, other: Self) {
        self.errors += other.errors;
        self.words += other.words;
    }
}

/// The fewest word edits that turn `reference` into `heard`; case, punctuation and how numbers and titles are written
/// do not count.
pub(crate) fn word_errors(reference: &str, heard: &str) -> WordErrors {
    let (reference, heard) = (words(reference), words(heard));
    let mut row: Vec<usize> = (0..=heard.len()).collect();
    for (i, expected) in reference.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, found) in heard.iter().enumerate() {
            let replaced = diagonal + usize::from(expected != found);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    WordErrors { errors: row[heard.len()], words: reference.len() }
}

fn words(text: &str) -> Vec<String> {
    let text = text.to_lowercase().replace(['’', '\''], "");
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    parts.flat_map(spelled).map(str::to_owned).collect()
}

/// A recogniser writes numbers as digits and titles short; the references have them as they are spoken.
fn spelled(word: &str) -> Vec<&str> {
    const ONES: [&str; 20] = [
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "thirteen",
        "fourteen",
        "fifteen",
        "sixteen",
        "seventeen",
        "eighteen",
        "nineteen",
    ];
    const TENS: [&str; 10] =
        ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    match (word, word.parse::<usize>()) {
        ("mr", _) => vec!["mister"],
        ("dr", _) => vec!["doctor"],
        (_, Ok(number @ 0..20)) => vec![ONES[number]],
        (_, Ok(number @ 20..100)) if number % 10 == 0 => vec![TENS[number / 10]],
        (_, Ok(number @ 20..100)) => vec![TENS[number / 10], ONES[number % 10]],
        _ => vec![word],
    }
}

#[test]
fn edits_are_counted_and_spelling_is_not() {
    let of = |reference, heard| word_errors(reference, heard).errors;
    assert_eq!(word_errors("ten of clubs", "10 of Clubs."), WordErrors { errors: 0, words: 3 });
    assert_eq!(of("mister ill disposed", "Mr. ill-disposed"), 0);
    assert_eq!(of("twenty one", "21"), 0);
    assert_eq!(of("a b c d", "a x c d"), 1);
    assert_eq!(of("a b c d", "b c d e"), 2);
    assert_eq!(of("a b", ""), 2);
    assert_eq!(of("", "a b c"), 3);
}
