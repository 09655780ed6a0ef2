//! Roman numerals behind names and headings. Elsewhere they could be words or initials.

use super::number::{self, word};

/// Names of rulers and popes: the numeral is read as "the eighth". Source: own list.
const RULERS: &[&str] = &[
    "Albert",
    "Alexander",
    "Benedict",
    "Boniface",
    "Carlos",
    "Catherine",
    "Charles",
    "Christian",
    "Clement",
    "Darius",
    "Edward",
    "Elizabeth",
    "Felipe",
    "Francis",
    "Frederick",
    "George",
    "Gregory",
    "Gustav",
    "Haakon",
    "Harald",
    "Henry",
    "Innocent",
    "Ivan",
    "James",
    "John",
    "Julius",
    "Leo",
    "Leopold",
    "Louis",
    "Mary",
    "Mehmed",
    "Napoleon",
    "Nicholas",
    "Otto",
    "Paul",
    "Peter",
    "Philip",
    "Pius",
    "Ptolemy",
    "Ramesses",
    "Ramses",
    "Richard",
    "Suleiman",
    "Urban",
    "Wilhelm",
    "William",
    "Xerxes",
];

/// Words behind which even a single letter is a numeral. Source: own list.
const HEADINGS: &[&str] = &[
    "Act", "Annex", "Appendix", "Article", "Book", "Chapter", "Class", "Episode", "Figure", "Grade", "Level",
    "Mark", "Part", "Phase", "Scene", "Section", "Stage", "Step", "Table", "Title", "Type", "Vol", "Volume",
    "War",
];

/// Reads `token` as a numeral if the word before it makes that safe.
pub(super) fn read(token: &str, before: &str, out: &mut String) -> bool {
    let Some(n) = value(token) else { return false };
    if RULERS.contains(&before) {
        // "James I said" is a speaker; the first of a name is too rare to read.
        if token.len() == 1 && n == 1 {
            return false;
        }
        word(out, "the");
        number::ordinal(out, n);
        return true;
    }
    let heading = HEADINGS.iter().any(|heading| heading.eq_ignore_ascii_case(before));
    let name = before.starts_with(char::is_uppercase) && token.len() > 1;
    if !heading && !name {
        return false;
    }
    number::cardinal(out, n);
    true
}

/// Returns the value of a well-formed numeral up to 89. Larger ones are rare, and their letters begin real acronyms.
fn value(token: &str) -> Option<u64> {
    let digit = |c| match c {
        'I' => Some(1),
        'V' => Some(5),
        'X' => Some(10),
        'L' => Some(50),
        _ => None,
    };
    let mut total = 0;
    let mut following = 0;
    for c in token.chars().rev() {
        let n: u64 = digit(c)?;
        if n < following {
            total -= n;
        } else {
            total += n;
            following = n;
        }
    }
    // A numeral is well formed if the value, written again, gives the same letters.
    let mut text = token;
    let mut rest = total;
    for (n, letters) in [(50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")] {
        while rest >= n {
            text = text.strip_prefix(letters)?;
            rest -= n;
        }
    }
    (total > 0 && text.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(token: &str, before: &str) -> String {
        let mut out = String::new();
        if read(token, before, &mut out) { out } else { token.to_owned() }
    }

    #[test]
    fn numerals() {
        assert_eq!(said("VIII", "Henry"), "the eighth");
        assert_eq!(said("II", "War"), "two");
        assert_eq!(said("IV", "chapter"), "four");
        assert_eq!(said("I", "James"), "I");
        assert_eq!(said("I", "and"), "I");
        assert_eq!(said("IV", "an"), "IV");
        assert_eq!(said("IIX", "Rocky"), "IIX");
        assert_eq!(said("XI", "Apollo"), "eleven");
    }
}
