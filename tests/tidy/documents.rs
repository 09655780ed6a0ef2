//! Documents are true: their figures have sources, their links targets, and benches, suites and dependencies descriptions.

use std::collections::BTreeSet;
use std::path::PathBuf;

use crate::source::{files, read, root, tidy};

/// Rows of the table below `heading`, as cells.
pub(crate) fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
    let chapter = text.split(heading).nth(1).unwrap_or_else(|| panic!("no {heading:?}"));
    let rows = chapter.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let cells = |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    rows.take_while(|line| line.starts_with('|')).map(cells).collect()
}

/// Figures of a document without a source: a command that exists, or `*pending*`, or "same" as the row above.
fn figures_without_source(path: &str, text: &str, benches: &BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    for row in table(text, "## Figures") {
        let [claim, value, command] = row.as_slice() else {
            wrong.push(format!("{path}, figures: {} cells, expected 3: {row:?}", row.len()));
            continue;
        };
        let bench = command
            .split("--bench ")
            .nth(1)
            .map(|rest| rest.trim_end_matches('`').split(' ').next().unwrap_or(""));
        let script = command.trim_matches('`').split(' ').next().filter(|path| path.starts_with("bench/"));
        let suite = command.split("--test ").nth(1).map(|rest| rest.trim_end_matches('`'));
        let known = suite.is_some_and(|suite| root().join(format!("tests/{suite}.rs")).exists())
            || bench.is_some_and(|bench| benches.contains(bench))
            || script.is_some_and(|script| root().join(script).exists())
            || command == "same";
        if !known && value != "*pending*" {
            wrong.push(format!("{path}, figures: {claim:?} names no bench that exists: {command:?}"));
        }
    }
    wrong
}

/// Names of the benches that Cargo.toml declares.
fn benches(manifest: &str) -> BTreeSet<String> {
    let declared = manifest.split("[[bench]]").skip(1);
    declared.filter_map(|part| part.split("name = \"").nth(1)?.split('"').next().map(str::to_owned)).collect()
}

#[test]
fn every_figure_has_a_source() {
    let benches = benches(&read("Cargo.toml"));
    let documents = ["README.md", "bench/README.md"];
    tidy(documents.iter().flat_map(|path| figures_without_source(path, &read(path), &benches)));
}

#[test]
fn a_figure_without_a_source_is_found() {
    let readme = "## Figures\n\n| a | b | c |\n|---|---|---|\n| x | 1 ms | `cargo bench --bench none` |\n| y | *pending* | |\n";
    assert_eq!(figures_without_source("README.md", readme, &benches("")).len(), 1);
    let known = benches("[[bench]]\nname = \"none\"\n");
    assert!(figures_without_source("README.md", readme, &known).is_empty());
}

#[test]
fn every_bench_and_every_suite_is_described() {
    let (benches, readme) = (benches(&read("Cargo.toml")), read("bench/README.md"));
    tidy(
        benches
            .iter()
            .filter(|name| !readme.contains(&format!("`{name}`")))
            .map(|name| format!("bench/README.md: nothing about {name}")),
    );
    let readme = read("tests/README.md");
    let suites = root().join("tests").read_dir().expect("there").flatten().map(|entry| entry.path());
    let is_suite = |path: &PathBuf| {
        path.join("main.rs").exists()
            || path.join("Cargo.toml").exists()
            || path.extension().is_some_and(|e| e == "rs")
    };
    let names = suites
        .filter(is_suite)
        .map(|path| path.file_stem().expect("named").to_str().expect("UTF-8").to_owned());
    tidy(
        names
            .filter(|name| !readme.contains(&format!("`{name}")))
            .map(|name| format!("tests/README.md: nothing about {name}")),
    );
}

/// Dependencies of a manifest without a comment above them.
fn undescribed_dependencies(manifest: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let (mut is_dependencies, mut before) = (false, "");
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependencies = line.ends_with("dependencies]");
        } else if is_dependencies
            && line.contains(" = ")
            && !line.starts_with('#')
            && !before.starts_with('#')
        {
            wrong.push(format!("Cargo.toml: no sentence above {line}"));
        }
        before = line;
    }
    wrong
}

#[test]
fn every_dependency_says_what_it_is_for() {
    tidy(undescribed_dependencies(&read("Cargo.toml")));
    assert_eq!(undescribed_dependencies("[dependencies]\n# For a.\na = \"1\"\nb = \"1\"\n").len(), 1);
}

/// Targets of the links of a Markdown file that are files and are not there.
fn broken_links(path: &str, text: &str) -> Vec<String> {
    let folder = root().join(path).parent().expect("a file is in a folder").to_owned();
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let local = targets
        .filter(|target| !target.contains("::") && !target.starts_with("http") && !target.starts_with('#'));
    let gone = local.filter(|target| !folder.join(target.split('#').next().unwrap_or("")).exists());
    gone.map(|target| format!("{path}: no {target}")).collect()
}

#[test]
fn documents_have_one_title_and_no_broken_link() {
    let folders = ["src", "tests", "bench", "hw-profiles"].iter().flat_map(|folder| files(folder, "md"));
    let mut wrong = Vec::new();
    for path in folders.chain(["README.md".to_owned(), ".github/CONTRIBUTING.md".to_owned()]) {
        let text = read(&path);
        let mut fenced = false;
        let titles = text.lines().filter(|line| {
            fenced ^= line.starts_with("```");
            !fenced && line.starts_with("# ")
        });
        if titles.count() != 1 {
            wrong.push(format!("{path}: not exactly one title"));
        }
        wrong.extend(broken_links(&path, &text));
    }
    tidy(wrong);
    assert_eq!(broken_links("README.md", "[a](src/lib.rs) [b](src/none.rs) [c](crate::unit)").len(), 1);
}
