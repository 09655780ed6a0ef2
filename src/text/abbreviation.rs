//! Abbreviations that end in a full stop: their readings, and the meaning of the stop.
//!
//! The clause splitter asks for the meaning of the stop, the normaliser also for the reading.

/// The meaning of a stop after an abbreviation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// Always a part of the word: something follows (`Dr.`, `e.g.`).
    Inner,
    /// A part of the word before a number only (`No. 5`, `p. 12`); otherwise an ordinary end.
    BeforeNumber,
    /// May also end the sentence (`etc.`, `a.m.`, `Inc.`); the next word decides.
    MayEnd,
}

/// One row: the abbreviation in lower case without its last stop, the meaning of that stop, the reading. An empty
/// reading means that the letters themselves are read.
struct Abbreviation(&'static str, Stop, &'static str);

/// Source: own list, from answers of assistants. The normaliser reads `st` by its neighbours.
const ABBREVIATIONS: &[Abbreviation] = &[
    Abbreviation("a.d", Stop::MayEnd, "AD"),
    Abbreviation("a.k.a", Stop::Inner, "also known as"),
    Abbreviation("a.m", Stop::MayEnd, "AM"),
    Abbreviation("apr", Stop::Inner, "April"),
    Abbreviation("approx", Stop::Inner, "approximately"),
    Abbreviation("apt", Stop::BeforeNumber, "apartment"),
    Abbreviation("aug", Stop::Inner, "August"),
    Abbreviation("ave", Stop::MayEnd, "Avenue"),
    Abbreviation("b.c", Stop::MayEnd, "BC"),
    Abbreviation("blvd", Stop::MayEnd, "Boulevard"),
    Abbreviation("capt", Stop::Inner, "Captain"),
    Abbreviation("cf", Stop::Inner, "compare"),
    Abbreviation("ch", Stop::BeforeNumber, "chapter"),
    Abbreviation("co", Stop::MayEnd, "Company"),
    Abbreviation("col", Stop::Inner, "Colonel"),
    Abbreviation("corp", Stop::MayEnd, "Corporation"),
    Abbreviation("dec", Stop::Inner, "December"),
    Abbreviation("dept", Stop::MayEnd, "department"),
    Abbreviation("dr", Stop::Inner, "Doctor"),
    Abbreviation("e.g", Stop::Inner, "for example"),
    Abbreviation("ed", Stop::BeforeNumber, "edition"),
    Abbreviation("eq", Stop::BeforeNumber, "equation"),
    Abbreviation("esp", Stop::Inner, "especially"),
    Abbreviation("est", Stop::BeforeNumber, "established"),
    Abbreviation("et al", Stop::MayEnd, "and others"),
    Abbreviation("etc", Stop::MayEnd, "et cetera"),
    Abbreviation("feb", Stop::Inner, "February"),
    Abbreviation("fig", Stop::BeforeNumber, "figure"),
    Abbreviation("ft", Stop::Inner, "feet"),
    Abbreviation("gen", Stop::Inner, "General"),
    Abbreviation("gov", Stop::Inner, "Governor"),
    Abbreviation("hon", Stop::Inner, "Honorable"),
    Abbreviation("hr", Stop::MayEnd, "hour"),
    Abbreviation("hrs", Stop::MayEnd, "hours"),
    Abbreviation("i.e", Stop::Inner, "that is"),
    Abbreviation("inc", Stop::MayEnd, "Incorporated"),
    Abbreviation("jan", Stop::Inner, "January"),
    Abbreviation("jr", Stop::MayEnd, "Junior"),
    Abbreviation("jul", Stop::BeforeNumber, "July"),
    Abbreviation("jun", Stop::BeforeNumber, "June"),
    Abbreviation("lb", Stop::MayEnd, "pound"),
    Abbreviation("lbs", Stop::MayEnd, "pounds"),
    Abbreviation("lt", Stop::Inner, "Lieutenant"),
    Abbreviation("ltd", Stop::MayEnd, "Limited"),
    Abbreviation("maj", Stop::Inner, "Major"),
    Abbreviation("mar", Stop::BeforeNumber, "March"),
    Abbreviation("max", Stop::BeforeNumber, "maximum"),
    Abbreviation("min", Stop::MayEnd, "minutes"),
    Abbreviation("mr", Stop::Inner, "Mister"),
    Abbreviation("mrs", Stop::Inner, "Missus"),
    Abbreviation("ms", Stop::Inner, "Miz"),
    Abbreviation("mt", Stop::Inner, "Mount"),
    Abbreviation("no", Stop::BeforeNumber, "number"),
    Abbreviation("nos", Stop::BeforeNumber, "numbers"),
    Abbreviation("nov", Stop::Inner, "November"),
    Abbreviation("oct", Stop::Inner, "October"),
    Abbreviation("oz", Stop::MayEnd, "ounces"),
    Abbreviation("p", Stop::BeforeNumber, "page"),
    Abbreviation("p.m", Stop::MayEnd, "PM"),
    Abbreviation("p.s", Stop::Inner, "PS"),
    Abbreviation("ph.d", Stop::MayEnd, "PhD"),
    Abbreviation("pp", Stop::BeforeNumber, "pages"),
    Abbreviation("pres", Stop::Inner, "President"),
    Abbreviation("prof", Stop::Inner, "Professor"),
    Abbreviation("rep", Stop::Inner, "Representative"),
    Abbreviation("rev", Stop::Inner, "Reverend"),
    Abbreviation("sec", Stop::BeforeNumber, "section"),
    Abbreviation("sen", Stop::Inner, "Senator"),
    Abbreviation("sep", Stop::Inner, "September"),
    Abbreviation("sept", Stop::Inner, "September"),
    Abbreviation("sgt", Stop::Inner, "Sergeant"),
    Abbreviation("sq", Stop::Inner, "square"),
    Abbreviation("sr", Stop::MayEnd, "Senior"),
    Abbreviation("st", Stop::Inner, "Saint"),
    Abbreviation("tel", Stop::BeforeNumber, "telephone"),
    Abbreviation("u.k", Stop::MayEnd, "UK"),
    Abbreviation("u.s", Stop::MayEnd, "US"),
    Abbreviation("u.s.a", Stop::MayEnd, "USA"),
    Abbreviation("vol", Stop::BeforeNumber, "volume"),
    Abbreviation("vs", Stop::Inner, "versus"),
    // German and French, which must survive the splitter; the voice reads English.
    Abbreviation("bzw", Stop::Inner, ""),
    Abbreviation("ca", Stop::Inner, "circa"),
    Abbreviation("d.h", Stop::Inner, ""),
    Abbreviation("mme", Stop::Inner, "Madame"),
    Abbreviation("nr", Stop::BeforeNumber, "number"),
    Abbreviation("p.ex", Stop::Inner, ""),
    Abbreviation("usw", Stop::MayEnd, ""),
    Abbreviation("z.b", Stop::Inner, ""),
];

