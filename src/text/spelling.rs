//! Tokens other than ordinary words: acronyms, web addresses, names of files, letters mixed with digits and signs.

use super::number::{self, Number, word};

/// Acronyms that are also words, or that a dictionary has as words: always read letter by letter. Source: own list.
const SPELLED: &[&str] = &[
    "AI", "AM", "API", "APIs", "AR", "ATM", "BA", "CEO", "DIY", "DJ", "EU", "FAQ", "GB", "GDP", "GPU", "HR",
    "ID", "IDs", "IP", "IRA", "IRS", "IT", "LA", "LED", "LLM", "MA", "MC", "ML", "MS", "OS", "OCD", "PA",
    "PC", "PIN", "PM", "PR", "PS", "QA", "SAT", "SO", "TV", "UI", "UK", "UN", "US", "USA", "USB", "UV", "UX",
    "VR",
];

/// Those of [`SPELLED`] that are words if they stand alone in capitals.
const NOT_SPELLED: &[&str] = &["PIN", "SAT", "SO", "LED"];

/// Acronyms and names whose letters do not show their reading, with that reading: a dictionary word or a respelling.
/// Source: common usage.
const RESPELLED: &[(&str, &str)] = &[
    ("ASCII", "askey"),
    ("BIOS", "by ose"),
    ("CUDA", "cooda"),
    ("GIF", "gif"),
    ("GIFs", "gifs"),
    ("GUI", "gooey"),
    ("JPEG", "jay peg"),
    ("JPEGs", "jay pegs"),
    ("JPG", "jay peg"),
    ("JSON", "jason"),
    ("LaTeX", "lay tech"),
    ("Linux", "linnux"),
    ("MySQL", "my S Q L"),
    ("NumPy", "num pie"),
    ("OAuth", "oh auth"),
    ("OK", "okay"),
    ("ok", "okay"),
    ("PhD", "P H D"),
    ("PhDs", "P H Ds"),
    ("PostgreSQL", "post gress"),
    ("PyPI", "pie P I"),
    ("PyTorch", "pie torch"),
    ("SQL", "sequel"),
    ("SaaS", "sass"),
    ("TOML", "tomml"),
    ("WiFi", "why fie"),
    ("Wi-Fi", "why fie"),
    ("YAML", "yammel"),
    ("async", "ay sink"),
    ("iOS", "I O S"),
    ("macOS", "mac O S"),
    ("n/a", "N A"),
    ("N/A", "N A"),
    ("nginx", "engine X"),
    ("w/", "with"),
    ("w/o", "without"),
];

/// Ends of web addresses and files that are read as words; other ends of up to three letters are spelled.
const WORD_ENDS: &[&str] =
    &["app", "bin", "com", "dev", "gov", "info", "net", "org", "zip", "doc", "bat", "log", "ink"];

/// Reads `token` if it is an acronym or a name with a reading of its own.
pub(super) fn acronym(token: &str, out: &mut String) -> bool {
    if let Some((_, reading)) = RESPELLED.iter().find(|(name, _)| *name == token) {
        word(out, reading);
        return true;
    }
    if SPELLED.contains(&token) && !NOT_SPELLED.contains(&token) {
        letters(out, token);
        return true;
    }
    false
}

/// Appends the letters of `text` as capitals between spaces. A final `s` behind capitals stays a plural: `IDs` → `I
/// Ds`.
pub(super) fn letters(out: &mut String, text: &str) {
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let is_plural = c == 's' && chars.peek().is_none() && text.starts_with(char::is_uppercase);
        if is_plural {
            out.push('s');
        } else {
            let mut buffer = [0; 4];
            word(out, c.to_ascii_uppercase().encode_utf8(&mut buffer));
        }
    }
}

