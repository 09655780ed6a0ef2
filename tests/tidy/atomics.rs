//! The guide lists every atomic, and none that is gone.

use std::collections::BTreeSet;

use crate::documents::table;
use crate::source::{code, library, read, tidy};

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
