//! Nothing is public that nobody uses: each public name of the library occurs in another file.
//!
//! The compiler finds an item that nothing calls, but not an item that is offered to other modules and used in its own
//! alone. Names are compared, not meanings: a second item of the same name hides an unused one. A type that a public
//! function takes or gives counts as used.

use std::collections::BTreeSet;

use crate::source::{Source, Token, all_tokens, files, library, read, tidy, tokens};

/// Public names that occur in no other file: where they stand below `src/`, and why they may.
const UNUSED: &[(&str, &[&str], &str)] = &[(
    "profile/machine.rs",
    &["cores_physical", "l3_bytes", "numa_nodes", "accelerator_memory_bytes", "rustc", "driver", "microcode"],
    "read and written by name, in the section of a profile",
)];

/// The public names that `tokens` declare, with their lines: items and fields. Modules are not among them.
fn public_names<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut names = Vec::new();
    for (at, _) in tokens.iter().enumerate().filter(|(_, (_, token))| *token == "pub") {
        let mut rest = &tokens[at + 1..];
        if let [(_, "("), ..] = rest {
            let close = rest.iter().position(|(_, token)| *token == ")").expect("closed");
            rest = &rest[close + 1..];
        }
        let is_modifier = |token: &str| matches!(token, "async" | "unsafe" | "extern" | "const");
        let words: Vec<_> = rest.iter().skip_while(|(_, token)| is_modifier(token)).take(2).collect();
        let is_constant = rest.first().is_some_and(|(_, token)| *token == "const");
        match words[..] {
            [(_, "fn" | "struct" | "enum" | "trait" | "union" | "type" | "static"), name] => {
                names.push(*name)
            }
            [name, (_, ":")] if is_constant || rest[0] == *name => names.push(*name),
            _ => {}
        }
    }
    names
}

/// Tells if a public declaration of `tokens` other than its own names `name`: its file gives it out, or takes it.
fn is_given_out(name: &str, tokens: &[Token<'_>]) -> bool {
    let declarations = tokens.split(|(_, token)| *token == "pub").skip(1);
    let signatures = declarations.map(|declaration| {
        let ends = |token: &str| matches!(token, "{" | "}" | ";");
        let is_enum = declaration.first().is_some_and(|(_, token)| *token == "enum");
        let end = if is_enum { None } else { declaration.iter().position(|(_, token)| ends(token)) };
        &declaration[..end.unwrap_or(declaration.len())]
    });
    let mut given = signatures.flat_map(|signature| signature.iter().skip(2));
    given.any(|(_, token)| *token == name)
}

/// The names in `tokens` but for those of public `use` declarations, which only pass on.
fn used_names<'a>(tokens: &[Token<'a>]) -> BTreeSet<&'a str> {
    let mut names = BTreeSet::new();
    let mut before = "";
    let mut is_passing_on = false;
    for (_, token) in tokens {
        is_passing_on = is_passing_on && *token != ";" || *token == "use" && matches!(before, "pub" | ")");
        if !is_passing_on {
            names.insert(*token);
        }
        before = token;
    }
    names
}

/// Places and names of what is public in `library` and occurs in no other file of it and none of `users`.
fn unused(library: &[Source], users: &[String]) -> Vec<(String, String)> {
    let tokens: Vec<_> = library.iter().map(|source| tokens(&source.text)).collect();
    let used: Vec<_> = library.iter().map(|source| used_names(&all_tokens(&source.text))).collect();
    let users: BTreeSet<_> = users.iter().flat_map(|text| used_names(&all_tokens(text))).collect();
    let mut found = Vec::new();
    for (at, source) in library.iter().enumerate() {
        for (line, name) in public_names(&tokens[at]) {
            let is_used = |other: usize| other != at && used[other].contains(name);
            let is_type = name.starts_with(char::is_uppercase) && name.contains(char::is_lowercase);
            let is_used_here = is_type && is_given_out(name, &tokens[at]);
            if !users.contains(name) && !is_used_here && !(0..library.len()).any(is_used) {
                found.push((format!("{}:{line}", source.path), name.to_owned()));
            }
        }
    }
    found
}

/// Names that `door` gives out and that `users` do not name.
fn unused_at_the_door(door: &str, users: &[String]) -> Vec<String> {
    let tokens = all_tokens(door);
    let ends = |token: &str| matches!(token, "," | "}" | ";");
    let given = tokens.windows(2).filter(|pair| ends(pair[1].1) && !ends(pair[0].1)).map(|pair| pair[0].1);
    let used: BTreeSet<_> = users.iter().flat_map(|text| used_names(&all_tokens(text))).collect();
    given.filter(|name| !used.contains(name)).map(str::to_owned).collect()
}

#[test]
fn the_door_gives_out_what_tests_and_benches_use() {
    let users: Vec<_> = ["tests", "bench"].iter().flat_map(|folder| files(folder, "rs")).collect();
    let users: Vec<_> = users.iter().map(|path| read(path)).chain([read("src/unit/ring.rs")]).collect();
    let unused = unused_at_the_door(&read("src/door.rs"), &users);
    tidy(unused.iter().map(|name| format!("src/door.rs: {name}: no test and no bench uses it")));
    let door = "pub mod a { pub use crate::a::{B, c}; }\npub use crate::D;";
    assert_eq!(unused_at_the_door(door, &["use antiphon::door::a::B; c();".to_owned()]), ["D"]);
}

#[test]
fn what_is_public_is_used() {
    let library = library();
    let is_library = |path: &String| library.iter().any(|source| source.path == *path);
    let all = ["src", "tests", "bench"].iter().flat_map(|folder| files(folder, "rs"));
    let users: Vec<_> = all.filter(|path| !is_library(path)).map(|path| read(&path)).collect();
    let unused = unused(&library, &users);
    let is_at =
        |place: &str, path: &str| place.strip_prefix("src/").is_some_and(|place| place.starts_with(path));
    let is_listed = |place: &str, name: &str| {
        UNUSED.iter().any(|(path, names, _)| is_at(place, path) && names.contains(&name))
    };
    tidy(
        unused
            .iter()
            .filter(|(place, name)| !is_listed(place, name))
            .map(|(place, name)| format!("{place}: {name} is public and used nowhere else")),
    );
    let listed = UNUSED.iter().flat_map(|(path, names, _)| names.iter().map(move |name| (path, name)));
    let gone = listed
        .filter(|(path, name)| !unused.iter().any(|(place, known)| is_at(place, path) && known == *name));
    tidy(gone.map(|(path, name)| format!("{path}: {name} is used, or gone: take it out of the list")));
}

#[test]
fn an_unused_public_name_is_found() {
    let source = |path: &str, text: &str| Source { path: path.to_owned(), text: text.to_owned() };
    let library = [
        source(
            "src/a.rs",
            "pub struct A { pub b: u8, c: u8 }\npub(crate) const fn f() {}\npub const D: u8 = 1;",
        ),
        source("src/e.rs", "pub use a::A;\n// f()\n#[cfg(test)]\nmod tests {\n    fn g() { f(); }\n}"),
    ];
    let names = |users: &[&str]| {
        let users: Vec<_> = users.iter().map(|text| (*text).to_owned()).collect();
        unused(&library, &users).into_iter().map(|(_, name)| name).collect::<Vec<_>>()
    };
    assert_eq!(names(&[]), ["A", "b", "D"]);
    assert_eq!(names(&["fn main() { a.b; \"A\" } // D"]), ["A", "D"]);
}
