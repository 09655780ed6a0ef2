//! What languages are called.
//!
//! # Source
//! ISO 639, as the crate `isolang` has it.

use isolang::Language as Iso;

use super::Language;

impl Language {
    /// The language that a server means by `word`: a code of two or three letters, a region behind it does not count
    /// (`fr`, `fr-FR`, `fra`), or its English name (`french`). `None`: no language is called so.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase();
        let code = word.split(['-', '_']).next().unwrap_or_default();
        let iso = match code.len() {
            2 => Iso::from_639_1(code),
            // Chinese is written alike whichever is spoken, and recognisers name them all so.
            3 if code == "cmn" => Some(Iso::Zho),
            // Persian and Latvian: a language of a group that has the short code.
            3 if code == "pes" => Some(Iso::Fas),
            3 if code == "lvs" => Some(Iso::Lav),
            // ISO 639's codes for none, several, others, and not known.
            3 if matches!(code, "zxx" | "mul" | "mis" | "und") => None,
            3 => Iso::from_639_3(code),
            _ => None,
        };
        let iso = iso.or_else(|| {
            isolang::languages().find(|iso| iso.to_639_1().is_some() && short_name(*iso) == word)
        });
        iso.and_then(|iso| Self::new(iso.to_639_1().unwrap_or(iso.to_639_3())))
    }

    /// What it is called in English. `None`: there is no such language.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        let code = self.primary().to_ascii_lowercase();
        let iso = if code.len() == 2 { Iso::from_639_1(&code) } else { Iso::from_639_3(&code) }?;
        Some(without_remark(iso.to_name()))
    }
}

/// The name without what ISO 639 adds to it: `Modern Greek (1453-)`.
fn without_remark(name: &'static str) -> &'static str {
    name.split(" (").next().unwrap_or(name)
}

fn short_name(iso: Iso) -> String {
    without_remark(iso.to_name()).trim_start_matches("Modern ").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(language: Option<Language>) -> Option<String> {
        language.map(|language| language.code().to_owned())
    }

    #[test]
    fn a_language_has_many_names_and_some_words_are_none() {
        for (word, expected) in [
            ("fr", "fr"),
            ("fr-FR", "fr"),
            ("FR_ca", "fr"),
            ("fra", "fr"),
            ("French", "fr"),
            ("english", "en"),
            ("greek", "el"),
            ("malay", "ms"),
            ("chinese", "zh"),
            ("cmn", "zh"),
            ("yue", "yue"),
        ] {
            assert_eq!(code(Language::named(word)).as_deref(), Some(expected), "{word}");
        }
        for word in ["", "xx", "xx-XX", "zzz", "auto", "unknown", "und", "klingonese", "???"] {
            assert_eq!(code(Language::named(word)), None, "{word:?}");
        }
        for lang in whatlang::Lang::all() {
            assert!(Language::named(lang.code()).is_some(), "{lang:?}");
        }
    }

    #[test]
    fn names_are_english() {
        for (code, name) in [("de-AT", Some("German")), ("el", Some("Modern Greek")), ("xx", None)] {
            assert_eq!(Language::new(code).expect("a code").name(), name);
        }
    }
}
