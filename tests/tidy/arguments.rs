//! Every memory ordering and every unsafe block has its argument before it.

use crate::source::{code, files, read, tidy};

/// Lines between a comment that explains and what it explains.
const EXPLAINED_WITHIN: usize = 12;

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
