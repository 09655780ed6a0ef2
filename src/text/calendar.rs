//! Dates, years, decades and times of the day.
//!
//! Readers as in [`super::amount`]: each writes a whole token in words, or leaves `out` unchanged and returns `false`.

use super::abbreviation;
use super::around::Around;
use super::measure;
use super::number::{self, Number, fields, is_digits, value, word};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Words before a number that make it a year. Source: own list.
const BEFORE_YEAR: &[&str] = &[
    "after", "around", "before", "by", "circa", "during", "early", "fall", "from", "in", "late", "mid", "of",
    "since", "spring", "summer", "until", "winter", "year",
];

/// Reads `2026-03-21`, `12/05/2026` (month first, unless that gives no date), `21.03.2026`.
pub(super) fn date(token: &str, out: &mut String) -> bool {
    let (year, month, day) = if let Some([year, month, day]) =
        fields(token, '-').or_else(|| fields(token, '/'))
        && year.len() == 4
    {
        (year, month, day)
    } else if let Some([month, day, year]) = fields(token, '/').or_else(|| fields(token, '-'))
        && year.len() == 4
    {
        if value(month) > 12 { (year, day, month) } else { (year, month, day) }
    } else if let Some([day, month, year]) = fields(token, '.')
        && year.len() == 4
    {
        (year, month, day)
    } else {
        return false;
    };
    let (month, day) = (value(month), value(day));
    if !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return false;
    }
    word(out, MONTHS[usize::try_from(month - 1).expect("at most 11")]);
    number::ordinal(out, day);
    out.push(',');
    number::year(out, value(year));
    true
}

/// Reads `9:30`, `14:05`, `9:30pm`, `9am`, `1:02:03`; `16:9` is a ratio.
pub(super) fn time(token: &str, around: Around<'_>, out: &mut String) -> bool {
    let lower = token.len() - 2.min(token.len());
    let (clock, half) = match token.get(lower..) {
        Some(half) if half.eq_ignore_ascii_case("am") => (&token[..lower], "A M"),
        Some(half) if half.eq_ignore_ascii_case("pm") => (&token[..lower], "P M"),
        _ => (token, ""),
    };
    if let Some([hour, minute, second]) = fields(clock, ':') {
        number::cardinal(out, value(hour));
        minutes(out, minute);
        word(out, "and");
        number::cardinal(out, value(second));
        word(out, if value(second) == 1 { "second" } else { "seconds" });
    } else if let Some([hour, minute]) = fields(clock, ':') {
        if minute.len() != 2 || value(hour) > 24 || value(minute) > 59 {
            number::cardinal(out, value(hour));
            word(out, "to");
            number::cardinal(out, value(minute));
            return true;
        }
        number::cardinal(out, value(hour));
        let halved = !half.is_empty() || is_half(around.after);
        if value(minute) > 0 {
            minutes(out, minute);
        } else if value(hour) > 12 || value(hour) == 0 {
            word(out, "hundred");
        } else if !halved {
            word(out, "o'clock");
        }
    } else if is_digits(clock) && !half.is_empty() && value(clock) <= 12 {
        number::cardinal(out, value(clock));
    } else {
        return false;
    }
    if !half.is_empty() {
        word(out, half);
    }
    true
}

fn minutes(out: &mut String, minute: &str) {
    if minute.starts_with('0') {
        word(out, "oh");
    }
    number::cardinal(out, value(minute));
}

/// Returns true if `word` names a half of the day.
pub(super) fn is_half(word: &str) -> bool {
    ["am", "pm", "a.m", "p.m", "a.m.", "p.m."].iter().any(|half| half.eq_ignore_ascii_case(word))
}

/// Returns the letters of a half of the day.
pub(super) fn half_letters(half: &str) -> &'static str {
    if half.starts_with(['a', 'A']) { "A M" } else { "P M" }
}

/// Reads `1990s`, `'90s`, `80s`.
pub(super) fn decade(token: &str, out: &mut String) -> bool {
    let Some(digits) = token.strip_suffix("'s").or_else(|| token.strip_suffix('s')) else { return false };
    let short = digits.strip_prefix('\'').unwrap_or(digits);
    if !is_digits(short) || !short.ends_with('0') {
        return false;
    }
    match (short.len(), value(short)) {
        (4, 1_100..=2_090) | (2, 20..=90) => number::decade(out, value(short)),
        _ => return false,
    }
    true
}

/// Returns true if `word` is the name of a month or short for one.
pub(super) fn is_month(word: &str) -> bool {
    MONTHS.contains(&abbreviation::reading(word).unwrap_or(word))
}

/// Returns true if `number` is a year rather than a count.
pub(super) fn is_year(number: &Number<'_>, around: Around<'_>) -> bool {
    if !number.is_plain() || number.whole().len() != 4 || number.whole().starts_with('0') {
        return false;
    }
    let announced = BEFORE_YEAR.iter().any(|word| word.eq_ignore_ascii_case(around.before))
        || is_month(around.before)
        || matches!(around.after, "BC" | "AD" | "BCE" | "CE");
    let counts =
        around.after.ends_with('s') && around.after.len() > 3 && !matches!(around.after, "was" | "always")
            || measure::name(around.after, false, true).is_some()
            || around.after == "people";
    match number.value() {
        Some(1_900..=2_099) => announced || !counts,
        Some(1_100..=2_999) => announced && !counts,
        _ => false,
    }
}
