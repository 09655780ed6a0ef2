//! Function words: their sounds inside a sentence, before a pause, and joined to the word behind.
//!
//! # Source
//! Measured: the output of `espeak-ng` 1.51 (`-v en-us --ipa`) for each of these words in "people know … big dogs",
//! before a pause, and in pairs. The voice was trained on the phonemes of espeak-ng.

/// One word, its form inside a sentence, and its form before a pause. If the last is empty, both forms are alike.
struct Form(&'static str, &'static str, &'static str);

#[rustfmt::skip]
const FORMS: &[Form] = &[
    Form("a", "ɐ", "ˈeɪ"), Form("about", "ɐbˌaʊt", "ɐbˈaʊt"), Form("above", "əbˌʌv", "əbˈʌv"),
    Form("already", "ɔːlɹˌɛdi", ""), Form("am", "æm", ""), Form("an", "ɐn", "æn"), Form("and", "ænd", ""),
    Form("any", "ˌɛni", ""), Form("are", "ɑːɹ", ""), Form("aren't", "ˌɑːɹnt", "ˈɑːɹnt"),
    Form("as", "æz", ""), Form("at", "æt", ""), Form("be", "biː", "bˈiː"), Form("because", "bɪkˈʌz", ""),
    Form("been", "bˌɪn", ""), Form("before", "bᵻfˌoːɹ", "bᵻfˈoːɹ"), Form("being", "bˌiːɪŋ", "bˈiːɪŋ"),
    Form("below", "bᵻlˌoʊ", "bᵻlˈoʊ"), Form("between", "bᵻtwˌiːn", "bᵻtwˈiːn"), Form("but", "bˌʌt", ""),
    Form("by", "baɪ", "bˈaɪ"), Form("can", "kæn", "kˈæn"), Form("could", "kʊd", "kˈʊd"),
    Form("doing", "dˌuːɪŋ", "dˈuːɪŋ"), Form("for", "fɔːɹ", ""), Form("from", "fɹʌm", ""),
    Form("get", "ɡɛt", "ɡˈɛt"), Form("had", "hæd", "hˌæd"), Form("has", "hɐz", "hˈæz"),
    Form("have", "hæv", "hˈæv"), Form("having", "hˌævɪŋ", "hˈævɪŋ"), Form("he", "hiː", ""),
    Form("he'll", "hiːl", ""), Form("he's", "hiːz", ""), Form("her", "hɜː", ""), Form("him", "hˌɪm", ""),
    Form("his", "hɪz", "hˈɪz"), Form("how", "hˌaʊ", "hˈaʊ"), Form("i'd", "aɪd", ""),
    Form("i'll", "aɪl", ""), Form("i'm", "aɪm", ""), Form("i've", "aɪv", ""), Form("if", "ɪf", ""),
    Form("in", "ɪn", "ˈɪn"), Form("into", "ˌɪntʊ", ""), Form("is", "ɪz", ""),
    Form("isn't", "ˌɪzənt", "ˈɪzənt"), Form("it", "ɪt", ""), Form("it's", "ɪts", ""),
    Form("its", "ɪts", ""), Form("made", "mˌeɪd", "mˈeɪd"), Form("make", "mˌeɪk", "mˈeɪk"),
    Form("makes", "mˌeɪks", "mˈeɪks"), Form("me", "mˌiː", ""), Form("might", "mˌaɪt", "mˈaɪt"),
    Form("my", "maɪ", "mˈaɪ"), Form("not", "nˌɑːt", "nˈɑːt"), Form("of", "ʌv", ""),
    Form("on", "ˌɔn", "ˈɔn"), Form("onto", "ˌɑːntʊ", "ˈɑːntʊ"), Form("or", "ɔːɹ", ""),
    Form("our", "ˌaʊɚ", ""), Form("ours", "aʊɚz", ""), Form("over", "ˌoʊvɚ", "ˈoʊvɚ"),
    Form("put", "pˌʊt", "pˈʊt"), Form("shall", "ʃˌæl", "ʃˈæl"), Form("she", "ʃiː", ""),
    Form("she's", "ʃiːz", ""), Form("should", "ʃˌʊd", "ʃˈʊd"), Form("so", "sˌoʊ", "sˈoʊ"),
    Form("some", "sˌʌm", ""), Form("than", "ðɐn", ""), Form("that", "ðæt", "ðˈæt"),
    Form("that's", "ðæts", "ðˈæts"), Form("the", "ðə", ""), Form("their", "ðɛɹ", ""),
    Form("them", "ðˌɛm", ""), Form("there", "ðɛɹ", "ðˈɛɹ"), Form("there's", "ðɛɹz", "ðˈɛɹz"),
    Form("these", "ðiːz", "ðˈiːz"), Form("they", "ðeɪ", ""), Form("they'll", "ðeɪl", ""),
    Form("they're", "ðeɪɚ", ""), Form("this", "ðɪs", "ðˈɪs"), Form("those", "ðoʊz", "ðˈoʊz"),
    Form("though", "ðˌoʊ", "ðˈoʊ"), Form("through", "θɹuː", "θɹˈuː"), Form("to", "tə", "tuː"),
    Form("under", "ˌʌndɚ", "ˈʌndɚ"), Form("up", "ˌʌp", "ˈʌp"), Form("us", "ˌʌs", ""),
    Form("was", "wʌz", ""), Form("we", "wiː", ""), Form("we'll", "wiːl", ""), Form("we're", "wɪɹ", ""),
    Form("were", "wɜː", ""), Form("what", "wʌt", "wˈʌt"), Form("what's", "wʌts", "wˈʌts"),
    Form("when", "wɛn", "wˈɛn"), Form("where", "wˌɛɹ", "wˈɛɹ"), Form("which", "wˌɪtʃ", "wˈɪtʃ"),
    Form("while", "wˌaɪl", "wˈaɪl"), Form("who", "hˌuː", "hˈuː"), Form("whose", "hˌuːz", ""),
    Form("why", "wˌaɪ", "wˈaɪ"), Form("will", "wɪl", "wˈɪl"), Form("with", "wɪð", ""),
    Form("within", "wɪðˌɪn", "wɪðˈɪn"), Form("without", "wɪðˌaʊt", "wɪðˈaʊt"),
    Form("won't", "woʊnt", "wˈoʊnt"), Form("would", "wʊd", "wˈʊd"), Form("you", "juː", ""),
    Form("you'd", "juːd", ""), Form("you'll", "juːl", ""), Form("you're", "jʊɹ", ""),
    Form("you've", "juːv", ""), Form("your", "jʊɹ", ""),
];

/// Pairs of words that are written as one, and their form.
const JOINED: &[(&str, &str, &str)] = &[
    ("at", "a", "æɾə"),
    ("could", "have", "kˌʊdɐv"),
    ("did", "not", "dɪdnˌɑːt"),
    ("do", "not", "duːnˌɑːt"),
    ("does", "not", "dʌznˌɑːt"),
    ("for", "a", "fɚɹə"),
    ("for", "an", "fɚɹən"),
    ("for", "the", "fɚðə"),
    ("from", "the", "fɹʌmðə"),
    ("had", "been", "hɐdbɪn"),
    ("had", "to", "hædtə"),
    ("has", "been", "hˈæzbiːn"),
    ("has", "not", "həznɑːt"),
    ("have", "been", "hɐvbɪn"),
    ("have", "not", "hɐvnˌɑːt"),
    ("in", "the", "ɪnðə"),
    ("not", "a", "nˌɑːɾə"),
    ("of", "a", "əvə"),
    ("of", "an", "əvən"),
    ("of", "the", "ʌvðə"),
    ("on", "the", "ɔnðə"),
    ("than", "a", "ðˌænə"),
    ("that", "a", "ðˌæɾə"),
    ("that", "it", "ðˌɐɾɪt"),
    ("that", "the", "ðætðə"),
    ("to", "be", "təbi"),
    ("was", "a", "wʌzɐ"),
    ("was", "the", "wʌzðə"),
    ("with", "the", "wɪððə"),
    ("would", "have", "wʊdhɐv"),
];

/// Returns the form of the function word `word` (lower case); `None` for any other word.
///
/// `opens`: the word begins a clause. `pause`: a pause follows. `vowel`: the next word begins with a vowel.
pub(super) fn form(word: &str, opens: bool, pause: bool, vowel: bool) -> Option<&'static str> {
    let at = FORMS.binary_search_by(|form| form.0.cmp(word)).ok()?;
    let Form(_, inside, last) = &FORMS[at];
    Some(match word {
        "the" if vowel && !pause => "ðɪ",
        "to" if vowel && !pause => "tʊ",
        "at" if vowel && !pause => "æɾ",
        "it" if vowel && !pause => "ɪɾ",
        "what" if opens && !pause => "wˌʌt",
        "when" if opens && !pause => "wˌɛn",
        _ if pause && !last.is_empty() => last,
        _ => inside,
    })
}

