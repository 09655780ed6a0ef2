//! Cuts between phonemes that keep each run of the network short and lose no word.

/// Splits off the first piece of `phonemes`: up to the end of the first sentence, but at most `most` code
/// points. A sentence that is too long is cut after punctuation in its second half, else between words, else
/// anywhere but before a combining mark. The second part is the rest.
pub(super) fn split(phonemes: &str, most: usize) -> (&str, &str) {
    let mut sentence_end = None;
    let mut after_pause = None;
    let mut after_word = None;
    let mut after_sound = None;
    let mut limit = phonemes.len();
    let mut before = ' ';
    for (count, (at, phoneme)) in phonemes.char_indices().enumerate() {
        if count > 0 && phoneme != ' ' && before == ' ' {
            // A word begins here; the text before it ends with its punctuation and a space.
            match phonemes[..at].trim_end().chars().next_back() {
                Some('.' | '!' | '?') => {
                    sentence_end = Some(at);
                    break;
                }
                Some(',' | ';' | ':' | '-' | ')') if count > most / 2 => after_pause = Some(at),
                _ => {}
            }
            after_word = Some(at);
        }
        if count > 0 && !is_combining(phoneme) {
            after_sound = Some(at);
        }
        if count == most {
            limit = at;
            break;
        }
        before = phoneme;
    }
    let fits = limit == phonemes.len();
    let end = sentence_end.or(if fits { Some(limit) } else { after_pause.or(after_word).or(after_sound) });
    phonemes.split_at(end.unwrap_or(limit))
}

/// Returns true for marks that belong to the letter before: combining diacritics, and the length marks.
fn is_combining(phoneme: char) -> bool {
    matches!(phoneme, '\u{300}'..='\u{36f}' | 'ː' | 'ˑ')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(mut phonemes: &str, most: usize) -> Vec<&str> {
        let mut pieces = Vec::new();
        while !phonemes.is_empty() {
            let (piece, rest) = split(phonemes, most);
            assert!(!piece.is_empty() && piece.chars().count() <= most, "{piece:?}");
            pieces.push(piece);
            phonemes = rest;
        }
        pieces
    }

    #[test]
    fn each_sentence_is_a_piece() {
        assert_eq!(pieces("aa bb. cc, dd! ee?", 100), ["aa bb. ", "cc, dd! ", "ee?"]);
        assert_eq!(pieces("1.5", 100), ["1.5"]);
    }

    #[test]
    fn a_long_sentence_is_cut_at_a_pause_or_between_words() {
        assert_eq!(pieces("aaaa bbbb, cc dddd eeee", 14), ["aaaa bbbb, ", "cc dddd eeee"]);
        assert_eq!(pieces("aaaa bbbb cc dddd", 9), ["aaaa ", "bbbb cc ", "dddd"]);
        assert_eq!(pieces("aaaabbbb", 3), ["aaa", "abb", "bb"]);
        assert_eq!(pieces("aaa\u{303}bbː", 3), ["aa", "a\u{303}b", "bː"]);
    }

    #[test]
    fn nothing_is_lost_whatever_the_text() {
        for text in [
            "",
            " ",
            "a",
            "....",
            " . a . b ",
            "ab\u{329}\u{329}\u{329}\u{329}c",
            "ɔːl ɹaɪt, ðɛn. ",
            "   x   y   ",
        ] {
            for most in 1..12 {
                assert_eq!(pieces(text, most).concat(), text, "{most}");
            }
        }
    }
}
