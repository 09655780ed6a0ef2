//! The marks of Markdown and HTML, one by one.
//!
//! A function that takes a [`Place`] and a [`Writer`] handles the mark at that place: it writes the text to be read for
//! the mark and returns the bytes that the mark takes.

/// HTML tags that models write. Other names between angle brackets are text.
const TAGS: &[&str] = &[
    "a",
    "abbr",
    "b",
    "blockquote",
    "body",
    "br",
    "center",
    "code",
    "dd",
    "del",
    "details",
    "div",
    "dl",
    "dt",
    "em",
    "figure",
    "font",
    "footer",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "head",
    "header",
    "hr",
    "html",
    "i",
    "img",
    "ins",
    "kbd",
    "li",
    "main",
    "mark",
    "ol",
    "p",
    "pre",
    "q",
    "s",
    "section",
    "small",
    "span",
    "strong",
    "sub",
    "summary",
    "sup",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "u",
    "ul",
];

/// HTML entities that models write, and their character.
const ENTITIES: &[(&str, &str)] = &[
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
    ("&nbsp;", " "),
    ("&quot;", "\""),
    ("&apos;", "'"),
    ("&#39;", "'"),
    ("&mdash;", "—"),
    ("&ndash;", "–"),
    ("&hellip;", "…"),
];

/// Returns the offset of the parenthesis that closes one opened before `text`. Balanced ones in between are skipped.
pub(super) fn closing(text: &str) -> Option<usize> {
    let mut depth = 1_u32;
    text.char_indices().find_map(|(at, c)| {
        depth = match c {
            '(' => depth + 1,
            ')' => depth - 1,
            _ => depth,
        };
        (depth == 0).then_some(at)
    })
}

/// One character in its line.
pub(super) struct Place<'a> {
    line: &'a str,
    at: usize,
    /// The character before; `None` at the start of the line.
    before: Option<char>,
    /// The character itself.
    pub(super) c: char,
}

impl<'a> Place<'a> {
    /// Creates the place of `c`, which stands at byte `at` of `line`, behind `before`.
    pub(super) fn new(line: &'a str, at: usize, before: Option<char>, c: char) -> Self {
        Self { line, at, before, c }
    }

    /// Returns the rest of the line, from this character on.
    pub(super) fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    /// Returns the character that stands `bytes` further on.
    fn after(&self, bytes: usize) -> Option<char> {
        self.rest()[bytes..].chars().next()
    }

    fn token_before(&self) -> &'a str {
        let before = &self.line[..self.at];
        before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or(before)
    }
}

/// Writes text with single spaces and without a space before punctuation.
pub(super) struct Writer<'a> {
    out: &'a mut String,
    /// True if a space is due before the next character.
    gap: bool,
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends to `out` and begins with a word of its own.
    pub(super) fn new(out: &'a mut String) -> Self {
        Self { out, gap: true }
    }

    pub(super) fn push(&mut self, c: char) {
        if c.is_whitespace() {
            self.gap = true;
            return;
        }
        let closes = matches!(c, ',' | '.' | '!' | '?' | ';' | ':');
        if self.gap && !self.out.is_empty() && !closes {
            self.out.push(' ');
        }
        self.gap = false;
        if c == ',' && self.out.ends_with([',', '.', '!', '?', ';', ':']) {
            return;
        }
        self.out.push(c);
    }

    pub(super) fn push_str(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c));
    }

    pub(super) fn space(&mut self) {
        self.gap = true;
    }

    /// Writes a comma, unless there is nothing before it or a pause already.
    pub(super) fn pause(&mut self) {
        if !self.out.is_empty() {
            self.push(',');
            self.gap = true;
        }
    }

    /// Writes a quote that is part of a word, of a decade ('90s) or of a measure (5'10"); drops any other.
    pub(super) fn quote(&mut self, here: &Place<'_>) {
        let next = here.after(here.c.len_utf8());
        let is_single = matches!(here.c, '\'' | '’' | '‘');
        let after_letter = here.before.is_some_and(char::is_alphanumeric);
        let before_letter = next.is_some_and(char::is_alphanumeric);
        let is_measure = here.before.is_some_and(|c| c.is_ascii_digit()) && matches!(here.c, '\'' | '"');
        let is_decade = is_single && next.is_some_and(|c| c.is_ascii_digit());
        if is_single && after_letter && before_letter || is_decade {
            self.push('\'');
        } else if is_measure {
            self.push(here.c);
        }
    }
}

pub(super) fn is_fence(line: &str) -> bool {
    ["```", "~~~"].iter().any(|fence| line.strip_prefix(fence).is_some_and(|rest| !rest.contains(fence)))
}

