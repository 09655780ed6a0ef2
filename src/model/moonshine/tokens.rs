//! Moonshine's vocabulary: the bytes of each token.

use std::fmt;
use std::path::Path;

use super::super::ModelError;

/// The token that a decoder starts with. Source: moonshine-voice 0.0.73, `tokenizer.bin`: 0 `<unk>`, 1 `<s>`,
/// 2 `</s>`.
pub(super) const START: usize = 1;

/// The token that ends a text.
pub(super) const END: usize = 2;

/// Tokens of the vocabulary; the width of the decoder's output.
pub(super) const COUNT: usize = 32_768;

/// Longest token that is text, bytes; checked at load.
pub(super) const BYTES_MAX: usize = 64;

/// Tokens from here on are marks like `<<ST_0>>`, not text.
const MARKS: usize = 32_000;

/// The bytes of all tokens, one after the other, with a place for each token's end.
pub(super) struct Tokens {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Tokens {
    /// Reads `tokenizer.bin`: for each token a length (one byte, or two of which the first is 128 or more)
    /// and that many bytes, in which U+2581 stands for a space.
    ///
    /// # Errors
    /// [`ModelError::Missing`] if the file cannot be read, [`ModelError::Wrong`] if it is not such a list.
    pub(super) fn load(path: &Path) -> Result<Self, ModelError> {
        let expected = || format!("a vocabulary of {COUNT} tokens");
        let file = std::fs::read(path)
            .map_err(|_| ModelError::Missing { path: path.into(), expected: expected() })?;
        Self::parse(&file).map_err(|found| ModelError::Wrong {
            path: path.into(),
            found,
            expected: expected(),
        })
    }

    /// Returns the tokens, or as an error the contents found instead.
    fn parse(mut file: &[u8]) -> Result<Self, String> {
        let mut tokens = Self { bytes: Vec::with_capacity(file.len()), ends: Vec::with_capacity(COUNT) };
        while let Some((&first, rest)) = file.split_first() {
            let (length, rest) = match (first, rest.split_first()) {
                (0..128, _) => (usize::from(first), rest),
                (_, Some((&second, rest))) => (usize::from(second) * 128 + usize::from(first) - 128, rest),
                (_, None) => return Err("a file that ends within a token".into()),
            };
            let Some((token, rest)) = rest.split_at_checked(length) else {
                return Err("a file that ends within a token".into());
            };
            if tokens.ends.len() < MARKS {
                if length > BYTES_MAX {
                    return Err(format!("a token of {length} bytes"));
                }
                write_text(token, &mut tokens.bytes);
            }
            tokens.ends.push(tokens.bytes.len());
            file = rest;
        }
        if tokens.ends.len() == COUNT { Ok(tokens) } else { Err(format!("{} tokens", tokens.ends.len())) }
    }

    /// Appends the bytes of `token` to `text`; one character may need several tokens. Marks have no bytes.
    pub(super) fn write(&self, token: usize, text: &mut Vec<u8>) {
        if token > END {
            text.extend_from_slice(&self.bytes[self.ends[token - 1]..self.ends[token]]);
        }
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("count", &self.ends.len()).finish_non_exhaustive()
    }
}

/// Appends `token` with spaces in place of U+2581.
fn write_text(mut token: &[u8], text: &mut Vec<u8>) {
    while let Some((&first, rest)) = token.split_first() {
        if let Some(rest) = token.strip_prefix("\u{2581}".as_bytes()) {
            text.push(b' ');
            token = rest;
        } else {
            text.push(first);
            token = rest;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(entries: &[(usize, &str)]) -> Vec<u8> {
        let mut file = Vec::new();
        for n in 0..COUNT {
            let token = entries.iter().find(|entry| entry.0 == n).map_or("", |entry| entry.1);
            let byte = |length: usize| u8::try_from(length).unwrap();
            if token.len() >= 128 {
                file.push(byte(token.len() % 128 + 128));
                file.push(byte(token.len() / 128));
            } else {
                file.push(byte(token.len()));
            }
            file.extend_from_slice(token.as_bytes());
        }
        file
    }

    #[test]
    fn tokens_become_text_and_marks_do_not() {
        let mark = "m".repeat(300);
        let entries =
            [(1, "<s>"), (259, "\u{2581}the"), (260, "re"), (MARKS + 1, &*mark), (MARKS + 2, "<<ST_2>>")];
        let tokens = Tokens::parse(&file(&entries)).unwrap();
        let mut text = Vec::new();
        for token in [START, 259, 260, MARKS + 1, COUNT - 1, END] {
            tokens.write(token, &mut text);
        }
        assert_eq!(text, b" there");
    }

    #[test]
    fn a_file_that_is_something_else_is_refused() {
        let whole = file(&[(COUNT - 1, "end")]);
        assert_eq!(Tokens::parse(&whole[..whole.len() - 1]).unwrap_err(), "a file that ends within a token");
        assert_eq!(Tokens::parse(&[200]).unwrap_err(), "a file that ends within a token");
        assert_eq!(Tokens::parse(b"\x03abc\x00").unwrap_err(), "2 tokens");
        let long = "x".repeat(BYTES_MAX + 1);
        assert_eq!(Tokens::parse(&file(&[(500, &long)])).unwrap_err(), "a token of 65 bytes");
        let missing = Tokens::load(Path::new("/nowhere/tokenizer.bin")).unwrap_err().to_string();
        assert_eq!(missing, "/nowhere/tokenizer.bin: not found (a vocabulary of 32768 tokens)");
    }
}
