//! Hidden reasoning taken out of a stream of text.
//!
//! Servers without a reasoning parser leave the thoughts of the model in its text, between `<think>` and `</think>`,
//! and cut the tags between deltas wherever a token ends. Thoughts are neither spoken nor shown.

/// Names of the tags whose content is hidden; ASCII case does not matter.
const TAGS: [&str; 2] = ["think", "thinking"];

/// Filter that removes reasoning blocks from text that comes in pieces.
///
/// Everything outside of a block comes out byte for byte, also every `<` that begins no tag. White space between a
/// block and the first word of the answer belongs to the block. A closing tag without a block is dropped, since some
/// templates open the block in the prompt. A block that never ends hides the rest of the text; the stream itself
/// still ends when the server's does.
#[derive(Debug, Default)]
pub(super) struct ReasoningFilter {
    /// Possible beginning of a tag; always shorter than the longest tag.
    held: String,
    inside: bool,
    /// True after a block, until the answer begins: white space is skipped.
    trims: bool,
    /// True once text other than white space has come out.
    answered: bool,
}

impl ReasoningFilter {
    /// Reads `piece` and appends to `text` the part that is certainly outside of any block.
    pub(super) fn feed(&mut self, piece: &str, text: &mut String) {
        for character in piece.chars() {
            self.step(character, text);
        }
    }

    /// Ends the stream: appends the text that was held back, unless it is inside a block.
    pub(super) fn finish(&mut self, text: &mut String) {
        let held = std::mem::take(&mut self.held);
        self.emit(&held, text);
    }

    /// Returns true if the text read so far ends inside a block.
    pub(super) fn is_inside(&self) -> bool {
        self.inside
    }

    fn step(&mut self, character: char, text: &mut String) {
        if character == '<' || !self.held.is_empty() {
            self.held.push(character);
            match tag(&self.held) {
                Match::Open => self.end_tag(true),
                Match::Close => self.end_tag(false),
                Match::Prefix => {}
                Match::No => {
                    // Only the last character can begin another tag: no tag holds a second `<`.
                    let mut held = std::mem::take(&mut self.held);
                    if character == '<' {
                        held.pop();
                        self.held.push('<');
                    }
                    self.emit(&held, text);
                }
            }
        } else {
            self.emit(character.encode_utf8(&mut [0; 4]), text);
        }
    }

    fn end_tag(&mut self, opens: bool) {
        self.held.clear();
        self.inside = opens;
        self.trims = !self.answered;
    }

    fn emit(&mut self, mut piece: &str, text: &mut String) {
        if self.inside {
            return;
        }
        if self.trims {
            piece = piece.trim_start();
        }
        if !piece.trim_start().is_empty() {
            self.answered = true;
            self.trims = false;
        }
        text.push_str(piece);
    }
}

enum Match {
    Open,
    Close,
    Prefix,
    No,
}

/// Compares `held`, which begins with `<`, with the tags.
fn tag(held: &str) -> Match {
    let body = &held[1..];
    let (closes, name) = match body.strip_prefix('/') {
        Some(name) => (true, name),
        None => (false, body),
    };
    let mut found = Match::No;
    for tag in TAGS {
        match name.strip_suffix('>') {
            Some(name) if name.eq_ignore_ascii_case(tag) => {
                return if closes { Match::Close } else { Match::Open };
            }
            Some(_) => {}
            None if tag.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name)) => {
                found = Match::Prefix;
            }
            None => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spoken<'a>(pieces: impl IntoIterator<Item = &'a str>) -> String {
        let mut filter = ReasoningFilter::default();
        let mut text = String::new();
        for piece in pieces {
            filter.feed(piece, &mut text);
        }
        filter.finish(&mut text);
        text
    }

    /// Checks the text whole, in two pieces cut at every character, and character by character.
    fn check(written: &str, expected: &str) {
        assert_eq!(spoken([written]), expected, "{written:?} whole");
        for (cut, _) in written.char_indices() {
            assert_eq!(spoken([&written[..cut], &written[cut..]]), expected, "{written:?} cut at {cut}");
        }
        let mut bytes = [0; 4];
        let mut filter = ReasoningFilter::default();
        let mut text = String::new();
        for character in written.chars() {
            filter.feed(character.encode_utf8(&mut bytes), &mut text);
        }
        filter.finish(&mut text);
        assert_eq!(text, expected, "{written:?} by characters");
    }

    #[test]
    fn blocks_are_hidden_wherever_they_are_cut() {
        check("<think>secret</think>\n\nHello there.", "Hello there.");
        check("Well, <think>one</think>yes<THINK>two 你好</Think> and no.", "Well, yes and no.");
        check("<thinking>a <b> c</thinking>Hi", "Hi");
        check("<think></think>Hi", "Hi");
        check("Hi <think>a</think> there", "Hi  there");
    }

    #[test]
    fn an_unclosed_block_hides_the_rest() {
        check("Yes. <think>and so on <", "Yes. ");
        check("<think>never ends", "");
    }

    #[test]
    fn a_closing_tag_alone_is_dropped() {
        check("</think>\nHello", "Hello");
        check("So</think> be it", "So be it");
    }

    #[test]
    fn everything_else_survives() {
        for text in
            ["I think < 5", "<<think", "a<b>c</b>", "x <", "</", "<thin king>", "< think>", "  lead\u{a0}\n "]
        {
            check(text, text);
        }
        check("<<think>a</think>b", "<b");
        check("<th<think>a</think>b", "<thb");
    }

    #[test]
    fn inside_says_so() {
        let mut filter = ReasoningFilter::default();
        let mut text = String::new();
        filter.feed("<think>hm", &mut text);
        assert!(filter.is_inside());
        filter.feed("</think>", &mut text);
        assert!(!filter.is_inside());
    }
}