/// Returns the joined form of two words without a pause between them.
pub(super) fn joined(first: &str, second: &str) -> Option<&'static str> {
    JOINED.iter().find(|(a, b, _)| *a == first && *b == second).map(|row| row.2)
}

#[cfg(test)]
mod tests {
    use super::super::inventory::is_voice_symbol;
    use super::*;

    #[test]
    fn forms_are_sorted_and_in_the_map() {
        assert!(FORMS.is_sorted_by(|a, b| a.0 < b.0));
        assert!(JOINED.is_sorted_by(|a, b| (a.0, a.1) < (b.0, b.1)));
        let all = FORMS.iter().flat_map(|form| [form.1, form.2]).chain(JOINED.iter().map(|row| row.2));
        assert!(all.flat_map(str::chars).all(is_voice_symbol));
    }

    #[test]
    fn forms_follow_their_neighbours() {
        assert_eq!(form("the", false, false, true), Some("ðɪ"));
        assert_eq!(form("the", false, false, false), Some("ðə"));
        assert_eq!(form("to", false, true, false), Some("tuː"));
        assert_eq!(form("it", false, true, true), Some("ɪt"));
        assert_eq!(form("table", false, false, false), None);
        assert_eq!(joined("of", "the"), Some("ʌvðə"));
    }
}
