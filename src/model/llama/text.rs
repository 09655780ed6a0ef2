//! Text from tokens, whose bytes may end inside a character.

/// Longest UTF-8 sequence that can be incomplete, bytes.
const PARTIAL_BYTES_MAX: usize = 3;

/// Joins the bytes of tokens and returns whole characters only.
#[derive(Debug, Default)]
pub(super) struct TextAssembler {
    bytes: Vec<u8>,
}

impl TextAssembler {
    /// Returns the buffer for the next token's bytes.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Removes and returns the characters that are complete. Bytes that cannot become a character
    /// are U+FFFD.
    pub(super) fn take(&mut self) -> String {
        let whole = self.bytes.len() - self.partial_bytes();
        let text = String::from_utf8_lossy(&self.bytes[..whole]).into_owned();
        self.bytes.drain(..whole);
        text
    }

    /// Returns the number of bytes at the end that the next token may complete.
    fn partial_bytes(&self) -> usize {
        let tail = &self.bytes[self.bytes.len().saturating_sub(PARTIAL_BYTES_MAX)..];
        for (position, byte) in tail.iter().enumerate().rev() {
            let expected = match byte {
                0x80..=0xbf => continue,
                0xc0..=0xdf => 2,
                0xe0..=0xef => 3,
                0xf0..=0xf7 => 4,
                _ => 1,
            };
            let present = tail.len() - position;
            return if present < expected { present } else { 0 };
        }
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_cut_anywhere_stay_whole() {
        let text = "naïve 你好 👩‍🚀 — end";
        for step in 1..=5 {
            let mut assembler = TextAssembler::default();
            let mut joined = String::new();
            for token in text.as_bytes().chunks(step) {
                assembler.buffer().extend_from_slice(token);
                joined.push_str(&assembler.take());
            }
            assert_eq!(joined, text, "{step} bytes at a time");
        }
    }

    #[test]
    fn what_can_be_no_character_is_replaced_and_does_not_block() {
        let mut assembler = TextAssembler::default();
        assembler.buffer().extend_from_slice(b"a\xffb\x80\x80\x80\x80c");
        assert!(assembler.take().ends_with('c'));
        assembler.buffer().extend_from_slice(b"\xe4\xbd");
        assert_eq!(assembler.take(), "");
        assembler.buffer().extend_from_slice(b"x");
        assert_eq!(assembler.take(), "\u{fffd}x");
    }
}
