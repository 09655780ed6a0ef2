//! Numbers in English words, written at the end of a string with single spaces.

const SMALL: [&str; 20] = [
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

const SCALES: [(u64, &str); 5] = [
    (1_000_000_000_000_000, "quadrillion"),
    (1_000_000_000_000, "trillion"),
    (1_000_000_000, "billion"),
    (1_000_000, "million"),
    (1_000, "thousand"),
];

/// Most digits of a number that is read as one; a longer number is read digit by digit.
const DIGITS_MAX: usize = 15;

/// Appends `word`, with a space before it unless `out` is empty or ends in a space.
pub(super) fn word(out: &mut String, word: &str) {
    if !out.is_empty() && !out.ends_with(' ') {
        out.push(' ');
    }
    out.push_str(word);
}

/// Appends "two hundred thirty four".
pub(super) fn cardinal(out: &mut String, mut n: u64) {
    if n == 0 {
        return word(out, SMALL[0]);
    }
    for (scale, name) in SCALES {
        if n >= scale {
            cardinal(out, n / scale);
            word(out, name);
            n %= scale;
        }
    }
    if n >= 100 {
        word(out, SMALL[index(n / 100)]);
        word(out, "hundred");
        n %= 100;
    }
    if n >= 20 {
        word(out, TENS[index(n / 10)]);
        n %= 10;
    }
    if n > 0 {
        word(out, SMALL[index(n)]);
    }
}

fn index(n: u64) -> usize {
    usize::try_from(n).expect("below 20")
}

/// Appends "twenty first".
pub(super) fn ordinal(out: &mut String, n: u64) {
    cardinal(out, n);
    let start = out.rfind(' ').map_or(0, |space| space + 1);
    let special = match &out[start..] {
        "one" => "first",
        "two" => "second",
        "three" => "third",
        "five" => "fifth",
        "eight" => "eighth",
        "nine" => "ninth",
        "twelve" => "twelfth",
        last => {
            if last.ends_with('y') {
                out.truncate(out.len() - 1);
                out.push_str("ie");
            }
            out.push_str("th");
            return;
        }
    };
    out.truncate(start);
    out.push_str(special);
}

/// Appends "nineteen ninety nine", "two thousand one", "twenty ten" or "nineteen oh five".
pub(super) fn year(out: &mut String, n: u64) {
    let (century, rest) = (n / 100, n % 100);
    if !(1_100..10_000).contains(&n) || century.is_multiple_of(10) && rest < 10 {
        return cardinal(out, n);
    }
    cardinal(out, century);
    match rest {
        0 => word(out, "hundred"),
        1..10 => {
            word(out, "oh");
            cardinal(out, rest);
        }
        _ => cardinal(out, rest),
    }
}

/// Appends "nineteen nineties" for 1990.
pub(super) fn decade(out: &mut String, n: u64) {
    year(out, n);
    plural(out);
}

/// Makes the last word a plural: "y" becomes "ies". Plurals such as "halves" never come here.
pub(super) fn plural(out: &mut String) {
    if out.ends_with('y') {
        out.truncate(out.len() - 1);
        out.push_str("ies");
    } else if out.ends_with('x') {
        out.push_str("es");
    } else {
        out.push('s');
    }
}

/// Splits `text` into `N` fields of digits with `mark` between them; returns `None` for any other text.
pub(super) fn fields<const N: usize>(text: &str, mark: char) -> Option<[&str; N]> {
    let mut fields = [""; N];
    let mut parts = text.split(mark);
    for field in &mut fields {
        *field = parts.next().filter(|part| is_digits(part))?;
    }
    parts.next().is_none().then_some(fields)
}

/// Returns true if `text` is digits and nothing else.
pub(super) fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit())
}

/// Returns the value of `digits`; `u64::MAX` if `digits` is no number or too large.
pub(super) fn value(digits: &str) -> u64 {
    digits.parse().unwrap_or(u64::MAX)
}

/// Appends "one four two"; characters other than digits are skipped.
pub(super) fn digits(out: &mut String, digits: &str) {
    for digit in digits.bytes().filter(u8::is_ascii_digit) {
        word(out, SMALL[usize::from(digit - b'0')]);
    }
}

/// Appends "three quarters".
pub(super) fn fraction(out: &mut String, over: u64, under: u64) {
    match (over, under) {
        (1, 2) => return word(out, "one half"),
        (_, 2) if over > 0 => {
            cardinal(out, over);
            return word(out, "halves");
        }
        (1.., 4) => {
            cardinal(out, over);
            word(out, "quarter");
        }
        (1.., 3..=20) if over < under => {
            cardinal(out, over);
            ordinal(out, under);
        }
        _ => {
            cardinal(out, over);
            word(out, "over");
            return cardinal(out, under);
        }
    }
    if over > 1 {
        plural(out);
    }
}

/// A number in its written form: `1,234.5`, `1.000,50`, `.5`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Number<'a> {
    /// Digits and separators before the decimal mark.
    whole: &'a str,
    /// Digits behind the decimal mark.
    pub(super) fraction: &'a str,
}