/// Returns true for a thematic break, the underline of a heading or the second row of a table.
pub(super) fn is_rule(line: &str) -> bool {
    let mark = |c: char| matches!(c, '-' | '*' | '_' | '=' | '|' | ':' | ' ');
    line.chars().all(mark) && line.chars().filter(|c| matches!(c, '-' | '*' | '_' | '=')).count() >= 3
}

/// Returns the line without quote, heading, bullet and task marks.
pub(super) fn without_line_marks(line: &str) -> &str {
    let mut rest = line;
    loop {
        let before = rest;
        rest = rest.strip_prefix('>').unwrap_or(rest).trim_start();
        let heading = rest.trim_start_matches('#');
        if rest.len() - heading.len() <= 6 && heading.starts_with(' ') {
            rest = heading.trim_start();
        }
        for mark in ["- ", "* ", "+ ", "• ", "◦ ", "▪ ", "– ", "[ ] ", "[x] ", "[X] "] {
            rest = rest.strip_prefix(mark).unwrap_or(rest).trim_start();
        }
        if rest.len() == before.len() {
            return rest;
        }
    }
}

/// Handles a backslash. Before punctuation a backslash makes plain text of a mark; between letters it is read.
pub(super) fn escape(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    match here.after(1) {
        Some(c) if c.is_ascii_punctuation() => {
            if matches!(c, '*' | '_' | '`' | '~' | '|' | '\\' | '(' | ')' | '[' | ']' | '{' | '}') {
                out.space();
            } else {
                out.push(c);
            }
            2
        }
        Some(c) if c.is_alphanumeric() && here.before.is_some_and(|c| c.is_alphanumeric() || c == ':') => {
            out.space();
            out.push_str("backslash ");
            1
        }
        _ => {
            out.space();
            1
        }
    }
}

/// Returns the bytes to skip: all of a footnote mark `[^1]`, else the bracket alone.
pub(super) fn bracket(here: &Place<'_>) -> usize {
    let rest = here.rest();
    if rest.starts_with("[^") {
        return rest.find(']').map_or(2, |end| end + 1);
    }
    1
}

/// Returns the bytes of the bare web address that starts here; 0 if there is none. Nothing in an address is markup.
pub(super) fn address(here: &Place<'_>) -> usize {
    let rest = here.rest();
    let starts = ["http://", "https://", "www."].iter().any(|scheme| rest.starts_with(scheme));
    if !starts || here.before.is_some_and(char::is_alphanumeric) {
        return 0;
    }
    let end = rest.find(|c: char| c.is_whitespace() || "<>()[]\"`|".contains(c)).unwrap_or(rest.len());
    rest[..end].trim_end_matches(['.', ',', '!', '?', ':', ';', '*', '_', '~']).len()
}

/// Handles an HTML tag, a link in angle brackets, or a sign.
pub(super) fn angle(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    let rest = here.rest();
    let Some(end) = rest.find('>') else {
        out.push('<');
        return 1;
    };
    let inner = &rest[1..end];
    if inner.starts_with("http") || inner.contains('@') && !inner.contains(' ') {
        out.push_str(inner);
        return end + 1;
    }
    let name = inner.trim_matches('/').split([' ', '/']).next().unwrap_or("");
    let is_comment = inner.starts_with("!--");
    if is_comment || TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(name)) {
        out.space();
        return end + 1;
    }
    out.push('<');
    1
}

pub(super) fn entity(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    match ENTITIES.iter().find(|(name, _)| here.rest().starts_with(name)) {
        Some((name, text)) => {
            out.push_str(text);
            name.len()
        }
        None => {
            out.push('&');
            1
        }
    }
}

/// Handles one or more `*`: an operator between numbers, letters or spaces, else markup.
pub(super) fn asterisks(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    let run = here.rest().bytes().take_while(|&b| b == b'*').count();
    let after = here.rest()[run..].chars().next();
    let is_operand =
        |token: &str| token.chars().count() == 1 || token.starts_with(|c: char| c.is_ascii_digit());
    let next = &here.rest()[run..];
    let token_after = &next[..next.find(|c: char| !c.is_alphanumeric()).unwrap_or(next.len())];
    let between_operands = (is_operand(here.token_before()) || here.before == Some(')'))
        && (is_operand(token_after) || after == Some('('))
        && !here.before.is_some_and(char::is_whitespace);
    let between_spaces = here.before == Some(' ') && after == Some(' ');
    match run {
        1 if between_operands || between_spaces => out.push('×'),
        2 if between_operands => out.push('^'),
        _ if here.before.is_some_and(char::is_whitespace) || after.is_some_and(char::is_whitespace) => {
            out.space()
        }
        _ => {}
    }
    run
}

