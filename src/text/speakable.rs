//! Markup, emoji and decoration taken out of a clause, so that the rest can be read aloud.
//!
//! Policy. Markdown marks are never spoken: emphasis, headings, bullets, quotes, fences, rules, table bars. A link or
//! an image is read by its text, code by its content. Arithmetic and names keep their meaning: `2*3*4` becomes `2×3×4`,
//! `snake_case` becomes `snake case`, `a < b` stays for the normaliser to read. Emoji and ornaments are dropped, not
//! described. A mark is judged by its clause alone, so a clause border between two partners changes nothing. Only a
//! code fence and a cut link target last from clause to clause.

use super::markup::{
    Place, Writer, address, angle, asterisks, bracket, closing, dash, emoticon, entity, escape, is_fence,
    is_rule, parenthesis, stops, underscores, without_line_marks,
};
use super::symbol::{self, Kind};

/// Converter of clauses, as the model wrote them, into text to read aloud.
///
/// Holds the state that lasts from clause to clause of one answer. Thread: the edge's language model task. No heap call
/// once `out` has grown.
#[derive(Debug, Default)]
pub struct Speakable {
    /// True inside a fenced code block.
    fenced: bool,
    /// True inside the target of a link that the last clause border has cut.
    in_target: bool,
}

impl Speakable {
    /// Writes the text to read for `clause` into `out`, which is cleared first. A clause that starts a line starts with
    /// `'\n'`, as those of [`super::ClauseSplitter`] do. `out` is left empty if there is nothing to speak.
    pub fn clause(&mut self, clause: &str, out: &mut String) {
        out.clear();
        let mut at_line_start = clause.starts_with('\n');
        for line in clause.trim().lines() {
            let mut writer = Writer::new(out);
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
            let here = Place::new(line, at, before, c);
            let taken = self.one(&here, out);
            debug_assert!(taken > 0);
            at += taken;
            before = line[..at].chars().next_back();
        }
    }

    /// Handles the mark or character at `here`; returns the bytes taken.
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

    /// Drops `](target)` and `][reference]`; returns the bytes taken.
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

#[cfg(test)]
mod tests {
    use super::super::ClauseSplitter;
    use super::*;
    use proptest::prelude::*;

    /// Returns the spoken pieces of a text that arrives in `deltas`.
    fn spoken_of<'a>(deltas: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut splitter = ClauseSplitter::default();
        let mut speakable = Speakable::default();
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

    /// Returns the spoken pieces joined by ` / `; checks that every cut of the text in two gives the same.
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
        assert_eq!(
            spoken("set my_var_name and __init__ and snake_case_"),
            "set my var name and init and snake case"
        );
        assert_eq!(spoken("if a < b and c > d then x -> y"), "if a < b and c > d then x → y");
        assert_eq!(
            spoken("5 - 3 = 2, a - pause - and -40°C, 10–20"),
            "5 − 3 = 2, a, / pause, and -40°C, 10-20"
        );
        assert_eq!(spoken("well-known fact(s), f(x)"), "well-known facts, f x");
        assert_eq!(spoken("It's the ‘big’ dog’s “day” of '90s rock"), "It's the big dog's day of '90s rock");
        assert_eq!(
            spoken("a (small) thing (here). Call (555) 123-4567"),
            "a, small, thing, here. / Call 555 123-4567"
        );
        assert_eq!(spoken("Well... maybe… Yes?! No!!"), "Well, maybe. / Yes? / No!");
        assert_eq!(spoken("C:\\Users and \\*star\\*"), "C: backslash Users and star");
    }

    #[test]
    fn rc_042_the_unspeakable_is_empty() {
        let faces = [
            "👍",
            "…",
            "—",
            "\u{200b}",
            "┌─┐",
            "¯\\_(ツ)_/¯",
            "🙂",
            "(◕‿◕)",
            "🇫🇷",
            "❤️",
            ":-)",
            "***",
            "(╯°□°)╯︵ ┻━┻",
        ];
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
