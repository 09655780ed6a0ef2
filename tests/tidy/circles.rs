//! No two files need each other, inside a folder either.
//!
//! A file needs those that its `use` declarations and paths name, through the re-exports of a `mod.rs` too. A folder's
//! `mod.rs` and the files below it are not compared: it declares them, and they share its names.

use std::collections::{BTreeMap, BTreeSet};

use crate::module::Module;
use crate::source::{Source, library, tidy};

/// The index of the module that `path` is in, behind re-exports.
fn resolve(path: &[String], modules: &[Module<'_>], index: &BTreeMap<&[String], usize>) -> Option<usize> {
    let length = (1..=path.len()).rev().find(|length| index.contains_key(&path[..*length]))?;
    let module = index[&path[..length]];
    let reexported = &modules[module].reexported;
    let target = path.get(length).and_then(|name| reexported.iter().find(|(_, known, _)| known == name));
    match target {
        Some((_, _, target)) if target != path => {
            Some(resolve(&[target, &path[length + 1..]].concat(), modules, index).unwrap_or(module))
        }
        _ => Some(module),
    }
}

/// The files of each circle, in order.
fn circles(sources: &[Source]) -> Vec<Vec<&str>> {
    let modules: Vec<_> = sources.iter().map(Module::new).collect();
    let index = modules.iter().enumerate().map(|(at, module)| (module.name.as_slice(), at)).collect();
    let is_family =
        |a: &Module<'_>, b: &Module<'_>| a.name.starts_with(&b.name) || b.name.starts_with(&a.name);
    let needed = |module: &Module<'_>| -> BTreeSet<usize> {
        let found = module.named.iter().filter_map(|(_, path)| resolve(path, &modules, &index));
        found.filter(|at| !is_family(module, &modules[*at])).collect()
    };
    let needs: Vec<_> = modules.iter().map(needed).collect();
    let reached = |from: usize| {
        let mut seen = BTreeSet::new();
        let mut next = vec![from];
        while let Some(at) = next.pop() {
            next.extend(needs[at].iter().filter(|needed| seen.insert(**needed)));
        }
        seen
    };
    let reached: Vec<_> = (0..modules.len()).map(reached).collect();
    let circle = |at: usize| -> Vec<&str> {
        let both = reached[at].iter().filter(|other| reached[**other].contains(&at));
        both.map(|other| modules[*other].path).collect()
    };
    let circles: BTreeSet<_> = (0..modules.len()).map(circle).filter(|circle| !circle.is_empty()).collect();
    circles.into_iter().collect()
}

#[test]
fn files_do_not_need_each_other() {
    let sources = library();
    tidy(circles(&sources).iter().map(|circle| format!("a circle: {}", circle.join(" ↔ "))));
}

#[test]
fn a_circle_is_found() {
    let source = |(path, text): (&str, &str)| Source { path: format!("src/{path}"), text: text.to_owned() };
    let found = |files: &[(&str, &str)]| {
        let sources: Vec<_> = files.iter().copied().map(source).collect();
        circles(&sources).into_iter().map(|circle| circle.join(" ")).collect::<Vec<_>>()
    };
    let (a, b) = (("a/b.rs", "use super::c::{self, X};"), ("a/c.rs", "fn f() { crate::a::b::g() }"));
    assert_eq!(found(&[a, b]), ["src/a/b.rs src/a/c.rs"]);
    let through = ("a/mod.rs", "mod b;\nmod c;\npub use c::{X, Y as Z};");
    assert_eq!(found(&[through, ("a/b.rs", "use super::Z;"), b]), ["src/a/b.rs src/a/c.rs"]);
    assert!(
        found(&[through, a, ("a/c.rs", "// super::b\n#[cfg(test)]\nmod tests { use super::b; }")]).is_empty()
    );
    assert!(found(&[("a/mod.rs", "mod b;\nuse b::X;"), ("a/b.rs", "use super::Y;")]).is_empty());
    let three = [("a.rs", "use crate::b::X;"), ("b.rs", "use crate::c;"), ("c.rs", "use crate::{a::Y};")];
    assert_eq!(found(&three), ["src/a.rs src/b.rs src/c.rs"]);
}