/// Handles one or more `_`: a space inside a name, else markup.
pub(super) fn underscores(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    let run = here.rest().bytes().take_while(|&b| b == b'_').count();
    out.space();
    if here.before.is_none() || here.before.is_some_and(|c| !c.is_alphanumeric()) {
        out.gap = here.before.is_some_and(|c| c.is_whitespace());
    }
    if run == here.rest().len() || here.after(run).is_some_and(|c| !c.is_alphanumeric()) {
        out.gap = false;
    }
    run
}

/// Handles a parenthesis: a pause, except in a call or a plural.
pub(super) fn parenthesis(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    let rest = here.rest();
    if here.c == ')' {
        let goes_on = rest[1..].trim_start().starts_with(char::is_alphanumeric);
        let opened = here.line[..here.at].rfind('(');
        let numeric =
            opened.is_some_and(|open| here.line[open + 1..here.at].chars().all(|c| c.is_ascii_digit()));
        let glued = opened.is_some_and(|open| here.line[..open].ends_with(char::is_alphanumeric));
        if goes_on && !numeric && !glued {
            out.pause();
        } else if goes_on {
            out.space();
        }
        return 1;
    }
    let inner = closing(&rest[1..]).map(|end| &rest[1..=end]);
    if let Some(inner) = inner {
        let letters = inner.chars().filter(|c| c.is_alphanumeric()).count();
        if letters < 3 && !inner.chars().any(|c| c.is_ascii_alphanumeric()) {
            out.space();
            return inner.len() + 2; // a face: (ツ), (◕‿◕), ()
        }
    }
    if here.before.is_some_and(char::is_alphanumeric) {
        if !matches!(inner, Some("s" | "es")) {
            out.space(); // f(x)
        }
    } else if !inner.is_some_and(|inner| inner.chars().all(|c| c.is_ascii_digit())) {
        out.pause();
    }
    1
}

/// Handles dashes and `=`: dashes between words become pauses, arrows become signs, the rest stays for the normaliser.
pub(super) fn dash(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    let rest = here.rest();
    if rest.starts_with("->") || rest.starts_with("=>") {
        out.push('→');
        return 2;
    }
    let run = rest.chars().take_while(|&c| c == here.c).count() * here.c.len_utf8();
    if here.c == '=' {
        // "==" is as equal as "=", a longer run is an ornament.
        if run <= 3 {
            out.push('=');
        }
        return run;
    }
    let after = here.after(run);
    let spaced = here.before.is_none_or(char::is_whitespace) && after.is_none_or(char::is_whitespace);
    let long = here.c == '—' || run > here.c.len_utf8();
    let between_numbers =
        here.before.is_some_and(|c| c.is_ascii_digit()) && after.is_some_and(|c| c.is_ascii_digit());
    let formula = spaced && numbers_around(here, run);
    if formula {
        out.push('−');
    } else if spaced || long && !between_numbers {
        out.pause();
    } else {
        out.push('-');
    }
    run
}

/// Returns true if the nearest tokens around the spaced sign are numbers or single letters: `5 - 3`.
fn numbers_around(here: &Place<'_>, run: usize) -> bool {
    let is_operand = |token: &str| {
        let token = token.trim_matches(['(', ')']);
        token.starts_with(|c: char| c.is_ascii_digit()) || token.len() == 1 && token != "a" && token != "I"
    };
    let before = here.line[..here.at].split_whitespace().next_back().unwrap_or("");
    let after = here.rest()[run..].split_whitespace().next().unwrap_or("");
    here.c == '-' && is_operand(before) && is_operand(after) && !before.ends_with([',', ':', '.'])
}

/// Handles a run of stops: one stop is written, or a pause for dots that trail off inside a sentence.
pub(super) fn stops(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    let rest = here.rest();
    let run = rest.len() - rest.trim_start_matches(['.', '…', '!', '?']).len();
    let marks = &rest[..run];
    let next = rest[run..].trim_start().chars().next();
    if marks.contains('?') {
        out.push('?');
    } else if marks.contains('!') {
        out.push('!');
    } else if marks == "." {
        out.push('.');
    } else if next.is_some_and(char::is_lowercase) {
        out.pause();
    } else if !out.out.is_empty() {
        out.push('.');
    }
    run
}

/// Returns the bytes of an emoticon such as `:-)` that stands alone; 0 if there is none.
pub(super) fn emoticon(here: &Place<'_>) -> usize {
    if here.before.is_some_and(|c| !c.is_whitespace()) {
        return 0;
    }
    let token = here.rest().split_whitespace().next().unwrap_or("");
    let face = token[1..].trim_start_matches(['-', '\'', 'o']).trim_end_matches(['.', '!', ',']);
    let faces = [")", "(", "D", "P", "p", "))", "/", "|", "3", "*"];
    if faces.contains(&face) { 1 + token[1..].find(face).map_or(0, |at| at + face.len()) } else { 0 }
}
