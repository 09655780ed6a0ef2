//! Normalised text split into words and pauses, with all words in plain letters.

use unicode_normalization::UnicodeNormalization as _;

/// Longest word that is read as a word, letters. A longer one is read letter by letter; the weights of
/// [`super::super::clause`] rely on that.
const WORD_LETTERS_MAX: usize = 24;

/// The way in which a word is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    /// As a word.
    Word,
    /// Written in capitals among words that are not: perhaps an acronym. `plural` is true if an s or 's follows.
    Capitals { plural: bool },
    /// By the names of its letters.
    Letters,
}

/// One word of the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Word {
    /// Range of the word's letters in [`Words::letters`].
    start: usize,
    end: usize,
    pub(super) style: Style,
    /// True if the word begins with a capital.
    pub(super) is_name: bool,
    /// The punctuation behind the word.
    pub(super) pause: Option<char>,
}

/// The words of one text. The buffers are reused for the next text.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Letters of all words: `a` to `z` and apostrophes.
    letters: String,
    pub(super) words: Vec<Word>,
}

impl Words {
    /// Returns the letters of word number `at`; empty if there is no such word.
    pub(super) fn letters(&self, at: usize) -> &str {
        self.words.get(at).map_or("", |word| &self.letters[word.start..word.end])
    }

    /// Splits `text` into words; the words of the last text are gone.
    pub(super) fn read(&mut self, text: &str) {
        self.letters.clear();
        self.words.clear();
        let shouts = !text.contains(char::is_lowercase);
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if is_letter(c) {
                let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
                self.word(rest[..end].trim_end_matches(is_apostrophe), shouts);
                rest = &rest[end..];
                continue;
            }
            rest = &rest[c.len_utf8()..];
            if let Some(script) = script(c) {
                // One mention for the whole run.
                rest = rest.trim_start_matches(|next| self::script(next) == Some(script) || next == ' ');
                self.push("some", Style::Word);
                self.push(script, Style::Word);
                self.push("text", Style::Word);
            } else if matches!(c, ',' | '.' | '!' | '?' | ';' | ':')
                && let Some(last) = self.words.last_mut()
                && last.pause.is_none()
            {
                last.pause = Some(c);
            }
        }
        self.tell_articles();
        self.join_letters();
    }

    fn push(&mut self, letters: &str, style: Style) {
        let start = self.letters.len();
        self.letters.push_str(letters);
        self.words.push(Word { start, end: self.letters.len(), style, is_name: false, pause: None });
    }

    /// Adds the word `text`, which starts with a letter and holds letters, marks and apostrophes.
    fn word(&mut self, text: &str, shouts: bool) {
        let start = self.letters.len();
        if text.is_ascii() {
            self.letters.extend(text.chars().map(|c| c.to_ascii_lowercase()));
        } else {
            for c in text.nfd().flat_map(char::to_lowercase) {
                fold(c, &mut self.letters);
            }
        }
        if self.letters.len() == start {
            return;
        }
        let bare = text.strip_suffix("'s").or_else(|| text.strip_suffix("’s")).unwrap_or(text);
        let stem = bare.strip_suffix('s').unwrap_or(bare);
        let plural = stem.len() < text.len();
        let capitals = |text: &str| text.len() > 1 && text.chars().all(char::is_uppercase);
        let is_capital = |text: &str| text.len() == 1 && text.chars().all(char::is_uppercase);
        let plural_letter = plural && is_capital(stem) && text != "As" && text != "Is"; // "P H Ds"
        let letters = self.letters.len() - start;
        let style = if letters == 1 && !text.starts_with(char::is_lowercase) || letters > WORD_LETTERS_MAX {
            Style::Letters
        } else if !shouts && capitals(stem) || plural_letter {
            Style::Capitals { plural }
        } else {
            Style::Word
        };
        self.words.push(Word {
            start,
            end: self.letters.len(),
            style,
            is_name: text.starts_with(char::is_uppercase),
            pause: None,
        });
    }

    /// Marks a lone capital A at the start of a sentence as an article, unless a letter follows: "A I".
    fn tell_articles(&mut self) {
        for at in 0..self.words.len() {
            if self.letters(at) != "a" || self.words[at].style != Style::Letters {
                continue;
            }
            let opens = at == 0 || matches!(self.words[at - 1].pause, Some('.' | '!' | '?' | ':'));
            let next_is_letter = self.words.get(at + 1).is_some_and(|next| {
                next.style == Style::Letters && next.end - next.start == 1
                    || matches!(next.style, Style::Capitals { plural: true }) && next.end - next.start == 2
            });
            if opens && !next_is_letter && self.words[at].pause.is_none() && at + 1 < self.words.len() {
                self.words[at].style = Style::Word;
            }
        }
    }

    /// Joins letters in a row to one word with one stress: "A M" sounds like "AM".
    fn join_letters(&mut self) {
        self.words.dedup_by(|next, word| {
            let single = next.style == Style::Letters && next.end - next.start == 1;
            let joins =
                single && word.style == Style::Letters && word.pause.is_none() && word.end == next.start;
            if joins {
                word.end = next.end;
                word.pause = next.pause;
            }
            joins
        });
    }
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '’')
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

