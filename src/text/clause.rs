//! Streamed text cut into pieces that are spoken one by one.
//!
//! The first piece should come early, since the user waits for its synthesis. The later ones should be whole sentences,
//! since each piece is an independent synthesis with its own melody. A cut inside a number or after an abbreviation is
//! a wrong reading and an audible break.
//!
//! A decision depends on the text up to a fixed distance behind the place in question, and waits until that much has
//! come. So the pieces depend on the text only, never on its cut into deltas.

use super::abbreviation::{self, STARTER_BYTES_MAX, Stop};
use crate::limits::CLAUSE_BYTES_MAX;

/// Shortest first piece that may end at a comma, characters. Shorter pieces sound chopped.
const EARLY_CHARS_MIN: usize = 12;

/// Fewest words of a first piece that may end at a comma.
const EARLY_WORDS_MIN: usize = 3;

/// Most white space before the next word, bytes; more of it ends the sentence.
const GAP_BYTES_MAX: usize = 64;

/// Longest token that is read as a word, bytes; a longer one is read letter by letter.
const WORD_LETTERS_MAX: usize = 24;

/// Weight of a digit, or of a letter that is read by its name: "seven " is six letters long.
const SPELLED_WEIGHT: usize = 6;

/// Cuts streamed text into pieces to speak.
///
/// The pieces in order are the text again, save for white space at their borders. A piece that starts a line starts
/// with `'\n'`, because some markup has a meaning only there. No piece is white space alone. No piece exceeds
/// [`CLAUSE_BYTES_MAX`] bytes, or takes longer to speak than that many letters.
///
/// Thread: the edge's language model task. Allocates only while its buffer grows to the longest delta.
#[derive(Debug)]
pub struct ClauseSplitter {
    pending: String,
    /// True once the first piece of the answer has gone to the sink.
    begun: bool,
    /// True if the pending text is at the start of a line.
    line_start: bool,
    piece: String,
}

/// The result of a scan of the pending text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cut {
    /// The piece ends before this byte.
    At(usize),
    /// The decision needs more text.
    Wait,
}

/// A splitter at the start of an answer, which is the start of a line.
impl Default for ClauseSplitter {
    fn default() -> Self {
        Self { pending: String::new(), begun: false, line_start: true, piece: String::new() }
    }
}

impl ClauseSplitter {
    /// Takes the next stretch of text, of any length; passes each complete piece to `sink`.
    pub fn push(&mut self, delta: &str, sink: &mut impl FnMut(&str)) {
        self.pending.push_str(delta);
        self.cut(false, sink);
    }

    /// Ends the answer: passes the rest to `sink` and makes the splitter ready for the next answer.
    pub fn finish(&mut self, sink: &mut impl FnMut(&str)) {
        self.cut(true, sink);
        self.pending.clear();
        self.begun = false;
        self.line_start = true;
    }

    fn cut(&mut self, at_end: bool, sink: &mut impl FnMut(&str)) {
        let mut from = 0;
        loop {
            let rest = &self.pending[from..];
            let text = rest.trim_start();
            self.line_start |= rest[..rest.len() - text.len()].contains('\n');
            from += rest.len() - text.len();
            if text.is_empty() {
                break;
            }
            let Cut::At(end) = Scan::new(text, !self.begun, at_end).run() else { break };
            self.piece.clear();
            if self.line_start {
                self.piece.push('\n');
            }
            self.piece.push_str(text[..end].trim_end());
            sink(&self.piece);
            self.begun = true;
            self.line_start = false;
            from += end;
        }
        self.pending.drain(..from);
    }
}

