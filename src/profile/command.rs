//! `antiphon profile …` and `antiphon validate …`

use std::io::Write;
use std::path::PathBuf;

use super::choice::{embedded, embedded_text};
use super::dump::{dump, name_of_output};
use super::error::ProfileError;
use super::machine::Machine;
use super::{Choice, Profile};

/// Looks at hardware profiles.
#[derive(Clone, Debug, clap::Subcommand)]
pub enum ProfileCommand {
    /// List the profiles that are compiled in; the one for this machine is marked
    List,
    /// Print a profile, and the counts of its plan on this machine
    Show {
        /// Name of a profile, path of a TOML file, or auto
        #[arg(default_value = "auto")]
        profile: String,
    },
    /// Print the machine section of this machine, and the profile that auto takes
    Detect,
    /// Print a draft of a whole profile for this machine
    ///
    /// The draft has this machine and the plan of the profile that auto takes. The draft is named like
    /// the file that it is written to: antiphon profile dump > hw-profiles/NAME.toml
    Dump,
    /// Print the differences between this machine and a profile; fail if there are any
    Compare {
        /// Name of a profile, path of a TOML file, or auto
        profile: String,
        /// Only these keys of the machine section, as in --fields kernel,onnxruntime,driver
        #[arg(long, value_name = "KEY", value_delimiter = ',', value_parser = key_of_machine)]
        fields: Vec<String>,
    },
}

/// Runs a command; prints to standard output.
///
/// # Errors
/// The errors of reading a profile; [`ProfileError::Different`] from `compare`; [`ProfileError::Print`] if the
/// output cannot be written.
pub fn run(command: ProfileCommand) -> Result<(), ProfileError> {
    let machine = Machine::detect();
    match command {
        ProfileCommand::List => print(&list(&machine)?),
        ProfileCommand::Show { profile } => print(&show(&profile, &machine)?),
        ProfileCommand::Detect => print(&detect(&machine)?),
        ProfileCommand::Dump => print(&dump(&machine, name_of_output())?),
        ProfileCommand::Compare { profile, fields } => {
            compare(&profile, &fields, &machine, &mut std::io::stdout())
        }
    }
}

/// Reads each of `files` and prints one line per problem, or one line that the file is valid.
///
/// # Errors
/// [`ProfileError::NotValid`] if there is any problem, [`ProfileError::Print`] if the output cannot be written.
pub fn validate(files: &[PathBuf]) -> Result<(), ProfileError> {
    let (text, wrong) = report(files);
    print(&text)?;
    if wrong == 0 { Ok(()) } else { Err(ProfileError::NotValid { wrong, total: files.len() }) }
}

/// Returns the lines about `files`, and the number of files with a problem.
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
    Ok(format!("{text}\n{}", comes_to(&profile, &reason, machine)))
}

fn detect(machine: &Machine) -> Result<String, ProfileError> {
    let Choice { profile, reason } = Profile::load("auto", machine)?;
    Ok(format!("[machine]\n{}\n{}", machine.to_toml(), comes_to(&profile, &reason, machine)))
}

/// Prints one line per difference in the keys `wanted` (all, if that is empty), or that there is none.
fn compare(
    argument: &str,
    wanted: &[String],
    machine: &Machine,
    out: &mut dyn Write,
) -> Result<(), ProfileError> {
    let Choice { profile, .. } = Profile::load(argument, machine)?;
    let is_wanted = |key: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == key);
    let (keys, differences) = machine.compare(&profile.machine, is_wanted);
    let name = profile.meta.name;
    let (different, total) = (differences.len(), keys.len());
    let text = match (different, total) {
        (0, 0) => format!("{name}: states nothing to compare\n"),
        (0, _) => format!("{name}: this machine, by {}\n", keys.join(", ")),
        _ => differences.iter().map(|difference| format!("{difference}\n")).collect(),
    };
    out.write_all(text.as_bytes()).map_err(ProfileError::Print)?;
    if different == 0 { Ok(()) } else { Err(ProfileError::Different { name, different, total }) }
}

/// Checks that `text` is a key of the section `[machine]`.
fn key_of_machine(text: &str) -> Result<String, String> {
    let keys: Vec<_> = Machine::default().fields().into_iter().map(|(key, _)| key).collect();
    if keys.iter().any(|key| key == text) {
        return Ok(text.to_owned());
    }
    Err(format!("expected one of: {}", keys.join(", ")))
}

