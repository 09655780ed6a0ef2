//! The architecture as a test: who may import whom, what stands where, and that the documents are true.
//!
//! Each rule is a function from a text to the lines that break it, and has a test of its own in which it is broken.

use std::collections::BTreeSet;
use std::path::PathBuf;

use source::{code, files, has_word, library, read, root, tidy};

mod circles;
mod dead;
mod imports;
mod module;
mod names;
mod proofs;
mod prose;
mod source;

/// Lines of code in one file, tests and documentation not counted.
const FILE_LINES_MAX: usize = 500;

/// Lines of one function.
const FUNCTION_LINES_MAX: usize = 70;

/// Functions that are longer and have to be split: file and name.
const LONGER: &[(&str, &str)] = &[("src/server.rs", "run_edge")];

/// Columns of a comment; rustfmt sees to the code.
const COMMENT_COLUMNS_MAX: usize = 125;

/// Lines between a comment that explains and what it explains.
const EXPLAINED_WITHIN: usize = 12;

/// Words, where alone they may stand (prefixes of paths below `src/`), and what to use instead.
const WORDS: &[(&str, &[&str], &str)] = &[
    (
        "tokio",
        &["edge/", "llm_server/", "server.rs", "talk/"],
        "async lives at the edge; a stage is woken by its bell",
    ),
    ("axum", &["edge/", "llm_server/"], "the edge is every network boundary"),
    ("reqwest", &["edge/"], "the edge is every network boundary"),
    ("futures_util", &["edge/", "llm_server/", "talk/"], "async lives at the edge"),
    (".await", &["edge/", "llm_server/", "server.rs", "talk/"], "async lives at the edge"),
    ("rtrb", &["sync.rs", "unit/ring.rs"], "unit::ring wakes whoever waits"),
    ("atomic_refcell", &["sync.rs"], "sync::PortCell"),
    ("sync::atomic", &["sync.rs", "model/ort/"], "crate::sync, which the model checker replaces"),
    ("triple_buffer", &["unit/"], "settings go through the ports"),
    ("onnxruntime_sys", &["model/ort"], "model::ort's safe types"),
    ("libloading", &["model/ort", "model/espeak.rs"], "libraries are opened by their one module"),
    ("llama_cpp_2", &["model/llama", "main.rs"], "model::llama"),
    ("simd_json", &["protocol/"], "protocol::Decoder"),
    ("mimalloc", &["main.rs"], "the allocator is the binary's choice"),
    ("anyhow", &["main.rs"], "an error enum of the module"),
    ("Mutex", &["edge/", "llm_server/"], "nobody waits: a ring, a triple buffer, an atomic"),
    ("RwLock", &[], "nobody waits: a triple buffer"),
    ("Condvar", &[], "nobody waits: a bell"),
    ("mpsc", &["edge/", "llm_server/", "server.rs"], "a ring"),
    ("thread::Builder", &["rt/thread.rs", "llm_server/"], "rt::thread::spawn"),
    ("thread::spawn", &[], "rt::thread::spawn"),
    ("thread::sleep", &["model/fake.rs"], "a stage parks in its runner, the edge awaits a timer"),
    ("thread::park", &["unit/stage_bell.rs"], "StageBell::sleep"),
    ("clock_gettime", &["clock.rs"], "clock::now, passed on as an argument"),
    ("Instant::now", &["edge/outbound/"], "clock::now, passed on as an argument"),
    ("SystemTime", &["llm_server/"], "clock::now, passed on as an argument"),
    (
        "catch_unwind",
        &["stage/runner.rs", "edge/tasks/"],
        "a panic is a bug; whoever serves one unit for ever catches it",
    ),
    ("unsafe", &["model/ort", "model/espeak.rs", "rt/alloc.rs"], "a safe crate"),
    (
        "tracing::",
        &["edge/", "llm_server/", "server.rs", "rt/thread.rs"],
        "a counter, or an event to the edge; a thread may log before it works",
    ),
    ("println!", &["talk/", "server.rs", "text/phonemes/learn.rs"], "standard output is what was asked for"),
    ("eprintln!", &["main.rs", "store/"], "an error of the module, told by main"),
    (
        "clippy::disallowed_methods",
        &["edge/", "llm_server/", "rt/thread.rs", "stage/runner.rs", "model/fake.rs"],
        "see .clippy.toml",
    ),
    ("clippy::disallowed_types", &["edge/", "llm_server/"], "see .clippy.toml"),
    ("clippy::unwrap_used", &[], "expect, with the reason why it cannot fail"),
    ("dbg!", &[], "nothing"),
    ("todo!", &[], "the code"),
    ("unimplemented!", &[], "the code"),
    ("FIXME", &[], "the fix"),
    ("TODO", &[], "an issue"),
];

