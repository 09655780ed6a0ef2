//! Languages by their codes.

use isolang::Language as Iso;

/// Longest language code, bytes. `zh-Hant-TW` has 10.
const CODE_BYTES_MAX: usize = 12;

/// A shorter text says little about its language, in letters: "Continue." is English and French.
const EVIDENCE_LETTERS_MIN: usize = 20;

/// A language by its code, as it was written: `en`, `de-AT`. Any code of the right form is one; whether there is such a
/// language, [`Language::named`] knows.
///
/// # Source
/// ISO 639 and BCP 47: letters, digits and hyphens.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Language {
    len: u8,
    bytes: [u8; CODE_BYTES_MAX],
}

impl Language {
    /// The language with this code. `None` where it can be none.
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

    /// English, for models that know nothing else.
    #[must_use]
    pub const fn english() -> Self {
        let mut bytes = [0; CODE_BYTES_MAX];
        (bytes[0], bytes[1]) = (b'e', b'n');
        Self { len: 2, bytes }
    }

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

    /// The language in which `text` is written. `None`: it is too short, or could be one of several. Two judges that work
    /// differently must agree, or the one that knows its doubts must have none: of one sentence the first alone is wrong
    /// too often, and the second knows only 16 languages and takes a text in any other for one of them.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        if !is_evidence(text) {
            return None;
        }
        let found = whatlang::detect(text)?;
        let code = found.lang().code();
        let is_sure = found.is_reliable() || whichlang::detect_language(text).three_letter_code() == code;
        if is_sure { Self::named(code) } else { None }
    }

    /// The code.
    #[must_use]
    pub fn code(&self) -> &str {
        std::str::from_utf8(&self.bytes[..usize::from(self.len)]).expect("letters, digits and hyphens")
    }

    /// Whether both are the same language, whatever the region.
    #[must_use]
    pub fn is_like(&self, other: &Self) -> bool {
        self.primary().eq_ignore_ascii_case(other.primary())
    }

    /// What it is called in English. `None`: there is no such language.
    #[must_use]
    pub fn name(&self) -> Option<&'static str> {
        let code = self.primary().to_ascii_lowercase();
        let iso = if code.len() == 2 { Iso::from_639_1(&code) } else { Iso::from_639_3(&code) }?;
        Some(without_remark(iso.to_name()))
    }

    fn primary(&self) -> &str {
        self.code().split('-').next().unwrap_or_default()
    }
}

/// Whether `text` is long enough to say something about its language, or about the one that was spoken.
#[must_use]
pub fn is_evidence(text: &str) -> bool {
    // From the Chinese, Japanese and Korean characters on one is worth two letters.
    let letters = text.chars().map(|char| if char < '\u{2E80}' { 1 } else { 2 });
    letters.sum::<usize>() >= EVIDENCE_LETTERS_MIN
}

/// The name without what ISO 639 adds to it: `Modern Greek (1453-)`.
fn without_remark(name: &'static str) -> &'static str {
    name.split(" (").next().unwrap_or(name)
}

fn short_name(iso: Iso) -> String {
    without_remark(iso.to_name()).trim_start_matches("Modern ").to_ascii_lowercase()
}

impl std::fmt::Debug for Language {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(language: Option<Language>) -> Option<String> {
        language.map(|language| language.code().to_owned())
    }

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
    fn regions_do_not_count_and_names_are_english() {
        let language = |code| Language::new(code).expect("a code");
        assert!(language("fr-FR").is_like(&language("FR")) && !language("fr").is_like(&language("fy")));
        for (code, name) in [("de-AT", Some("German")), ("el", Some("Modern Greek")), ("xx", None)] {
            assert_eq!(language(code).name(), name);
        }
    }

    #[test]
    fn a_sentence_shows_its_language_and_a_word_does_not() {
        for (text, expected) in [
            ("Could you tell me what the weather will be like tomorrow?", Some("en")),
            ("Est-ce que tu peux me dire quel temps il fera demain matin ?", Some("fr")),
            ("Können Sie mir bitte sagen, wie das Wetter morgen wird?", Some("de")),
            ("¿Me puedes decir qué tiempo va a hacer mañana por la mañana?", Some("es")),
            ("明日の天気はどうなりますか。", Some("ja")),
            ("明天早上的天气怎么样？", Some("zh")),
            ("जारी रखें", None),
            ("कल सुबह मौसम कैसा रहेगा?", Some("hi")),
            ("Oui, bien sûr, avec plaisir.", Some("fr")),
            // Of this language one judge knows nothing, and the other is sure.
            ("Столиця України — Київ.", Some("uk")),
            // One takes it for Indonesian, the other for Turkish.
            ("Habari za asubuhi, rafiki yangu mpendwa", None),
            ("Hm hm, mm-hm, hm hm hm, mm.", None),
            ("Continue.", None),
            ("Ja.", None),
            ("7 8 9 10 11 12 13 14 15 16", None),
            ("", None),
        ] {
            assert_eq!(code(Language::of_text(text)).as_deref(), expected, "{text}");
        }
    }
}
