//! Tokens that are an amount of something: money, times, dates, ranges, telephone numbers and plain numbers.
//!
//! Each reader takes a whole token, without the punctuation around it. A reader writes the words of the token, or
//! returns `false` or `None`. [`read`] leaves `out` unchanged if no reader takes the token.

use super::around::Around;
use super::calendar::{date, decade, half_letters, is_half, is_month, is_year, time};
use super::measure::{self, Currency};
use super::number::{self, Number, fields, is_digits, value, word};

/// Words before a number that make it a telephone number. Source: own list.
const BEFORE_PHONE: &[&str] =
    &["at", "call", "cell", "dial", "fax", "mobile", "number", "phone", "tel", "text"];

/// Reads `token` if it is an amount; returns `Some(true)` if the token behind has been read as well.
pub(super) fn read(token: &str, around: Around<'_>, out: &mut String) -> Option<bool> {
    let (sign, body) = sign(token);
    if !body.contains(|c: char| c.is_ascii_digit() || is_vulgar(c)) {
        return None;
    }
    let start = out.len();
    if token.starts_with('+') && phone(token, around, out) || decade(token, out) {
        return Some(false);
    }
    if body.starts_with(|c: char| c.is_ascii_digit()) {
        let whole = sign.is_empty()
            && (date(body, out)
                || time(body, around, out)
                || special(body, out)
                || phone(token, around, out)
                || dotted(body, out)
                || height(body, out));
        if whole {
            return Some(false);
        }
    }
    if !sign.is_empty() {
        word(out, sign);
    }
    let used = money(body, around, out)
        .or_else(|| ordinal(body, out).then_some(false))
        .or_else(|| scientific(body, out).then_some(false))
        .or_else(|| fraction(body, around, out).then(|| unit_of_fraction(body, around, out)))
        .or_else(|| range(body, around, out))
        .or_else(|| quantity(body, around, out));
    if used.is_none() {
        out.truncate(start);
    }
    used
}

/// Splits off the sign that `token` starts with; returns the words of the sign and the rest of the token.
fn sign(token: &str) -> (&'static str, &str) {
    for (mark, words) in [
        ("-", "minus"),
        ("−", "minus"),
        ("+/-", "plus or minus"),
        ("±", "plus or minus"),
        ("+", "plus"),
        ("~", "about"),
        ("≈", "about"),
        ("<=", "at most"),
        (">=", "at least"),
        ("≤", "at most"),
        ("≥", "at least"),
        ("<", "less than"),
        (">", "more than"),
        ("#", "number"),
        ("№", "number"),
        ("§", "section"),
        ("×", "times"),
        ("=", "equals"),
    ] {
        if let Some(rest) = token.strip_prefix(mark) {
            return (words, rest);
        }
    }
    ("", token)
}

/// Reads numbers that have a name of their own.
fn special(token: &str, out: &mut String) -> bool {
    let words = match token {
        "24/7" => "twenty four seven",
        "9/11" => "nine eleven",
        "50/50" => "fifty fifty",
        "20/20" => "twenty twenty",
        "911" => "nine one one",
        _ => return false,
    };
    word(out, words);
    true
}

/// Reads telephone numbers: `555-0142`, `+1-555-010-4477`, `212.555.0142`.
fn phone(token: &str, around: Around<'_>, out: &mut String) -> bool {
    let body = token.strip_prefix('+').unwrap_or(token);
    let mark = if body.contains('-') { '-' } else { '.' };
    let groups = body.split(mark).count();
    if !body.split(mark).all(is_digits) {
        return false;
    }
    let mut lengths = body.split(mark).map(str::len);
    let announced = BEFORE_PHONE.iter().any(|word| word.eq_ignore_ascii_case(around.before));
    let is_phone = match (groups, mark) {
        // "(555) 123-4567" comes as two tokens; "+15550104477" and "5550104477" as one.
        (1, _) => {
            body.len() == 3 && looks_local(around.after, true)
                || body.len() > 9 && (body.len() < token.len() || announced)
        }
        (2, '-') => looks_local(body, announced || around.before.len() == 3 && is_digits(around.before)),
        (3.., '-') => true,
        (3, '.') => lengths.next() == Some(3) && lengths.next() == Some(3) && lengths.next() == Some(4),
        _ => false,
    };
    if !is_phone {
        return false;
    }
    if body.len() < token.len() {
        word(out, "plus");
    }
    for (at, group) in body.split(mark).enumerate() {
        if at > 0 {
            out.push(',');
        }
        number::digits(out, group);
    }
    true
}

/// Returns true if `token` is a seven-digit telephone number such as `555-0142` and no range. `announced`: the text
/// around it shows a telephone number.
fn looks_local(token: &str, announced: bool) -> bool {
    let Some([exchange, line]) = fields(token, '-') else { return false };
    exchange.len() == 3
        && line.len() == 4
        && (announced || line.starts_with('0') || exchange == "555" || !value(exchange).is_multiple_of(10))
}

