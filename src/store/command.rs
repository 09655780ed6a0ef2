//! `antiphon models …`

use std::io::Write;
use std::path::{Path, PathBuf};

use super::cache::Cache;
use super::error::StoreError;
use super::manifest::{Artefact, Role};
use super::progress::{for_stderr, megabytes};

/// The option `--cache`.
#[derive(Clone, Debug, clap::Args)]
pub struct CacheArgument {
    /// Folder of the model files [default: ANTIPHON_CACHE, else antiphon/models in the user's cache
    /// directory]
    #[arg(long, value_name = "DIR")]
    cache: Option<PathBuf>,
}

/// Manages the model files.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ModelsCommand {
    /// List the files, with their source and whether they are present
    List {
        /// Cache to list.
        #[command(flatten)]
        cache: CacheArgument,
        /// Print the source of each licence
        #[arg(long)]
        licences: bool,
    },
    /// Fetch the files that are missing or wrong
    Fetch {
        /// Cache to fill.
        #[command(flatten)]
        cache: CacheArgument,
        /// Only the files of these parts
        #[arg(long, value_name = "ROLE", value_delimiter = ',')]
        only: Vec<Role>,
        /// Python interpreter whose pip is used
        #[arg(long, value_name = "PROGRAM", default_value = "python3")]
        python: PathBuf,
    },
    /// Compare every file with its SHA-256
    Verify {
        /// Cache to check.
        #[command(flatten)]
        cache: CacheArgument,
        /// Only the files of these parts
        #[arg(long, value_name = "ROLE", value_delimiter = ',')]
        only: Vec<Role>,
    },
}

/// Runs a command; tables go to standard output, progress to standard error.
///
/// # Errors
/// The error of the command; [`StoreError::Unready`] if `verify` finds a file missing or wrong.
pub fn run(command: ModelsCommand) -> Result<(), StoreError> {
    let mut out = std::io::stdout().lock();
    match command {
        ModelsCommand::List { cache, licences } => list(&Cache::open(cache.cache)?, licences, &mut out),
        ModelsCommand::Fetch { cache, only, python } => {
            let cache = Cache::open(cache.cache)?.with_python(python);
            let artefacts = chosen(&only);
            cache.fetch(&artefacts, &mut *for_stderr())?;
            print(&mut out, &format!("{}: all {} files ready\n", cache.dir().display(), artefacts.len()))
        }
        ModelsCommand::Verify { cache, only } => verify(&Cache::open(cache.cache)?, &chosen(&only), &mut out),
    }
}

fn chosen(only: &[Role]) -> Vec<Artefact> {
    let wanted = |artefact: &Artefact| only.is_empty() || only.contains(&artefact.entry().role);
    Artefact::ALL.iter().copied().filter(wanted).collect()
}

fn list(cache: &Cache, licences: bool, out: &mut dyn Write) -> Result<(), StoreError> {
    let missing = cache.missing(Artefact::ALL);
    let mut rows =
        vec![["ROLE", "FILE", "PACKAGE", "VERSION", "SIZE", "LICENCE", "PRESENT"].map(str::to_owned)];
    for &artefact in Artefact::ALL {
        let entry = artefact.entry();
        rows.push([
            entry.role.to_string(),
            entry.title.to_owned(),
            entry.wheel.package.to_owned(),
            entry.wheel.version.to_owned(),
            megabytes(entry.bytes),
            entry.licence.to_owned(),
            if missing.contains(&artefact) { "no" } else { "yes" }.to_owned(),
        ]);
    }
    print(out, &aligned(&rows))?;
    if licences {
        let sources = Artefact::ALL.iter().map(|artefact| {
            let entry = artefact.entry();
            format!("{}: {}, read in {}\n", entry.title, entry.licence, entry.licence_source)
        });
        print(out, &format!("\n{}", sources.collect::<String>()))?;
    }
    let bytes = Artefact::ALL.iter().map(|artefact| artefact.entry().bytes).sum();
    let present = Artefact::ALL.len() - missing.len();
    let total = Artefact::ALL.len();
    print(
        out,
        &format!(
            "\n{present} of {total} files present, {} in all, in {}\n",
            megabytes(bytes),
            cache.dir().display()
        ),
    )
}

fn verify(cache: &Cache, artefacts: &[Artefact], out: &mut dyn Write) -> Result<(), StoreError> {
    let mut wrong = 0;
    for &artefact in artefacts {
        match cache.verify(artefact) {
            Ok(()) => print(out, &format!("ok     {}\n", cache.path(artefact).display()))?,
            Err(error) => {
                wrong += 1;
                print(out, &format!("wrong  {error}\n"))?;
            }
        }
    }
    if wrong == 0 { Ok(()) } else { Err(StoreError::Unready { wrong, total: artefacts.len() }) }
}

/// Aligns the columns: each as wide as its widest cell, two spaces apart.
fn aligned<const COLUMNS: usize>(rows: &[[String; COLUMNS]]) -> String {
    let mut widths = [0; COLUMNS];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut text = String::new();
    for row in rows {
        let cells = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

fn print(out: &mut dyn Write, text: &str) -> Result<(), StoreError> {
    out.write_all(text.as_bytes()).map_err(|error| StoreError::writing(Path::new("standard output"), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(
        command: impl FnOnce(&mut dyn Write) -> Result<(), StoreError>,
    ) -> (String, Result<(), StoreError>) {
        let mut out = Vec::new();
        let result = command(&mut out);
        (String::from_utf8(out).expect("text"), result)
    }

    #[test]
    fn list_is_an_aligned_table_of_every_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::open(Some(folder.path().to_owned())).expect("an absolute path");
        let (text, result) = printed(|out| list(&cache, true, out));
        result.expect("memory");
        let lines: Vec<_> = text.lines().collect();
        let column = lines[0].find("LICENCE").expect("a header");
        for (line, artefact) in lines[1..].iter().zip(Artefact::ALL) {
            let entry = artefact.entry();
            assert!(line[column..].starts_with(entry.licence) && line.ends_with("  no"), "{line}");
            assert!(text.contains(&format!("{}: {}, read in ", entry.title, entry.licence)), "{text}");
        }
        assert!(lines.last().expect("a total").starts_with("0 of 9 files present, "), "{text}");
    }

    #[test]
    fn verify_names_what_is_wrong_and_fails() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let cache = Cache::open(Some(folder.path().to_owned())).expect("an absolute path");
        let speech = chosen(&[Role::Stt, Role::Tts]);
        let (text, result) = printed(|out| verify(&cache, &speech, out));
        assert!(matches!(result, Err(StoreError::Unready { wrong: 5, total: 5 })), "{text}");
        assert!(text.lines().all(|line| line.starts_with("wrong  ") && line.contains("not found")), "{text}");
        assert_eq!(chosen(&[]), Artefact::ALL);
    }
}
