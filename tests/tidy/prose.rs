//! Comments in plain words: what can be counted of that.
//!
//! The numbers are ratchets: they may fall, and are lowered with what has fallen.

use crate::source::{files, read, tidy};

/// Documentation comments of a thousand that may begin with one of [`RELATIVES`].
const RELATIVE_PER_MILLE_MAX: usize = 2;

/// Documentation comments that may be one word.
const ONE_WORD_MAX: usize = 0;

/// Words with which a sentence begins that does not name its subject.
const RELATIVES: [&str; 9] = ["what", "who", "whoever", "whether", "which", "where", "when", "why", "how"];

/// The documentation comments of `text`, one line each.
fn docs(text: &str) -> Vec<String> {
    let mut docs: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines().map(str::trim_start) {
        match line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) {
            Some(words) if is_open => {
                let doc = docs.last_mut().expect("it is open");
                doc.push(' ');
                doc.push_str(words.trim());
            }
            Some(words) => docs.push(words.trim().to_owned()),
            None => {}
        }
        is_open = line.starts_with("///") || line.starts_with("//!");
    }
    docs
}

fn begins_with_a_relative(doc: &str) -> bool {
    let first = doc.split(|c: char| !c.is_alphabetic()).next().unwrap_or("").to_lowercase();
    RELATIVES.contains(&first.as_str())
}

fn is_one_word(doc: &str) -> bool {
    doc.split_whitespace().count() == 1
}

/// Comment lines of `text` with "can not" in them.
fn can_nots(text: &str) -> usize {
    let comments = text.lines().filter_map(|line| line.split_once("//"));
    comments.filter(|(_, comment)| format!(" {comment} ").contains(" can not ")).count()
}

#[test]
fn comments_are_in_plain_words() {
    let texts: Vec<_> = files("src", "rs").iter().map(|path| read(path)).collect();
    let docs: Vec<_> = texts.iter().flat_map(|text| docs(text)).collect();
    let per_mille = 1_000 * docs.iter().filter(|doc| begins_with_a_relative(doc)).count() / docs.len();
    let one_word = docs.iter().filter(|doc| is_one_word(doc)).count();
    let can_not = texts.iter().map(|text| can_nots(text)).sum();
    let counts = [
        (
            "documentation comments of a thousand begin with what, who, whether …",
            per_mille,
            RELATIVE_PER_MILLE_MAX,
        ),
        ("documentation comments are one word", one_word, ONE_WORD_MAX),
        ("comment lines have \"can not\" for \"cannot\"", can_not, 0),
    ];
    let above = counts.into_iter().filter(|(_, found, most)| found > most);
    tidy(above.map(|(what, found, most)| format!("src: {found} {what}; at most {most}")));
}

#[test]
fn a_comment_that_is_no_plain_sentence_is_found() {
    let text =
        "//! A module.\n\n/// What it is.\n/// Which.\nfn f() {}\n    /// Which.\n    x: u8, // it can not\n";
    let docs = docs(text);
    assert_eq!(docs, ["A module.", "What it is. Which.", "Which."]);
    assert_eq!(docs.iter().filter(|doc| begins_with_a_relative(doc)).count(), 2);
    assert_eq!(docs.iter().filter(|doc| is_one_word(doc)).count(), 1);
    assert_eq!(can_nots(text), 1);
}
