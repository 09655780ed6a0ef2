//! The language that the user speaks.

use crate::language::{Language, is_evidence};

/// The language that the client has set or that the last long utterance has shown. Few words are weak evidence: they
/// give a guess while no language is known, and never replace a known one.
#[derive(Debug, Default)]
pub(super) struct UserLanguage {
    last: Option<Language>,
    /// True if the client has set the language or many words have shown it.
    is_known: bool,
}

impl UserLanguage {
    /// Returns the language that the user spoke last, even if it is a guess.
    pub(super) const fn last(&self) -> Option<Language> {
        self.last
    }

    /// Returns the language that the user spoke last, if it is known.
    pub(super) fn known(&self) -> Option<Language> {
        self.last.filter(|_| self.is_known)
    }

    /// Takes up the user's `words`. Their language is the one `set` by the client, or the one that the recogniser has
    /// `told`, or the one that the words show.
    pub(super) fn hear(&mut self, words: &str, set: Option<Language>, told: Option<Language>) {
        if words.is_empty() {
            return;
        }
        let is_known = set.is_some() || is_evidence(words);
        if !is_known && self.is_known {
            return;
        }
        if let Some(found) = set.or(told).or_else(|| Language::of_text(words)) {
            // A recogniser reports no region; the client may have named one before.
            let before = self.last.filter(|last| set.is_none() && last.is_like(&found));
            self.last = Some(before.unwrap_or(found));
            self.is_known |= is_known;
        }
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
    fn the_last_long_utterance_counts() {
        let mut user = UserLanguage::default();
        assert_eq!(user.last(), None);
        for (words, told, expected) in [
            ("Una frase che non dice la sua lingua.", "it", "it"),
            ("계속해", "ko", "it"),
            (ENGLISH, "", "en"),
            ("Mm, mm-hm, mm, mmmm, hm.", "", "en"),
            ("Bonsoir à vous tous, mes amis.", "fr", "fr"),
        ] {
            user.hear(words, None, language(told));
            assert_eq!((user.last(), user.known()), (language(expected), language(expected)), "{words}");
        }
    }

    #[test]
    fn a_guess_is_replaced_by_the_next_and_a_noise_is_none() {
        let mut user = UserLanguage::default();
        user.hear("", None, language("ko"));
        assert_eq!(user.last(), None, "nothing was said");
        for (words, told) in [("계속해", "ko"), ("Continue.", "en"), ("Encore.", "fr")] {
            user.hear(words, None, language(told));
            assert_eq!((user.last(), user.known()), (language(told), None), "{words}");
        }
        user.hear(ENGLISH, None, None);
        user.hear("Encore.", None, language("fr"));
        assert_eq!(user.known(), language("en"));
    }

    #[test]
    fn what_the_client_has_set_is_so_and_its_region_stays() {
        let mut user = UserLanguage::default();
        user.hear("Ja.", language("de-AT"), language("en"));
        assert_eq!(user.known(), language("de-AT"));
        user.hear("Ja.", None, language("nl"));
        assert_eq!(user.known(), language("de-AT"), "little was said since");
        user.hear("Das Wetter wird morgen sehr schön.", None, language("de"));
        assert_eq!(user.known(), language("de-AT"));
        user.hear("Das Wetter wird morgen sehr schön.", language("de"), None);
        assert_eq!(user.known(), language("de"));
    }
}
