//! From the dictionary's sounds to the IPA that the voice was trained on.
//!
//! The voice heard espeak-ng's American English, which splits what the dictionary joins: three weak vowels for one
//! schwa, two vowels before r, flaps. Spelling decides most of it, so vowels are aligned with the vowel letters where
//! their counts agree.
//!
//! # Source
//! Measured against `espeak-ng` 1.51 (`-v en-us --ipa`) on running text; the conditions are rules of our own.

use super::phone::{Phone, Sound, Stress};
use Phone::{AA, AE, AH, AO, AW, AY, B, CH, D, DH, EH, ER, EY, F, G, HH, IH, IY, JH, K, L, M, N, NG, OW, OY, P, R, S};
use Phone::{SH, T, TH, UH, UW, V, W, Y, Z, ZH};

/// Vowels of one word that can be aligned with its spelling.
const SYLLABLES_MAX: usize = 16;

/// Appends the IPA of a word; `spelling` is in lower case, `links` says that a vowel follows closely.
pub(super) fn write(sounds: &[Sound], spelling: &str, links: bool, out: &mut String) {
    let word = Word::new(sounds, spelling, links);
    let mut at = 0;
    let mut vowel = 0;
    while at < sounds.len() {
        if sounds[at].is_vowel() {
            word.vowel(at, vowel, out);
            vowel += 1;
            at += 1;
        } else {
            at += word.consonant(at, vowel, out);
        }
    }
}

struct Word<'a> {
    sounds: &'a [Sound],
    spelling: &'a str,
    links: bool,
    vowels: usize,
    /// The vowel letters of each vowel, if the counts agree.
    letters: Option<[Letters<'a>; SYLLABLES_MAX]>,
}

/// A group of vowel letters and where it stands.
#[derive(Clone, Copy, Default)]
struct Letters<'a> {
    group: &'a str,
    /// Everything behind the group.
    tail: &'a str,
}

impl<'a> Word<'a> {
    fn new(sounds: &'a [Sound], spelling: &'a str, links: bool) -> Self {
        let vowels = sounds.iter().filter(|sound| sound.is_vowel()).count();
        Self { sounds, spelling, links, vowels, letters: align(spelling, vowels) }
    }

    fn sound(&self, at: usize) -> Option<Sound> {
        self.sounds.get(at).copied()
    }

    fn before(&self, at: usize) -> Option<Sound> {
        at.checked_sub(1).and_then(|at| self.sound(at))
    }

    fn is_vowel(&self, at: usize) -> bool {
        self.sound(at).is_some_and(Sound::is_vowel)
    }

    fn is(&self, at: usize, phones: &[Phone]) -> bool {
        self.sound(at).is_some_and(|sound| phones.contains(&sound.phone))
    }

