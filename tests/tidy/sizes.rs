//! Files, functions and comments are not too large.

use crate::source::{code, files, read, tidy};

/// Lines of code in one file, tests and documentation not counted.
const FILE_LINES_MAX: usize = 500;

/// Lines of one function.
const FUNCTION_LINES_MAX: usize = 70;

/// Columns of a comment; rustfmt sees to the code.
const COMMENT_COLUMNS_MAX: usize = 125;

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
        if length > FUNCTION_LINES_MAX {
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
