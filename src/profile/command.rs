//! `antiphon profile …` and `antiphon validate …`

use std::io::Write;
use std::path::PathBuf;

use super::choice::{embedded, embedded_text};
use super::error::ProfileError;
use super::machine::Machine;
use super::{Choice, Profile};

/// Looks at hardware profiles.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ProfileCommand {
    /// List the profiles that are compiled in; the one for this machine is marked
    List,
    /// Print a profile, and what it comes to on this machine
    Show {
        /// Name of a profile, path of a TOML file, or auto
        #[arg(default_value = "auto")]
        profile: String,
    },
    /// Print what this machine is, as a profile states it, and the profile for it
    Detect,
}

/// Runs a command; prints to standard output.
///
/// # Errors
/// What the command could not do.
pub fn run(command: ProfileCommand) -> Result<(), ProfileError> {
    let machine = Machine::detect();
    let text = match command {
        ProfileCommand::List => list(&machine)?,
        ProfileCommand::Show { profile } => show(&profile, &machine)?,
        ProfileCommand::Detect => detect(&machine)?,
    };
    print(&text)
}

/// Reads each of `files` and prints one line per problem, or that there is none.
///
/// # Errors
/// [`ProfileError::NotValid`] if there is any problem.
pub fn validate(files: &[PathBuf]) -> Result<(), ProfileError> {
    let (text, wrong) = report(files);
    print(&text)?;
    if wrong == 0 { Ok(()) } else { Err(ProfileError::NotValid { wrong, total: files.len() }) }
}

/// The lines about `files`, and how many of them have a problem.
fn report(files: &[PathBuf]) -> (String, usize) {
    let mut text = String::new();
    let mut wrong = 0;
    for file in files {
        let verdict = Profile::read(file);
        wrong += usize::from(verdict.is_err());
        text += &match verdict {
            Ok(profile) => format!("{}: valid, {}\n", file.display(), profile.meta.status),
            Err(ProfileError::Invalid(problems)) => {
                problems.iter().map(|problem| format!("{problem}\n")).collect()
            }
            Err(error) => format!("{error}\n"),
        };
    }
    (text, wrong)
}

fn list(machine: &Machine) -> Result<String, ProfileError> {
    let Choice { profile: chosen, reason } = Profile::load("auto", machine)?;
    let profiles = embedded();
    let width = profiles.iter().map(|profile| profile.meta.name.len()).max().unwrap_or_default();
    let mut text = String::new();
    for Profile { meta, .. } in profiles {
        let mark = if meta.name == chosen.meta.name { '*' } else { ' ' };
        text += &format!("{mark} {:<width$}  {:<8}  {}\n", meta.name, meta.status.to_string(), meta.summary);
    }
    Ok(text + &format!("\n* {reason}\n"))
}

fn show(argument: &str, machine: &Machine) -> Result<String, ProfileError> {
    let Choice { profile, reason } = Profile::load(argument, machine)?;
    let text = embedded_text(&profile.meta.name).filter(|_| !argument.ends_with(".toml"));
    let text = text.map_or_else(|| profile.to_toml(), str::to_owned);
    Ok(format!("{text}\n{}", comes_to(&profile, &reason)))
}

fn detect(machine: &Machine) -> Result<String, ProfileError> {
    let Choice { profile, reason } = Profile::load("auto", machine)?;
    let section = toml::to_string(machine).expect("texts and numbers only");
    Ok(format!("[machine]\n{section}\n{}", comes_to(&profile, &reason)))
}

/// As comments, so that the whole print is a TOML file.
fn comes_to(profile: &Profile, reason: &str) -> String {
    let cores = Machine::cores_usable();
    let counts = profile.plan.counts(cores);
    format!("# {} ({}): {reason}\n# {cores} cores: {counts}\n", profile.meta.name, profile.meta.status)
}

fn print(text: &str) -> Result<(), ProfileError> {
    std::io::stdout().write_all(text.as_bytes()).map_err(ProfileError::Print)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    #[test]
    fn validate_has_one_line_per_problem() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("hw-profiles/generic-cpu.toml");
        let bad = folder.path().join("bad.toml");
        let text =
            fs::read_to_string(&good).expect("there").replace("Any machine, models on the processor.", " ");
        fs::write(&bad, text + "\n[budget]\nttfa_p99 = 5\n").expect("writable");
        let absent = folder.path().join("absent.toml");
        let (text, wrong) = report(&[good, bad, absent]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!((lines.len(), wrong), (4, 2), "{text}");
        assert!(lines[0].ends_with("generic-cpu.toml: valid, draft"), "{text}");
        assert!(
            lines[1].contains("bad.toml: meta.summary: found an empty text, expected some text"),
            "{text}"
        );
        assert!(
            lines[2].contains("bad.toml: budget.ttfa_p99: found an unknown key, expected <barge_in"),
            "{text}"
        );
        assert!(lines[3].contains("absent.toml: "), "{text}");
    }

    #[test]
    fn show_and_detect_print_toml() {
        let machine = Machine { cpu_model: Some("a \"quoted\" name".to_owned()), ..Machine::default() };
        let shown = show("auto", &machine).expect("generic-cpu fits");
        assert_eq!(Profile::parse(&shown, Path::new("shown")).expect("a profile").meta.name, "generic-cpu");
        let detected: toml::Table = detect(&machine).expect("generic-cpu fits").parse().expect("TOML");
        let section: Machine = detected["machine"].clone().try_into().expect("a [machine] section");
        assert_eq!(section, machine);
        assert!(list(&machine).expect("generic-cpu fits").starts_with("* generic-cpu  draft"), "marked");
    }
}
