//! The language in which a text is written.

use super::Language;

/// Shortest text that shows its language, characters: "Continue." is English and French.
const EVIDENCE_CHARACTERS_MIN: usize = 20;

/// Longest beginning of a text that is examined, bytes: more costs time and improves nothing.
const LOOKED_AT_BYTES_MAX: usize = 1_000;

impl Language {
    /// Returns the language in which `text` is written; `None` if `text` is too short, or could be in one of several.
    ///
    /// Two recognisers that work differently must agree, or the first must report its result as reliable. On one
    /// sentence the first alone is wrong too often. The second has only 16 languages, and takes a text in any other for
    /// one of them.
    #[must_use]
    pub fn of_text(text: &str) -> Option<Self> {
        if !is_evidence(text) {
            return None;
        }
        let text = &text[..text.floor_char_boundary(LOOKED_AT_BYTES_MAX)];
        let found = whatlang::detect(text)?;
        let code = found.lang().code();
        let is_sure = found.is_reliable() || whichlang::detect_language(text).three_letter_code() == code;
        if is_sure { Self::named(code) } else { None }
    }
}

/// Returns true if `text` is long enough to show its language, or the language that was spoken.
#[must_use]
pub fn is_evidence(text: &str) -> bool {
    // A Chinese, Japanese or Korean character counts twice, as do all that follow them in Unicode.
    let worth = text.chars().map(|char| if char < '\u{2E80}' { 1 } else { 2 });
    worth.sum::<usize>() >= EVIDENCE_CHARACTERS_MIN
}

#[cfg(test)]
mod tests {
    use super::*;

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
            // One recogniser does not have this language, and the other is sure.
            ("Столиця України — Київ.", Some("uk")),
            // One recogniser takes this for Indonesian, the other for Turkish.
            ("Habari za asubuhi, rafiki yangu mpendwa", None),
            ("Hm hm, mm-hm, hm hm hm, mm.", None),
            ("Continue.", None),
            ("Ja.", None),
            ("7 8 9 10 11 12 13 14 15 16", None),
            ("", None),
        ] {
            assert_eq!(Language::of_text(text).as_ref().map(Language::code), expected, "{text}");
        }
    }
}
