//! Names of languages.
//!
//! # Source
//! ISO 639, in the tables of the crate `isolang`.

use isolang::Language as Iso;

use super::Language;

/// Codes and names that ISO 639 does not have, or that stand for another code here, each with that code.
///
/// # Source
/// `LANGUAGES` and `TO_LANGUAGE_CODE` of `whisper/tokenizer.py` (openai-whisper), and the codes of whatlang.
const ALIASES: [(&str, &str); 22] = [
    ("burmese", "my"),
    ("cantonese", "yue"),
    ("castilian", "es"),
    ("cmn", "zh"),
    ("flemish", "nl"),
    ("haitian creole", "ht"),
    ("hawaiian", "haw"),
    ("jw", "jv"),
    ("letzeburgesch", "lb"),
    ("lvs", "lv"),
    ("mandarin", "zh"),
    ("moldavian", "ro"),
    ("moldovan", "ro"),
    ("myanmar", "my"),
    ("nb", "no"),
    ("nn", "no"),
    ("nob", "no"),
    ("nynorsk", "no"),
    ("pashto", "ps"),
    ("pes", "fa"),
    ("punjabi", "pa"),
    ("valencian", "ca"),
];

impl Language {
    /// Returns the language that a server means by `word`; `None` if there is no such language.
    ///
    /// `word` is a code of two or three letters (`fr`, `fra`), with or without a region (`fr-FR`), or an English name
    /// (`french`). Norwegian is one language here.
    #[must_use]
    pub fn named(word: &str) -> Option<Self> {
        let word = word.trim().to_ascii_lowercase();
        let code = word.split(['-', '_']).next().unwrap_or_default();
        let alias = ALIASES.iter().find(|(alias, _)| *alias == code || *alias == word);
        let code = alias.map_or(code, |(_, code)| code);
        let iso = match code.len() {
            2 => Iso::from_639_1(code),
            // ISO 639's codes for none, several, others, and not known.
            3 if matches!(code, "zxx" | "mul" | "mis" | "und") => None,
            3 => Iso::from_639_3(code),
            _ => None,
        };
        let iso = iso.or_else(|| {
            isolang::languages()
                .find(|iso| iso.to_639_1().is_some() && short_name(*iso).eq_ignore_ascii_case(&word))
        });
        iso.and_then(|iso| Self::new(iso.to_639_1().unwrap_or(iso.to_639_3())))
    }

    /// Returns true if both are the same language; the region and the spelling of the code do not count.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        match (Self::named(self.code()), Self::named(other.code())) {
            (Some(one), Some(other)) => one == other,
            _ => self.primary().eq_ignore_ascii_case(other.primary()),
        }
    }

    /// Returns the English name; `None` if there is no such language.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        let code = self.primary().to_ascii_lowercase();
        let iso = if code.len() == 2 { Iso::from_639_1(&code) } else { Iso::from_639_3(&code) }?;
        Some(short_name(iso))
    }
}

/// Returns the name without the additions of ISO 639: "Greek" for `Modern Greek (1453-)`.
fn short_name(iso: Iso) -> &'static str {
    let name = iso.to_name();
    name.split(" (").next().unwrap_or(name).trim_start_matches("Modern ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of the languages that Whisper recognises. Source: `whisper/tokenizer.py` (openai-whisper 20250625).
    const WHISPER: [&str; 100] = [
        "english",
        "chinese",
        "german",
        "spanish",
        "russian",
        "korean",
        "french",
        "japanese",
        "portuguese",
        "turkish",
        "polish",
        "catalan",
        "dutch",
        "arabic",
        "swedish",
        "italian",
        "indonesian",
        "hindi",
        "finnish",
        "vietnamese",
        "hebrew",
        "ukrainian",
        "greek",
        "malay",
        "czech",
        "romanian",
        "danish",
        "hungarian",
        "tamil",
        "norwegian",
        "thai",
        "urdu",
        "croatian",
        "bulgarian",
        "lithuanian",
        "latin",
        "maori",
        "malayalam",
        "welsh",
        "slovak",
        "telugu",
        "persian",
        "latvian",
        "bengali",
        "serbian",
        "azerbaijani",
        "slovenian",
        "kannada",
        "estonian",
        "macedonian",
        "breton",
        "basque",
        "icelandic",
        "armenian",
        "nepali",
        "mongolian",
        "bosnian",
        "kazakh",
        "albanian",
        "swahili",
        "galician",
        "marathi",
        "punjabi",
        "sinhala",
        "khmer",
        "shona",
        "yoruba",
        "somali",
        "afrikaans",
        "occitan",
        "georgian",
        "belarusian",
        "tajik",
        "sindhi",
        "gujarati",
        "amharic",
        "yiddish",
        "lao",
        "uzbek",
        "faroese",
        "haitian creole",
        "pashto",
        "turkmen",
        "nynorsk",
        "maltese",
        "sanskrit",
        "luxembourgish",
        "myanmar",
        "tibetan",
        "tagalog",
        "malagasy",
        "assamese",
        "tatar",
        "hawaiian",
        "lingala",
        "hausa",
        "bashkir",
        "javanese",
        "sundanese",
        "cantonese",
    ];

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
            ("nb-NO", "no"),
            ("norwegian", "no"),
            ("haitian creole", "ht"),
            ("Myanmar", "my"),
            ("yue", "yue"),
        ] {
            assert_eq!(code(Language::named(word)).as_deref(), Some(expected), "{word}");
        }
        for word in ["", "xx", "xx-XX", "zzz", "auto", "unknown", "und", "klingonese", "???"] {
            assert_eq!(code(Language::named(word)), None, "{word:?}");
        }
        for lang in whatlang::Lang::all() {
            assert_eq!(code(Language::named(lang.code())).map(|code| code.len()), Some(2), "{lang:?}");
        }
        for name in WHISPER {
            assert!(Language::named(name).is_some(), "{name}");
        }
    }

    #[test]
    fn spellings_and_regions_do_not_count() {
        let language = |code| Language::new(code).expect("a code");
        for (one, other) in
            [("fr-FR", "FR"), ("fra", "fr"), ("nb", "no"), ("zh-Hant-TW", "cmn"), ("xx-YY", "xx")]
        {
            assert!(language(one).is_like(&language(other)), "{one} {other}");
        }
        assert!(!language("fr").is_like(&language("fy")) && !language("xx").is_like(&language("fr")));
    }

    #[test]
    fn names_are_english() {
        for (code, name) in [("de-AT", Some("German")), ("el", Some("Greek")), ("xx", None)] {
            assert_eq!(Language::new(code).expect("a code").name(), name);
        }
    }
}
