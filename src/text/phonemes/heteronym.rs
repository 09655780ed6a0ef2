//! Words with one spelling and two pronunciations, told apart by their neighbours.
//!
//! Without a tagger the neighbours decide: after "to" or "will" stands a verb, after "the" or "my" a noun. Where the
//! neighbours leave it open, the reading that is commoner in conversation wins.

/// The choice between a row's two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rule {
    /// First reading as a verb, second as a noun or adjective; the verb if the neighbours leave it open.
    VerbElse,
    /// First reading as a verb, second as a noun or adjective; the noun if the neighbours leave it open.
    NounElse,
    /// The second reading behind a word of the first list or before a word of the second; else the first reading.
    Near(&'static [&'static str], &'static [&'static str]),
}

use Rule::{Near, NounElse, VerbElse};

/// One row: the word, the rule, its first and second reading in ARPAbet.
struct Heteronym(&'static str, Rule, &'static str, &'static str);

const PERFECT: &[&str] = &[
    "have", "has", "had", "having", "i've", "you've", "we've", "they've", "was", "were", "is", "are", "been",
    "being", "be", "already", "just", "never", "haven't", "hasn't", "hadn't", "he", "she",
];
const EXACT: &[&str] = &[
    "so", "very", "too", "as", "is", "are", "was", "were", "be", "been", "come", "came", "get", "getting",
    "stay", "stand", "how", "pretty", "really", "quite", "that's", "it's", "they're", "more",
];

/// Sorted by word. Source: own choice of readings, with the stress patterns of any dictionary; own rules.
#[rustfmt::skip]
const HETERONYMS: &[Heteronym] = &[
    Heteronym("absent", NounElse, "AE0 B S EH1 N T", "AE1 B S AH0 N T"),
    Heteronym("abstract", NounElse, "AH0 B S T R AE1 K T", "AE1 B S T R AE2 K T"),
    Heteronym("abuse", NounElse, "AH0 B Y UW1 Z", "AH0 B Y UW1 S"),
    Heteronym("addict", NounElse, "AH0 D IH1 K T", "AE1 D IH0 K T"),
    Heteronym("address", NounElse, "AH0 D R EH1 S", "AE1 D R EH2 S"),
    Heteronym("advocate", NounElse, "AE1 D V AH0 K EY2 T", "AE1 D V AH0 K AH0 T"),
    Heteronym("affect", VerbElse, "AH0 F EH1 K T", "AE1 F EH0 K T"),
    Heteronym("alternate", NounElse, "AO1 L T ER0 N EY2 T", "AO1 L T ER0 N AH0 T"),
    Heteronym("animate", VerbElse, "AE1 N AH0 M EY2 T", "AE1 N AH0 M AH0 T"),
    Heteronym("appropriate", NounElse, "AH0 P R OW1 P R IY0 EY2 T", "AH0 P R OW1 P R IY0 AH0 T"),
    Heteronym("approximate", NounElse, "AH0 P R AA1 K S AH0 M EY2 T", "AH0 P R AA1 K S AH0 M AH0 T"),
    Heteronym("articulate", VerbElse, "AA0 R T IH1 K Y AH0 L EY2 T", "AA0 R T IH1 K Y AH0 L AH0 T"),
    Heteronym("associate", VerbElse, "AH0 S OW1 SH IY0 EY2 T", "AH0 S OW1 SH IY0 AH0 T"),
    Heteronym("attribute", NounElse, "AH0 T R IH1 B Y UW2 T", "AE1 T R AH0 B Y UW2 T"),
    Heteronym("august", Near(&["an"], &["body", "presence", "company"]), "AO1 G AH0 S T", "AO0 G AH1 S T"),
    Heteronym("bass", Near(&["largemouth", "striped", "sea", "catch", "caught", "smallmouth"], &["fishing", "fish", "boat"]), "B EY1 S", "B AE1 S"),
    Heteronym("bow", Near(&["a", "his", "her", "the", "your"], &["and", "tie", "ties", "string"]), "B AW1", "B OW1"),
    Heteronym("bowed", Near(&[], &["string", "strings", "instrument"]), "B AW1 D", "B OW1 D"),
    Heteronym("close", Near(EXACT, &["to", "by", "enough", "friend", "friends", "call", "look", "attention", "together", "range", "contact", "family", "relationship", "relatives", "eye", "second", "up"]), "K L OW1 Z", "K L OW1 S"),
    Heteronym("combat", NounElse, "K AH0 M B AE1 T", "K AA1 M B AE0 T"),
    Heteronym("combine", VerbElse, "K AH0 M B AY1 N", "K AA1 M B AY2 N"),
    Heteronym("compact", NounElse, "K AH0 M P AE1 K T", "K AA1 M P AE2 K T"),
    Heteronym("complex", NounElse, "K AH0 M P L EH1 K S", "K AA1 M P L EH0 K S"),
    Heteronym("compound", NounElse, "K AH0 M P AW1 N D", "K AA1 M P AW2 N D"),
    Heteronym("compress", VerbElse, "K AH0 M P R EH1 S", "K AA1 M P R EH2 S"),
    Heteronym("conduct", VerbElse, "K AH0 N D AH1 K T", "K AA1 N D AH0 K T"),
    Heteronym("conflict", NounElse, "K AH0 N F L IH1 K T", "K AA1 N F L IH0 K T"),
    Heteronym("conflicts", NounElse, "K AH0 N F L IH1 K T S", "K AA1 N F L IH0 K T S"),
    Heteronym("console", NounElse, "K AH0 N S OW1 L", "K AA1 N S OW0 L"),
    Heteronym("construct", VerbElse, "K AH0 N S T R AH1 K T", "K AA1 N S T R AH0 K T"),
    Heteronym("content", Near(&["am", "is", "are", "was", "were", "be", "feel", "felt", "i'm", "perfectly", "quite"], &["with"]), "K AA1 N T EH0 N T", "K AH0 N T EH1 N T"),
    Heteronym("contest", NounElse, "K AH0 N T EH1 S T", "K AA1 N T EH0 S T"),
    Heteronym("contract", NounElse, "K AH0 N T R AE1 K T", "K AA1 N T R AE2 K T"),
    Heteronym("contracts", NounElse, "K AH0 N T R AE1 K T S", "K AA1 N T R AE2 K T S"),
    Heteronym("contrast", NounElse, "K AH0 N T R AE1 S T", "K AA1 N T R AE0 S T"),
    Heteronym("convert", VerbElse, "K AH0 N V ER1 T", "K AA1 N V ER0 T"),
    Heteronym("convict", NounElse, "K AH0 N V IH1 K T", "K AA1 N V IH0 K T"),
    Heteronym("coordinate", VerbElse, "K OW0 AO1 R D AH0 N EY2 T", "K OW0 AO1 R D AH0 N AH0 T"),
    Heteronym("decrease", NounElse, "D IH0 K R IY1 S", "D IY1 K R IY2 S"),
    Heteronym("defect", NounElse, "D IH0 F EH1 K T", "D IY1 F EH0 K T"),
    Heteronym("delegate", NounElse, "D EH1 L AH0 G EY2 T", "D EH1 L AH0 G AH0 T"),
    Heteronym("deliberate", NounElse, "D IH0 L IH1 B ER0 EY2 T", "D IH0 L IH1 B ER0 AH0 T"),
    Heteronym("desert", NounElse, "D IH0 Z ER1 T", "D EH1 Z ER0 T"),
    Heteronym("digest", VerbElse, "D AY0 JH EH1 S T", "D AY1 JH EH0 S T"),
    Heteronym("discharge", NounElse, "D IH0 S CH AA1 R JH", "D IH1 S CH AA2 R JH"),
    Heteronym("discount", NounElse, "D IH0 S K AW1 N T", "D IH1 S K AW0 N T"),
    Heteronym("dove", Near(&["he", "she", "they", "we", "i", "then", "and", "who"], &["in", "into", "under", "off", "down"]), "D AH1 V", "D OW1 V"),
    Heteronym("duplicate", NounElse, "D UW1 P L AH0 K EY2 T", "D UW1 P L AH0 K AH0 T"),
    Heteronym("elaborate", VerbElse, "IH0 L AE1 B ER0 EY2 T", "IH0 L AE1 B R AH0 T"),
    Heteronym("entrance", NounElse, "EH0 N T R AE1 N S", "EH1 N T R AH0 N S"),
    Heteronym("escort", NounElse, "EH0 S K AO1 R T", "EH1 S K AO0 R T"),
    Heteronym("estimate", NounElse, "EH1 S T AH0 M EY2 T", "EH1 S T AH0 M AH0 T"),
    Heteronym("excuse", VerbElse, "IH0 K S K Y UW1 Z", "IH0 K S K Y UW1 S"),
    Heteronym("excuses", NounElse, "IH0 K S K Y UW1 Z IH0 Z", "IH0 K S K Y UW1 S IH0 Z"),
    Heteronym("exploit", NounElse, "EH0 K S P L OY1 T", "EH1 K S P L OY2 T"),
    Heteronym("export", NounElse, "IH0 K S P AO1 R T", "EH1 K S P AO0 R T"),
    Heteronym("exports", NounElse, "IH0 K S P AO1 R T S", "EH1 K S P AO0 R T S"),
    Heteronym("extract", NounElse, "IH0 K S T R AE1 K T", "EH1 K S T R AE2 K T"),
    Heteronym("frequent", NounElse, "F R IY0 K W EH1 N T", "F R IY1 K W AH0 N T"),
    Heteronym("graduate", NounElse, "G R AE1 JH AH0 W EY2 T", "G R AE1 JH AH0 W AH0 T"),
    Heteronym("house", NounElse, "HH AW1 Z", "HH AW1 S"),
    Heteronym("impact", NounElse, "IH0 M P AE1 K T", "IH1 M P AE0 K T"),
    Heteronym("import", NounElse, "IH0 M P AO1 R T", "IH1 M P AO2 R T"),
    Heteronym("imports", NounElse, "IH0 M P AO1 R T S", "IH1 M P AO2 R T S"),
    Heteronym("incline", NounElse, "IH0 N K L AY1 N", "IH1 N K L AY0 N"),
    Heteronym("increase", NounElse, "IH0 N K R IY1 S", "IH1 N K R IY2 S"),
    Heteronym("increases", NounElse, "IH0 N K R IY1 S IH0 Z", "IH1 N K R IY2 S IH0 Z"),
    Heteronym("insert", VerbElse, "IH0 N S ER1 T", "IH1 N S ER2 T"),
    Heteronym("insult", NounElse, "IH0 N S AH1 L T", "IH1 N S AH2 L T"),
    Heteronym("intimate", NounElse, "IH1 N T AH0 M EY2 T", "IH1 N T AH0 M AH0 T"),
    Heteronym("invalid", Near(&[], &["carriage", "chair"]), "IH0 N V AE1 L AH0 D", "IH1 N V AH0 L AH0 D"),
    Heteronym("lead", Near(&["of", "pencil", "liquid", "molten"], &["pipe", "pipes", "paint", "poisoning", "pencil", "acid", "weight", "weights", "free"]), "L IY1 D", "L EH1 D"),
    Heteronym("live", Near(&["go", "going", "goes", "went", "a", "broadcast", "streamed", "recorded", "performed"], &["music", "show", "shows", "concert", "concerts", "broadcast", "stream", "streaming", "streams", "performance", "performances", "audience", "event", "events", "tv", "television", "wire", "wires", "recording", "band", "bands", "updates", "update", "coverage", "video", "session", "data", "chat", "news", "animals", "sports"]), "L IH1 V", "L AY1 V"),
    Heteronym("lives", Near(&["he", "she", "it", "who", "that", "and", "still", "now", "everyone", "family", "nobody", "mother", "father", "brother", "sister", "which", "one"], &["in", "on", "at", "with", "alone", "there", "here", "near"]), "L AY1 V Z", "L IH1 V Z"),
    Heteronym("minute", Near(&[], &["amount", "amounts", "detail", "details", "particles", "traces", "quantities"]), "M IH1 N AH0 T", "M AY0 N UW1 T"),
    Heteronym("moderate", NounElse, "M AA1 D ER0 EY2 T", "M AA1 D ER0 AH0 T"),
    Heteronym("moped", Near(&["a", "the", "his", "her", "my", "your"], &[]), "M OW1 P T", "M OW1 P EH2 D"),
    Heteronym("multiply", VerbElse, "M AH1 L T AH0 P L AY2", "M AH1 L T AH0 P L IY0"),
    Heteronym("object", NounElse, "AH0 B JH EH1 K T", "AA1 B JH EH0 K T"),
    Heteronym("objects", NounElse, "AH0 B JH EH1 K T S", "AA1 B JH EH0 K T S"),
    Heteronym("overlook", VerbElse, "OW2 V ER0 L UH1 K", "OW1 V ER0 L UH2 K"),
    Heteronym("perfect", NounElse, "P ER0 F EH1 K T", "P ER1 F IH2 K T"),
    Heteronym("permit", NounElse, "P ER0 M IH1 T", "P ER1 M IH2 T"),
    Heteronym("polish", Near(&["a", "the", "in", "speak", "speaks"], &["people", "language", "food", "government", "border", "sausage", "city"]), "P AA1 L IH0 SH", "P OW1 L IH0 SH"),
    Heteronym("predicate", NounElse, "P R EH1 D AH0 K EY2 T", "P R EH1 D AH0 K AH0 T"),
    Heteronym("present", NounElse, "P R IY0 Z EH1 N T", "P R EH1 Z AH0 N T"),
    Heteronym("presents", NounElse, "P R IY0 Z EH1 N T S", "P R EH1 Z AH0 N T S"),
    Heteronym("proceeds", VerbElse, "P R AH0 S IY1 D Z", "P R OW1 S IY2 D Z"),
    Heteronym("produce", VerbElse, "P R AH0 D UW1 S", "P R OW1 D UW0 S"),
    Heteronym("progress", NounElse, "P R AH0 G R EH1 S", "P R AA1 G R EH2 S"),
    Heteronym("project", NounElse, "P R AH0 JH EH1 K T", "P R AA1 JH EH0 K T"),
    Heteronym("projects", NounElse, "P R AH0 JH EH1 K T S", "P R AA1 JH EH0 K T S"),
    Heteronym("protest", NounElse, "P R AH0 T EH1 S T", "P R OW1 T EH2 S T"),
    Heteronym("read", Near(PERFECT, &[]), "R IY1 D", "R EH1 D"),
    Heteronym("rebel", NounElse, "R IH0 B EH1 L", "R EH1 B AH0 L"),
    Heteronym("recall", VerbElse, "R IH0 K AO1 L", "R IY1 K AO2 L"),
    Heteronym("record", NounElse, "R IH0 K AO1 R D", "R EH1 K ER0 D"),
    Heteronym("records", NounElse, "R IH0 K AO1 R D Z", "R EH1 K ER0 D Z"),
    Heteronym("refill", VerbElse, "R IY0 F IH1 L", "R IY1 F IH0 L"),
    Heteronym("refund", NounElse, "R IH0 F AH1 N D", "R IY1 F AH2 N D"),
    Heteronym("refuse", VerbElse, "R AH0 F Y UW1 Z", "R EH1 F Y UW2 Z"),
    Heteronym("reject", VerbElse, "R IH0 JH EH1 K T", "R IY1 JH EH0 K T"),
    Heteronym("resume", VerbElse, "R IH0 Z UW1 M", "R EH1 Z AH0 M EY2"),
    Heteronym("retake", VerbElse, "R IY0 T EY1 K", "R IY1 T EY2 K"),
    Heteronym("row", Near(&[], &["broke", "erupted"]), "R OW1", "R AW1"),
    Heteronym("segment", NounElse, "S EH0 G M EH1 N T", "S EH1 G M AH0 N T"),
    Heteronym("separate", NounElse, "S EH1 P ER0 EY2 T", "S EH1 P ER0 IH0 T"),
    Heteronym("sewer", Near(&[], &["of"]), "S UW1 ER0", "S OW1 ER0"),
    Heteronym("sow", Near(&["a", "the"], &["and"]), "S OW1", "S AW1"),
    Heteronym("subject", NounElse, "S AH0 B JH EH1 K T", "S AH1 B JH IH0 K T"),
    Heteronym("survey", NounElse, "S ER0 V EY1", "S ER1 V EY2"),
    Heteronym("suspect", NounElse, "S AH0 S P EH1 K T", "S AH1 S P EH2 K T"),
    Heteronym("tear", Near(&["to", "will", "can", "could", "would", "don't", "might", "may", "must", "they", "you", "we", "i", "and", "not", "wear"], &["up", "apart", "down", "off", "out", "open", "it", "them", "this", "through", "along", "into"]), "T IH1 R", "T EH1 R"),
    Heteronym("tears", Near(&["he", "she", "it", "that", "wears"], &["up", "apart", "down", "off", "through"]), "T IH1 R Z", "T EH1 R Z"),
    Heteronym("torment", NounElse, "T AO0 R M EH1 N T", "T AO1 R M EH2 N T"),
    Heteronym("transfer", NounElse, "T R AE0 N S F ER1", "T R AE1 N S F ER0"),
    Heteronym("transplant", NounElse, "T R AE0 N S P L AE1 N T", "T R AE1 N S P L AE2 N T"),
    Heteronym("transport", NounElse, "T R AE0 N S P AO1 R T", "T R AE1 N S P AO0 R T"),
    Heteronym("update", NounElse, "AH0 P D EY1 T", "AH1 P D EY2 T"),
    Heteronym("updates", NounElse, "AH0 P D EY1 T S", "AH1 P D EY2 T S"),
    Heteronym("upgrade", NounElse, "AH0 P G R EY1 D", "AH1 P G R EY0 D"),
    Heteronym("upset", VerbElse, "AH0 P S EH1 T", "AH1 P S EH2 T"),
    Heteronym("use", VerbElse, "Y UW1 Z", "Y UW1 S"),
    Heteronym("used", Near(&[], &["to"]), "Y UW1 Z D", "Y UW1 S T"),
    Heteronym("uses", VerbElse, "Y UW1 Z IH0 Z", "Y UW1 S IH0 Z"),
    Heteronym("wind", Near(&["to", "will", "can", "let's", "please", "and", "then", "you", "they", "we", "paths", "roads"], &["up", "down", "it", "back", "through", "around", "along", "their", "your"]), "W IH1 N D", "W AY1 N D"),
    Heteronym("winds", Near(&["it", "that", "which", "path", "road", "river", "trail"], &["up", "down", "through", "around", "along", "its"]), "W IH1 N D Z", "W AY1 N D Z"),
    Heteronym("wound", Near(&["a", "the", "his", "her", "my", "your", "their", "this", "flesh", "bullet", "open", "clean", "of", "head"], &["care", "healing", "dressing", "infection"]), "W AW1 N D", "W UW1 N D"),
];

/// Words before a verb in its plain form.
const BEFORE_VERB: &[&str] = &[
    "can",
    "can't",
    "cannot",
    "could",
    "couldn't",
    "did",
    "didn't",
    "do",
    "does",
    "doesn't",
    "don't",
    "he",
    "he'd",
    "he'll",
    "help",
    "helped",
    "helps",
    "i",
    "i'd",
    "i'll",
    "it",
    "it'll",
    "let",
    "let's",
    "may",
    "might",
    "must",
    "not",
    "please",
    "shall",
    "she",
    "she'd",
    "she'll",
    "should",
    "shouldn't",
    "that",
    "they",
    "they'd",
    "they'll",
    "to",
    "we",
    "we'd",
    "we'll",
    "who",
    "will",
    "won't",
    "would",
    "wouldn't",
    "you",
    "you'd",
    "you'll",
];

/// Words before a noun or an adjective.
const BEFORE_NOUN: &[&str] = &[
    "a",
    "an",
    "and",
    "another",
    "any",
    "are",
    "as",
    "at",
    "be",
    "best",
    "better",
    "big",
    "by",
    "daily",
    "different",
    "each",
    "every",
    "first",
    "for",
    "free",
    "full",
    "general",
    "good",
    "great",
    "has",
    "have",
    "her",
    "his",
    "in",
    "is",
    "its",
    "large",
    "last",
    "little",
    "main",
    "many",
    "more",
    "much",
    "my",
    "new",
    "next",
    "no",
    "of",
    "old",
    "on",
    "one",
    "other",
    "our",
    "own",
    "several",
    "single",
    "small",
    "some",
    "special",
    "such",
    "the",
    "their",
    "these",
    "this",
    "those",
    "two",
    "very",
    "was",
    "were",
    "what",
    "with",
    "world",
    "your",
];

/// Returns the reading of `word` between its neighbours; `None` if `word` is no heteronym. All words are in lower case,
/// and neighbours are empty at a pause. `before` holds the last two words, the nearer one first.
pub(super) fn reading(word: &str, before: [&str; 2], after: &str) -> Option<&'static str> {
    let at = HETERONYMS.binary_search_by(|row| row.0.cmp(word)).ok()?;
    let Heteronym(_, rule, first, second) = &HETERONYMS[at];
    let is_first = match rule {
        Near(left, right) => !(left.contains(&before[0]) || right.contains(&after)),
        VerbElse | NounElse => {
            // "to really record", "the two present": an adverb hides the word that decides.
            let decider = if before[0].ends_with("ly") { before[1] } else { before[0] };
            let verb = BEFORE_VERB.contains(&decider);
            let noun = BEFORE_NOUN.contains(&decider);
            match rule {
                _ if verb && !noun => true,
                _ if noun => false,
                // An imperative at the start of a sentence: "Record the call."
                _ if before[0].is_empty()
                    && matches!(after, "the" | "a" | "an" | "your" | "this" | "it" | "my") =>
                {
                    true
                }
                VerbElse => true,
                _ => false,
            }
        }
    };
    Some(if is_first { first } else { second })
}