/// One scan of the pending text, from the start of a piece.
struct Scan<'a> {
    text: &'a str,
    /// True if the piece may end at a comma.
    early: bool,
    /// True if nothing follows `text`.
    at_end: bool,
    /// Weight of the piece so far, in letters.
    weight: usize,
    /// Bytes of the current token.
    token: usize,
    chars: usize,
    words: usize,
    /// True once the piece has something to speak.
    spoken: bool,
    /// Last places where a piece that is too long can be cut, byte offsets; the best kind first.
    pause: usize,
    space: usize,
    symbol: usize,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, early: bool, at_end: bool) -> Self {
        Self {
            text,
            early,
            at_end,
            weight: 1, // the '\n' that may lead the piece
            token: 0,
            chars: 0,
            words: 0,
            spoken: false,
            pause: 0,
            space: 0,
            symbol: 0,
        }
    }

    fn run(mut self) -> Cut {
        for (at, c) in self.text.char_indices() {
            self.weight += self.weight_of(c);
            if self.weight > CLAUSE_BYTES_MAX {
                return Cut::At(self.safe_place(at));
            }
            let after = at + c.len_utf8();
            if c == '\n' && self.spoken {
                return Cut::At(at);
            }
            if c.is_whitespace() {
                self.space = at;
                self.token = 0;
            } else {
                self.words += usize::from(self.token == 0 && c.is_alphanumeric());
                self.token += c.len_utf8();
                self.spoken |= c.is_alphanumeric();
            }
            self.chars += 1;
            match self.verdict(at, c, after) {
                Verdict::No => {}
                Verdict::End(end) => return Cut::At(end),
                Verdict::Wait => return Cut::Wait,
            }
        }
        if self.at_end { Cut::At(self.text.len()) } else { Cut::Wait }
    }

    fn weight_of(&self, c: char) -> usize {
        let spelled = self.token >= WORD_LETTERS_MAX || c.is_ascii_digit() || "@%$&+=/\\#*<>^|~".contains(c);
        if c.is_ascii() && spelled && !c.is_whitespace() { SPELLED_WEIGHT } else { c.len_utf8() }
    }

    /// Returns the place to cut a piece that the character at `limit` would make too long.
    fn safe_place(&self, limit: usize) -> usize {
        let place = [self.pause, self.space, self.symbol].into_iter().find(|&place| place * 3 > limit);
        let mut place = place.unwrap_or(limit);
        // Marks belong to the letter before them.
        while place > 1 && self.text[place..].starts_with(is_joiner) {
            place -= 1;
            while !self.text.is_char_boundary(place) {
                place -= 1;
            }
        }
        if place <= 1 { limit } else { place }
    }

    /// Decides if the piece ends with the character `c` at byte `at`, or with the closing quotes behind `c`.
    fn verdict(&mut self, at: usize, c: char, after: usize) -> Verdict {
        match c {
            '。' | '！' | '？' if self.spoken => {
                let closed = after + closers(&self.text[after..]);
                if closed == self.text.len() && !self.at_end { Verdict::Wait } else { Verdict::End(closed) }
            }
            '.' | '…' | '!' | '?' if self.spoken => self.sentence_end(at, c, after),
            ',' | ';' | ':' | '—' | '–' | '-' => self.pause_at(c, after),
            '/' | '&' | '=' | '_' => {
                self.symbol = after;
                Verdict::No
            }
            _ => Verdict::No,
        }
    }

    fn pause_at(&mut self, c: char, after: usize) -> Verdict {
        let Some(next) = self.text[after..].chars().next() else {
            return if self.at_end { Verdict::No } else { Verdict::Wait };
        };
        // A dash is a pause between spaces, or a long one between words; a hyphen is none.
        let dash_in_word =
            matches!(c, '–' | '-') && !self.text[..after - c.len_utf8()].ends_with(char::is_whitespace);
        if dash_in_word || !(next.is_whitespace() || c == '—') {
            self.symbol = after;
            return Verdict::No;
        }
        self.pause = after;
        let worth_it = self.early && self.chars >= EARLY_CHARS_MIN && self.words >= EARLY_WORDS_MIN;
        if worth_it { Verdict::End(after) } else { Verdict::No }
    }

    fn sentence_end(&self, at: usize, c: char, after: usize) -> Verdict {
        let closed = after + closers(&self.text[after..]);
        let rest = &self.text[closed..];
        let next = rest.trim_start();
        let gap = rest.len() - next.len();
        if rest.is_empty() {
            return if self.at_end { Verdict::End(closed) } else { Verdict::Wait };
        }
        if gap == 0 {
            return Verdict::No; // inside 98.6, example.com, "?!"
        }
        let certain = c == '!' || c == '?';
        if rest[..gap].contains('\n') || gap > GAP_BYTES_MAX || (certain && closed == after) {
            return Verdict::End(closed);
        }
        let Some(first) = next.trim_start_matches(is_opener).chars().next() else {
            return if self.at_end { Verdict::End(closed) } else { Verdict::Wait };
        };
        if first.is_lowercase() {
            return Verdict::No; // "e.g. a coat", "Well... maybe", "“Stop!” she said"
        }
        if c == '.' { self.full_stop(at, closed, next, first) } else { Verdict::End(closed) }
    }

    /// Decides about a `.` at byte `at`. `next` stands behind white space and starts with a capital, a digit or a
    /// symbol.
    fn full_stop(&self, at: usize, end: usize, next: &str, first: char) -> Verdict {
        let before = &self.text[..at];
        if before.trim_start_matches(is_marker).chars().all(|c| c.is_ascii_digit()) {
            return Verdict::No; // "1. Open the door"
        }
        let word = before.rsplit(|c: char| c.is_whitespace() || is_opener(c)).next().unwrap_or(before);
        match abbreviation::stop_after(word) {
            None => Verdict::End(end),
            Some(Stop::Inner) => Verdict::No,
            Some(Stop::BeforeNumber) if first.is_ascii_digit() => Verdict::No,
            Some(Stop::BeforeNumber) => Verdict::End(end),
            Some(Stop::MayEnd) => {
                let length = next.find(|c: char| !c.is_alphabetic() && c != '\'').unwrap_or(next.len());
                if length == next.len() && length <= STARTER_BYTES_MAX && !self.at_end {
                    return Verdict::Wait;
                }
                // Before anything but a word the sentence goes on ("at 9 a.m. 12 people"): few sentences begin with a
                // number. Between initials, "I" and "A" are initials too: "J. I. Smith".
                let initial = length == 1 && next[length..].starts_with('.');
                let starts = abbreviation::starts_sentence(&next[..length]) && !initial;
                if starts { Verdict::End(end) } else { Verdict::No }
            }
        }
    }
}

