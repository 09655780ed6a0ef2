//! The making of `letter_rule.txt`.
//!
//! Each letter of the dictionary's words is aligned with its sounds. A context becomes a rule if its letter sounds
//! other than under the next narrower rule.

use super::dictionary;
use super::letter_rule::{CONTEXTS, Letters, REACH, settle_stress};
use super::phone::{self, Sound, Stress};
use std::collections::{BTreeMap, HashMap};

/// Fewest letters of the dictionary that a rule must put right, less those that it spoils.
const GAIN_MIN: i64 = 3;

/// Rounds of expectation and maximisation; the alignments no longer change after them.
const ROUNDS: usize = 6;

/// Sounds of one letter: none, one or two.
type Chunk = [Option<Sound>; 2];

type Rules = HashMap<String, Chunk>;

/// Returns the dictionary's words that have letters only, with their sounds.
fn words() -> Vec<(String, Vec<Sound>)> {
    let mut words = Vec::new();
    for line in dictionary::TEXT.lines() {
        let (word, arpabet) = line.split_once(' ').expect("a word and its pronunciation");
        let mut sounds = Vec::new();
        phone::append(arpabet, &mut sounds);
        let letters = word.bytes().all(|b| b.is_ascii_lowercase());
        if letters && word.contains(['a', 'e', 'i', 'o', 'u', 'y']) && sounds.len() <= word.len() + 2 {
            words.push((word.to_owned(), sounds));
        }
    }
    words
}

/// Likelihood that a letter makes a chunk, stress aside: one row per letter, [`CODES`] squared entries each.
struct Odds(Vec<f64>);

/// Number of codes of a sound: no sound, or one of the 39.
const CODES: usize = 40;

fn cell(letter: u8, sounds: &[Sound]) -> usize {
    let of = |at: usize| sounds.get(at).map_or(0, |sound| 1 + sound.phone as usize);
    (usize::from(letter - b'a') * CODES + of(0)) * CODES + of(1)
}

impl Odds {
    /// Returns the odds of `sounds` for `letter`. Before the first round every chunk is possible; one sound per letter
    /// is the likeliest.
    fn of(&self, letter: u8, sounds: &[Sound]) -> f64 {
        if self.0.is_empty() {
            [0.1, 1.0, 0.01][sounds.len()]
        } else {
            self.0[cell(letter, sounds)].max(1e-9)
        }
    }
}

/// Returns the sums over all alignments of the first `i` letters with the first `j` sounds.
fn forward(word: &[u8], sounds: &[Sound], odds: &Odds) -> Vec<Vec<f64>> {
    let mut sums = vec![vec![0.0; sounds.len() + 1]; word.len() + 1];
    sums[0][0] = 1.0;
    for i in 0..word.len() {
        for j in 0..=sounds.len() {
            for take in 0..=2.min(sounds.len() - j) {
                sums[i + 1][j + take] += sums[i][j] * odds.of(word[i], &sounds[j..j + take]);
            }
        }
    }
    sums
}

/// Does one round: counts each chunk by the share of alignments that use that chunk.
fn improve(words: &[(String, Vec<Sound>)], odds: &Odds) -> Odds {
    let mut counts = vec![0.0; 26 * CODES * CODES];
    for (word, sounds) in words {
        let word = word.as_bytes();
        let before = forward(word, sounds, odds);
        let mut behind = vec![vec![0.0; sounds.len() + 1]; word.len() + 1];
        behind[word.len()][sounds.len()] = 1.0;
        for i in (0..word.len()).rev() {
            for j in 0..=sounds.len() {
                for take in 0..=2.min(sounds.len() - j) {
                    behind[i][j] += odds.of(word[i], &sounds[j..j + take]) * behind[i + 1][j + take];
                }
            }
        }
        let total = before[word.len()][sounds.len()];
        if total <= 0.0 {
            continue;
        }
        for i in 0..word.len() {
            for j in 0..=sounds.len() {
                for take in 0..=2.min(sounds.len() - j) {
                    let chunk = &sounds[j..j + take];
                    let share = before[i][j] * odds.of(word[i], chunk) * behind[i + 1][j + take] / total;
                    counts[cell(word[i], chunk)] += share;
                }
            }
        }
    }
    for row in counts.chunks_mut(CODES * CODES) {
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|count| *count /= total);
    }
    Odds(counts)
}

/// Returns the best alignment of one word; `None` if even the best is unlikely (the word is an abbreviation).
fn align(word: &[u8], sounds: &[Sound], odds: &Odds) -> Option<Vec<Chunk>> {
    let mut best = vec![vec![(f64::NEG_INFINITY, 0); sounds.len() + 1]; word.len() + 1];
    best[0][0].0 = 0.0;
    for i in 0..word.len() {
        for j in 0..=sounds.len() {
            for take in 0..=2.min(sounds.len() - j) {
                let score = best[i][j].0 + odds.of(word[i], &sounds[j..j + take]).ln();
                if score > best[i + 1][j + take].0 {
                    best[i + 1][j + take] = (score, take);
                }
            }
        }
    }
    let mean = best[word.len()][sounds.len()].0 / f64::from(u32::try_from(word.len()).expect("short"));
    if mean < -3.0 {
        return None;
    }
    let mut chunks = Vec::new();
    let mut j = sounds.len();
    for i in (0..word.len()).rev() {
        let take = best[i + 1][j].1;
        j -= take;
        chunks.push([
            sounds.get(j).copied().filter(|_| take > 0),
            sounds.get(j + 1).copied().filter(|_| take > 1),
        ]);
    }
    chunks.reverse();
    Some(chunks)
}

