//! What a client knows about the speech that is to be recognised.

use super::item::TextChunk;

/// Longest language code, bytes. `zh-Hant-TW` has 10.
const LANGUAGE_BYTES_MAX: usize = 12;

/// A language code as the client wrote it: `en`, `de-AT`.
///
/// # Source
/// ISO 639-1 and BCP 47: letters, digits and hyphens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Language {
    len: u8,
    bytes: [u8; LANGUAGE_BYTES_MAX],
}

impl Language {
    /// The language with this code. `None` where it can be none.
    #[must_use]
    pub fn new(code: &str) -> Option<Self> {
        let is_code = code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_code || !(2..=LANGUAGE_BYTES_MAX).contains(&code.len()) {
            return None;
        }
        let mut bytes = [0; LANGUAGE_BYTES_MAX];
        bytes[..code.len()].copy_from_slice(code.as_bytes());
        Some(Self { len: u8::try_from(code.len()).ok()?, bytes })
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("letters, digits and hyphens")
    }
}

impl std::fmt::Debug for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

/// Hints to the recogniser: they hold from their place in the audio on, until the session ends. The built-in recogniser
/// knows one language and takes none.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpeechHints {
    /// The language spoken; `None`: the recogniser finds out.
    pub language: Option<Language>,
    /// Words that may come, or the text before; `None`: nothing is known. What does not fit is not used.
    pub prompt: Option<TextChunk>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_codes_are_languages() {
        for code in ["en", "de-AT", "yue", "zh-Hant-TW"] {
            assert_eq!(Language::new(code).as_ref().map(Language::code), Some(code));
        }
        for text in ["", "e", "en_US", "français", "a very long name"] {
            assert_eq!(Language::new(text), None, "{text:?}");
        }
    }
}
