//! Errors of a profile, one line each.

use std::fmt;
use std::path::{Path, PathBuf};

/// One mistake in a profile: file, line if known, key, found value, expected value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem(String);

impl Problem {
    pub(super) fn new(file: &Path, key: &str, found: impl fmt::Display, expected: String) -> Self {
        Self(format!("{}: {key}: found {found}, expected {expected}", file.display()))
    }

    /// Formats the TOML reader's error on one line, with the key of its position.
    pub(super) fn of_toml(file: &Path, text: &str, error: &toml::de::Error) -> Self {
        let mut message = error.message().lines().collect::<Vec<_>>().join(", ");
        // The reader has Rust's names only.
        for (rust, expected) in [
            ("expected u16", "expected a whole number in 0..=65535"),
            ("expected u32", "expected a whole number in 0..=4294967295"),
            ("expected u64", "expected a whole number, 0 or more"),
            ("expected a sequence", "expected a list"),
            ("expected struct", "expected a section like"),
        ] {
            message = message.replace(rust, expected);
        }
        let Some(span) = error.span() else { return Self(format!("{}: {message}", file.display())) };
        let (line, key) = place(text, span.start);
        Self(format!("{}:{line}: {key}: {message}", file.display()))
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns the line number, from 1, and the `section.key` of the byte `offset` of a TOML text.
fn place(text: &str, offset: usize) -> (usize, String) {
    let before = text.get(..offset).unwrap_or(text);
    let number = before.matches('\n').count();
    let lines: Vec<_> = text.lines().take(number + 1).map(str::trim).collect();
    let section =
        |line: &str| Some(line.strip_prefix('[')?.trim_start_matches('[').split_once(']')?.0.to_owned());
    let table = lines.iter().rev().find_map(|line| section(line));
    let here = lines.last().copied().unwrap_or_default();
    let key = here.split_once('=').filter(|_| section(here).is_none()).map(|(key, _)| key.trim().to_owned());
    let path: Vec<_> = table.into_iter().chain(key).collect();
    (number + 1, if path.is_empty() { "top level".to_owned() } else { path.join(".") })
}

/// Errors of loading, checking and comparing profiles.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// The file cannot be read.
    #[error("{}: cannot read ({reason})", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        reason: std::io::Error,
    },
    /// The file has at least one problem; the message shows the first.
    #[error("{}{}", .0[0], more(.0.len()))]
    Invalid(Vec<Problem>),
    /// No profile of this name is compiled in, and it is no path.
    #[error("profile {name:?}: not known, expected auto, a path ending in .toml, or one of: {known}")]
    Unknown {
        /// Name in the argument.
        name: String,
        /// Names that are compiled in, for the message.
        known: String,
    },
    /// `antiphon validate` found files with problems.
    #[error("{wrong} of {total} profiles are not valid")]
    NotValid {
        /// Number of files with a problem.
        wrong: usize,
        /// Number of files read.
        total: usize,
    },
    /// `antiphon profile compare` found differences.
    #[error("this machine differs from {name} in {different} of {total} keys")]
    Different {
        /// Name of the profile.
        name: String,
        /// Number of keys that differ.
        different: usize,
        /// Number of keys compared.
        total: usize,
    },
    /// Standard output is closed or full.
    #[error("standard output: {0}")]
    Print(std::io::Error),
}

fn more(problems: usize) -> String {
    match problems - 1 {
        0 => String::new(),
        more => format!(" (and {more} more; `antiphon validate FILE` lists them)"),
    }
}