impl<'a> Number<'a> {
    /// Returns the longest number at the start of `text`, and the rest.
    pub(super) fn parse(text: &'a str) -> Option<(Self, &'a str)> {
        let lead = digit_count(text);
        if lead == 0 {
            let fraction = text.strip_prefix('.')?;
            let count = digit_count(fraction);
            return (count > 0)
                .then(|| (Self { whole: "", fraction: &fraction[..count] }, &fraction[count..]));
        }
        let by_comma = grouped(text, lead, b',');
        let by_point = grouped(text, lead, b'.');
        let (whole, mark) = if by_comma > lead {
            (by_comma, '.')
        } else if by_point > lead + 4 || by_point > lead && decimals(&text[by_point..], ',') > 0 {
            (by_point, ',')
        } else if decimals(&text[lead..], ',') > 0 && !text[lead + 1..].contains(',') {
            (lead, ',')
        } else {
            (lead, '.')
        };
        let count = decimals(&text[whole..], mark);
        let end = if count > 0 { whole + 1 + count } else { whole };
        let fraction = if count > 0 { &text[whole + 1..end] } else { "" };
        Some((Self { whole: &text[..whole], fraction }, &text[end..]))
    }

    /// Returns `text` as a number if it is one number from end to end.
    pub(super) fn exactly(text: &'a str) -> Option<Self> {
        Self::parse(text).filter(|(_, rest)| rest.is_empty()).map(|(number, _)| number)
    }

    /// Returns the value before the decimal mark; `None` if it has more than 15 digits.
    pub(super) fn value(&self) -> Option<u64> {
        let digits = self.whole.bytes().filter(u8::is_ascii_digit);
        (digits.clone().count() <= DIGITS_MAX).then(|| digits.fold(0, |n, d| n * 10 + u64::from(d - b'0')))
    }

    /// Returns true if the number is written without separators and decimals.
    pub(super) fn is_plain(&self) -> bool {
        self.fraction.is_empty() && self.whole.bytes().all(|b| b.is_ascii_digit())
    }

    /// Returns the digits and separators before the decimal mark.
    pub(super) fn whole(&self) -> &'a str {
        self.whole
    }

    /// Returns true if the number is exactly one.
    pub(super) fn is_one(&self) -> bool {
        self.fraction.is_empty() && self.value() == Some(1)
    }

    /// Appends "one thousand two hundred thirty four point five". A number that cannot be a quantity is read digit by
    /// digit.
    pub(super) fn say(&self, out: &mut String) {
        let coded = self.whole.len() > 1 && self.whole.starts_with('0');
        match self.value() {
            Some(n) if !coded => cardinal(out, n),
            _ => digits(out, self.whole),
        }
        if !self.fraction.is_empty() {
            word(out, "point");
            digits(out, self.fraction);
        }
    }
}

fn digit_count(text: &str) -> usize {
    text.bytes().take_while(u8::is_ascii_digit).count()
}

/// Returns the length of `lead` digits and all groups of three behind `mark`; `lead` if there is no valid group.
fn grouped(text: &str, lead: usize, mark: u8) -> usize {
    let bytes = text.as_bytes();
    let mut end = lead;
    while lead <= 3 && bytes.get(end) == Some(&mark) && digit_count(&text[end + 1..]) == 3 {
        end += 4;
    }
    end
}

/// Returns the number of digits behind the decimal mark `mark` at the start of `text`.
fn decimals(text: &str, mark: char) -> usize {
    text.strip_prefix(mark).map_or(0, digit_count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(f: impl FnOnce(&mut String)) -> String {
        let mut out = String::new();
        f(&mut out);
        out
    }

    #[test]
    fn words() {
        assert_eq!(said(|o| cardinal(o, 0)), "zero");
        assert_eq!(said(|o| cardinal(o, 1_000_021)), "one million twenty one");
        assert_eq!(said(|o| cardinal(o, 317)), "three hundred seventeen");
        assert_eq!(said(|o| ordinal(o, 21)), "twenty first");
        assert_eq!(said(|o| ordinal(o, 30)), "thirtieth");
        assert_eq!(said(|o| ordinal(o, 112)), "one hundred twelfth");
        for (n, text) in [
            (1999, "nineteen ninety nine"),
            (2000, "two thousand"),
            (2007, "two thousand seven"),
            (2026, "twenty twenty six"),
            (1905, "nineteen oh five"),
            (1900, "nineteen hundred"),
            (800, "eight hundred"),
        ] {
            assert_eq!(said(|o| year(o, n)), text);
        }
        assert_eq!(said(|o| decade(o, 1990)), "nineteen nineties");
        assert_eq!(said(|o| fraction(o, 3, 4)), "three quarters");
        assert_eq!(said(|o| fraction(o, 2, 3)), "two thirds");
        assert_eq!(said(|o| fraction(o, 7, 32)), "seven over thirty two");
    }

    #[test]
    fn notations() {
        for (text, words, rest) in [
            ("1,234.5", "one thousand two hundred thirty four point five", ""),
            ("1.000,50", "one thousand point five zero", ""),
            ("1.000.000", "one million", ""),
            ("3,5", "three point five", ""),
            (".5x", "zero point five", "x"),
            ("98.6.", "ninety eight point six", "."),
            ("007", "zero zero seven", ""),
            ("1,23,4", "one", ",23,4"),
            (
                "12345678901234567",
                "one two three four five six seven eight nine zero one two three four five six seven",
                "",
            ),
        ] {
            let (number, tail) = Number::parse(text).expect("a number");
            assert_eq!((said(|o| number.say(o)).as_str(), tail), (words, rest), "{text}");
        }
        assert!(Number::parse("x1").is_none());
        assert!(Number::exactly("12a").is_none());
    }
}