/// Reads `1.2.3` with "point", `192.168.1.1` digit by digit with "dot", `10.0.0.1:80` with "port".
fn dotted(token: &str, out: &mut String) -> bool {
    if let Some((host, port)) = token.split_once(':') {
        if !is_digits(port) || host.split('.').count() != 4 || !dotted(host, out) {
            return false;
        }
        word(out, "port");
        number::digits(out, port);
        return true;
    }
    let groups = token.split('.').count();
    if groups < 3 || !token.split('.').all(is_digits) || Number::exactly(token).is_some() {
        return false;
    }
    for (at, group) in token.split('.').enumerate() {
        if at > 0 {
            word(out, if groups == 4 { "dot" } else { "point" });
        }
        if groups == 4 { number::digits(out, group) } else { number::cardinal(out, value(group)) }
    }
    true
}

/// Reads a height in feet and inches, `5'10"`.
fn height(token: &str, out: &mut String) -> bool {
    let Some([feet, inches]) = fields(token.trim_end_matches('"'), '\'') else { return false };
    number::cardinal(out, value(feet));
    word(out, if value(feet) == 1 { "foot" } else { "feet" });
    number::cardinal(out, value(inches));
    if token.ends_with('"') {
        word(out, if value(inches) == 1 { "inch" } else { "inches" });
    }
    true
}

/// Reads `$3.50`, `$3.5M`, `£5`, `$10-20`, `$5/month`; of "$5 million" also the word behind.
fn money(token: &str, around: Around<'_>, out: &mut String) -> Option<bool> {
    let (currency, rest) = Currency::parse(token)?;
    let (amount, rest) = Number::parse(rest)?;
    let apart =
        if rest.is_empty() { measure::scale(around.after).filter(|word| word.len() > 2) } else { None };
    if let Some(scale) = measure::scale(rest).or(apart) {
        amount.say(out);
        word(out, scale);
        word(out, currency.name(false));
        return Some(apart.is_some());
    }
    if let Some(end) = rest.strip_prefix(['-', '–']) {
        let end = Currency::parse(end).map_or(end, |(_, end)| end);
        let (end, rest) = Number::parse(end)?;
        amount.say(out);
        word(out, "to");
        end.say(out);
        if let Some(scale) = measure::scale(rest) {
            word(out, scale);
        }
        word(out, currency.name(false));
        return Some(false);
    }
    let cents = if amount.fraction.len() == 2 { Some(value(amount.fraction)) } else { None };
    match (cents, currency.cent(cents == Some(1))) {
        (Some(cents), Some(cent)) => {
            if amount.value() != Some(0) {
                number::cardinal(out, amount.value()?);
                word(out, currency.name(amount.value() == Some(1)));
            }
            if cents > 0 {
                if amount.value() != Some(0) {
                    word(out, "and");
                }
                number::cardinal(out, cents);
                word(out, cent);
            }
            if cents == 0 && amount.value() == Some(0) {
                word(out, "zero");
                word(out, currency.name(false));
            }
        }
        _ => {
            amount.say(out);
            word(out, currency.name(amount.is_one()));
        }
    }
    per(rest, out)
}

/// Reads `/month`, `+` or nothing behind an amount.
fn per(rest: &str, out: &mut String) -> Option<bool> {
    if let Some(rest) = rest.strip_prefix('/') {
        if rest.is_empty() || !rest.chars().all(char::is_alphabetic) {
            return None;
        }
        word(out, "per");
        word(out, measure::name(rest, true, false).unwrap_or(rest));
    } else if rest == "+" {
        word(out, "plus");
    } else if !rest.is_empty() {
        return None;
    }
    Some(false)
}

/// Reads ordinals: `2nd`, `21st`.
fn ordinal(token: &str, out: &mut String) -> bool {
    let Some(at) = token.find(|c: char| c.is_ascii_alphabetic()) else { return false };
    let suffix = ["st", "nd", "rd", "th"].iter().any(|suffix| suffix.eq_ignore_ascii_case(&token[at..]));
    match Number::exactly(&token[..at])
        .filter(|number| number.fraction.is_empty())
        .and_then(|number| number.value())
    {
        Some(n) if suffix => {
            number::ordinal(out, n);
            true
        }
        _ => false,
    }
}

/// Reads `3/4`, `½`, `2½`. After a whole number "and" joins the two.
fn fraction(token: &str, around: Around<'_>, out: &mut String) -> bool {
    if let Some([over, under]) = fields(token, '/') {
        if over.len() > 3 || under.len() > 3 {
            return false;
        }
        if is_digits(around.before) && value(over) < value(under) {
            word(out, "and");
            if value(over) == 1 && value(under) == 2 {
                word(out, "a half");
                return true;
            }
        }
        number::fraction(out, value(over), value(under));
        return true;
    }
    let Some((over, under)) = token.chars().next_back().and_then(vulgar) else { return false };
    let whole = &token[..token.len() - token.chars().next_back().map_or(0, char::len_utf8)];
    if !whole.is_empty() {
        let Some(number) = Number::exactly(whole) else { return false };
        number.say(out);
    }
    if !whole.is_empty() || is_digits(around.before) {
        word(out, "and");
        if (over, under) == (1, 2) {
            word(out, "a half");
            return true;
        }
    }
    number::fraction(out, over, under);
    true
}