/// Returns the row of `word`, which comes without its final stop.
///
/// Case does not count, except that titles, months and the like need their capital: "5 ms." is no title.
fn row(word: &str) -> Option<&'static Abbreviation> {
    let row = ABBREVIATIONS.iter().find(|row| row.0.eq_ignore_ascii_case(word))?;
    let is_name = !row.0.contains('.') && row.2.starts_with(char::is_uppercase);
    (!is_name || word.starts_with(char::is_uppercase)).then_some(row)
}

/// Returns the meaning of a stop after `word`; `None` if `word` is no abbreviation. `word` comes without that stop.
pub(super) fn stop_after(word: &str) -> Option<Stop> {
    if let Some(row) = row(word) {
        // "sat." and "sun." end sentences more often than they shorten a name, so they are not rows. "No." and "Co."
        // are words of their own; the text behind decides.
        return Some(row.1);
    }
    is_initials(word).then_some(Stop::MayEnd)
}

/// Returns the reading of `word`, which comes without its final stop; `None` if there is no row with a reading.
pub(super) fn reading(word: &str) -> Option<&'static str> {
    row(word).map(|row| row.2).filter(|reading| !reading.is_empty())
}

/// Returns true for single letters with stops between them: `J`, `U.S.S.R`, `d.h`.
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

/// Longest of [`STARTERS`], bytes; thus as much of the next word must be seen to recognise a starter.
pub(super) const STARTER_BYTES_MAX: usize = 8;

/// Returns true if `word` is one of [`STARTERS`].
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