/// Formats the profile's name and counts as comments, so that the whole print is a TOML file.
fn comes_to(profile: &Profile, reason: &str, machine: &Machine) -> String {
    let cores = machine.cores();
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

    use clap::Parser as _;

    use super::*;

    #[test]
    fn validate_has_one_line_per_problem() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let good = Path::new(env!("CARGO_MANIFEST_DIR")).join("hw-profiles/generic-cpu.toml");
        let bad = folder.path().join("bad.toml");
        let text =
            fs::read_to_string(&good).expect("there").replace("Any machine, models on the processor.", " ");
        fs::write(&bad, text + "\n[budget]\nstt_p99 = 5\n").expect("writable");
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
            lines[2].contains("bad.toml: budget.stt_p99: found an unknown key, expected <endpoint_wait|"),
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
        let listed = list(&machine).expect("generic-cpu fits");
        let (marked, others): (Vec<_>, Vec<_>) =
            listed.lines().take(embedded().len()).partition(|line| line.starts_with("* "));
        assert!(marked.len() == 1 && marked[0].starts_with("* generic-cpu "), "{listed}");
        assert!(others.iter().all(|line| line.starts_with("  ")), "{listed}");
    }

    fn compared(argument: &str, wanted: &[&str], machine: &Machine) -> (String, Result<(), ProfileError>) {
        let wanted: Vec<_> = wanted.iter().map(|key| (*key).to_owned()).collect();
        let mut out = Vec::new();
        let outcome = compare(argument, &wanted, machine, &mut out);
        (String::from_utf8(out).expect("text"), outcome)
    }

    #[test]
    fn compare_prints_a_line_per_difference_and_fails() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let here = Machine {
            cores_usable: Some(2),
            kernel: Some("6.1.0".to_owned()),
            onnxruntime: Some("1.32.0".to_owned()),
            ..Machine::default()
        };
        let file = folder.path().join("here.toml");
        fs::write(&file, dump(&here, Some("here".to_owned())).expect("valid")).expect("writable");
        let file = file.to_str().expect("UTF-8");

        let (text, outcome) = compared(file, &[], &here);
        outcome.expect("the same machine");
        assert_eq!(text, "here: this machine, by cores_usable, kernel, onnxruntime\n");

        let other = Machine { kernel: Some("6.2.0".to_owned()), cores_usable: None, ..here };
        let (text, outcome) = compared(file, &[], &other);
        assert_eq!(
            text,
            "machine.cores_usable: found nothing, expected 2\n\
             machine.kernel: found \"6.2.0\", expected \"6.1.0\"\n"
        );
        let error = outcome.expect_err("another machine").to_string();
        assert_eq!(error, "this machine differs from here in 2 of 3 keys");

        let (text, outcome) = compared(file, &["onnxruntime", "driver"], &other);
        assert_eq!((text.as_str(), outcome.is_ok()), ("here: this machine, by onnxruntime\n", true));
        let (text, outcome) = compared(file, &["driver"], &other);
        assert_eq!((text.as_str(), outcome.is_ok()), ("here: states nothing to compare\n", true));
        assert!(matches!(compared("nowhere", &[], &other).1, Err(ProfileError::Unknown { .. })));
    }

    #[test]
    fn an_unknown_key_is_refused_with_the_known_ones() {
        #[derive(Debug, clap::Parser)]
        struct Line {
            #[command(subcommand)]
            command: ProfileCommand,
        }
        let parse = |fields: &str| Line::try_parse_from(["profile", "compare", "auto", "--fields", fields]);
        let command = parse("kernel,onnxruntime,driver").expect("three keys").command;
        let ProfileCommand::Compare { profile, fields } = command else { panic!("{command:?}") };
        assert_eq!((profile.as_str(), fields.len()), ("auto", 3));
        let error = parse("kernel,kernl").expect_err("a mistyped key").to_string();
        assert!(error.contains("'kernl'") && error.contains("expected one of: cpu_model, isa, "), "{error}");
        for (key, _) in Machine::default().fields() {
            parse(&key).expect("a key of the section");
            assert!(error.contains(&key), "{key}: {error}");
        }
    }
}