    /// The letters of vowel number `vowel`; empty if unknown.
    fn letters(&self, vowel: usize) -> Letters<'a> {
        self.letters.map_or_else(Letters::default, |letters| letters[vowel])
    }

    /// Whether a vowel follows the sound at `at`, be it in the next word.
    fn vowel_follows(&self, at: usize) -> bool {
        if at + 1 == self.sounds.len() { self.links } else { self.is_vowel(at + 1) }
    }

    /// Appends the consonant at `at`; returns how many sounds it takes.
    fn consonant(&self, at: usize, vowel: usize, out: &mut String) -> usize {
        let phone = self.sounds[at].phone;
        if phone == T && self.is_glottal(at, vowel) {
            out.push_str("ʔn̩");
            return 3;
        }
        // "wh" is plain w.
        if phone == HH && self.is(at + 1, &[W]) {
            return 1;
        }
        let after_vowel = self.before(at).is_some_and(|sound| sound.is_vowel() || sound.phone == R);
        let weak_follows = self.sound(at + 1).is_some_and(|next| next.is_vowel() && !next.is_stressed());
        out.push_str(match phone {
            T if after_vowel && weak_follows => "ɾ",
            N if at > 0 && self.is(at + 1, &[K, G]) => "ŋ",
            B => "b",
            CH => "tʃ",
            D => "d",
            DH => "ð",
            F => "f",
            G => "ɡ",
            HH => "h",
            JH => "dʒ",
            K => "k",
            L => "l",
            M => "m",
            N => "n",
            NG => "ŋ",
            P => "p",
            R => "ɹ",
            S => "s",
            SH => "ʃ",
            T => "t",
            TH => "θ",
            V => "v",
            W => "w",
            Y => "j",
            Z => "z",
            ZH => "ʒ",
            _ => unreachable!("a vowel is written by `vowel`"),
        });
        1
    }

    /// The t of "button": behind a full vowel, before a schwa and n that end the stem.
    fn is_glottal(&self, at: usize, vowel: usize) -> bool {
        let full = self.before(at).is_some_and(|sound| sound.is_vowel() && (sound.is_stressed() || sound.phone != AH));
        let schwa = self.sound(at + 1) == Some(Sound::plain(AH)) && self.is(at + 2, &[N]) && !self.is_vowel(at + 3);
        full && schwa && matches!(self.letters(vowel).group, "o" | "e")
    }

    /// Appends the vowel at `at`, which is number `vowel` of the word.
    fn vowel(&self, at: usize, vowel: usize, out: &mut String) {
        let sound = self.sounds[at];
        let after_primary = self.sounds[..at].iter().rfind(|sound| sound.is_vowel()).is_some_and(|before| before.stress == Stress::Primary);
        match sound.stress {
            Stress::Primary => out.push('ˈ'),
            Stress::Secondary if !after_primary => out.push('ˌ'),
            _ => {}
        }
        let text = match sound.phone {
            AA | AO if self.has_any(&["want", "qual", "quan", "font"]) => "ɔ",
            AA => "ɑː",
            AE => "æ",
            AH if sound.is_stressed() => "ʌ",
            AH => self.schwa(at, vowel),
            AO => self.open_o(at),
            AW => "aʊ",
            AY => "aɪ",
            EH => "ɛ",
            ER if sound.is_stressed() => "ɜː",
            ER if at == 1 && self.starts(&["dir"]) => "ᵻɹ",
            ER => "ɚ",
            EY => "eɪ",
            IH => self.short_i(at, vowel),
            IY => self.long_i(at, vowel),
            OW => "oʊ",
            OY => "ɔɪ",
            UH => "ʊ",
            UW if self.spelling == "into" => "ʊ",
            UW => "uː",
            _ => unreachable!("a consonant is written by `consonant`"),
        };
        out.push_str(text);
        if sound.phone == ER && self.vowel_follows(at) && text != "ᵻɹ" {
            out.push('ɹ');
        }
    }

    fn has_any(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.spelling.contains(part))
    }

    fn starts(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.spelling.starts_with(part))
    }

    fn ends(&self, parts: &[&str]) -> bool {
        parts.iter().any(|part| self.spelling.ends_with(part))
    }

    fn open_o(&self, at: usize) -> &'static str {
        if self.is(at + 1, &[R]) {
            // FORCE and NORTH, which only espeak keeps apart.
            let force = self.has_any(&["ore", "oar", "our", "oor", "port", "ford", "oris", "oria", "oric", "ory"]);
            return if force { "oː" } else { "ɔː" };
        }
        let short = self.is(at + 1, &[F, S, TH, NG, G])
            || self.spelling == "on"
            || self.is(at + 1, &[L]) && self.is(at + 2, &[T])
            || self.vowels == 1 && self.ends(&["on"]);
        if short { "ɔ" } else { "ɔː" }
    }

    fn short_i(&self, at: usize, vowel: usize) -> &'static str {
        if self.sounds[at].is_stressed() {
            return "ɪ";
        }
        if vowel == 0 {
            if at == 0 && self.starts(&["ex"]) && self.is(1, &[K, G]) {
                return "ɛ";
            }
            if self.is_weak_prefix() {
                return "ᵻ";
            }
        }
        let last = vowel + 1 == self.vowels;
        let ending = last && (self.ends(&["ed"]) && self.is(at + 1, &[D]) || self.ends(&["es", "'s"]) && self.is(at + 1, &[Z]));
        if ending { "ᵻ" } else { "ɪ" }
    }

    /// re-, de-, be-, se- and the like before a stressed syllable.
    fn is_weak_prefix(&self) -> bool {
        self.starts(&["re", "de", "be", "se", "ele", "eli", "eff", "ess"]) && !self.starts(&["exp"])
    }

    fn long_i(&self, at: usize, vowel: usize) -> &'static str {
        let sound = self.sounds[at];
        let next = self.sound(at + 1);
        if self.vowels == 1 {
            return "iː";
        }
        if sound.is_stressed() {
            return if next == Some(Sound::plain(AH)) { "i" } else { "iː" };
        }
        if next == Some(Sound::plain(IH)) {
            return "ɪ";
        }
        if vowel + 1 == self.vowels || next.is_some_and(|next| next.is_vowel() && !next.is_stressed()) {
            return "i";
        }
        if vowel > 0 {
            return "i";
        }
        if self.starts(&["re", "de"]) && next.is_some_and(|next| !next.is_vowel()) { "ᵻ" } else { "iː" }
    }

    fn schwa(&self, at: usize, vowel: usize) -> &'static str {
        let Letters { group, tail } = self.letters(vowel);
        let first = group.chars().next();
        let final_sound = at + 1 == self.sounds.len();
        if self.before(at).is_some_and(|before| before.phone == Y) && group == "u" {
            return "uː";
        }
        if at == 0 && self.vowels > 1 {
            return match self.spelling.chars().next() {
                Some('a') => "ɐ",
                Some('e' | 'i') => "ɪ",
                _ => "ə",
            };
        }
        if vowel == 0 && self.vowels > 1 {
            if self.is_weak_prefix() {
                return "ᵻ";
            }
            if self.starts(&["pre", "dis", "mis", "di"]) {
                return "ɪ";
            }
            if first == Some('a') && !final_sound {
                return "ɐ";
            }
        }
        match first {
            Some('i' | 'y') => {
                let weak = self.ends(&["ity", "ible", "ify", "ific"]) && ["ty", "ble", "fy", "fic"].contains(&tail)
                    || tail.starts_with("bil");
                if weak { "ᵻ" } else { "ɪ" }
            }
            Some('e') if final_sound || self.is(at + 1, &[N, M, L]) || tail == "ss" => "ə",
            Some('e') if self.is(at + 1, &[K]) && self.is(at + 2, &[T]) => "ɛ",
            Some('e') => "ɪ",
            _ => "ə",
        }
    }
}

