//! Text in a ring: pieces of fixed size.

/// Bytes of text in one item.
pub const TEXT_CHUNK_BYTES: usize = 240;

/// Up to [`TEXT_CHUNK_BYTES`] bytes of UTF-8, split at character boundaries.
#[derive(Clone, Copy)]
pub struct TextChunk {
    len: u8,
    bytes: [u8; TEXT_CHUNK_BYTES],
}

const _: () = assert!(TEXT_CHUNK_BYTES <= 255, "the length is one byte");

impl TextChunk {
    /// Returns the longest prefix of `text` that fits, and the rest.
    #[must_use]
    pub fn split(text: &str) -> (Self, &str) {
        let mut cut = text.len().min(TEXT_CHUNK_BYTES);
        while !text.is_char_boundary(cut) {
            cut -= 1;
        }
        let mut bytes = [0; TEXT_CHUNK_BYTES];
        bytes[..cut].copy_from_slice(&text.as_bytes()[..cut]);
        let len = u8::try_from(cut).expect("cut <= TEXT_CHUNK_BYTES <= 255");
        (Self { len, bytes }, &text[cut..])
    }

    /// Returns the text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)])
            .expect("split at a character boundary of valid UTF-8")
    }
}

impl PartialEq for TextChunk {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl std::fmt::Debug for TextChunk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?}", self.as_str())
    }
}

/// Splits `text` into chunks. The flag of a chunk is true if the chunk is the last. Empty text gives one empty, last
/// chunk.
pub fn text_chunks(text: &str) -> impl Iterator<Item = (TextChunk, bool)> + '_ {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (chunk, tail) = TextChunk::split(rest?);
        rest = (!tail.is_empty()).then_some(tail);
        Some((chunk, rest.is_none()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_cut_between_characters_and_join_to_the_same_text() {
        for text in ["", "a", &"é".repeat(500), &"你好🚀".repeat(99)] {
            let chunks: Vec<_> = text_chunks(text).collect();
            assert!(
                chunks.iter().rev().skip(1).all(|(_, last)| !last)
                    && chunks.last().is_some_and(|(_, last)| *last)
            );
            assert_eq!(chunks.iter().map(|(chunk, _)| chunk.as_str()).collect::<String>(), text);
        }
    }
}
