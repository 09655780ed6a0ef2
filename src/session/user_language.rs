//! Which language the user speaks.

use crate::language::{Language, is_evidence};

/// What is known of it. A language that the client has set is always the one; else the last that the user's words have
/// shown: few words show little, and change nothing once there is one.
#[derive(Debug, Default)]
pub(super) struct UserLanguage {
    recent: Option<Language>,
}

impl UserLanguage {
    /// The language that the user spoke last; `None`: nothing is known.
    pub(super) const fn recent(&self) -> Option<Language> {
        self.recent
    }

    /// The user has said `words`: in the language `set` by the client, or in the one that the recogniser has `told`, or in
    /// the one that they show.
    pub(super) fn hear(&mut self, words: &str, set: Option<Language>, told: Option<Language>) {
        let counts = self.recent.is_none() || is_evidence(words);
        let found = if counts { told.or_else(|| Language::of_text(words)) } else { None };
        self.recent = set.or(found).or(self.recent);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENGLISH: &str = "What will the weather be like tomorrow?";

    fn language(code: &str) -> Option<Language> {
        Language::new(code)
    }

    #[test]
    fn the_last_long_word_of_the_recogniser_counts() {
        let mut user = UserLanguage::default();
        assert_eq!(user.recent(), None);
        for (words, told, expected) in [
            ("Bonjour.", language("fr"), "fr"),
            ("계속해", language("ko"), "fr"),
            (ENGLISH, None, "en"),
            ("Mm, mm-hm, mm, mmmm, hm.", None, "en"),
            ("Una frase che la lingua non la dice.", language("it"), "it"),
        ] {
            user.hear(words, None, told);
            assert_eq!(user.recent(), language(expected), "{words}");
        }
    }

    #[test]
    fn what_the_client_has_set_is_so() {
        let mut user = UserLanguage::default();
        user.hear(ENGLISH, language("de-AT"), language("en"));
        assert_eq!(user.recent(), language("de-AT"));
        user.hear("Ja.", None, language("nl"));
        assert_eq!(user.recent(), language("de-AT"), "little was said since");
    }
}
