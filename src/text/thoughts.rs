//! What a reasoning model thinks aloud, taken out of its streamed text.

/// Names of the tags that enclose thoughts. Source: the chat templates of the common reasoning models.
const TAGS: [&str; 4] = ["think", "thinking", "thought", "reasoning"];

/// Longest tag: `</`, the longest name, `>`.
const TAG_BYTES_MAX: usize = 2 + "reasoning".len() + 1;

/// Lets the answer through and drops thoughts, wherever the tags are cut by delta borders.
///
/// An unclosed thought lasts to the end of the answer. Only text that could be the beginning of a tag is held back,
/// at most [`TAG_BYTES_MAX`] bytes. Before the first word of an answer that began with a thought, white space is
/// dropped too.
///
/// Thread: the edge's language model task.
#[derive(Debug, Default)]
pub struct ThoughtFilter {
    /// A `<` and what has come behind it, while that may still become a tag.
    held: String,
    /// Open tags.
    depth: u32,
    /// Drop white space: nothing but thoughts has come so far.
    trim: bool,
    begun: bool,
}

impl ThoughtFilter {
    /// A filter at the start of an answer.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the text is inside a thought now.
    #[must_use]
    pub fn is_thinking(&self) -> bool {
        self.depth > 0
    }

    /// Takes the next stretch of text; gives what belongs to the answer to `sink`, in order.
    pub fn push(&mut self, delta: &str, sink: &mut impl FnMut(&str)) {
        let mut rest = delta;
        while !rest.is_empty() {
            if self.held.is_empty() {
                let tag = rest.find('<').unwrap_or(rest.len());
                self.pass(&rest[..tag], sink);
                rest = &rest[tag..];
            }
            let Some(c) = rest.chars().next() else { break };
            if !self.held.is_empty() && !Self::may_continue(&self.held, c) {
                self.release(sink);
                continue;
            }
            self.held.push(c);
            rest = &rest[c.len_utf8()..];
            if c == '>' {
                if self.held.starts_with("</") {
                    self.depth = self.depth.saturating_sub(1);
                } else {
                    self.depth += 1;
                }
                self.trim |= !self.begun;
                self.held.clear();
            }
        }
    }

    /// Ends the answer: a half tag was text after all. Ready for the next answer.
    pub fn finish(&mut self, sink: &mut impl FnMut(&str)) {
        self.release(sink);
        self.depth = 0;
        self.trim = false;
        self.begun = false;
    }

    /// Whether `held` and then `c` can be a tag or the beginning of one.
    fn may_continue(held: &str, c: char) -> bool {
        let name = held.trim_start_matches('<').trim_start_matches('/');
        debug_assert!(held.len() < TAG_BYTES_MAX);
        match c {
            '/' => held == "<",
            '>' => TAGS.iter().any(|tag| tag.eq_ignore_ascii_case(name)),
            _ => TAGS.iter().any(|tag| {
                let starts = tag.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
                starts && tag[name.len()..].starts_with(c.to_ascii_lowercase())
            }),
        }
    }

    fn release(&mut self, sink: &mut impl FnMut(&str)) {
        let held = std::mem::take(&mut self.held);
        self.pass(&held, sink);
        self.held = held;
        self.held.clear();
    }

    fn pass(&mut self, text: &str, sink: &mut impl FnMut(&str)) {
        if self.depth > 0 {
            return;
        }
        let text = if self.trim { text.trim_start() } else { text };
        if !text.is_empty() {
            self.trim = false;
            self.begun = true;
            sink(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer_of<'a>(deltas: impl IntoIterator<Item = &'a str>) -> String {
        let mut filter = ThoughtFilter::new();
        let mut answer = String::new();
        for delta in deltas {
            filter.push(delta, &mut |text| answer.push_str(text));
        }
        filter.finish(&mut |text| answer.push_str(text));
        assert!(!filter.is_thinking());
        answer
    }

    /// The answer of `text`, the same however the text is cut.
    fn answer(text: &str) -> String {
        let whole = answer_of([text]);
        for (at, _) in text.char_indices() {
            assert_eq!(whole, answer_of([&text[..at], &text[at..]]), "cut at {at}");
        }
        assert_eq!(whole, answer_of(text.char_indices().map(|(at, c)| &text[at..at + c.len_utf8()])));
        whole
    }

    #[test]
    fn rc_045_thoughts_are_not_spoken() {
        assert_eq!(answer("<think>Hm, 2 < 3 </b> so</think>\n\nHello there."), "Hello there.");
        assert_eq!(answer("A <think>one</think>B<THINK>two</Think> C"), "A B C");
        assert_eq!(answer("Yes.<thinking>never closed, for ever"), "Yes.");
        assert_eq!(
            answer("I think < 5, <thin and <b>, <<think>x</think>< é"),
            "I think < 5, <thin and <b>, << é"
        );
        assert_eq!(answer("stray </think>end"), "stray end");
        assert_eq!(answer("<think><reasoning>a</reasoning>b</think>c"), "c");
        assert_eq!(answer("  kept <thinker> text </"), "  kept <thinker> text </");
        assert_eq!(answer("<think></think>"), "");
    }
}
