//! A draft of a profile for the machine at hand, for a person to continue.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::choice::Choice;
use super::error::ProfileError;
use super::machine::Machine;
use super::{Meta, Profile, Status};

/// Returns the text of a draft for `machine`: the machine, and the plan of the profile that `auto` takes for
/// it. If `name` is `None`, the rule for file names gives the name.
///
/// # Errors
/// [`ProfileError::Invalid`] if `name` is not allowed for a profile.
pub(super) fn dump(machine: &Machine, name: Option<String>) -> Result<String, ProfileError> {
    let Choice { profile: chosen, .. } = Profile::automatic(machine);
    let cpu = machine.cpu_model.as_deref().unwrap_or("Unknown processor");
    let accelerator = machine.accelerator.as_deref().unwrap_or("no accelerator");
    let draft = Profile {
        schema: chosen.schema,
        meta: Meta {
            name: name.unwrap_or_else(|| name_by_rule(machine)),
            status: Status::Draft,
            summary: format!("{cpu}, usable cores: {}, {accelerator}.", machine.cores()),
            maintainer: None,
        },
        machine: machine.clone(),
        plan: chosen.plan,
        budget: BTreeMap::new(),
        evidence: BTreeMap::new(),
    };
    let (version, plan_of) = (env!("CARGO_PKG_VERSION"), chosen.meta.name);
    let text = format!(
        "# Written by antiphon {version}, with the plan of {plan_of}. Nobody has measured it.\n{}",
        draft.to_toml()
    );
    let file = format!("{}.toml", draft.meta.name);
    Profile::parse(&text, Path::new(&file)).map(|_| text)
}

/// Returns the name, without `.toml`, of the file that standard output goes to, if it is a TOML file.
pub(super) fn name_of_output() -> Option<String> {
    let path = fs::read_link("/proc/self/fd/1").ok()?;
    let is_profile = path.extension().is_some_and(|extension| extension == "toml");
    path.file_stem().filter(|_| is_profile).map(|stem| stem.to_string_lossy().into_owned())
}

/// Returns `<cpu>-<accelerator or cpu>-<os>`.
fn name_by_rule(machine: &Machine) -> String {
    let cpu = machine.cpu_model.as_deref().map_or_else(|| "unknown".to_owned(), part);
    let accelerator = machine.accelerator.as_deref().map_or_else(|| "cpu".to_owned(), part);
    let os = machine.os.as_deref().map_or_else(|| "linux".to_owned(), |os| part(os).replace('-', ""));
    format!("{cpu}-{accelerator}-{os}")
}

/// Returns the distinctive words of a product's name: `Intel(R) Xeon(R) Gold 6430 CPU @ 2.10GHz` gives
/// `intel-xeon-gold-6430`.
fn part(name: &str) -> String {
    let name = name.split('@').next().unwrap_or_default().to_lowercase();
    let name = name.replace("(r)", "").replace("(tm)", "");
    let says_little = |word: &&str| !matches!(*word, "cpu" | "processor") && !word.ends_with("-core");
    let words: Vec<_> = name.split_whitespace().filter(says_little).collect();
    let plain = |c: char| if c.is_ascii_lowercase() || c.is_ascii_digit() || c == '.' { c } else { '-' };
    words.join("-").chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(cpu: &str, accelerator: Option<&str>, os: &str) -> Machine {
        Machine {
            cpu_model: Some(cpu.to_owned()),
            accelerator: accelerator.map(str::to_owned),
            os: Some(os.to_owned()),
            cores_usable: Some(3),
            memory_bytes: Some(25_165_824_000),
            ..Machine::default()
        }
    }

    #[test]
    fn a_draft_is_valid_and_holds_the_machine_and_the_plan_of_auto() {
        for machine in [Machine::default(), machine("x", Some("y"), "z 1"), Machine::detect()] {
            let text = dump(&machine, None).expect("valid");
            let draft = Profile::parse(&text, Path::new("dump")).expect("valid");
            assert_eq!(draft.machine, machine, "{text}");
            assert_eq!(draft.plan, Profile::automatic(&machine).profile.plan);
            assert_eq!((draft.meta.status, draft.budget.len(), draft.evidence.len()), (Status::Draft, 0, 0));
        }
        let text = dump(&machine("x", None, "z"), Some("a".to_owned())).expect("valid");
        assert!(text.contains("\nmemory_bytes = 25_165_824_000\n") && !text.contains("kernel"), "{text}");
        assert!(text.contains("\nname = \"a\"\n"), "{text}");
    }

    #[test]
    fn a_name_that_no_profile_may_have_is_refused() {
        for name in ["", "auto", "My Machine", "a/b"] {
            let error =
                dump(&Machine::default(), Some(name.to_owned())).expect_err("no such name").to_string();
            assert!(error.contains(&format!("meta.name: found {name:?}, expected lower-case")), "{error}");
        }
    }

    #[test]
    fn a_draft_is_named_by_the_rule() {
        for (machine, name) in [
            (machine("Intel(R) Xeon(R) Processor", None, "debian 12"), "intel-xeon-cpu-debian12"),
            (machine("Intel(R) Xeon(R) Gold 6430 CPU @ 2.10GHz", None, "a"), "intel-xeon-gold-6430-cpu-a"),
            (
                machine("AMD EPYC 9554 64-Core Processor", Some("NVIDIA H200"), "ubuntu 24.04"),
                "amd-epyc-9554-nvidia-h200-ubuntu24.04",
            ),
            (Machine::default(), "unknown-cpu-linux"),
        ] {
            assert_eq!(name_by_rule(&machine), name);
        }
    }
}
