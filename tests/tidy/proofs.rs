//! The proofs that `tests/PEER.md` and `tests/CASES.md` name are there, and the mutants of `tests/loom` fit the source.

use crate::source::{files, read, root, tidy};

const DOCUMENTS: [&str; 2] = ["tests/PEER.md", "tests/CASES.md"];

/// Returns whether `file` exists and, where a test is named, has a function of that name.
fn has(file: &str, test: Option<&str>) -> bool {
    let Ok(text) = std::fs::read_to_string(root().join(file)) else { return false };
    test.is_none_or(|test| text.contains(&format!("fn {test}(")) || text.contains(&format!("def {test}(")))
}

/// Lists the files that `module` may stand for: `pool`, `it/pool`, `loom/ring`, `chat/calls`, `session::prompt`.
fn candidates(module: &str) -> Vec<String> {
    let path = module.replace("::", "/");
    let models = path.replace("loom/", "loom/models/");
    vec![
        format!("tests/it/{path}.rs"),
        format!("tests/{path}.rs"),
        format!("tests/{path}/main.rs"),
        format!("tests/{models}.rs"),
        format!("src/{path}.rs"),
        format!("src/{path}/mod.rs"),
    ]
}

/// Returns whether a proof is there. Words in backticks that name no proof, such as codes of errors, count as there.
fn is_there(proof: &str) -> bool {
    if proof.ends_with(".jsonl") {
        return has(&format!("tests/conformance/cases/{proof}"), None);
    }
    if let Some((program, scenario)) = proof.split_once(".py ") {
        return has(&format!("tests/clients/{program}.py"), Some(scenario));
    }
    let Some((module, test)) = proof.rsplit_once("::") else {
        let is_module = proof.starts_with("it/");
        return !is_module || candidates(proof).iter().any(|file| has(file, None));
    };
    candidates(module).iter().any(|file| has(file, Some(test)))
        || candidates(proof).iter().any(|file| has(file, None))
}

/// Lists the proofs in the last cells of the tables of `text` that are not there.
fn missing_proofs(path: &str, text: &str) -> Vec<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix('|')?.strip_suffix('|'));
    let cells = rows.filter_map(|row| row.rsplit_once(" | "));
    let proofs =
        cells.flat_map(|(row, cell)| cell.split('`').skip(1).step_by(2).map(move |proof| (row, proof)));
    let gone = proofs.filter(|(_, proof)| !is_there(proof));
    let case = |row: &str| row.split('|').next().unwrap_or_default().trim().to_owned();
    gone.map(|(row, proof)| format!("{path}: {}: there is no {proof}", case(row))).collect()
}

#[test]
fn every_proof_of_a_case_is_there() {
    tidy(DOCUMENTS.iter().flat_map(|path| missing_proofs(path, &read(path))));
}

#[test]
fn a_proof_that_is_gone_is_found() {
    let row = |proof: &str| format!("|---|---|\n| a | `{proof}` |\n");
    for gone in ["none.jsonl", "pool::none", "it/none", "realtime.py none", "session::prompt::none"] {
        assert_eq!(missing_proofs("x.md", &row(gone)).len(), 1, "{gone}");
    }
    for there in ["begin.jsonl", "it/pool", "realtime.py cancel", "session::prompt", "stt_failed"] {
        assert!(missing_proofs("x.md", &row(there)).is_empty(), "{there}");
    }
}

/// Hunks of `patch` whose old lines stand in no place of their file, which `read` reads, as `file: line of the patch`.
fn stale_hunks(patch: &str, read: impl Fn(&str) -> String) -> Vec<String> {
    let (mut stale, mut file, mut hunks) = (Vec::new(), "", Vec::<(String, String)>::new());
    for line in patch.lines() {
        if let Some(path) = line.strip_prefix("--- a/") {
            file = path;
        } else if line.starts_with("@@") {
            hunks.push((format!("{file}: {line}"), String::new()));
        } else if let Some((_, old)) = hunks.last_mut()
            && let Some(kept) = line.strip_prefix(' ').or_else(|| line.strip_prefix('-'))
        {
            *old += kept;
            old.push('\n');
        }
    }
    for (place, old) in hunks {
        let path = place.split(':').next().expect("a file stands first");
        if old.is_empty() || !read(path).contains(&old) {
            stale.push(place);
        }
    }
    stale
}

#[test]
fn the_mutants_fit_the_source() {
    let patches = files("tests/loom/mutants", "patch");
    assert!(!patches.is_empty(), "no mutants");
    let stale = patches.iter().flat_map(|patch| {
        let stale = stale_hunks(&read(patch), read);
        stale.into_iter().map(move |place| format!("{patch} does not fit the source any more: {place}"))
    });
    tidy(stale);
}

#[test]
fn a_mutant_that_does_not_fit_is_found() {
    let patch = "Why.\n\n--- a/x.rs\n+++ b/x.rs\n@@ -1,3 +1,3 @@\n a\n-b\n+c\n d\n";
    assert!(stale_hunks(patch, |_| "z\na\nb\nd\n".to_owned()).is_empty());
    assert_eq!(stale_hunks(patch, |_| "a\nc\nd\n".to_owned()), ["x.rs: @@ -1,3 +1,3 @@"]);
}