/// Reads web and mail addresses, names of files and other words with inner dots.
pub(super) fn address(token: &str, out: &mut String) -> bool {
    let stripped = token.strip_prefix("https://").or_else(|| token.strip_prefix("http://")).unwrap_or(token);
    let is_url = stripped.len() < token.len() || token.starts_with("www.");
    let dotted = || {
        let mut parts = token.split('.');
        parts.clone().count() > 1
            && parts.all(|part| !part.is_empty())
            && token.bytes().all(|b| b.is_ascii_alphanumeric() || b".-_@/:?=&#%~+".contains(&b))
            && token.contains(|c: char| c.is_ascii_alphabetic())
            && Number::parse(token).is_none()
    };
    if !is_url && !dotted() {
        return false;
    }
    let body = stripped.strip_prefix("www.").unwrap_or(stripped).trim_end_matches('/');
    let mut part = 0;
    for (at, c) in body.char_indices() {
        if let Some(sign) = address_sign(c) {
            segment(&body[part..at], part, body, out);
            word(out, sign);
            part = at + c.len_utf8();
        }
    }
    segment(&body[part..], part, body, out);
    true
}

fn address_sign(c: char) -> Option<&'static str> {
    Some(match c {
        '.' => "dot",
        '/' => "slash",
        '@' => "at",
        '-' => "dash",
        '_' => "underscore",
        ':' => "colon",
        '?' => "question mark",
        '=' => "equals",
        '&' => "and",
        '#' => "hash",
        '%' => "percent",
        '~' => "tilde",
        '+' => "plus",
        _ => return None,
    })
}

/// Reads one part of an address; `part` starts at byte `at` of `body`.
fn segment(part: &str, at: usize, body: &str, out: &mut String) {
    if part.is_empty() {
        return;
    }
    let behind = &body[at + part.len()..];
    let ends = behind.is_empty()
        || behind.starts_with(['/', ':', '?', '#'])
        || behind.starts_with('.') && behind.len() == 3;
    let is_end = ends
        && at > 0
        && body[..at].ends_with('.')
        && part.len() <= 3
        && part.bytes().all(|b| b.is_ascii_alphabetic());
    if is_end && !WORD_ENDS.contains(&part) {
        letters(out, part);
    } else {
        mixed(part, out);
    }
}

/// Reads letters, digits and signs in one token stretch by stretch: `GPT-4o`, `B2B`, `AT&T`, `x+y`, `C++`.
pub(super) fn mixed(token: &str, out: &mut String) {
    let mut rest = token;
    while let Some(c) = rest.chars().next() {
        if c.is_ascii_digit() {
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            // "3.14" inside a formula is one number, "4.o" is not.
            let (number, after) = Number::parse(rest).expect("starts with a digit");
            if number.fraction.is_empty() && number.is_plain() {
                code(out, &rest[..end]);
                rest = &rest[end..];
            } else {
                number.say(out);
                rest = after;
            }
        } else if c.is_alphabetic() || is_mark(c) {
            let end =
                rest.find(|c: char| !(c.is_alphabetic() || is_mark(c) || c == '\'')).unwrap_or(rest.len());
            stretch(&rest[..end], token.len() > end, out);
            rest = &rest[end..];
        } else {
            if let Some(sign) = sign(c, rest, token) {
                word(out, sign);
            }
            rest = &rest[c.len_utf8()..];
        }
    }
}

/// Returns true for a combining accent.
fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Reads a stretch of letters. `joined`: digits or signs adjoin, so a single letter or up to three capitals are
/// spelled.
fn stretch(text: &str, joined: bool, out: &mut String) {
    if acronym(text, out) {
        return;
    }
    let capitals = text.chars().all(char::is_uppercase);
    if joined && (text.len() == 1 || capitals && text.len() <= 3) {
        letters(out, text);
    } else {
        camel(text, out);
    }
}

/// Reads `getUserName` as three words. `JavaScript` and `McDonald` do not need the split, but lose nothing by it.
fn camel(text: &str, out: &mut String) {
    let humps = text
        .char_indices()
        .zip(text.chars().skip(1))
        .filter(|((_, a), b)| a.is_lowercase() && b.is_uppercase());
    // "iPhone" and "eBay" are names, not two words.
    let starts_lower = text.chars().take(2).filter(|c| c.is_lowercase()).count() == 2;
    let mut from = 0;
    if starts_lower && humps.clone().count() > 0 {
        for ((at, c), _) in humps {
            word(out, &text[from..at + c.len_utf8()]);
            from = at + c.len_utf8();
        }
    }
    word(out, &text[from..]);
}

