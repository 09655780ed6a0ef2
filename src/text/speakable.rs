//! Markup, emoji and decoration taken out of a clause, so that what is left can be read aloud.
//!
//! Policy. Markdown marks are never spoken: emphasis, headings, bullets, quotes, fences, rules, table bars; a link or an
//! image is read by its text, code by its content. Arithmetic and names keep their meaning: `2*3*4` becomes `2×3×4`,
//! `snake_case` becomes `snake case`, `a < b` stays for the normaliser to read. Emoji and ornaments are dropped, not
//! described. A mark is judged by its neighbours alone, never by a partner, so a clause border between two partners
//! changes nothing; only a code fence and a cut link target last from clause to clause.

use super::symbol::{self, Kind};

/// HTML tags that models write. Anything else between angle brackets is text.
const TAGS: &[&str] = &[
    "a", "abbr", "b", "blockquote", "body", "br", "center", "code", "dd", "del", "details", "div", "dl", "dt", "em",
    "figure", "font", "footer", "h1", "h2", "h3", "h4", "h5", "h6", "head", "header", "hr", "html", "i", "img", "ins",
    "kbd", "li", "main", "mark", "ol", "p", "pre", "q", "s", "section", "small", "span", "strong", "sub", "summary",
    "sup", "table", "tbody", "td", "th", "thead", "tr", "u", "ul",
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

/// Turns clauses as the model wrote them into text to read aloud.
///
/// Holds what lasts from clause to clause of one answer. Thread: the edge's language model task. No heap call once
/// `out` has grown.
#[derive(Debug, Default)]
pub struct Speakable {
    /// Inside a fenced code block.
    fenced: bool,
    /// Inside the target of a link that the last clause border has cut.
    in_target: bool,
}

impl Speakable {
    /// At the start of an answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes what is to be read of `clause` into `out`, which is cleared first. A clause that starts a line starts
    /// with `'\n'`, as [`super::ClauseSplitter`] gives it. `out` is left empty if there is nothing to speak.
    pub fn clause(&mut self, clause: &str, out: &mut String) {
        out.clear();
        let mut at_line_start = clause.starts_with('\n');
        for line in clause.trim().lines() {
            let mut writer = Writer { out, gap: true };
            writer.space();
            self.line(line.trim(), at_line_start, &mut writer);
            at_line_start = true;
        }
        let length = out.trim_end().len();
        out.truncate(length);
        if !out.chars().any(char::is_alphanumeric) {
            out.clear();
        }
    }

    fn line(&mut self, line: &str, at_line_start: bool, out: &mut Writer<'_>) {
        if at_line_start && is_fence(line) {
            self.fenced = !self.fenced;
            return;
        }
        let mut rest = line;
        if self.in_target {
            let Some(end) = rest.find([')', ' ']) else { return };
            rest = &rest[end + 1..];
            self.in_target = false;
        }
        if at_line_start && !self.fenced {
            if is_rule(line) {
                return;
            }
            if line.starts_with('|') {
                self.table_row(line, out);
                return;
            }
            rest = without_line_marks(rest);
        }
        self.inline(rest, out);
    }

    fn table_row(&mut self, line: &str, out: &mut Writer<'_>) {
        for cell in line.split('|').map(str::trim).filter(|cell| !cell.is_empty()) {
            out.pause();
            self.inline(cell, out);
        }
    }

    fn inline(&mut self, line: &str, out: &mut Writer<'_>) {
        let mut at = 0;
        let mut before = None;
        while let Some(c) = line[at..].chars().next() {
            let here = Place { line, at, before, c };
            let taken = self.one(&here, out);
            debug_assert!(taken > 0);
            at += taken;
            before = line[..at].chars().next_back();
        }
    }

    /// Handles what stands at `here`; returns the bytes it takes.
    fn one(&mut self, here: &Place<'_>, out: &mut Writer<'_>) -> usize {
        let c = here.c;
        let length = c.len_utf8();
        let address = address(here);
        if address > 0 {
            out.push_str(&here.rest()[..address]);
            return address;
        }
        match c {
            '\\' => escape(here, out),
            '!' if here.rest().starts_with("![") => 1,
            '[' => bracket(here),
            ']' => self.end_of_link_text(here, out),
            '<' => angle(here, out),
            '&' => entity(here, out),
            '`' => 1,
            '~' if here.rest().starts_with("~~") => 2,
            '*' => asterisks(here, out),
            '_' => underscores(here, out),
            '|' => {
                out.pause();
                1
            }
            '(' | ')' => parenthesis(here, out),
            '—' | '–' | '-' | '=' => dash(here, out),
            '.' | '…' | '!' | '?' => stops(here, out),
            ':' | ';' if emoticon(here) > 0 => emoticon(here),
            '\'' | '’' | '‘' | '"' | '“' | '”' | '„' | '«' | '»' => {
                out.quote(here);
                length
            }
            _ => {
                match symbol::kind(c) {
                    Kind::Spoken => out.push(c),
                    Kind::Gap => out.space(),
                    Kind::Nothing => {}
                }
                length
            }
        }
    }

    /// `](target)` and `][reference]` are dropped.
    fn end_of_link_text(&mut self, here: &Place<'_>, out: &mut Writer<'_>) -> usize {
        let rest = &here.rest()[1..];
        if let Some(reference) = rest.strip_prefix('[') {
            return reference.find(']').map_or(1, |end| 1 + end + 2);
        }
        let Some(target) = rest.strip_prefix('(') else {
            out.space();
            return 1;
        };
        let first = target.split([')', ' ']).next().unwrap_or(target);
        let is_target = first.contains(['/', '.', '#', ':']) || first.is_empty();
        match target.find(')') {
            Some(end) if is_target => 2 + closing(target).unwrap_or(end) + 1,
            None if is_target => {
                self.in_target = true;
                here.rest().len()
            }
            _ => {
                out.space();
                1
            }
        }
    }
}

/// Where the parenthesis closes that is open before `text`; a target may hold balanced ones.
fn closing(text: &str) -> Option<usize> {
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
struct Place<'a> {
    line: &'a str,
    at: usize,
    before: Option<char>,
    c: char,
}

impl<'a> Place<'a> {
    /// From this character on.
    fn rest(&self) -> &'a str {
        &self.line[self.at..]
    }

    /// The character `bytes` further on.
    fn after(&self, bytes: usize) -> Option<char> {
        self.rest()[bytes..].chars().next()
    }

    fn token_before(&self) -> &'a str {
        let before = &self.line[..self.at];
        before.rsplit(|c: char| !c.is_alphanumeric()).next().unwrap_or(before)
    }
}

