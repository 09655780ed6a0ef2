//! One name, one thing: types, files, and the words of the glossary.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use crate::source::{Source, code, files, library, read, root, tidy};

/// Files, by the beginning of their paths below `src/`, that may declare type aliases, and why.
const ALIASED: &[(&str, &str)] =
    &[("model/espeak.rs", "functions of a C interface"), ("model/ort/api.rs", "functions of a C interface")];

/// Names of files that say nothing of their contents.
const EMPTY_NAMES: &[&str] = &["helpers", "utils", "util", "common", "types", "misc"];

/// A type that `line` declares: its kind and its name. Associated types are indented and no declarations.
fn declared_type(line: &str) -> Option<(&str, &str)> {
    let indented = line.starts_with(' ');
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub") || *word == "unsafe");
    let kind = words.next()?;
    let is_type = matches!(kind, "struct" | "enum" | "trait" | "union") || kind == "type" && !indented;
    let name = words.next().filter(|_| is_type)?;
    let end = name.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(name.len());
    Some((kind, &name[..end])).filter(|(_, name)| !name.is_empty())
}

/// The types of `sources` by their names, each with the places where it is defined.
fn types(sources: &[Source]) -> BTreeMap<String, Vec<String>> {
    let mut types = BTreeMap::<String, Vec<String>>::new();
    for source in sources {
        for (at, line) in code(&source.text) {
            if let Some((_, name)) = declared_type(line) {
                types.entry(name.to_owned()).or_default().push(format!("{}:{at}", source.path));
            }
        }
    }
    types
}

#[test]
fn a_type_has_a_name_of_its_own() {
    let types = types(&library());
    let shared = types.iter().filter(|(_, places)| places.len() > 1);
    tidy(shared.map(|(name, places)| format!("{name} is defined twice: {}", places.join(", "))));
}

/// Aliases of types in a file, as `path:line: name`.
fn aliases(source: &Source) -> Vec<(String, String)> {
    let path = source.path.trim_start_matches("src/");
    if ALIASED.iter().any(|(allowed, _)| path == *allowed) {
        return Vec::new();
    }
    let declared = code(&source.text).filter_map(|(at, line)| Some((at, declared_type(line)?)));
    let aliases = declared.filter(|(_, (kind, _))| *kind == "type");
    aliases.map(|(at, (_, name))| (format!("{}:{at}", source.path), name.to_owned())).collect()
}

#[test]
fn types_have_no_aliases() {
    let found = library().iter().flat_map(aliases).collect::<Vec<_>>();
    tidy(
        found.iter().map(|(place, name)| {
            format!("{place}: {name} is an alias: a type of its own, or the plain type")
        }),
    );
    let sources = library();
    let unused = ALIASED.iter().filter(|(path, _)| !sources.iter().any(|source| source.path.ends_with(path)));
    tidy(unused.map(|(path, _)| format!("{path}: no such file")));
}

#[test]
fn a_second_definition_and_an_alias_are_found() {
    let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let a =
        source("src/a.rs", "pub(super) struct Unit<T> {\n}\nstruct Other(u8);\npub type Short = Vec<u8>;\n");
    let b = source(
        "src/b.rs",
        "impl X for Y {\n    type Other = u8;\n}\n// struct Other;\nfn f() {\n    enum Unit { A }\n}\n",
    );
    assert_eq!(aliases(&a), [("src/a.rs:4".to_owned(), "Short".to_owned())]);
    let types = types(&[a, b]);
    assert_eq!(types["Unit"], ["src/a.rs:1", "src/b.rs:6"]);
    assert_eq!(types["Other"], ["src/a.rs:3"]);
}

/// The entries of the glossary: the word, and the types in parentheses behind it.
fn entries(glossary: &str) -> Vec<(String, Vec<String>)> {
    let lines = glossary.lines().filter_map(|line| line.strip_prefix("- **")?.split_once("**"));
    lines
        .map(|(word, rest)| {
            let types = rest.strip_prefix(" (").and_then(|rest| rest.split(')').next()).unwrap_or("");
            (word.to_owned(), types.split('`').skip(1).step_by(2).map(str::to_owned).collect())
        })
        .collect()
}

/// Entries of the glossary that name no type of the library, or that another entry has too.
fn wrong_entries(glossary: &str, types: &BTreeMap<String, Vec<String>>) -> Vec<String> {
    let mut wrong = Vec::new();
    let (mut words, mut named_before) = (BTreeSet::new(), BTreeSet::new());
    for (word, named) in entries(glossary) {
        let known = named.iter().filter(|name| types.get(*name).is_none_or(|places| places.len() != 1));
        wrong.extend(known.map(|name| format!("glossary.md: {word}: not exactly one type is called {name}")));
        let twice = named.into_iter().filter(|name| !named_before.insert(name.clone()));
        wrong.extend(twice.map(|name| format!("glossary.md: {name} stands behind two words")));
        if !words.insert(word.to_lowercase()) {
            wrong.push(format!("glossary.md: {word} has two entries"));
        }
    }
    wrong
}

#[test]
fn the_glossary_names_types_that_are_there() {
    tidy(wrong_entries(&read("src/guide/glossary.md"), &types(&library())));
}

#[test]
fn a_wrong_entry_of_the_glossary_is_found() {
    let types =
        types(&[Source { path: "a.rs".to_owned(), text: "struct Unit;\nstruct Lease;\n".to_owned() }]);
    let glossary =
        "- **unit** (`Unit`): one.\n- **lease** (`Lease`, `Key`): another `X`.\n- **Unit**: again.\n";
    let wrong = wrong_entries(glossary, &types);
    assert_eq!(wrong.len(), 2, "{wrong:?}");
}

/// Folders of modules that are not declared by their `mod.rs`; the files of `main` and `lib` declare theirs.
fn misplaced_modules(files: &[String]) -> Vec<String> {
    let folders: BTreeSet<_> = files.iter().filter_map(|path| Path::new(path).parent()).collect();
    let has = |path: String| files.contains(&path);
    let mut wrong = Vec::new();
    for folder in folders.iter().map(|folder| folder.display()) {
        if has(format!("{folder}.rs")) {
            wrong.push(format!("{folder}.rs: belongs into its folder, as mod.rs or main.rs"));
        } else if !["mod", "lib", "main"].iter().any(|name| has(format!("{folder}/{name}.rs"))) {
            wrong.push(format!("{folder}: no mod.rs"));
        }
    }
    wrong
}

#[test]
fn a_folder_of_modules_has_its_mod_rs() {
    tidy(misplaced_modules(&files("src", "rs")));
    let siblings =
        files("tests", "rs").into_iter().filter(|path| root().join(path).with_extension("").is_dir());
    tidy(siblings.map(|path| format!("{path}: belongs into its folder, as mod.rs or main.rs")));
    let files = ["src/lib.rs", "src/a.rs", "src/a/b.rs", "src/c/mod.rs", "src/c/d.rs", "src/e/f.rs"];
    let wrong = misplaced_modules(&files.map(str::to_owned));
    assert_eq!(wrong, ["src/a.rs: belongs into its folder, as mod.rs or main.rs", "src/e: no mod.rs"]);
}

#[test]
fn files_have_telling_names() {
    let all = ["src", "tests", "bench"].iter().flat_map(|folder| files(folder, "rs"));
    let stem = |path: &str| Path::new(path).file_stem().and_then(|stem| stem.to_str()).map(str::to_owned);
    let empty = all.filter(|path| stem(path).is_some_and(|stem| EMPTY_NAMES.contains(&stem.as_str())));
    tidy(empty.map(|path| format!("{path}: name it by the noun that it defines")));
}