/// Reads the unit behind the fraction `token`: "one half teaspoon", "two and a half teaspoons".
fn unit_of_fraction(token: &str, around: Around<'_>, out: &mut String) -> bool {
    let below_one = !is_digits(around.before)
        && (token.contains('/') || !token.starts_with(|c: char| c.is_ascii_digit()));
    match measure::name(around.after, below_one, true) {
        Some(name) => {
            word(out, name);
            true
        }
        None => false,
    }
}

fn is_vulgar(c: char) -> bool {
    vulgar(c).is_some()
}

fn vulgar(c: char) -> Option<(u64, u64)> {
    Some(match c {
        '½' => (1, 2),
        '⅓' => (1, 3),
        '⅔' => (2, 3),
        '¼' => (1, 4),
        '¾' => (3, 4),
        '⅛' => (1, 8),
        '⅜' => (3, 8),
        '⅝' => (5, 8),
        '⅞' => (7, 8),
        _ => return None,
    })
}

/// Reads ranges and products: `10-20`, `2010–2015`, `9-5`, `10-20%`, `3×4`, `2x4`.
fn range(token: &str, around: Around<'_>, out: &mut String) -> Option<bool> {
    let (from, rest) = Number::parse(token)?;
    let mark = rest.chars().next().filter(|c| "-–x×".contains(*c))?;
    let (to, rest) = Number::parse(&rest[mark.len_utf8()..])?;
    let by = matches!(mark, 'x' | '×');
    let name = if is_half(rest) { Some(half_letters(rest)) } else { measure::name(rest, false, false) };
    let more = by && rest.starts_with(mark);
    if !rest.is_empty() && name.is_none() && !more
        || by && mark == '×' && rest.is_empty() && !by_size(&from, &to)
    {
        return None;
    }
    let years =
        !by && name.is_none() && is_year(&from, around) && (is_year(&to, around) || to.whole().len() == 2);
    if years {
        number::year(out, from.value()?);
        word(out, "to");
        number::year(out, to.value()?);
        return Some(false);
    }
    from.say(out);
    word(out, if by { "by" } else { "to" });
    if more {
        return range(&token[token.len() - rest.len() - to_length(&to)..], around, out);
    }
    to.say(out);
    if let Some(name) = name {
        word(out, name);
        return Some(false);
    }
    Some(unit_behind(&to, around, out))
}

fn to_length(number: &Number<'_>) -> usize {
    number.whole().len() + if number.fraction.is_empty() { 0 } else { 1 + number.fraction.len() }
}

/// Returns true for a size such as `1920×1080`, and false for a product such as `3×4`.
fn by_size(from: &Number<'_>, to: &Number<'_>) -> bool {
    from.whole().len() > 2 && to.whole().len() > 2
}

/// Reads a number, with its unit if there is one.
fn quantity(token: &str, around: Around<'_>, out: &mut String) -> Option<bool> {
    let (number, rest) = Number::parse(token)?;
    if rest.is_empty() {
        if is_year(&number, around) {
            number::year(out, number.value()?);
            return Some(false);
        }
        if is_digits(token) && is_month(around.before) && value(token) <= 31 {
            number::ordinal(out, value(token));
            return Some(false);
        }
        number.say(out);
        return Some(unit_behind(&number, around, out));
    }
    if rest == "x"
        && !(around.after.is_empty()
            || around.after.len() > 2 && around.after.starts_with(char::is_alphabetic))
    {
        return None; // "2x + 1" is no "two times"
    }
    if let Some(name) = measure::name(rest, number.is_one(), false) {
        number.say(out);
        word(out, name);
        return Some(false);
    }
    // "25%+", "10+", "5/day"
    let end = rest.find(['/', '+']).unwrap_or(rest.len());
    let name = if end == 0 { None } else { Some(measure::name(&rest[..end], number.is_one(), false)?) };
    number.say(out);
    if let Some(name) = name {
        word(out, name);
    }
    per(&rest[end..], out)
}

/// Reads scientific notation: `6.02e23`, `1e-5`.
fn scientific(token: &str, out: &mut String) -> bool {
    let Some((number, rest)) = Number::parse(token) else { return false };
    let Some(exponent) = rest.strip_prefix(['e', 'E']) else { return false };
    let digits = exponent.trim_start_matches(['-', '−', '+']);
    if !is_digits(digits) || exponent.len() > digits.len() + '−'.len_utf8() || digits.len() > 3 {
        return false;
    }
    number.say(out);
    word(out, "times ten to the");
    if exponent.starts_with(['-', '−']) {
        word(out, "minus");
    }
    number::cardinal(out, value(digits));
    true
}

/// Reads the unit behind `number`, if there is one.
fn unit_behind(number: &Number<'_>, around: Around<'_>, out: &mut String) -> bool {
    match measure::name(around.after, number.is_one(), true) {
        Some(name) => {
            word(out, name);
            true
        }
        None => false,
    }
}