/// Writes text with single spaces and without a space before punctuation.
struct Writer<'a> {
    out: &'a mut String,
    /// A space is due before the next character.
    gap: bool,
}

impl Writer<'_> {
    fn push(&mut self, c: char) {
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

    fn push_str(&mut self, text: &str) {
        text.chars().for_each(|c| self.push(c));
    }

    fn space(&mut self) {
        self.gap = true;
    }

    /// A comma, unless there is nothing before it or a pause already.
    fn pause(&mut self) {
        if !self.out.is_empty() {
            self.push(',');
            self.gap = true;
        }
    }

    /// An apostrophe stays where it is part of a word or of a measure (5'10"), other quotes go.
    fn quote(&mut self, here: &Place<'_>) {
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

fn is_fence(line: &str) -> bool {
    ["```", "~~~"].iter().any(|fence| line.strip_prefix(fence).is_some_and(|rest| !rest.contains(fence)))
}

/// A thematic break, the underline of a heading or the second row of a table.
fn is_rule(line: &str) -> bool {
    let mark = |c: char| matches!(c, '-' | '*' | '_' | '=' | '|' | ':' | ' ');
    line.chars().all(mark) && line.chars().filter(|c| matches!(c, '-' | '*' | '_' | '=')).count() >= 3
}

/// The line without quote, heading, bullet and task marks.
fn without_line_marks(line: &str) -> &str {
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

/// A backslash: before punctuation it protects that from being markup, between letters it is read.
fn escape(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
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

/// `[^1]` is a footnote mark and dropped; any other bracket leaves its content.
fn bracket(here: &Place<'_>) -> usize {
    let rest = here.rest();
    if rest.starts_with("[^") {
        return rest.find(']').map_or(2, |end| end + 1);
    }
    1
}

/// Bytes of the bare web address that starts here; nothing in it is markup. 0 if there is none.
fn address(here: &Place<'_>) -> usize {
    let rest = here.rest();
    let starts = ["http://", "https://", "www."].iter().any(|scheme| rest.starts_with(scheme));
    if !starts || here.before.is_some_and(char::is_alphanumeric) {
        return 0;
    }
    let end = rest.find(|c: char| c.is_whitespace() || "<>()[]\"`|".contains(c)).unwrap_or(rest.len());
    rest[..end].trim_end_matches(['.', ',', '!', '?', ':', ';', '*', '_', '~']).len()
}

/// An HTML tag, a link in angle brackets, or a sign.
fn angle(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
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

fn entity(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
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

/// One or more `*`: a factor sign between numbers, letters or spaces, else markup.
fn asterisks(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    let run = here.rest().bytes().take_while(|&b| b == b'*').count();
    let after = here.rest()[run..].chars().next();
    let is_operand = |token: &str| token.chars().count() == 1 || token.starts_with(|c: char| c.is_ascii_digit());
    let next = &here.rest()[run..];
    let token_after = &next[..next.find(|c: char| !c.is_alphanumeric()).unwrap_or(next.len())];
    let between_operands = (is_operand(here.token_before()) || here.before == Some(')'))
        && (is_operand(token_after) || after == Some('('))
        && !here.before.is_some_and(char::is_whitespace);
    let between_spaces = here.before == Some(' ') && after == Some(' ');
    match run {
        1 if between_operands || between_spaces => out.push('×'),
        2 if between_operands => out.push('^'),
        _ if here.before.is_some_and(char::is_whitespace) || after.is_some_and(char::is_whitespace) => out.space(),
        _ => {}
    }
    run
}

/// One or more `_`: a space inside a name, else markup.
fn underscores(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
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

/// Brackets are heard as pauses; those of a call or a plural are not.
fn parenthesis(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
    let rest = here.rest();
    if here.c == ')' {
        let goes_on = rest[1..].trim_start().starts_with(char::is_alphanumeric);
        let opened = here.line[..here.at].rfind('(');
        let numeric = opened.is_some_and(|open| here.line[open + 1..here.at].chars().all(|c| c.is_ascii_digit()));
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

/// Dashes between words are pauses, arrows are signs, the rest stays for the normaliser.
fn dash(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
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

/// Whether the nearest tokens around the spaced sign are numbers or single letters: `5 - 3`.
fn numbers_around(here: &Place<'_>, run: usize) -> bool {
    let is_operand = |token: &str| {
        let token = token.trim_matches(['(', ')']);
        token.starts_with(|c: char| c.is_ascii_digit()) || token.len() == 1 && token != "a" && token != "I"
    };
    let before = here.line[..here.at].split_whitespace().next_back().unwrap_or("");
    let after = here.rest()[run..].split_whitespace().next().unwrap_or("");
    here.c == '-' && is_operand(before) && is_operand(after) && !before.ends_with([',', ':', '.'])
}

/// Runs of stops are one stop; dots that trail off inside a sentence are a pause.
fn stops(here: &Place<'_>, out: &mut Writer<'_>) -> usize {
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

/// Bytes of an emoticon such as `:-)` that stands alone; 0 if it is none.
fn emoticon(here: &Place<'_>) -> usize {
    if here.before.is_some_and(|c| !c.is_whitespace()) {
        return 0;
    }
    let token = here.rest().split_whitespace().next().unwrap_or("");
    let face = token[1..].trim_start_matches(['-', '\'', 'o']).trim_end_matches(['.', '!', ',']);
    let faces = [")", "(", "D", "P", "p", "))", "/", "|", "3", "*"];
    if faces.contains(&face) { 1 + token[1..].find(face).map_or(0, |at| at + face.len()) } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::super::ClauseSplitter;
    use super::*;
    use proptest::prelude::*;

    /// What is spoken of `text` that arrives in `deltas`, piece by piece.
    fn spoken_of<'a>(deltas: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut splitter = ClauseSplitter::new();
        let mut speakable = Speakable::new();
        let mut spoken = Vec::new();
        let mut out = String::new();
        let mut take = |piece: &str| {
            speakable.clause(piece, &mut out);
            if !out.is_empty() {
                spoken.push(out.clone());
            }
        };
        for delta in deltas {
            splitter.push(delta, &mut take);
        }
        splitter.finish(&mut take);
        spoken
    }

    /// The spoken pieces joined by ` / `, the same for every way to cut the text in two.
    fn spoken(text: &str) -> String {
        let whole = spoken_of([text]);
        for (at, _) in text.char_indices() {
            assert_eq!(whole, spoken_of([&text[..at], &text[at..]]), "cut at {at}");
        }
        whole.join(" / ")
    }

    #[test]
    fn rc_041_markup_is_not_spoken() {
        assert_eq!(spoken("This is **very** *nice*, __really__ _so_."), "This is very nice, really so.");
        assert_eq!(spoken("Use **`cargo test`** now."), "Use cargo test now.");
        assert_eq!(spoken("# Title\n## Sub *title*\nText"), "Title / Sub title / Text");
        assert_eq!(spoken("Buy:\n- milk\n* eggs\n+ a **loaf**\n• tea"), "Buy: / milk / eggs / a loaf / tea");
        assert_eq!(spoken("1. Open it.\n2. Close it.\n\n> Quote"), "1. Open it. / 2. Close it. / Quote");
        assert_eq!(spoken("| City | Sun |\n|------|:---:|\n| Rome | 9 h |"), "City, Sun / Rome, 9 h");
        assert_eq!(spoken("Run:\n```python\nprint(x)\n```\nDone."), "Run: / print x / Done.");
        assert_eq!(spoken("A\n\n---\n\nB\n***\nC"), "A / B / C");
        assert_eq!(spoken("- [ ] open\n- [x] done"), "open / done");
        assert_eq!(spoken("a <b>bold</b> word<br>next"), "a bold word next");
        assert_eq!(spoken("~~old~~ new, tea &amp; milk"), "old new, tea & milk");
        assert_eq!(spoken("**First. Second.** Third. *Fourth."), "First. / Second. / Third. / Fourth.");
        assert_eq!(spoken("a note* and *half"), "a note and half");
    }

    #[test]
    fn rc_041_links_are_read_by_their_text() {
        assert_eq!(spoken("See [the docs](https://a.b/c_d(e)?f=1) now."), "See the docs now.");
        assert_eq!(spoken("![A cat](cat.png) sleeps"), "A cat sleeps");
        assert_eq!(spoken("See [docs][1] and <https://example.com>."), "See docs and https://example.com.");
        assert_eq!(spoken("[See docs. More here](http://x.y/z) ok"), "See docs. / More here ok");
        let long = format!("[text](https://example.com/{}) after", "abc/".repeat(200));
        assert_eq!(spoken_of([long.as_str()]).join(" "), "text after");
        assert_eq!(spoken("a footnote[^1] here"), "a footnote here");
    }

    #[test]
    fn rc_041_meaning_is_kept() {
        assert_eq!(spoken("2*3*4 and 5 * 3 and a*b and 2**8"), "2×3×4 and 5 × 3 and a×b and 2^8");
        assert_eq!(spoken("set my_var_name and __init__ and snake_case_"), "set my var name and init and snake case");
        assert_eq!(spoken("if a < b and c > d then x -> y"), "if a < b and c > d then x → y");
        assert_eq!(spoken("5 - 3 = 2, a - pause - and -40°C, 10–20"), "5 − 3 = 2, a, / pause, and -40°C, 10-20");
        assert_eq!(spoken("well-known fact(s), f(x)"), "well-known facts, f x");
        assert_eq!(spoken("It's the ‘big’ dog’s “day” of '90s rock"), "It's the big dog's day of '90s rock");
        assert_eq!(spoken("a (small) thing (here). Call (555) 123-4567"), "a, small, thing, here. / Call 555 123-4567");
        assert_eq!(spoken("Well... maybe… Yes?! No!!"), "Well, maybe. / Yes? / No!");
        assert_eq!(spoken("C:\\Users and \\*star\\*"), "C: backslash Users and star");
    }

    #[test]
    fn rc_042_the_unspeakable_is_empty() {
        let faces = ["👍", "…", "—", "\u{200b}", "┌─┐", "¯\\_(ツ)_/¯", "🙂", "(◕‿◕)", "🇫🇷", "❤️", ":-)", "***", "(╯°□°)╯︵ ┻━┻"];
        for text in faces {
            assert_eq!(spoken(text), "", "{text:?}");
        }
        assert_eq!(spoken("✅ Done"), "Done");
        assert_eq!(spoken("👩‍👩‍👧‍👦!"), "");
        assert_eq!(spoken("Great 👍🏽 job 1️⃣!"), "Great job 1!");
        assert_eq!(spoken("Hi :) there ;-) you"), "Hi there you");
    }

    proptest! {
        #[test]
        fn any_text_is_handled(text in "\\PC{0,200}") {
            for piece in spoken_of([text.as_str()]) {
                prop_assert!(piece.chars().any(char::is_alphanumeric));
                prop_assert!(!piece.contains("  ") && piece.trim() == piece);
            }
        }

        #[test]
        fn markup_does_not_depend_on_delta_borders(
            text in "([a-z]{1,4}|[0-9]|[*_`~#>|()\\[\\]<&!.-]|https://|[ \n]){0,60}",
            cut in 0_usize..60,
        ) {
            let cut = cut.min(text.len());
            prop_assert_eq!(spoken_of([text.as_str()]), spoken_of([&text[..cut], &text[cut..]]));
        }
    }
}
