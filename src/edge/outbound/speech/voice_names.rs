//! Voices by language.

use crate::config::VoiceName;
use crate::language::Language;

/// Error for two voices for one language, or two for all others.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("--tts-voice: found {first:?} and {second:?}{}, expected one", of(*.language))]
pub struct VoiceNamesError {
    first: String,
    second: String,
    language: Option<Language>,
}

fn of(language: Option<Language>) -> String {
    language.map_or_else(String::new, |language| format!(" for {}", language.code()))
}

/// The voices of a server by language.
#[derive(Clone, Debug, Default)]
pub struct VoiceNames {
    by_language: Vec<(Language, String)>,
    /// Voice for all other languages; `None`: the server's own.
    other: Option<String>,
}

impl VoiceNames {
    /// Makes the table of the voices `given`.
    ///
    /// # Errors
    /// [`VoiceNamesError`] if two voices are for one language.
    pub fn new(given: &[VoiceName]) -> Result<Self, VoiceNamesError> {
        let mut names = Self::default();
        for VoiceName { language, name } in given {
            let before = match language {
                None => names.other.replace(name.clone()),
                Some(language) => {
                    let is_same =
                        |(other, _): &&(Language, String)| other.code().eq_ignore_ascii_case(language.code());
                    let before = names.by_language.iter().find(is_same).map(|(_, name)| name.clone());
                    names.by_language.push((*language, name.clone()));
                    before
                }
            };
            if let Some(first) = before {
                return Err(VoiceNamesError { first, second: name.clone(), language: *language });
            }
        }
        Ok(names)
    }

    /// Returns true if the voice depends on the language.
    #[must_use]
    pub fn depends_on_language(&self) -> bool {
        !self.by_language.is_empty()
    }

    /// Returns the voice for `language`: that of the same region, else that of no region, else one of another region,
    /// else the voice for all others. `None`: the server's own.
    #[must_use]
    pub fn of(&self, language: Option<Language>) -> Option<&str> {
        let distance = |known: &Language, language: &Language| match known.code() {
            code if code.eq_ignore_ascii_case(language.code()) => Some(0),
            code if known.is_like(language) => Some(if code.contains('-') { 2 } else { 1 }),
            _ => None,
        };
        let own = language.and_then(|language| {
            let near =
                self.by_language.iter().filter_map(|(known, name)| Some((distance(known, &language)?, name)));
            near.min_by_key(|(distance, _)| *distance).map(|(_, name)| name.as_str())
        });
        own.or(self.other.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(given: &[&str]) -> Result<VoiceNames, VoiceNamesError> {
        let given: Vec<VoiceName> = given.iter().map(|name| name.parse().expect("a voice")).collect();
        VoiceNames::new(&given)
    }

    #[test]
    fn the_nearest_voice_speaks() {
        let names =
            names(&["af_heart", "fra=ff_siwis", "pt-PT=pm_alex", "pt=pf_dora", "no=nora", "es-MX=em_paco"])
                .expect("all different");
        for (code, voice) in [
            ("fr", "ff_siwis"),
            ("fr-CA", "ff_siwis"),
            ("pt", "pf_dora"),
            ("pt-PT", "pm_alex"),
            ("pt-BR", "pf_dora"),
            ("pt-pt", "pm_alex"),
            ("nb", "nora"),
            ("es-ES", "em_paco"),
            ("en", "af_heart"),
            ("xx", "af_heart"),
        ] {
            assert_eq!(names.of(Language::new(code)), Some(voice), "{code}");
        }
        assert_eq!(names.of(None), Some("af_heart"));
    }

    #[test]
    fn without_a_voice_for_all_the_server_chooses() {
        let names = names(&["fr=ff_siwis"]).expect("one");
        assert_eq!((names.of(Language::new("en")), names.of(None)), (None, None));
    }

    #[test]
    fn two_voices_for_one_language_are_refused() {
        for given in [&["a", "b"], &["fr=a", "FR=b"]] {
            assert!(names(given).is_err_and(|error| error.to_string().contains("expected one")), "{given:?}");
        }
    }
}