enum Verdict {
    No,
    End(usize),
    Wait,
}

/// Returns the bytes of closing quotes, brackets and emphasis marks at the start of `text`, further stops included.
fn closers(text: &str) -> usize {
    text.len() - text.trim_start_matches(|c| "\"')]}”’»*_`~.!?…".contains(c)).len()
}

fn is_opener(c: char) -> bool {
    "\"'([{“‘«*_`~#>".contains(c)
}

/// Returns true for a character that may stand before a list number.
fn is_marker(c: char) -> bool {
    c.is_whitespace() || is_opener(c)
}

/// Returns true for combining marks, variation selectors, joiners and skin tones. None of them is the first of a piece.
fn is_joiner(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{20e3}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns the pieces of `deltas`, after the checks that hold for every piece.
    fn pieces<'a>(deltas: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut splitter = ClauseSplitter::default();
        let mut pieces = Vec::new();
        let mut take = |piece: &str| {
            assert!(piece.len() <= CLAUSE_BYTES_MAX, "{} bytes: {piece:?}", piece.len());
            assert!(!piece.trim().is_empty(), "blank piece");
            pieces.push(piece.to_owned());
        };
        for delta in deltas {
            splitter.push(delta, &mut take);
        }
        splitter.finish(&mut take);
        pieces
    }

    /// Returns the pieces without outer white space. The text is pushed whole, by characters, and cut in two at each
    /// place.
    fn split(text: &str) -> Vec<String> {
        let whole = pieces([text]);
        let by_chars = pieces(text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()]));
        assert_eq!(whole, by_chars, "by characters");
        for (at, _) in text.char_indices() {
            assert_eq!(whole, pieces([&text[..at], &text[at..]]), "cut at {at}");
        }
        assert_eq!(without_space(text), without_space(&whole.concat()), "no text is lost");
        whole.iter().map(|piece| piece.trim().to_owned()).collect()
    }

    fn without_space(text: &str) -> String {
        text.split_whitespace().collect()
    }

    #[test]
    fn rc_039_atoms_are_never_cut() {
        let text = "It is 98.6 degrees. That is $3.50 at 192.168.1.1, version 1.2.3. Meet at 9:30 on example.com. Ask a@b.co.";
        assert_eq!(
            split(text),
            [
                "It is 98.6 degrees.",
                "That is $3.50 at 192.168.1.1, version 1.2.3.",
                "Meet at 9:30 on example.com.",
                "Ask a@b.co."
            ]
        );
        assert_eq!(
            split("Das kostet 1.000,50 Euro. Es ist 9.30 Uhr, z.B. am Montag."),
            ["Das kostet 1.000,50 Euro.", "Es ist 9.30 Uhr, z.B. am Montag."]
        );
        assert_eq!(split("Cela fait 1.000,50 euros. Oui."), ["Cela fait 1.000,50 euros.", "Oui."]);
    }

    #[test]
    fn a_stop_at_the_end_of_what_has_come_waits() {
        let mut splitter = ClauseSplitter::default();
        splitter.push("It is 98.", &mut |piece| panic!("cut inside a number: {piece}"));
        splitter.push("6", &mut |piece| panic!("cut inside a number: {piece}"));
        let mut seen = Vec::new();
        splitter.push(" now. W", &mut |piece| seen.push(piece.to_owned()));
        assert_eq!(seen, ["\nIt is 98.6 now."]);
    }

    #[test]
    fn certain_ends_cut_as_soon_as_white_space_follows() {
        let mut splitter = ClauseSplitter::default();
        let mut seen = Vec::new();
        splitter.push("Sure! ", &mut |piece| seen.push(piece.to_owned()));
        splitter.push("Really? ", &mut |piece| seen.push(piece.to_owned()));
        assert_eq!(seen, ["\nSure!", "Really?"]);
    }

    #[test]
    fn rc_040_abbreviations_and_initials() {
        let text = "Dr. Smith works for the U.S. government. Bring e.g. a coat for J. R. R. Tolkien at 9:30 a.m., then go.";
        assert_eq!(
            split(text),
            [
                "Dr. Smith works for the U.S. government.",
                "Bring e.g. a coat for J. R. R. Tolkien at 9:30 a.m., then go."
            ]
        );
        assert_eq!(split("He lives in the U.S. She left."), ["He lives in the U.S.", "She left."]);
        assert_eq!(split("We met at 9 a.m. It was cold."), ["We met at 9 a.m.", "It was cold."]);
        assert_eq!(split("We agree, so do I. She left."), ["We agree, so do I.", "She left."]);
        assert_eq!(split("See No. 5 please. No. That is it."), ["See No. 5 please.", "No.", "That is it."]);
        assert_eq!(
            split("Acme Inc. makes tools etc. They sell."),
            ["Acme Inc. makes tools etc.", "They sell."]
        );
        assert_eq!(split("\"Stop!\" she said. (He did.) Then"), ["\"Stop!\" she said.", "(He did.)", "Then"]);
        assert_eq!(split("Well... maybe so. Wait... No!"), ["Well... maybe so.", "Wait...", "No!"]);
    }

    #[test]
    fn the_first_piece_may_end_at_a_comma() {
        assert_eq!(
            split("Of course I can, here is a list, as you asked. And so, on and on, it goes."),
            ["Of course I can,", "here is a list, as you asked.", "And so, on and on, it goes."]
        );
        assert_eq!(split("Well, I think so."), ["Well, I think so."]);
        assert_eq!(split("Paris is the capital — of France."), ["Paris is the capital —", "of France."]);
        assert_eq!(split("A well-known 1,000-year-old story."), ["A well-known 1,000-year-old story."]);
    }

    #[test]
    fn lines_end_pieces_and_are_marked() {
        assert_eq!(
            pieces(["Steps:\n1. Open it.\n2. Close it\n\n- a - b"]),
            ["\nSteps:", "\n1. Open it.", "\n2. Close it", "\n- a - b"]
        );
        assert_eq!(split("**First. Second.** Third."), ["**First.", "Second.**", "Third."]);
        assert_eq!(split("👍 Great. ... So"), ["👍 Great.", "... So"], "no piece without a word");
        assert_eq!(split(" \n\u{a0} "), [""; 0]);
        assert_eq!(split("你好。”世界！"), ["你好。”", "世界！"]);
    }

    #[test]
    fn rc_043_deltas_keep_their_spaces() {
        assert_eq!(pieces(["What is ", "the weather?"]), ["\nWhat is the weather?"]);
        assert_eq!(pieces(["What is", " ", "the\u{a0}", "weather?"]), ["\nWhat is the\u{a0}weather?"]);
        assert_eq!(pieces(["One", "\n", "two"]), ["\nOne", "\ntwo"]);
    }

    #[test]
    fn rc_046_run_ons_are_cut_at_spaces() {
        let words = "word ".repeat(120);
        for piece in split(&words) {
            assert!(piece.split(' ').all(|word| word == "word"), "cut inside a word: {piece}");
        }
        for text in ["a".repeat(2_000), "QUJDRA9x".repeat(625), "字".repeat(300), "1 ".repeat(500)] {
            let pieces = split(&text[..text.len().min(1_200)]);
            assert!(pieces.len() > 1);
        }
        let url = format!("https://example.com/{}", "part/".repeat(116));
        assert!(split(&url).iter().rev().skip(1).all(|piece| piece.ends_with('/')));
        // One below, at and above the limit; the line mark takes one byte.
        for length in [CLAUSE_BYTES_MAX - 2, CLAUSE_BYTES_MAX - 1, CLAUSE_BYTES_MAX] {
            let text = format!("{}b", "a ".repeat(length / 2));
            let text = &text[..length];
            assert_eq!(split(text).len(), 1 + usize::from(length == CLAUSE_BYTES_MAX), "{length}");
        }
    }

    #[test]
    fn white_space_floods_do_not_stay_in_memory() {
        let mut splitter = ClauseSplitter::default();
        for _ in 0..10_000 {
            splitter.push("Yes. \t", &mut |_| {});
            splitter.push(&" ".repeat(100), &mut |_| {});
        }
        assert!(splitter.pending.len() < 2 * CLAUSE_BYTES_MAX);
    }

    proptest! {
        #[test]
        fn pieces_do_not_depend_on_delta_borders(
            text in "([a-zA-Z]{1,9}|[0-9]{1,3}|U\\.S\\.|Dr\\.|e\\.g\\.|[.,!?;:…—*`\"'()é。👍\u{200d}-]|[ \n]{1,3}){0,60}",
            cuts in proptest::collection::vec(0_usize..400, 0..6),
        ) {
            let mut cuts: Vec<usize> =
                cuts.into_iter().filter(|&cut| cut <= text.len() && text.is_char_boundary(cut)).collect();
            cuts.sort_unstable();
            let mut deltas = Vec::new();
            let mut from = 0;
            for cut in cuts {
                deltas.push(&text[from..cut]);
                from = cut;
            }
            deltas.push(&text[from..]);
            let whole = pieces([text.as_str()]);
            prop_assert_eq!(&whole, &pieces(deltas));
            prop_assert_eq!(without_space(&text), without_space(&whole.concat()));
        }

        #[test]
        fn any_text_comes_back(text in "\\PC{0,900}") {
            prop_assert_eq!(without_space(&text), without_space(&pieces([text.as_str()]).concat()));
        }
    }
}
