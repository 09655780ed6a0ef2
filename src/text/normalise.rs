//! Numbers, signs and abbreviations in English words.
//!
//! One pass over the tokens between white space; each token is judged with its two neighbours. The pass runs on the
//! stage threads of TTS, so it has no regular expressions and no heap call of its own.

use super::abbreviation::{self, Stop};
use super::around::Around;
use super::number::word;
use super::{amount, measure, roman, spelling};

/// Writes `text` into `out`, which is cleared first, with numbers, signs and abbreviations in words.
///
/// Letters to be read by their names come out as single capitals between spaces. The punctuation `, . ! ? ; :` stays.
pub fn normalise(text: &str, out: &mut String) {
    out.clear();
    let mut before = "";
    let mut rest = text;
    while let Some((raw, tail)) = next_token(rest) {
        if let Some(words) = spelling::operator(raw) {
            word(out, words);
            before = raw;
            rest = tail;
            continue;
        }
        let token = Token::new(raw);
        let after = next_token(tail).map_or("", |(raw, _)| Token::new(raw).core);
        let around = Around { before, after: if token.stops() || token.ends_with(',') { "" } else { after } };
        let last = tail.trim().is_empty();
        let took_next = token.read(around, last, out);
        before = if token.stops() { "" } else { token.core };
        rest = tail;
        if took_next {
            let (raw, tail) = next_token(tail).expect("the reader saw it");
            let unit = Token::new(raw);
            unit.close(true, out);
            before = if unit.stops() { "" } else { unit.core };
            rest = tail;
        }
    }
}

/// Returns the next stretch without white space, and the text behind it.
fn next_token(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start();
    if text.is_empty() {
        return None;
    }
    Some(text.split_at(text.find(char::is_whitespace).unwrap_or(text.len())))
}

/// A token and the punctuation that clings to it.
struct Token<'a> {
    core: &'a str,
    /// The punctuation behind `core`: stops, commas, brackets, quotes.
    tail: &'a str,
}