/// Reads digits joined to letters: up to three as a number ("eighty six"), four as a year, any others one by one.
fn code(out: &mut String, digits: &str) {
    match digits.parse::<u64>() {
        Ok(n) if digits.len() <= 3 && !digits.starts_with('0') => number::cardinal(out, n),
        Ok(n) if digits.len() == 4 && (1_100..3_000).contains(&n) => number::year(out, n),
        _ => number::digits(out, digits),
    }
}

/// Returns the reading of the sign `c` inside `token`; `rest` begins with `c`.
fn sign(c: char, rest: &str, token: &str) -> Option<&'static str> {
    let first = rest.len() == token.len();
    let last = rest.len() == c.len_utf8();
    let numeric =
        !last && rest[c.len_utf8()..].starts_with(|c: char| c.is_ascii_digit() || c == '(') && !first;
    let after_digit = token[..token.len() - rest.len()].ends_with(|c: char| c.is_ascii_digit());
    Some(match c {
        '#' if last && !first => "sharp",
        '#' if first && !numeric => "hashtag",
        '-' if numeric && after_digit => "minus",
        '/' if numeric && after_digit => "divided by",
        '/' if !first && !last => return None,
        '-' | '–' | '.' | ',' | ':' | ';' | '\'' | '"' | '!' | '?' | '(' | ')' => return None,
        _ => return lone_sign(c),
    })
}

/// Returns the reading of an operator of several characters.
pub(super) fn operator(token: &str) -> Option<&'static str> {
    Some(match token {
        "<=" | "=<" => "is at most",
        ">=" => "is at least",
        "!=" | "<>" | "/=" => "does not equal",
        "==" | "===" => "equals",
        "->" | "=>" | "-->" | "==>" => "to",
        "<-" => "from",
        "&&" => "and",
        "||" => "or",
        "+/-" => "plus or minus",
        "++" => "plus plus",
        "--" => "minus minus",
        "**" => "to the power of",
        _ => return None,
    })
}

/// Returns the reading of a sign that stands alone.
pub(super) fn lone_sign(c: char) -> Option<&'static str> {
    Some(match c {
        '&' => "and",
        '+' => "plus",
        '−' => "minus",
        '±' => "plus or minus",
        '×' | '*' => "times",
        '÷' => "divided by",
        '=' => "equals",
        '≠' => "does not equal",
        '≈' => "is about",
        '<' => "is less than",
        '>' => "is greater than",
        '≤' => "is at most",
        '≥' => "is at least",
        '→' | '⇒' => "to",
        '←' => "from",
        '↔' | '⇔' => "and back",
        '%' => "percent",
        '‰' => "per mille",
        '@' => "at",
        '#' => "number",
        '^' => "to the power of",
        '/' => "slash",
        '\\' => "backslash",
        '~' => "about",
        '°' => "degrees",
        '§' => "section",
        '№' => "number",
        '√' => "square root of",
        '∞' => "infinity",
        '∑' => "sum of",
        '∆' => "delta",
        'µ' => "micro",
        '$' => "dollars",
        '€' => "euros",
        '£' => "pounds",
        '¥' => "yen",
        '₹' => "rupees",
        '₩' => "won",
        '₿' => "bitcoin",
        '²' => "squared",
        '³' => "cubed",
        '¹' => "to the first",
        '⁰' => "to the zero",
        '⁴' => "to the fourth",
        '⁵' => "to the fifth",
        '⁶' => "to the sixth",
        '⁷' => "to the seventh",
        '⁸' => "to the eighth",
        '⁹' => "to the ninth",
        '½' => "one half",
        '¼' => "one quarter",
        '¾' => "three quarters",
        '⅓' => "one third",
        '⅔' => "two thirds",
        '⅛' => "one eighth",
        '⅜' => "three eighths",
        '⅝' => "five eighths",
        '⅞' => "seven eighths",
        _ => return None,
    })
}