#[cfg(test)]
mod tests {
    use super::super::phone;
    use super::*;

    #[test]
    fn rows_are_sorted_and_readable() {
        assert!(HETERONYMS.is_sorted_by(|a, b| a.0 < b.0));
        let mut sounds = Vec::new();
        for Heteronym(_, _, first, second) in HETERONYMS {
            phone::append(first, &mut sounds);
            phone::append(second, &mut sounds);
        }
    }

    #[test]
    fn neighbours_decide() {
        let case = |text: &str| {
            let words: Vec<&str> = text.split(' ').collect();
            let at = words.iter().position(|word| word.starts_with('*')).expect("a marked word");
            let near = |back: usize| at.checked_sub(back).map_or("", |at| words[at]);
            let after = words.get(at + 1).copied().unwrap_or("");
            reading(&words[at][1..], [near(1), near(2)], after).expect("a row")
        };
        for (text, arpabet) in [
            ("the cold *wind blows", "W IH1 N D"),
            ("to *wind the clock", "W AY1 N D"),
            ("i *live here", "L IH1 V"),
            ("a *live show", "L AY1 V"),
            ("they saved many *lives today", "L AY1 V Z"),
            ("she *lives here", "L IH1 V Z"),
            ("i have *read it", "R EH1 D"),
            ("please *read it", "R IY1 D"),
            ("*record the call", "R IH0 K AO1 R D"),
            ("a new *record", "R EH1 K ER0 D"),
            ("we *object to that", "AH0 B JH EH1 K T"),
            ("the *object is red", "AA1 B JH EH0 K T"),
            ("*close the door", "K L OW1 Z"),
            ("it is *close to home", "K L OW1 S"),
            ("no *use at all", "Y UW1 S"),
            ("you can *use it", "Y UW1 Z"),
            ("i *used to swim", "Y UW1 S T"),
            ("to really *separate them", "S EH1 P ER0 EY2 T"),
            ("two *separate rooms", "S EH1 P ER0 IH0 T"),
            ("the *lead singer", "L IY1 D"),
            ("old *lead pipes", "L EH1 D"),
        ] {
            assert_eq!(case(text), arpabet, "{text}");
        }
        assert_eq!(reading("table", ["the", ""], ""), None);
    }
}
