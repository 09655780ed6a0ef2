//! From the dictionary's sounds to the IPA that the voice was trained on.
//!
//! The voice was trained on espeak-ng's American English, which makes distinctions that the dictionary does not: three
//! weak vowels for one schwa, two vowels before r, flaps. Spelling decides most of them, so vowels are aligned with the
//! vowel letters where their counts agree.
//!
//! # Source
//! Measured against `espeak-ng` 1.51 (`-v en-us --ipa`) on running text; the conditions are rules of our own.

use super::phone::{Phone, Sound, Stress};
use Phone::{
    AA, AE, AH, AO, AW, AY, B, CH, D, DH, EH, ER, EY, F, G, HH, IH, IY, JH, K, L, M, N, NG, OW, OY, P, R, S,
};
use Phone::{SH, T, TH, UH, UW, V, W, Y, Z, ZH};

/// Most vowels of one word that can be aligned with its spelling.
const SYLLABLES_MAX: usize = 16;

/// Appends the IPA of a word. `spelling` is in lower case, and empty if the word is read by its letters. `links` is
/// true if a vowel follows without a pause.
pub(super) fn write(sounds: &[Sound], spelling: &str, links: bool, out: &mut String) {
    let word = SpelledSounds::new(sounds, spelling, links);
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

/// Spellings in which an a before r is the vowel of "carry" rather than of "care".
const OPEN_A: &[&str] = &[
    "arr", "arab", "arac", "arad", "arag", "aral", "aram", "aran", "arif", "aris", "arit", "pparen",
    "nsparen",
];

struct SpelledSounds<'a> {
    sounds: &'a [Sound],
    spelling: &'a str,
    links: bool,
    vowels: usize,
    /// The vowel letters of each vowel, if the counts agree.
    letters: Option<[VowelLetters<'a>; SYLLABLES_MAX]>,
}

/// A group of vowel letters and the letters behind the group.
#[derive(Clone, Copy, Default)]
struct VowelLetters<'a> {
    group: &'a str,
    /// Everything behind the group.
    tail: &'a str,
}

impl<'a> SpelledSounds<'a> {
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