impl<'a> Token<'a> {
    fn new(raw: &'a str) -> Self {
        let raw = raw.trim_start_matches(['(', '[', '{', '"', '“', '„', '«', '‘', ',', ';', ':', '!', '?']);
        // A quote behind digits is a measure: 5'10".
        let end = raw.trim_end_matches([
            ',', '.', '!', '?', ';', ':', ')', ']', '}', '”', '»', '’', '…', '。', '，', '！', '？', '、',
            '；', '：',
        ]);
        let inner = end.trim_end_matches(['"', '\'']);
        let is_measure = inner.len() < end.len() && inner.ends_with(|c: char| c.is_ascii_digit());
        let core = if is_measure { end } else { inner };
        // ".5", ".NET" but not "...and"
        let dotted =
            core.strip_prefix('.').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphanumeric()));
        let core = if dotted { core } else { core.trim_start_matches(['.', '…', '\'']) };
        let start = core.as_ptr() as usize - raw.as_ptr() as usize;
        Self { core, tail: &raw[start + core.len()..] }
    }

    fn ends_with(&self, mark: char) -> bool {
        self.tail.contains(mark)
    }

    /// Returns true if a sentence may end here, so that the next token is no neighbour.
    fn stops(&self) -> bool {
        self.tail.contains(['!', '?', ';', ':'])
            || self.tail.contains('.') && abbreviation::stop_after(self.core).is_none()
    }

    /// Writes the token; returns true if the token behind has been read as well.
    fn read(&self, around: Around<'_>, last: bool, out: &mut String) -> bool {
        if self.core.is_empty() {
            self.close(true, out);
            return false;
        }
        if self.tail.starts_with('.') && self.abbreviation(around, last, out) {
            return false;
        }
        let took_next = self.core_words(around, out);
        if !took_next {
            self.close(true, out);
        }
        took_next
    }

    fn core_words(&self, around: Around<'_>, out: &mut String) -> bool {
        let core = self.core;
        if core
            .chars()
            .all(|c| c.is_alphabetic() || c == '\'' || c == '’' || matches!(c, '\u{300}'..='\u{36f}'))
        {
            self.plain_word(around, out);
            return false;
        }
        if let Some(took_next) = amount::read(core, around, out) {
            return took_next;
        }
        if let Some(version) = version(core) {
            word(out, "version");
            amount::read(version, Around::default(), out);
            return false;
        }
        if core.contains('/')
            && let Some(unit) = measure::name(core, false, false)
        {
            word(out, unit);
            return false;
        }
        if spelling::acronym(core, out) || spelling::address(core, out) {
            return false;
        }
        if let Some(name) = core.strip_prefix('.') {
            word(out, "dot");
            return Token { core: name, tail: "" }.core_words(Around { before: "", ..around }, out);
        }
        let mut chars = core.chars();
        if let (Some(c), None) = (chars.next(), chars.next())
            && let Some(sign) = spelling::lone_sign(c)
        {
            let divides = c == '/' && around.before.ends_with(|c: char| c.is_ascii_digit());
            word(out, if divides { "divided by" } else { sign });
            return false;
        }
        self.parts(around, out);
        false
    }

    /// Reads a compound part by part: `25-year-old`, `COVID-19`, `and/or`.
    fn parts(&self, around: Around<'_>, out: &mut String) {
        let is_compound = self.core.contains('-') && !self.core.starts_with('-');
        if !is_compound {
            return spelling::mixed(self.core, out);
        }
        for part in self.core.split('-').filter(|part| !part.is_empty()) {
            // "i7-12700K": a number joined to letters is a name, not an amount.
            let coded = part.contains(|c: char| c.is_ascii_digit()) && part.ends_with(char::is_uppercase);
            if coded {
                spelling::mixed(part, out);
                continue;
            }
            let part = Token { core: part, tail: "" };
            part.core_words(
                Around { before: "", after: if around.after.is_empty() { "" } else { "-" } },
                out,
            );
        }
    }

    fn plain_word(&self, around: Around<'_>, out: &mut String) {
        let core = self.core;
        let title = match core {
            "vs" => "versus",
            "etc" => "et cetera",
            "Mr" | "Mrs" | "Dr" | "St" | "Prof" if around.after.starts_with(char::is_uppercase) => {
                abbreviation::reading(core).expect("a row of the table")
            }
            _ => "",
        };
        if !title.is_empty() {
            word(out, title);
        } else if !roman::read(core, around.before, out) && !spelling::acronym(core, out) {
            spelling::mixed(core, out);
        }
    }

    /// Reads the token as an abbreviation with its stop. `last`: nothing follows, so the stop also ends the sentence.
    fn abbreviation(&self, around: Around<'_>, last: bool, out: &mut String) -> bool {
        let core = self.core;
        let Some(stop) = abbreviation::stop_after(core) else { return false };
        let numeric = around.after.starts_with(|c: char| c.is_ascii_digit());
        if stop == Stop::BeforeNumber && !numeric {
            return false;
        }
        let capital_behind = around.after.starts_with(char::is_uppercase);
        let capital_before = around.before.starts_with(char::is_uppercase);
        let words = match core {
            "St" if !capital_behind || capital_before && abbreviation::starts_sentence(around.after) => {
                "Street"
            }
            "Dr" if !capital_behind && capital_before => "Drive",
            _ => abbreviation::reading(core).unwrap_or(""),
        };
        if words.is_empty() {
            core.split('.').for_each(|letter| spelling::letters(out, letter));
        } else if words.len() <= 3 && words.chars().all(char::is_uppercase) {
            spelling::letters(out, words);
        } else {
            word(out, words);
        }
        self.close(last, out);
        true
    }

    /// Writes the punctuation behind the token. `ends`: a full stop is written too.
    fn close(&self, ends: bool, out: &mut String) {
        let mark = self.tail.chars().find_map(|c| match c {
            ',' | '，' | '、' => Some(','),
            '!' | '！' => Some('!'),
            '?' | '？' => Some('?'),
            ';' | '；' => Some(';'),
            ':' | '：' => Some(':'),
            '.' | '…' | '。' if ends => Some('.'),
            _ => None,
        });
        if let Some(mark) = mark
            && !out.is_empty()
            && !out.ends_with([',', '.', '!', '?', ';', ':'])
        {
            out.push(mark);
        }
    }
}

