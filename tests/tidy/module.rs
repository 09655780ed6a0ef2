//! A source file as a module: its name, the paths that it names, and the names that it gives on.

use crate::source::{Source, Token, tokens};

/// A file as a module.
pub(crate) struct Module<'a> {
    pub(crate) path: &'a str,
    pub(crate) name: Vec<String>,
    /// Paths that the file names, from the crate's root, with their lines. Re-exports are not among them.
    pub(crate) named: Vec<(usize, Vec<String>)>,
    /// Names that a path through this module may end in, and what they stand for, with their lines.
    pub(crate) reexported: Vec<(usize, String, Vec<String>)>,
}

impl<'a> Module<'a> {
    pub(crate) fn new(source: &'a Source) -> Self {
        let name = source.module();
        let mut module = Self { path: &source.path, name, named: Vec::new(), reexported: Vec::new() };
        let tokens = tokens(&source.text);
        let mut rest = tokens.as_slice();
        while let [(line, token), tail @ ..] = rest {
            let before = tokens.len() - rest.len();
            rest = tail;
            if *token == "use" {
                let is_public = before > 0 && matches!(tokens[before - 1].1, "pub" | ")");
                let mut paths = Vec::new();
                rest = use_tree(tail, &[], &mut paths);
                for (path, name) in paths {
                    let path = module.absolute(path);
                    if is_public {
                        module.reexported.push((*line, name, path));
                    } else {
                        module.named.push((*line, path));
                    }
                }
            } else if matches!(*token, "crate" | "super" | "self") && matches!(tail, [(_, "::"), ..]) {
                let path = std::iter::once(*token)
                    .chain(tail.chunks_exact(2).take_while(|pair| pair[0].1 == "::").map(|pair| pair[1].1));
                let path: Vec<_> = path.map(str::to_owned).collect();
                rest = &tail[2 * (path.len() - 1)..];
                let path = module.absolute(path);
                module.named.push((*line, path));
            }
        }
        module
    }

    /// A path of this file from the crate's root. Of another crate it is one that is no module.
    fn absolute(&self, path: Vec<String>) -> Vec<String> {
        let mut base = match path[0].as_str() {
            "crate" => return path[1..].to_vec(),
            "super" | "self" => self.name.clone(),
            // A module of the file's own, or a crate.
            _ => return [self.name.clone(), path].concat(),
        };
        let up = path.iter().take_while(|part| *part == "super").count();
        base.truncate(base.len().saturating_sub(up));
        let rest = path.iter().skip_while(|part| matches!(part.as_str(), "super" | "self"));
        base.extend(rest.cloned());
        base
    }
}

/// Reads a tree of `use` up to the `;`, `,` or `}` behind it: each path, and the name it gets.
fn use_tree<'t, 'a>(
    mut tokens: &'t [Token<'a>],
    prefix: &[String],
    paths: &mut Vec<(Vec<String>, String)>,
) -> &'t [Token<'a>] {
    let mut path = prefix.to_vec();
    while let [(_, token), tail @ ..] = tokens {
        match *token {
            "::" => tokens = tail,
            "{" => {
                tokens = tail;
                while !matches!(tokens, [(_, "}"), ..] | []) {
                    tokens = use_tree(tokens, &path, paths);
                    if let [(_, ","), tail @ ..] = tokens {
                        tokens = tail;
                    }
                }
                return tokens.get(1..).unwrap_or_default();
            }
            ";" | "," | "}" => break,
            "as" => {
                paths.push((path, tail[0].1.to_owned()));
                return &tail[1..];
            }
            "self" if !path.is_empty() => tokens = tail,
            name => {
                path.push(name.to_owned());
                tokens = tail;
            }
        }
    }
    let name = path.last().cloned().unwrap_or_default();
    paths.push((path, name));
    tokens
}