    /// Returns the letters of vowel number `vowel`; empty if unknown.
    fn letters(&self, vowel: usize) -> VowelLetters<'a> {
        self.letters.map_or_else(VowelLetters::default, |letters| letters[vowel])
    }

    /// Returns true if a vowel follows the sound at `at`, in this word or at the start of the next.
    fn vowel_follows(&self, at: usize) -> bool {
        if at + 1 == self.sounds.len() { self.links } else { self.is_vowel(at + 1) }
    }

    /// Appends the consonant at `at`; returns the number of sounds used.
    fn consonant(&self, at: usize, vowel: usize, out: &mut String) -> usize {
        let phone = self.sounds[at].phone;
        if phone == T && self.is_glottal(at, vowel) {
            out.push_str("ʔn̩");
            return 3;
        }
        // "wh" is plain w; the k of "length" is silent.
        if phone == HH && self.is(at + 1, &[W])
            || phone == K && self.before(at) == Some(Sound::plain(NG)) && self.is(at + 1, &[TH])
        {
            return 1;
        }
        let melted = phone == W && self.before(at) == Some(Sound::plain(AH)) && out.ends_with("uː");
        if melted {
            return 1;
        }
        let after_vowel = self.before(at).is_some_and(|sound| sound.is_vowel() || sound.phone == R);
        let weak_follows = self.sound(at + 1).is_some_and(|next| next.is_vowel() && !next.is_stressed());
        out.push_str(match phone {
            T if self.before(at).is_some_and(|before| before.phone == R) && self.is(at + 2, &[N]) => "t",
            T if after_vowel && weak_follows && !self.is_full_ive(at + 1, vowel) => "ɾ",
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

    /// Returns true for the t of "button": behind a full vowel, before a schwa and n that end the stem.
    fn is_glottal(&self, at: usize, vowel: usize) -> bool {
        let full = self
            .before(at)
            .is_some_and(|sound| sound.is_vowel() && (sound.is_stressed() || sound.phone != AH));
        let schwa =
            self.sound(at + 1) == Some(Sound::plain(AH)) && self.is(at + 2, &[N]) && !self.is_vowel(at + 3);
        full && schwa && matches!(self.letters(vowel).group, "o" | "e" | "ai")
    }

    /// Returns true for the i of "positive", whose t is not flapped: -tive behind a weak vowel.
    fn is_full_ive(&self, at: usize, vowel: usize) -> bool {
        let before = at.checked_sub(2).and_then(|at| self.sound(at));
        let weak_before = before.is_some_and(|sound| sound.is_vowel() && !sound.is_stressed());
        weak_before && vowel > 1 && self.is(at, &[AH, IH]) && self.is(at + 1, &[V]) && self.has_any(&["tive"])
    }

    /// Returns the stress that is heard. The dictionary also stresses a vowel right beside the main stress, and final
    /// y.
    fn stress(&self, at: usize) -> Stress {
        let sound = self.sounds[at];
        let mut vowels = self.sounds[at + 1..].iter().filter(|sound| sound.is_vowel());
        let next_is_primary = vowels.next().is_some_and(|next| next.stress == Stress::Primary);
        let before = self.sounds[..at].iter().rfind(|sound| sound.is_vowel());
        let after_primary = before.is_some_and(|before| before.stress == Stress::Primary);
        // Of two main stresses ("nearby") the later is the one.
        let demoted = sound.stress == Stress::Primary
            && self.sounds[at + 1..].iter().any(|sound| sound.stress == Stress::Primary);
        let stress = if demoted { Stress::Secondary } else { sound.stress };
        let final_y = sound.phone == IY && before.is_some() && self.ends(&["y", "ies"]);
        match stress {
            _ if self.spelling.is_empty() => sound.stress,
            Stress::Secondary if next_is_primary || after_primary || final_y => Stress::None,
            stress => stress,
        }
    }

    /// Appends the vowel at `at`, which is number `vowel` of the word.
    fn vowel(&self, at: usize, vowel: usize, out: &mut String) {
        let sound = self.sounds[at];
        let text = match sound.phone {
            AA | AO if self.has_any(&["want", "qual", "quan", "font"]) => "ɔ",
            AA if self.has_any(&["au", "aw"]) => "ɔː",
            AA => "ɑː",
            AE if at == 0 && !sound.is_stressed() => "ɐ",
            AE => "æ",
            AH if sound.is_stressed() => "ʌ",
            AH => self.schwa(at, vowel),
            AO => self.open_o(at),
            AW => "aʊ",
            AY => "aɪ",
            EH if self.is(at + 1, &[R]) && self.is_vowel(at + 2) && self.has_any(OPEN_A) => "æ",
            EH if vowel > 0
                && sound.stress != Stress::Primary
                && self.has_any(&["ment"])
                && self.is(at + 1, &[N]) =>
            {
                "ə"
            }
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
        match self.stress(at) {
            Stress::Primary => out.push('ˈ'),
            Stress::Secondary if text != "ə" => out.push('ˌ'),
            _ if self.before(at) == Some(Sound::plain(T)) && self.is_full_ive(at, vowel) => out.push('ˌ'),
            _ => {}
        }
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
            const FORCE: &[&str] = &[
                "bord", "cord", "corp", "dors", "forc", "ford", "norm", "oar", "oor", "ore", "oria", "oric",
                "orio", "oris", "orum", "ory", "our", "port", "rform", "tori",
            ];
            return if self.has_any(FORCE) { "oː" } else { "ɔː" };
        }
        if self.is(at + 1, &[L]) && (self.is(at + 2, &[T]) || self.is(at + 2, &[S]) && self.vowels == 1) {
            return "ɔ";
        }
        if self.has_any(&["au", "aw"]) {
            return "ɔː";
        }
        let short = self.is(at + 1, &[F, S, TH, NG, G])
            || self.spelling == "on"
            || self.vowels == 1 && self.ends(&["on"]);
        if short { "ɔ" } else { "ɔː" }
    }

    fn short_i(&self, at: usize, vowel: usize) -> &'static str {
        if self.stress(at) != Stress::None {
            return "ɪ";
        }
        if vowel == 0 {
            if at == 0 && self.is_open_e() {
                return "ɛ";
            }
            if self.is_weak_prefix() {
                return "ᵻ";
            }
        }
        match () {
            () if self.is_inflection(at, vowel) => "ᵻ",
            () if self.ends(&["en"]) && at + 2 == self.sounds.len() => "ə",
            () => "ɪ",
        }
    }

    /// Returns true if the vowel is that of an ending -ed or -es.
    fn is_inflection(&self, at: usize, vowel: usize) -> bool {
        let past = self.ends(&["ed"]) && self.is(at + 1, &[D]);
        let plural = self.ends(&["es", "'s"]) && self.is(at + 1, &[Z]);
        vowel > 0 && vowel + 1 == self.vowels && at + 2 == self.sounds.len() && (past || plural)
    }

    /// Returns true for ex- before k or g, and for en-, em- and esc- before a consonant.
    fn is_open_e(&self) -> bool {
        let ex = self.starts(&["ex"]) && self.is(1, &[K, G]);
        ex || self.starts(&["en", "em", "esc"]) && !self.is_vowel(2)
    }

    /// Returns true for a word in re-, de-, be-, se- and the like.
    fn is_weak_prefix(&self) -> bool {
        self.starts(&["re", "de", "be", "se", "ele", "eli", "eve"])
    }

    fn long_i(&self, at: usize, vowel: usize) -> &'static str {
        let next = self.sound(at + 1);
        // "ear", "tier"
        if self.is(at + 1, &[R]) && self.sounds[at].is_stressed() {
            return "ɪ";
        }
        if self.vowels == 1 {
            return "iː";
        }
        if self.stress(at) != Stress::None {
            return if next == Some(Sound::plain(AH)) { "i" } else { "iː" };
        }
        if self.sounds[at].is_stressed() && vowel > 0 && !self.ends(&["y", "ies"]) {
            return "iː"; // "increase": the vowel stays long without its mark
        }
        let next_is_primary = next.is_some_and(|next| next.stress == Stress::Primary);
        if self.is(at + 1, &[IH, OW, EY, AE]) && !next_is_primary
            || self.ends(&["ied"]) && vowel + 1 == self.vowels
        {
            return "ɪ";
        }
        if vowel > 0
            || vowel + 1 == self.vowels
            || next.is_some_and(|next| next.is_vowel() && !next.is_stressed())
        {
            return "i";
        }
        match next {
            Some(next) if next.is_vowel() => "iː",
            _ if self.starts(&["re", "de"]) => "ᵻ",
            _ if self.starts(&["pre"]) => "ɪ",
            _ => "iː",
        }
    }

    fn schwa(&self, at: usize, vowel: usize) -> &'static str {
        let VowelLetters { group, tail } = self.letters(vowel);
        if self.before(at).is_some_and(|before| before.phone == Y) && group == "u" {
            return if self.is(at + 1, &[L]) { "ʊ" } else { "uː" };
        }
        // "usual", "graduate": no w is heard between the two vowels.
        if self.is(at + 1, &[W])
            && self.is_vowel(at + 2)
            && self.has_any(&["ua", "ue", "uo"])
            && !self.spelling.contains('w')
        {
            return "uː";
        }
        if at == 0 && self.vowels > 1 {
            return match self.spelling.chars().next() {
                Some('a') => "ɐ",
                Some('e') if self.is_open_e() => "ɛ",
                Some('e' | 'i') => "ɪ",
                Some('u') if self.starts(&["un", "up"]) && self.spelling != "upon" => "ʌ",
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
            if self.starts(&["sub"]) {
                return "ʌ";
            }
        }
        if self.is_inflection(at, vowel) {
            return "ᵻ";
        }
        if self.is(at + 1, &[L]) && self.before(at) == Some(Sound::plain(K)) && self.ends(&["ically"]) {
            return ""; // "basically"
        }
        let final_sound = at + 1 == self.sounds.len();
        match group {
            "i" | "y" => {
                let weak = tail.starts_with("bil")
                    || ["ti", "ty", "fi", "fy", "cat", "gat", "nat"]
                        .iter()
                        .any(|start| tail.starts_with(start))
                    || tail == "ble";
                if weak { "ᵻ" } else { "ɪ" }
            }
            "a" if self.is(at + 1, &[JH]) => "ɪ",
            "u" if ["ct", "lt", "mb"].iter().any(|start| tail.starts_with(start)) => "ʌ",
            "e" if tail.starts_with("me") => "ɪ",
            "e" if final_sound || self.is(at + 1, &[N, M, L]) || tail == "ss" => "ə",
            "e" if self.is(at + 1, &[K]) && self.is(at + 2, &[T]) => "ɛ",
            "e" => "ɪ",
            _ => "ə",
        }
    }
}

fn is_vowel_letter(c: char) -> bool {
    matches!(c, 'a' | 'e' | 'i' | 'o' | 'u' | 'y')
}

/// Returns the vowel letters of each of `vowels` vowels; `None` unless `spelling` has as many groups of vowel letters,
/// a silent e aside.
fn align(spelling: &str, vowels: usize) -> Option<[VowelLetters<'_>; SYLLABLES_MAX]> {
    let mut letters = [VowelLetters::default(); SYLLABLES_MAX];
    let mut count = 0;
    let mut rest = spelling;
    while let Some(start) = rest.find(is_vowel_letter) {
        // A y before a vowel letter is a consonant: "beyond".
        let glide = rest[start..].starts_with('y') && rest[start + 1..].starts_with(is_vowel_letter);
        let start = start + usize::from(glide);
        let length = rest[start..].find(|c| !is_vowel_letter(c)).unwrap_or(rest.len() - start);
        let (group, tail) = rest[start..].split_at(length);
        *letters.get_mut(count)? = VowelLetters { group, tail };
        count += 1;
        rest = tail;
    }
    let silent = |last: &VowelLetters<'_>| last.group == "e" && matches!(last.tail, "" | "d" | "s");
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