/// Returns the number of `v1.2.3` or `v2`.
fn version(core: &str) -> Option<&str> {
    let number = core.strip_prefix(['v', 'V'])?;
    (number.starts_with(|c: char| c.is_ascii_digit())
        && number.bytes().all(|b| b.is_ascii_digit() || b == b'.'))
    .then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn said(text: &str) -> String {
        let mut out = String::new();
        normalise(text, &mut out);
        out
    }

    #[track_caller]
    fn check(pairs: &[(&str, &str)]) {
        for (text, words) in pairs {
            assert_eq!(said(text), *words, "{text}");
        }
    }

    #[test]
    fn numbers() {
        check(&[
            ("It is 98.6 now.", "It is ninety eight point six now."),
            (
                "1,234.5 and 1.000,50",
                "one thousand two hundred thirty four point five and one thousand point five zero",
            ),
            ("the 2nd, 21st and 30th", "the second, twenty first and thirtieth"),
            ("-5, +3, ±2, ~40", "minus five, plus three, plus or minus two, about forty"),
            ("50% or 2.5%", "fifty percent or two point five percent"),
            (
                "1/2 cup, 2 1/2 cups, 2½ cups, 3/4",
                "one half cup, two and a half cups, two and a half cups, three quarters",
            ),
            ("10-20 people, 5-10%", "ten to twenty people, five to ten percent"),
            ("#5 of 007", "number five of zero zero seven"),
            ("24/7 and 9/11", "twenty four seven and nine eleven"),
            (
                "3x faster, 1920x1080, 2x4",
                "three times faster, one thousand nine hundred twenty by one thousand eighty, two by four",
            ),
            ("2×3×4 and 5 × 3 = 15", "two times three times four and five times three equals fifteen"),
            ("2^8 and x² and 5 − 3", "two to the power of eight and X squared and five minus three"),
            ("No. 5 is here. No.", "number five is here. No."),
            (
                "6.02e23, 1e-5",
                "six point zero two times ten to the twenty three, one times ten to the minus five",
            ),
            ("2x + 1", "two X plus one"),
            ("3/4 tsp, 1 1/2 tsp", "three quarters teaspoon, one and a half teaspoons"),
            (".5 or 10+", "zero point five or ten plus"),
        ]);
    }

    #[test]
    fn times_and_dates() {
        check(&[
            ("at 9:30, at 3:45 PM", "at nine thirty, at three forty five P M"),
            ("at 9 a.m. we left", "at nine A M we left"),
            ("at 9 a.m.", "at nine A M."),
            ("9am to 5:05pm, 7:00", "nine A M to five oh five P M, seven o'clock"),
            ("a 16:9 screen", "a sixteen to nine screen"),
            (
                "on 2026-03-21 or 12/05/2026",
                "on March twenty first, twenty twenty six or December fifth, twenty twenty six",
            ),
            ("on 25/12/2024", "on December twenty fifth, twenty twenty four"),
            ("March 21, 2026", "March twenty first, twenty twenty six"),
            ("on Sept. 3", "on September third"),
            (
                "in 1999, 2007 and the 1990s or '90s",
                "in nineteen ninety nine, two thousand seven and the nineteen nineties or nineties",
            ),
            ("5-6pm, on Mar. 17, in Dec. again", "five to six P M, on March seventeenth, in December again"),
            ("from 2010-2015", "from twenty ten to twenty fifteen"),
            (
                "2048 bytes, 1500 people, in 1066",
                "two thousand forty eight bytes, one thousand five hundred people, in one thousand sixty six",
            ),
            ("in 1492", "in fourteen ninety two"),
        ]);
    }

    #[test]
    fn money_and_units() {
        check(&[
            ("$3.50, $1, $0.99", "three dollars and fifty cents, one dollar, ninety nine cents"),
            ("$3.5M or $5 million.", "three point five million dollars or five million dollars."),
            ("£1.01 and 5€ and -$5", "one pound and one penny and five euros and minus five dollars"),
            ("$10-20, $5/month", "ten to twenty dollars, five dollars per month"),
            (
                "10 km, 2.5kg, 1 km, 5 GB.",
                "ten kilometers, two point five kilograms, one kilometer, five gigabytes.",
            ),
            ("-40°C and 60mph", "minus forty degrees Celsius and sixty miles per hour"),
            ("5'10\" tall", "five feet ten inches tall"),
            ("3 in a row, 90 km/h", "three in a row, ninety kilometers per hour"),
            ("100 MB/s, 5 lbs.", "one hundred megabytes per second, five pounds."),
        ]);
    }

    #[test]
    fn codes_and_addresses() {
        check(&[
            ("192.168.1.1", "one nine two dot one six eight dot one dot one"),
            ("v1.2.3 or 1.2.3", "version one point two point three or one point two point three"),
            ("Call 555-0142.", "Call five five five, zero one four two."),
            (
                "555 123-4567 or +1-555-010-4477",
                "five five five one two three, four five six seven or plus one, five five five, zero one zero, four four seven seven",
            ),
            (
                "i7-12700K, 4K, .NET, an iPhone",
                "I seven one two seven zero zero K, four K, dot NET, an iPhone",
            ),
            ("10.0.0.1:8080", "one zero dot zero dot zero dot one port eight zero eight zero"),
            ("john.doe@example.co.uk", "john dot doe at example dot C O dot U K"),
            ("a != b, x <= 5", "a does not equal b, x is at most five"),
            ("in km/h", "in kilometers per hour"),
            ("example.com, https://www.a-b.org/x", "example dot com, a dash b dot org slash x"),
            ("a@b.co", "a at b dot C O"),
            ("main.rs", "main dot R S"),
            ("GPT-4o, B2B, MP3, H2O", "GPT four O, B two B, M P three, H two O"),
            ("COVID-19 and a 25-year-old", "COVID nineteen and a twenty five year old"),
            ("AT&T, R&D, C++, C#", "A T and T, R and D, C plus plus, C sharp"),
            ("and/or, w/o, n/a", "and or, without, N A"),
            ("a < b, A → B", "a is less than b, A to B"),
        ]);
    }

    #[test]
    fn abbreviations_and_names() {
        check(&[
            ("Dr. Smith of Elm St. in St. Louis", "Doctor Smith of Elm Street in Saint Louis"),
            ("the U.S. and J. R. R. Tolkien", "the U S and J R R Tolkien"),
            ("He lives in the U.S.", "He lives in the U S."),
            ("e.g. a coat, i.e. warm, etc.", "for example a coat, that is warm, et cetera."),
            ("Henry VIII in World War II", "Henry the eighth in World War two"),
            ("the US, AI and IT", "the U S, A I and I T"),
            ("IDs and APIs", "I Ds and A P Is"),
            ("JSON over SQL", "jason over sequel"),
            ("vs. them", "versus them"),
        ]);
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        let text = "Don't worry, it's a well-known tale; isn't it? Yes: really!";
        assert_eq!(said(text), text.replace('-', " "));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "\\PC{0,200}") {
            said(&text);
        }

        #[test]
        fn no_digit_is_left(text in "([0-9]{1,5}|[-+$€£%.,:/°#x'sthknd ~–]|[a-zA-Z]{1,3}|½){0,30}") {
            let words = said(&text);
            prop_assert!(!words.contains(|c: char| c.is_ascii_digit()), "{} -> {}", text, words);
        }
    }
}
