//! Characters that are spoken, and characters that are dropped.

/// The treatment of a character on its way to the voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A letter, a digit, white space, punctuation or a sign that the normaliser reads.
    Spoken,
    /// An emoji or ornament: dropped, and the words around it stay apart.
    Gap,
    /// Invisible: dropped without a trace.
    Nothing,
}

/// Signs that are no letters and have a reading, see [`super::normalise()`].
const SIGNS: &str = "$€£¥₹₩₿%‰@&+−±×÷=≠≈<>≤≥→←↔⇒⇔^/#°§№√∞∑∆½¼¾⅓⅔⅛⅜⅝⅞²³¹⁰⁴⁵⁶⁷⁸⁹µ•·∙";

/// Returns the treatment of `c`.
pub(super) fn kind(c: char) -> Kind {
    match c {
        '•' | '·' | '∙' => Kind::Gap,
        '{' | '}' | '[' | ']' | '"' | '`' => Kind::Gap,
        // Keycaps ("1️⃣") leave their digit, letters their accents; the rest only joins or colours emoji.
        '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{ad}' => Kind::Nothing,
        '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20f0}' | '\u{e0000}'..='\u{e01ef}' => Kind::Nothing,
        '\u{0}'..='\u{8}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Kind::Nothing,
        '\u{300}'..='\u{36f}' => Kind::Spoken,
        '™' | '®' | '©' | '¶' | '†' | '‡' | '¯' | '¨' | '´' | '¸' | 'ª' | 'º' => Kind::Nothing,
        _ if c.is_ascii() => Kind::Spoken,
        _ if SIGNS.contains(c) => Kind::Spoken,
        // Circled and squared letters and digits count as alphanumeric; they are ornaments or flags here.
        '\u{2460}'..='\u{24ff}' | '\u{2776}'..='\u{2793}' | '\u{1f100}'..='\u{1f2ff}' => Kind::Gap,
        _ if c.is_alphanumeric() || c.is_whitespace() => Kind::Spoken,
        '。' | '！' | '？' | '，' | '、' | '；' | '：' => Kind::Spoken,
        _ => Kind::Gap,
    }
}
