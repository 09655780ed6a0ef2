//! The words of a transcript, without the recogniser's marks of silence and noise.

/// Returns the transcript without outer white space, or `""` if it has no words: only white space, punctuation, or
/// remarks of the recogniser in brackets such as `[noise]`, `(coughs)` or `<unk>`.
pub(super) fn words_of(transcript: &str) -> &str {
    let mut depth = 0_u32;
    let said = transcript.chars().any(|char| {
        match char {
            '[' | '(' | '<' => depth += 1,
            ']' | ')' | '>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && char.is_alphanumeric()
    });
    if said { transcript.trim() } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noises_are_not_words() {
        for nothing in [
            "",
            "   ",
            "\n",
            "...",
            "?!",
            "。",
            "[noise]",
            " [BLANK_AUDIO] ",
            "(coughs).",
            "<unk> …",
            "♪♪",
            "[a (b)] -",
        ] {
            assert_eq!(words_of(nothing), "", "{nothing:?}");
        }
    }

    #[test]
    fn words_stay_as_they_are() {
        for (transcript, words) in [
            (" Hello. ", "Hello."),
            ("[noise] yes", "[noise] yes"),
            ("7", "7"),
            ("好", "好"),
            ("(555) 0100", "(555) 0100"),
            ("5 > 3", "5 > 3"),
        ] {
            assert_eq!(words_of(transcript), words);
        }
    }
}