/// Returns true if `c` is a letter that can be folded to a Latin one.
fn is_letter(c: char) -> bool {
    c.is_alphabetic() && script(c).is_none()
}

fn is_part(c: char) -> bool {
    is_letter(c) || is_mark(c) || is_apostrophe(c)
}

/// Appends the plain letters nearest to `c`, which is in lower case and decomposed. Appends nothing if there are none.
fn fold(c: char, out: &mut String) {
    let text = match c {
        'a'..='z' => return out.push(c),
        '\'' | '’' => "'",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ı' => "i",
        'ŋ' => "ng",
        'ə' => "e",
        // Greek and Cyrillic: the usual transliteration, shortened as an English reader says it.
        'α' | 'а' => "a",
        'β' | 'в' => "v",
        'б' => "b",
        'γ' | 'г' => "g",
        'δ' | 'д' => "d",
        'ε' | 'η' | 'е' | 'э' => "e",
        'ж' => "zh",
        'ζ' | 'з' => "z",
        'θ' => "th",
        'ι' | 'и' | 'і' | 'й' => "i",
        'κ' | 'к' => "k",
        'λ' | 'л' => "l",
        'μ' | 'м' => "m",
        'ν' | 'н' => "n",
        'ξ' => "x",
        'ο' | 'ω' | 'о' => "o",
        'π' | 'п' => "p",
        'ρ' | 'р' => "r",
        'σ' | 'ς' | 'с' => "s",
        'τ' | 'т' => "t",
        'υ' | 'у' => "u",
        'φ' | 'ф' => "f",
        'χ' | 'х' => "kh",
        'ψ' => "ps",
        'ц' => "ts",
        'ч' => "ch",
        'ш' => "sh",
        'щ' => "shch",
        'ы' => "y",
        'ю' => "yu",
        'я' => "ya",
        _ => return,
    };
    out.push_str(text);
}

/// Returns the name of the script of `c` if the voice cannot read that script.
fn script(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{0}'..='\u{52f}' => return None,
        '\u{530}'..='\u{58f}' => "armenian",
        '\u{590}'..='\u{5ff}' => "hebrew",
        '\u{600}'..='\u{77f}' | '\u{8a0}'..='\u{8ff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' => {
            "arabic"
        }
        '\u{900}'..='\u{97f}' => "hindi",
        '\u{980}'..='\u{9ff}' => "bengali",
        '\u{b80}'..='\u{bff}' => "tamil",
        '\u{e00}'..='\u{e7f}' => "thai",
        '\u{10a0}'..='\u{10ff}' => "georgian",
        '\u{1e00}'..='\u{1fff}' => return None,
        '\u{3040}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' => "japanese",
        '\u{1100}'..='\u{11ff}' | '\u{3130}'..='\u{318f}' | '\u{ac00}'..='\u{d7af}' => "korean",
        '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}' => "chinese",
        _ if c.is_alphabetic() && c.nfd().all(|c| !c.is_ascii_alphabetic()) => "foreign",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> String {
        let mut words = Words::default();
        words.read(text);
        let word = |at: usize| {
            let style = match words.words[at].style {
                Style::Word => "",
                Style::Capitals { plural: false } => "^",
                Style::Capitals { plural: true } => "^s",
                Style::Letters => "*",
            };
            format!(
                "{}{style}{}",
                words.letters(at),
                words.words[at].pause.map(String::from).unwrap_or_default()
            )
        };
        (0..words.words.len()).map(word).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_are_folded() {
        assert_eq!(read("Hello, World! Café naïve Straße’s"), "hello, world! cafe naive strasse's");
        assert_eq!(read("Москва и Αθήνα"), "moskva i athena");
        assert_eq!(read("say 你好世界, then مرحبا"), "say some chinese text, then some arabic text");
        assert_eq!(read("e\u{301}t\u{1e9}e \u{301} (dogs' ) ''"), "etke dogs");
    }

    #[test]
    fn styles() {
        assert_eq!(read("the FBI and CPUs of NASA's"), "the fbi^ and cpus^s of nasa's^s");
        assert_eq!(read("STOP NOW"), "stop now");
        assert_eq!(read("A dog. A I, plan A"), "a dog. ai*, plan a*");
        assert_eq!(read("so I say x to B"), "so i* say x to b*");
        assert_eq!(read(&"a".repeat(25)), format!("{}*", "a".repeat(25)));
    }
}