fn key(padded: &[u8], at: usize, (left, right): (usize, usize)) -> String {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("ASCII");
    format!(
        "{}({}){}",
        text(&padded[at - left..at]),
        char::from(padded[at]),
        text(&padded[at + 1..at + 1 + right])
    )
}

fn pad(word: &[u8]) -> Vec<u8> {
    let border = [b'_'; REACH];
    [&border, word, &border].concat()
}

/// Returns the odds of all chunks, from the words themselves.
fn odds_of(words: &[(String, Vec<Sound>)]) -> Odds {
    (0..ROUNDS).fold(Odds(Vec::new()), |odds, _| improve(words, &odds))
}

fn learn(words: &[(String, Vec<Sound>)], odds: &Odds, gain_min: i64) -> Rules {
    let mut letters: Vec<(Vec<u8>, usize, Chunk)> = Vec::new();
    for (word, sounds) in words {
        let Some(chunks) = align(word.as_bytes(), sounds, odds) else { continue };
        let padded = pad(word.as_bytes());
        letters.extend(chunks.into_iter().enumerate().map(|(at, chunk)| (padded.clone(), REACH + at, chunk)));
    }
    let mut rules = Rules::new();
    // The chunk of each letter under the rules so far.
    let mut said: Vec<Option<Chunk>> = vec![None; letters.len()];
    for context in CONTEXTS {
        let mut groups: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (at, (padded, position, _)) in letters.iter().enumerate() {
            groups.entry(key(padded, *position, context)).or_default().push(at);
        }
        for (key, members) in groups {
            let mut counts: BTreeMap<Chunk, i64> = BTreeMap::new();
            for &at in &members {
                *counts.entry(letters[at].2).or_default() += 1;
            }
            let (&chunk, &right) =
                counts.iter().max_by_key(|(_, count)| **count).expect("a group has members");
            let right_before = said[members[0]].and_then(|chunk| counts.get(&chunk)).copied().unwrap_or(0);
            // All members have come to the same narrower rule.
            if said[members[0]].is_none()
                || said[members[0]] != Some(chunk) && right - right_before >= gain_min
            {
                rules.insert(key, chunk);
                members.iter().for_each(|&at| said[at] = Some(chunk));
            }
        }
    }
    rules
}

fn apply(rules: &Rules, word: &str) -> Vec<Sound> {
    let padded = pad(word.as_bytes());
    let mut sounds: Vec<Sound> = Vec::new();
    let mut letters = Letters::default();
    for at in REACH..REACH + word.len() {
        let rule = CONTEXTS.iter().rev().find_map(|&context| rules.get(&key(&padded, at, context)));
        for &sound in rule.expect("every letter has a rule").iter().flatten() {
            if sounds.last().is_none_or(|last| last.phone != sound.phone) {
                sounds.push(sound);
            }
        }
        letters.resize(sounds.len(), padded[at]);
    }
    settle_stress(&mut sounds, letters.as_slice());
    sounds
}

fn distance<T: PartialEq>(a: &[T], b: &[T]) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let cost = if x == y { diagonal } else { 1 + diagonal.min(row[j]).min(row[j + 1]) };
            diagonal = std::mem::replace(&mut row[j + 1], cost);
        }
    }
    row[b.len()]
}

/// Prints the accuracy of the rules on words that they were not learned from, with and without stress.
fn report(rules: &Rules, held_out: &[(String, Vec<Sound>)]) {
    let plain = |sounds: &[Sound]| -> Vec<_> { sounds.iter().map(|sound| sound.phone).collect() };
    let main =
        |sounds: &[Sound]| sounds.iter().filter(|s| s.is_vowel()).position(|s| s.stress == Stress::Primary);
    let (mut exact, mut exact_plain, mut stress, mut errors, mut total) = (0, 0, 0, 0, 0);
    for (word, sounds) in held_out {
        let guess = apply(rules, word);
        exact += usize::from(guess == *sounds);
        exact_plain += usize::from(plain(&guess) == plain(sounds));
        stress += usize::from(main(&guess) == main(sounds));
        errors += distance(&plain(&guess), &plain(sounds));
        total += sounds.len();
    }
    let percent = |n: usize, of: usize| 100.0 * n as f64 / of as f64;
    println!(
        "{} rules, {} held-out words: {:.1} % exact, {:.1} % without stress, main stress {:.1} %, phoneme errors {:.1} %",
        rules.len(),
        held_out.len(),
        percent(exact, held_out.len()),
        percent(exact_plain, held_out.len()),
        percent(stress, held_out.len()),
        percent(errors, total)
    );
}

#[test]
#[ignore = "writes letter_rule.txt; takes a minute"]
fn learn_the_letter_rules() {
    let words = words();
    let (held_out, training): (Vec<_>, Vec<_>) =
        words.iter().cloned().enumerate().partition(|(at, _)| at % 20 == 7);
    let only = |part: Vec<(usize, (String, Vec<Sound>))>| -> Vec<_> {
        part.into_iter().map(|(_, word)| word).collect()
    };
    let (held_out, training) = (only(held_out), only(training));
    let odds = odds_of(&training);
    report(&learn(&training, &odds, GAIN_MIN), &held_out);
    let mut lines: Vec<String> = learn(&words, &odds_of(&words), GAIN_MIN)
        .into_iter()
        .map(|(key, chunk)| {
            let mut sounds = String::new();
            for sound in chunk.into_iter().flatten() {
                if !sounds.is_empty() {
                    sounds.push(' ');
                }
                sound.write(&mut sounds);
            }
            format!("{key} {}\n", if sounds.is_empty() { "-" } else { &sounds })
        })
        .collect();
    lines.sort_by(|a, b| a.split(' ').next().cmp(&b.split(' ').next()));
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/text/phonemes/letter_rule.txt");
    std::fs::write(path, lines.concat()).expect("the source tree is writable");
}
