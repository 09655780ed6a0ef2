//! Abbreviations that end in a full stop: what they say, and whether a sentence may end on them.
//!
//! Shared by the clause splitter (is this stop an end?) and by the normaliser (what is read?).

/// What a stop after an abbreviation can mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Always a part of the word: something follows (`Dr.`, `e.g.`).
    Inner,
    /// A part of the word before a number only (`No. 5`, `p. 12`); otherwise an ordinary end.
    BeforeNumber,
    /// May also end the sentence (`etc.`, `a.m.`, `Inc.`); the next word decides.
    MayEnd,
}

/// One row: the abbreviation without its last stop in lower case, its meaning, how it is read. An empty reading
/// means that the letters themselves are read.
struct Row(&'static str, Stop, &'static str);

/// Source: own list of what assistants write; `st` is read by its neighbours in the normaliser.
const ROWS: &[Row] = &[
    Row("a.d", Stop::MayEnd, "AD"),
    Row("a.k.a", Stop::Inner, "also known as"),
    Row("a.m", Stop::MayEnd, "AM"),
    Row("apr", Stop::Inner, "April"),
    Row("approx", Stop::Inner, "approximately"),
    Row("apt", Stop::BeforeNumber, "apartment"),
    Row("aug", Stop::Inner, "August"),
    Row("ave", Stop::MayEnd, "Avenue"),
    Row("b.c", Stop::MayEnd, "BC"),
    Row("blvd", Stop::MayEnd, "Boulevard"),
    Row("capt", Stop::Inner, "Captain"),
    Row("cf", Stop::Inner, "compare"),
    Row("ch", Stop::BeforeNumber, "chapter"),
    Row("co", Stop::MayEnd, "Company"),
    Row("col", Stop::Inner, "Colonel"),
    Row("corp", Stop::MayEnd, "Corporation"),
    Row("dec", Stop::Inner, "December"),
    Row("dept", Stop::MayEnd, "department"),
    Row("dr", Stop::Inner, "Doctor"),
    Row("e.g", Stop::Inner, "for example"),
    Row("ed", Stop::BeforeNumber, "edition"),
    Row("eq", Stop::BeforeNumber, "equation"),
    Row("esp", Stop::Inner, "especially"),
    Row("est", Stop::BeforeNumber, "established"),
    Row("et al", Stop::MayEnd, "and others"),
    Row("etc", Stop::MayEnd, "et cetera"),
    Row("feb", Stop::Inner, "February"),
    Row("fig", Stop::BeforeNumber, "figure"),
    Row("ft", Stop::Inner, "feet"),
    Row("gen", Stop::Inner, "General"),
    Row("gov", Stop::Inner, "Governor"),
    Row("hon", Stop::Inner, "Honorable"),
    Row("hr", Stop::MayEnd, "hour"),
    Row("hrs", Stop::MayEnd, "hours"),
    Row("i.e", Stop::Inner, "that is"),
    Row("inc", Stop::MayEnd, "Incorporated"),
    Row("jan", Stop::Inner, "January"),
    Row("jr", Stop::MayEnd, "Junior"),
    Row("jul", Stop::BeforeNumber, "July"),
    Row("jun", Stop::BeforeNumber, "June"),
    Row("lb", Stop::MayEnd, "pound"),
    Row("lbs", Stop::MayEnd, "pounds"),
    Row("lt", Stop::Inner, "Lieutenant"),
    Row("ltd", Stop::MayEnd, "Limited"),
    Row("maj", Stop::Inner, "Major"),
    Row("mar", Stop::BeforeNumber, "March"),
    Row("max", Stop::BeforeNumber, "maximum"),
    Row("min", Stop::MayEnd, "minutes"),
    Row("mr", Stop::Inner, "Mister"),
    Row("mrs", Stop::Inner, "Missus"),
    Row("ms", Stop::Inner, "Miz"),
    Row("mt", Stop::Inner, "Mount"),
    Row("no", Stop::BeforeNumber, "number"),
    Row("nos", Stop::BeforeNumber, "numbers"),
    Row("nov", Stop::Inner, "November"),
    Row("oct", Stop::Inner, "October"),
    Row("oz", Stop::MayEnd, "ounces"),
    Row("p", Stop::BeforeNumber, "page"),
    Row("p.m", Stop::MayEnd, "PM"),
    Row("p.s", Stop::Inner, "PS"),
    Row("ph.d", Stop::MayEnd, "PhD"),
    Row("pp", Stop::BeforeNumber, "pages"),
    Row("pres", Stop::Inner, "President"),
    Row("prof", Stop::Inner, "Professor"),
    Row("rep", Stop::Inner, "Representative"),
    Row("rev", Stop::Inner, "Reverend"),
    Row("sec", Stop::BeforeNumber, "section"),
    Row("sen", Stop::Inner, "Senator"),
    Row("sep", Stop::Inner, "September"),
    Row("sept", Stop::Inner, "September"),
    Row("sgt", Stop::Inner, "Sergeant"),
    Row("sq", Stop::Inner, "square"),
    Row("sr", Stop::MayEnd, "Senior"),
    Row("st", Stop::Inner, "Saint"),
    Row("tel", Stop::BeforeNumber, "telephone"),
    Row("u.k", Stop::MayEnd, "UK"),
    Row("u.s", Stop::MayEnd, "US"),
    Row("u.s.a", Stop::MayEnd, "USA"),
    Row("vol", Stop::BeforeNumber, "volume"),
    Row("vs", Stop::Inner, "versus"),
    // Two languages more whose numbers and abbreviations must survive the splitter; the voice reads English.
    Row("bzw", Stop::Inner, ""),
    Row("ca", Stop::Inner, "circa"),
    Row("d.h", Stop::Inner, ""),
    Row("mme", Stop::Inner, "Madame"),
    Row("nr", Stop::BeforeNumber, "number"),
    Row("p.ex", Stop::Inner, ""),
    Row("usw", Stop::MayEnd, ""),
    Row("z.b", Stop::Inner, ""),
];

