//! Modules import only what the table of the guide allows, and no module is reached from itself.
//!
//! A row of the table may be for a part of a module, `a::b`. Then each file below `a` is in one of the parts, and the parts
//! import each other as their rows say. A name in a cell stands for all that is in it.

use std::collections::{BTreeMap, BTreeSet};

use crate::module::Module;
use crate::source::{Source, library, read, tidy};

/// What each module may import; `None`: everything.
type Table = BTreeMap<String, Option<BTreeSet<String>>>;

/// Reads the table of the guide.
fn import_table(guide: &str) -> Table {
    let chapter = guide.split("## Who may import whom").nth(1).expect("the guide has the table");
    let rows = chapter.lines().skip_while(|line| !line.starts_with("|---")).skip(1);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let names = |cell: &str| cell.split('`').skip(1).step_by(2).map(str::to_owned).collect::<BTreeSet<_>>();
    rows.map(|row| {
        let cells: Vec<_> = row.split('|').collect();
        let module = names(cells[1]).pop_first().expect("a module");
        (module, (cells[2].trim() != "everything").then(|| names(cells[2])))
    })
    .collect()
}

/// Tells if `path` is `module` or something in it.
fn is_in(path: &str, module: &str) -> bool {
    path.strip_prefix(module).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

/// The row of `module`; of a module that has rows for its parts alone, none but a permission for nothing.
fn row<'t>(module: &str, table: &'t Table) -> Option<(String, &'t Option<BTreeSet<String>>)> {
    const NOTHING: &Option<BTreeSet<String>> = &Some(BTreeSet::new());
    let own = table.iter().filter(|(row, _)| is_in(module, row)).max_by_key(|(row, _)| row.len());
    match own {
        Some((row, allowed)) => Some((row.clone(), allowed)),
        None => table.keys().any(|row| is_in(row, module)).then(|| (module.to_owned(), NOTHING)),
    }
}

/// Imports of `sources` that the table does not allow, and permissions that none of them uses.
fn wrong_imports(sources: &[Source], table: &Table) -> Vec<String> {
    let modules: Vec<_> = sources.iter().map(Module::new).collect();
    let tops: BTreeSet<_> = modules.iter().filter_map(|module| module.name.first()).collect();
    let (mut wrong, mut used) = (Vec::new(), BTreeSet::new());
    for module in &modules {
        let name = module.name.join("::");
        let Some((row, allowed)) = row(&name, table) else {
            wrong.push(format!("{}: {name} is not in the table of src/guide/architecture.md", module.path));
            continue;
        };
        let Some(allowed) = allowed else { continue };
        let reexported = module.reexported.iter().map(|(line, _, path)| (line, path));
        for (line, path) in module.named.iter().map(|(line, path)| (line, path)).chain(reexported) {
            let named = path.join("::");
            // What is of another crate, in the module itself, or around it.
            if !tops.contains(&path[0]) || is_in(&named, &row) || is_in(&row, &named) {
                continue;
            }
            match allowed.iter().find(|allowed| is_in(&named, allowed)) {
                Some(allowed) => _ = used.insert((row.clone(), allowed.clone())),
                None => {
                    wrong.push(format!("{}:{line}: {row} may not import {named}", module.path));
                }
            }
        }
    }
    let allowed = table.iter().flat_map(|(row, allowed)| allowed.iter().flatten().map(move |a| (row, a)));
    let unused = allowed.filter(|(row, allowed)| !used.contains(&((*row).clone(), (*allowed).clone())));
    wrong.extend(unused.map(|(row, allowed)| format!("{row} does not import {allowed}: not in the table")));
    wrong
}

#[test]
fn modules_import_only_what_the_guide_says() {
    let own = ["src/lib.rs", "src/guide/mod.rs"];
    let sources: Vec<_> =
        library().into_iter().filter(|source| !own.contains(&source.path.as_str())).collect();
    tidy(wrong_imports(&sources, &import_table(&read("src/guide/architecture.md"))));
}

/// Modules of the table that are reached from themselves.
fn circles(table: &Table) -> Vec<String> {
    let meets = |a: &str, b: &str| is_in(a, b) || is_in(b, a);
    let reached = |from| {
        let mut seen = BTreeSet::<&String>::new();
        let mut next: Vec<&String> = vec![from];
        while let Some(module) = next.pop() {
            for imported in table[module].iter().flatten() {
                next.extend(table.keys().filter(|row| meets(row, imported) && seen.insert(*row)));
            }
        }
        seen
    };
    let wrong = table.keys().filter(|module| reached(module).contains(*module));
    wrong.map(|module| format!("{module} imports itself by way of others")).collect()
}

#[test]
fn imports_go_one_way() {
    tidy(circles(&import_table(&read("src/guide/architecture.md"))));
    let found = |rows: &str| circles(&import_table(&format!("## Who may import whom\n|---|---|\n{rows}")));
    assert_eq!(found("| `a` | `b` |\n| `b` | `c` |\n| `c` | `a` |\n| `d` | `a` |\n").len(), 3);
    assert_eq!(found("| `a::x` | `b` |\n| `a::y` | nothing |\n| `b` | `a::y` |\n"), [""; 0]);
    assert_eq!(found("| `a::x` | `b` |\n| `b` | `a` |\n").len(), 2);
}

#[test]
fn an_import_against_the_table_is_found() {
    let rows = "| `a` | nothing |\n| `b::x` | `a`, `b::y` |\n| `b::y` | `a` |\n";
    let table = import_table(&format!("## Who may import whom\n|---|---|\n{rows}"));
    let file = |path: &str, text: &str| Source { path: format!("src/{path}"), text: text.to_owned() };
    let found = |path: &str, text: &str| {
        let uses = "use crate::a::A;\nuse crate::b::y::Y;";
        let rest =
            [file("a.rs", ""), file("b/mod.rs", "pub mod x;"), file("b/x/u.rs", uses), file("b/y.rs", uses)];
        wrong_imports(&rest.into_iter().chain([file(path, text)]).collect::<Vec<_>>(), &table)
    };
    assert_eq!(found("a.rs", "use crate::b::x::X;"), ["src/a.rs:1: a may not import b::x::X"]);
    assert_eq!(found("b/x/v.rs", "use super::super::y::{Y, Z};\nuse std::b;"), [""; 0]);
    assert_eq!(
        found("b/y/v.rs", "\npub use super::super::x::X;"),
        ["src/b/y/v.rs:2: b::y may not import b::x::X"]
    );
    assert_eq!(found("a.rs", "// crate::b\n#[cfg(test)]\nmod tests {\n    use crate::b;\n}"), [""; 0]);
    assert_eq!(
        found("b/z.rs", "use crate::a::A;"),
        ["src/b/z.rs: b::z is not in the table of src/guide/architecture.md"]
    );
    let unused = import_table("## Who may import whom\n|---|---|\n| `a` | `b` |\n| `b` | nothing |\n");
    assert_eq!(wrong_imports(&[file("a.rs", ""), file("b.rs", "")], &unused).len(), 1);
}
