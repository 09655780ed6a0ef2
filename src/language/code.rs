//! Languages by their codes: plain data, which can travel in rings.

/// Longest language code, bytes. `zh-Hant-TW` has 10.
const CODE_BYTES_MAX: usize = 12;

/// A language by its code, as it was written: `en`, `de-AT`. Any code of the right form is accepted;
/// [`Language::named`] accepts only codes of languages that exist.
///
/// # Source
/// ISO 639 and BCP 47: letters, digits and hyphens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Language {
    len: u8,
    bytes: [u8; CODE_BYTES_MAX],
}

impl Language {
    /// Creates the language with this code; `None` if `code` does not have the form of a code.
    #[must_use]
    pub fn new(code: &str) -> Option<Self> {
        let is_code = code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        if !is_code || !(2..=CODE_BYTES_MAX).contains(&code.len()) {
            return None;
        }
        let mut bytes = [0; CODE_BYTES_MAX];
        bytes[..code.len()].copy_from_slice(code.as_bytes());
        Some(Self { len: u8::try_from(code.len()).ok()?, bytes })
    }

    /// Returns English, the language of models that have no other.
    #[must_use]
    pub const fn english() -> Self {
        let mut bytes = [0; CODE_BYTES_MAX];
        (bytes[0], bytes[1]) = (b'e', b'n');
        Self { len: 2, bytes }
    }

    /// Returns the code.
    #[must_use]
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("letters, digits and hyphens")
    }

    /// Returns the part of the code before the first hyphen.
    pub(super) fn primary(&self) -> &str {
        self.code().split('-').next().unwrap_or_default()
    }
}

impl std::fmt::Debug for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
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
        assert_eq!(Language::new("en"), Some(Language::english()));
    }
}