/// What stands at the top: what the user asked for, and what tools insist on.
const TOP: &[&str] =
    &["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "bench", "hw-profiles", "src", "tests"];

// Words that may stand in one place only.

fn misplaced_words(path: &str, text: &str) -> Vec<String> {
    let below_src = path.strip_prefix("src/").unwrap_or(path);
    let banned =
        WORDS.iter().filter(|(_, places, _)| !places.iter().any(|place| below_src.starts_with(place)));
    let banned: Vec<_> = banned.collect();
    let mut wrong = Vec::new();
    for (at, line) in code(text) {
        for (word, places, instead) in &banned {
            if has_word(line, word) {
                wrong.push(format!("{path}:{at}: {word} only in {places:?}; here: {instead}"));
            }
        }
    }
    wrong
}

#[test]
fn locks_clocks_threads_and_crates_stand_in_their_one_place() {
    tidy(files("src", "rs").iter().flat_map(|path| misplaced_words(path, &read(path))));
}

#[test]
fn every_place_of_a_word_is_still_one() {
    let texts: Vec<_> = files("src", "rs").into_iter().map(|path| (read(&path), path)).collect();
    let files: Vec<_> = texts.iter().map(|(text, path)| (code(text).collect::<Vec<_>>(), path)).collect();
    let mut unused = Vec::new();
    for (word, places, _) in WORDS {
        for place in *places {
            let mut here = files.iter().filter(|(_, path)| path["src/".len()..].starts_with(place));
            if !here.any(|(lines, _)| lines.iter().any(|(_, line)| has_word(line, word))) {
                unused.push(format!("{word} does not stand in {place} any more: take it out of the list"));
            }
        }
    }
    tidy(unused);
}

#[test]
fn a_word_out_of_place_is_found() {
    let wrong =
        misplaced_words("src/stage/vad.rs", "let now = Instant::now(); // Instant::now\nlet spark = 1;");
    assert_eq!(wrong.len(), 1, "{wrong:?}");
    assert!(wrong[0].starts_with("src/stage/vad.rs:1: Instant::now only in"), "{wrong:?}");
    assert!(misplaced_words("src/clock.rs", "rustix::time::clock_gettime(x)").is_empty());
    assert!(!misplaced_words("src/audio/pcm.rs", "let x = unsafe { y };").is_empty());
}

// Comments that explain.

/// Lines with `what` that have no `comment` shortly before them.
fn unexplained(path: &str, text: &str, what: impl Fn(&str) -> bool, comment: &str) -> Vec<String> {
    let lines: Vec<_> = text.lines().collect();
    let explained = |at: usize| {
        let from = at.saturating_sub(EXPLAINED_WITHIN);
        lines[from..at]
            .iter()
            .rev()
            .take_while(|line| !line.starts_with('}'))
            .any(|line| line.contains(comment))
    };
    let bare = code(text).filter(|(at, line)| what(line) && !explained(*at));
    bare.map(|(at, line)| format!("{path}:{at}: no {comment} before `{}`", line.trim())).collect()
}

fn is_ordered(line: &str) -> bool {
    ["Relaxed", "Acquire", "Release", "AcqRel", "SeqCst"]
        .iter()
        .any(|name| line.contains(&format!("Ordering::{name}")))
}

#[test]
fn every_ordering_is_argued() {
    tidy(files("src", "rs").iter().flat_map(|path| unexplained(path, &read(path), is_ordered, "ORDERING:")));
}

#[test]
fn every_unsafe_block_is_argued() {
    let opens = |line: &str| line.contains("unsafe {") || line.contains("unsafe impl");
    tidy(files("src", "rs").iter().flat_map(|path| unexplained(path, &read(path), opens, "SAFETY:")));
}

#[test]
fn a_missing_argument_is_found() {
    let bare = "fn f() {\n    x.load(Ordering::Acquire)\n}";
    assert_eq!(unexplained("x.rs", bare, is_ordered, "ORDERING:").len(), 1);
    let argued = "fn f() {\n    // ORDERING: pairs with g.\n    x.load(Ordering::Acquire)\n}";
    assert!(unexplained("x.rs", argued, is_ordered, "ORDERING:").is_empty());
    let of_another = format!("{argued}\n{bare}");
    assert_eq!(unexplained("x.rs", &of_another, is_ordered, "ORDERING:").len(), 1);
}

/// Beginnings of the names of atomic types.
const ATOMICS: [&str; 4] = ["AtomicBool", "AtomicI", "AtomicPtr", "AtomicU"];

/// Structs of `text` with a field of an atomic type.
fn atomic_structs(text: &str) -> BTreeSet<String> {
    let mut name = String::new();
    let mut found = BTreeSet::new();
    for (_, line) in code(text) {
        if let Some((_, rest)) = line.split_once("struct ") {
            name = rest.chars().take_while(|c| c.is_alphanumeric()).collect();
        }
        let is_field = line.starts_with("    ") && line.contains(": ") && line.ends_with(',')
            || line.contains("struct ");
        if is_field && ATOMICS.iter().any(|atomic| line.contains(atomic)) && !line.contains("::new") {
            found.insert(name.clone());
        }
    }
    found
}

/// The types that the first column of the guide's table of atomics names, in code quotes and up to `::`.
fn guide_atomics(guide: &str) -> BTreeSet<String> {
    let words = table(guide, "# Atomics").into_iter().map(|row| row[0].clone()).collect::<Vec<_>>();
    let quoted = words.iter().flat_map(|word| word.split('`').skip(1).step_by(2));
    let types =
        quoted.filter_map(|name| name.split("::").next()).filter(|name| name.starts_with(char::is_uppercase));
    types.map(str::to_owned).collect()
}

#[test]
fn the_guide_lists_every_atomic() {
    let guide = guide_atomics(&read("src/guide/memory.md"));
    let structs = library().iter().flat_map(|source| atomic_structs(&source.text)).collect::<BTreeSet<_>>();
    tidy(structs.difference(&guide).map(|name| format!("memory.md: no row about {name}")));
    tidy(guide.difference(&structs).map(|name| format!("memory.md: {name} has no atomic")));
}

#[test]
fn an_atomic_field_is_found() {
    let text = "pub struct A(AtomicU64);\nstruct B {\n    a: Box<[AtomicU8]>,\n    b: u8,\n}\nstruct C {\n    x: u8,\n}";
    assert_eq!(atomic_structs(text).into_iter().collect::<Vec<_>>(), ["A", "B"]);
    let guide = "# Atomics\n\n| a | b |\n|---|---|\n| `A::x` of a `ring` (`B`) | `C` |\n";
    assert_eq!(guide_atomics(guide).into_iter().collect::<Vec<_>>(), ["A", "B"]);
}

// Sizes and names.

fn too_large(path: &str, text: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let lines: Vec<_> = text.lines().collect();
    let count = code(text).count();
    if count > FILE_LINES_MAX {
        wrong.push(format!("{path}: {count} lines of code, at most {FILE_LINES_MAX}"));
    }
    for (at, line) in lines.iter().enumerate() {
        if line.trim_start().starts_with("//") && line.chars().count() > COMMENT_COLUMNS_MAX {
            wrong.push(format!("{path}:{}: a comment of more than {COMMENT_COLUMNS_MAX} columns", at + 1));
        }
        let length = if is_function(line) { function_lines(&lines[at..]) } else { 0 };
        if length > FUNCTION_LINES_MAX
            && !LONGER.iter().any(|(file, name)| *file == path && line.contains(name))
        {
            let place = at + 1;
            wrong.push(format!("{path}:{place}: a function of {length} lines, at most {FUNCTION_LINES_MAX}"));
        }
    }
    wrong
}

/// Tells if a function is declared in `line`.
fn is_function(line: &str) -> bool {
    let Some((before, _)) = line.split_once("fn ") else { return false };
    before.split_whitespace().all(|word| {
        matches!(word, "const" | "async" | "unsafe" | "extern" | "\"C\"") || word.starts_with("pub")
    })
}

/// The lines of the function whose declaration `lines` begin with: from its name to its last brace, however its signature
/// is wrapped. A declaration without a body has none.
fn function_lines(lines: &[&str]) -> usize {
    let indent = &lines[0][..lines[0].len() - lines[0].trim_start().len()];
    let Some(open) = lines.iter().position(|line| line.ends_with(['{', '}', ';'])) else { return 0 };
    if !lines[open].ends_with('{') {
        return 0;
    }
    let close = lines.iter().skip(open + 1).position(|line| line.strip_prefix(indent) == Some("}"));
    close.map_or(0, |length| open + 1 + length + 1)
}

#[test]
fn files_functions_and_comments_are_not_too_large() {
    let all = ["src", "tests", "bench"].iter().flat_map(|folder| files(folder, "rs"));
    tidy(all.flat_map(|path| too_large(&path, &read(&path))));
}

#[test]
fn what_is_too_large_is_found() {
    let function =
        |signature: &str, lines: usize| format!("{signature} {{\n{}}}\n", "    f();\n".repeat(lines));
    assert_eq!(too_large("x.rs", &function("pub(super) async fn f()", 69)).len(), 1);
    assert!(too_large("x.rs", &function("pub(super) async fn f()", 68)).is_empty());
    let wrapped = "fn f(\n    x: u8,\n    y: u8,\n) -> u8\nwhere\n    u8: Copy,\n";
    assert_eq!(too_large("x.rs", &function(wrapped, 63)).len(), 1);
    assert!(too_large("x.rs", &function(wrapped, 62)).is_empty());
    assert!(too_large("x.rs", &format!("fn f(\n    x: u8,\n);\n{}", function("mod m", 70))).is_empty());
    assert_eq!(too_large("x.rs", &"let x = 1;\n".repeat(501)).len(), 1);
    assert_eq!(too_large("x.rs", &format!("// {}\n", "x".repeat(125))).len(), 1);
}

#[test]
fn files_say_what_they_are() {
    let all = ["src", "tests", "bench"].iter().flat_map(|folder| files(folder, "rs"));
    let silent = all.filter(|path| !read(path).starts_with("//!"));
    tidy(silent.map(|path| format!("{path}: does not begin with what it is (//!)")));
}

#[test]
fn the_top_is_as_the_user_asked() {
    let entries = root().read_dir().expect("the root is there").flatten();
    let names = entries.map(|entry| entry.file_name().into_string().expect("UTF-8"));
    let odd =
        names.filter(|name| !name.starts_with('.') && name != "target" && !TOP.contains(&name.as_str()));
    tidy(odd.map(|name| format!("{name}: does not belong at the top")));
    tidy(TOP.iter().filter(|name| !root().join(name).exists()).map(|name| format!("{name}: missing")));
}

// The documents are true.

/// Rows of the table below `heading`, as cells.
fn table(text: &str, heading: &str) -> Vec<Vec<String>> {
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