/// The row of `word`, which has no final stop; any case, but titles, months and the like need their capital
/// ("takes 5 ms." is no lady).
fn row(word: &str) -> Option<&'static Row> {
    let row = ROWS.iter().find(|row| row.0.eq_ignore_ascii_case(word))?;
    let is_name = !row.0.contains('.') && row.2.starts_with(char::is_uppercase);
    (!is_name || word.starts_with(char::is_uppercase)).then_some(row)
}

/// What a stop after `word` means; `None` if `word` is no abbreviation. `word` comes without that stop.
pub(super) fn stop_after(word: &str) -> Option<Stop> {
    if let Some(row) = row(word) {
        // "sat." and "sun." end sentences more often than they shorten a name, so they are not rows; "No." and "Co."
        // are words of their own, told apart by what follows.
        return Some(row.1);
    }
    is_initials(word).then_some(Stop::MayEnd)
}

/// How `word` (without its final stop) is read; `None` if it is no abbreviation with a reading of its own.
pub(super) fn reading(word: &str) -> Option<&'static str> {
    row(word).map(|row| row.2).filter(|reading| !reading.is_empty())
}

/// Single letters with stops between them: `J`, `U.S.S.R`, `d.h`.
fn is_initials(word: &str) -> bool {
    let mut letters = 0;
    let mut single = true;
    for part in word.split('.') {
        let mut chars = part.chars();
        single &= chars.next().is_some_and(char::is_alphabetic) && chars.next().is_none();
        letters += 1;
    }
    single && (letters > 1 || word.chars().all(char::is_uppercase))
}

/// Words that begin a sentence when they have a capital and follow an abbreviation. Source: own list.
const STARTERS: &[&str] = &[
    "A", "After", "All", "Also", "Although", "An", "And", "Are", "As", "At", "Because", "Before", "But",
    "By", "Can", "Could", "Did", "Do", "Does", "Each", "Even", "Every", "First", "For", "From", "Have", "He",
    "Her", "Here", "His", "How", "However", "I", "I'd", "I'll", "I'm", "I've", "If", "In", "Is", "It",
    "It's", "Its", "Let", "Let's", "Many", "Maybe", "Most", "My", "Next", "No", "Not", "Now", "On", "One",
    "Or", "Our", "Please", "She", "She's", "Should", "Since", "So", "Some", "That", "That's", "The", "Their",
    "Then", "There", "There's", "These", "They", "They're", "This", "Those", "To", "Today", "We", "We'll",
    "We're", "Well", "What", "When", "Where", "Which", "While", "Who", "Why", "Will", "With", "Would", "Yes",
    "You", "You'll", "You're", "Your",
];

/// Longest of [`STARTERS`], bytes, and thus what must be seen of the next word to know it is one.
pub(super) const STARTER_BYTES_MAX: usize = 8;

/// Whether `word` is one that begins sentences.
pub(super) fn starts_sentence(word: &str) -> bool {
    STARTERS.binary_search(&word).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starters_are_sorted_and_short() {
        assert!(STARTERS.is_sorted());
        assert!(STARTERS.iter().all(|word| word.len() <= STARTER_BYTES_MAX));
    }

    #[test]
    fn stops() {
        assert_eq!(stop_after("Dr"), Some(Stop::Inner));
        assert_eq!(stop_after("U.S"), Some(Stop::MayEnd));
        assert_eq!(stop_after("J"), Some(Stop::MayEnd));
        assert_eq!(stop_after("N.A.T.O"), Some(Stop::MayEnd));
        assert_eq!(stop_after("No"), Some(Stop::BeforeNumber));
        assert_eq!(stop_after("a"), None, "a lower-case letter is a word");
        assert_eq!(stop_after("coat"), None);
        assert_eq!(stop_after("ms"), None);
        assert_eq!(stop_after(""), None);
    }
}