fn is_vowel_letter(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

/// The vowel letters of each of `vowels` vowels, if `spelling` has as many groups of them, a silent e aside.
fn align(spelling: &str, vowels: usize) -> Option<[Letters<'_>; SYLLABLES_MAX]> {
    let mut letters = [Letters::default(); SYLLABLES_MAX];
    let mut count = 0;
    let mut rest = spelling;
    while let Some(start) = rest.find(is_vowel_letter) {
        // A y before a vowel letter is a consonant: "beyond".
        let glide = rest[start..].starts_with('y') && rest[start + 1..].starts_with(is_vowel_letter);
        let start = start + usize::from(glide);
        let length = rest[start..].find(|c| !is_vowel_letter(c)).unwrap_or(rest.len() - start);
        let (group, tail) = rest[start..].split_at(length);
        *letters.get_mut(count)? = Letters { group, tail };
        count += 1;
        rest = tail;
    }
    let silent = |last: &Letters<'_>| last.group == "e" && matches!(last.tail, "" | "d" | "s");
    if count == vowels + 1 && silent(&letters[count - 1]) {
        count -= 1;
    }
    (count == vowels).then_some(letters)
}

#[cfg(test)]
mod tests {
    use super::super::{dictionary, inventory::is_voice_symbol};
    use super::*;

    fn ipa(word: &str, links: bool) -> String {
        let mut sounds = Vec::new();
        assert!(dictionary::look_up(word, &mut sounds), "{word}");
        let mut out = String::new();
        write(&sounds, word, links, &mut out);
        out
    }

    #[test]
    fn contexts() {
        for (word, expected) in [
            ("water", "wˈɔːɾɚ"),
            ("button", "bˈʌʔn̩"),
            ("museum", "mjuːzˈiəm"),
            ("around", "ɚɹˈaʊnd"),
            ("direct", "dᵻɹˈɛkt"),
            ("report", "ɹᵻpˈoːɹt"),
            ("expect", "ɛkspˈɛkt"),
            ("homework", "hˈoʊmwɜːk"),
            ("about", "ɐbˈaʊt"),
            ("pocket", "pˈɑːkɪt"),
            ("kitchen", "kˈɪtʃən"),
            ("happy", "hˈæpi"),
            ("sleep", "slˈiːp"),
            ("good", "ɡˈʊd"),
            ("strong", "stɹˈɔŋ"),
            ("north", "nˈɔːɹθ"),
            ("wanted", "wˈɔntᵻd"),
            ("think", "θˈɪŋk"),
            ("judge", "dʒˈʌdʒ"),
        ] {
            assert_eq!(ipa(word, false), expected, "{word}");
        }
        assert_eq!(ipa("never", true), "nˈɛvɚɹ");
        assert_eq!(ipa("never", false), "nˈɛvɚ");
    }

    #[test]
    fn every_word_of_the_dictionary_is_in_the_map() {
        let mut sounds = Vec::new();
        let mut out = String::new();
        for line in dictionary::TEXT.lines() {
            let word = line.split(' ').next().expect("a word");
            sounds.clear();
            dictionary::look_up(word, &mut sounds);
            out.clear();
            write(&sounds, word, true, &mut out);
            assert!(!out.is_empty() && out.chars().all(is_voice_symbol), "{word}: {out}");
        }
    }
}
