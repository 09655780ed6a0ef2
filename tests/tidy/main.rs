//! The architecture as a test: who may import whom, what stands where, and that the documents are true.
//!
//! Each rule is a function from a text to the lines that break it, and has a test of its own in which it is broken.

use source::{files, read, root, tidy};

mod arguments;
mod atomics;
mod circles;
mod dead;
mod documents;
mod imports;
mod module;
mod names;
mod proofs;
mod prose;
mod sizes;
mod source;
mod words;

/// What stands at the top: what the user asked for, and what tools insist on.
const TOP: &[&str] =
    &["Cargo.lock", "Cargo.toml", "LICENSE", "README.md", "bench", "hw-profiles", "src", "tests"];

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
