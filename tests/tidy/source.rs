//! Rust source as text: its files as modules, its tokens, its lines of code.

use std::path::Path;

/// A file below `src/`.
pub(crate) struct Source {
    /// Below the root of the repository.
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    /// The module that the file holds, as a path from the crate's root.
    pub(crate) fn module(&self) -> Vec<String> {
        let path = self.path.trim_start_matches("src/").trim_end_matches(".rs");
        path.split('/').filter(|part| !matches!(*part, "mod" | "lib" | "main")).map(str::to_owned).collect()
    }

    /// Modules that the file declares for unit tests alone.
    fn test_modules(&self) -> Vec<Vec<String>> {
        let lines: Vec<_> = self.text.lines().collect();
        let declared = lines.windows(2).filter(|pair| pair[0] == "#[cfg(test)]");
        let names = declared.filter_map(|pair| pair[1].strip_prefix("mod ")?.strip_suffix(';'));
        names.map(|name| [self.module(), vec![name.to_owned()]].concat()).collect()
    }
}

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

pub(crate) fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Lists the files below `folder` that end in `.extension`, as paths below the root, in order.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in
            folder.read_dir().unwrap_or_else(|error| panic!("{}: {error}", folder.display())).flatten()
        {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(
                    path.strip_prefix(root()).expect("below the root").to_str().expect("UTF-8").to_owned(),
                );
            }
        }
    }
    found.sort();
    found
}

/// Reads the files of the library: all below `src/` but the binary's and those of unit tests alone.
pub(crate) fn library() -> Vec<Source> {
    let paths = files("src", "rs").into_iter().filter(|path| path != "src/main.rs");
    let all: Vec<_> = paths.map(|path| Source { text: read(&path), path }).collect();
    let tests: Vec<_> = all.iter().flat_map(Source::test_modules).collect();
    let is_test = |source: &Source| tests.iter().any(|module| source.module().starts_with(module));
    all.into_iter().filter(|source| !is_test(source)).collect()
}

/// A name, a number, `::`, or any other single character of code, with its line.
pub(crate) type Token<'a> = (usize, &'a str);

/// The tokens of `text`, without comments and what stands in quotes.
pub(crate) fn all_tokens(text: &str) -> Vec<Token<'_>> {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    let mut tokens = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let name = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        let length = match first {
            '/' if rest.starts_with("//") => rest.find('\n').unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest.find("*/").map_or(rest.len(), |end| end + 2),
            '"' => quoted(rest, '"'),
            '\'' => character(rest),
            'r' | 'b' | 'c' if rest[1..].trim_start_matches(['r', '#']).starts_with('"') => raw(rest),
            c if is_name(c) => {
                tokens.push((line, &rest[..name]));
                name
            }
            c => {
                let length = if rest.starts_with("::") { 2 } else { c.len_utf8() };
                if !c.is_whitespace() {
                    tokens.push((line, &rest[..length]));
                }
                length
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    tokens
}

/// The length of what `quote` opens, escapes included.
fn quoted(text: &str, quote: char) -> usize {
    let mut escaped = false;
    let end = text.char_indices().skip(1).find(|(_, c)| {
        let ends = *c == quote && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |(at, _)| at + 1)
}

/// The length of a character in quotes, or of the quote of a lifetime.
fn character(text: &str) -> usize {
    let mut inside = text[1..].chars();
    match (inside.next(), inside.next()) {
        (Some('\\'), _) => quoted(text, '\''),
        (Some(c), Some('\'')) => 2 + c.len_utf8(),
        _ => 1,
    }
}

/// The length of a string with a prefix: `r"…"`, `r#"…"#`, `b"…"`, `br"…"`.
fn raw(text: &str) -> usize {
    let open = text.find('"').expect("a string");
    if !text[..open].contains('r') {
        return open + quoted(&text[open..], '"');
    }
    let close = format!("\"{}", "#".repeat(text[..open].matches('#').count()));
    text[open + 1..].find(&close).map_or(text.len(), |end| open + 1 + end + close.len())
}

/// First and last lines of the items that only unit tests have.
fn test_items<'a>(tokens: &'a [Token<'a>]) -> impl Iterator<Item = (usize, usize)> + 'a {
    const ATTRIBUTE: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let opens = tokens
        .windows(7)
        .enumerate()
        .filter(|(_, window)| window.iter().zip(ATTRIBUTE).all(|((_, token), expected)| *token == expected));
    opens.map(|(start, window)| {
        let mut depth = 0;
        let end = tokens[start + 7..].iter().find(|(_, token)| {
            match *token {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            depth == 0 && matches!(*token, ";" | "}")
        });
        (window[0].0, end.map_or(usize::MAX, |(line, _)| *line))
    })
}

/// The tokens of `text` that are not those of unit tests.
pub(crate) fn tokens(text: &str) -> Vec<Token<'_>> {
    let all = all_tokens(text);
    let tests: Vec<_> = test_items(&all).collect();
    let is_test = |line: usize| tests.iter().any(|(first, last)| (*first..=*last).contains(&line));
    all.iter().filter(|(line, _)| !is_test(*line)).copied().collect()
}

/// Numbered lines of code: without comments, and without those of unit tests.
pub(crate) fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let tests: Vec<_> = test_items(&all_tokens(text)).collect();
    let lines = text.lines().enumerate().map(|(at, line)| (at + 1, line));
    let lines = lines.filter(move |(at, _)| !tests.iter().any(|(first, last)| (first..=last).contains(&at)));
    lines
        .map(|(at, line)| (at, line.split_once("//").map_or(line, |(code, _)| code)))
        .filter(|(_, line)| !line.trim().is_empty())
}

/// Tells if `word` stands in `line`, and not as a part of a longer one.
pub(crate) fn has_word(line: &str, word: &str) -> bool {
    let is_name = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(at, _)| {
        let before = line[..at].chars().next_back().is_none_or(|c| !is_name(c) || !word.starts_with(is_name));
        let after =
            line[at + word.len()..].chars().next().is_none_or(|c| !is_name(c) || !word.ends_with(is_name));
        before && after
    })
}

/// Fails with all of `problems`.
pub(crate) fn tidy(problems: impl IntoIterator<Item = String>) {
    let problems: Vec<_> = problems.into_iter().collect();
    assert!(problems.is_empty(), "\n{}\n", problems.join("\n"));
}

#[test]
fn code_is_told_from_comments_quotes_and_tests() {
    let text = "fn a<'a>() { \"x // \\\" y\"; '\"'; r#\"z\"\"#; } // c\n#[cfg(test)]\nmod tests {\n    fn b() {}\n}\nfn d() {}\n";
    let names: Vec<_> =
        tokens(text).into_iter().filter(|(_, token)| token.len() == 1 && *token > "A").collect();
    assert_eq!(names, [(1, "a"), (1, "a"), (1, "{"), (1, "}"), (6, "d"), (6, "{"), (6, "}")]);
    assert_eq!(code(text).map(|(at, _)| at).collect::<Vec<_>>(), [1, 6]);
}
