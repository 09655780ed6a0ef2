//! Which profile is for this machine.

use std::path::Path;

use super::error::ProfileError;
use super::machine::Machine;
use super::{Profile, Status};

/// The profiles that are compiled in: the texts of `hw-profiles/*.toml`.
const EMBEDDED: &[(&str, &str)] = &[("generic-cpu", include_str!("../../hw-profiles/generic-cpu.toml"))];

/// A profile and why it was taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The profile.
    pub profile: Profile,
    /// One clause for the log: what fits, or who asked.
    pub reason: String,
}

impl Profile {
    /// The profile that `argument` names: `auto` for the best one for `machine`, the name of a profile that
    /// is compiled in, or a path that ends in `.toml`.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`]; those of [`Profile::read`].
    pub fn load(argument: &str, machine: &Machine) -> Result<Choice, ProfileError> {
        if argument == "auto" {
            return Ok(choose_embedded(machine));
        }
        let path = Path::new(argument);
        if path.extension().is_some_and(|extension| extension == "toml") {
            return Ok(Choice { profile: Self::read(path)?, reason: format!("read from {argument}") });
        }
        let named = embedded().into_iter().find(|profile| profile.meta.name == argument);
        named.map(|profile| Choice { profile, reason: "asked for by name".to_owned() }).ok_or_else(|| {
            let known: Vec<_> = EMBEDDED.iter().map(|(name, _)| *name).collect();
            ProfileError::Unknown { name: argument.to_owned(), known: known.join(", ") }
        })
    }

    /// The best profile for this machine: [`Profile::load`] of `auto` on [`Machine::detect`].
    #[must_use]
    pub fn detect() -> Choice {
        choose_embedded(&Machine::detect())
    }
}

/// The profiles that are compiled in, in the order of their names.
#[must_use]
pub fn embedded() -> Vec<Profile> {
    let parse = |(name, text): &(&str, &str)| {
        Profile::parse(text, Path::new(name))
            .expect("a test holds that every profile in hw-profiles/ is valid")
    };
    EMBEDDED.iter().map(parse).collect()
}

/// The text of the compiled-in profile `name`, as its author wrote it.
pub(super) fn embedded_text(name: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// How well a profile is made for a machine. Later fields break ties of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    accelerator: bool,
    cpu: bool,
    status: Status,
}

/// `None` if the profile names a processor or an accelerator that this machine does not have.
fn fit(profile: &Profile, machine: &Machine) -> Option<Fit> {
    // What the profile does not name fits everything.
    let compare = |named: &Option<String>, here: &Option<String>| match (named, here) {
        (None, _) => Some(false),
        (Some(named), Some(here)) if named.trim().eq_ignore_ascii_case(here.trim()) => Some(true),
        _ => None,
    };
    Some(Fit {
        accelerator: compare(&profile.machine.accelerator, &machine.accelerator)?,
        cpu: compare(&profile.machine.cpu_model, &machine.cpu_model)?,
        status: profile.meta.status,
    })
}

/// The best of `candidates` for `machine`: one made for its accelerator before one for its processor before
/// one for any machine; then the better measured one; then the first. `None` if none fits.
#[must_use]
pub fn choose(machine: &Machine, candidates: Vec<Profile>) -> Option<Choice> {
    let fitting = candidates.into_iter().filter_map(|profile| Some((fit(&profile, machine)?, profile)));
    let (fit, profile) = fitting.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let part = |what: &str, name: &Option<String>| {
        name.as_deref().map_or_else(|| format!("no {what}"), |name| format!("{what} {name:?}"))
    };
    let (cpu, accelerator) =
        (part("processor", &machine.cpu_model), part("accelerator", &machine.accelerator));
    let reason = match (fit.accelerator, fit.cpu) {
        (true, true) => format!("made for {accelerator} and {cpu}"),
        (true, false) => format!("made for {accelerator}"),
        (false, true) => format!("made for {cpu}"),
        (false, false) => {
            format!("fits any machine; found {cpu} and {accelerator}, for which none is made")
        }
    };
    Some(Choice { profile, reason })
}

fn choose_embedded(machine: &Machine) -> Choice {
    choose(machine, embedded())
        .expect("generic-cpu names no processor and no accelerator, so it fits every machine")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str, status: Status, cpu: Option<&str>, accelerator: Option<&str>) -> Profile {
        let mut profile = embedded().remove(0);
        profile.meta.name = name.to_owned();
        profile.meta.status = status;
        profile.machine.cpu_model = cpu.map(str::to_owned);
        profile.machine.accelerator = accelerator.map(str::to_owned);
        profile
    }

    fn machine(cpu: &str, accelerator: Option<&str>) -> Machine {
        Machine {
            cpu_model: Some(cpu.to_owned()),
            accelerator: accelerator.map(str::to_owned),
            ..Machine::default()
        }
    }

    #[test]
    fn the_most_particular_profile_that_fits_is_taken() {
        let (any, epyc, gpu) = (None, Some("AMD EPYC 9554"), Some("NVIDIA H200"));
        let candidates = || {
            vec![
                profile("any", Status::Verified, any, any),
                profile("epyc", Status::Draft, epyc, any),
                profile("epyc-again", Status::Draft, epyc, any),
                profile("epyc-measured", Status::Measured, epyc, any),
                profile("gpu", Status::Draft, any, gpu),
                profile("epyc-gpu", Status::Draft, epyc, gpu),
            ]
        };
        let taken = |machine: &Machine| {
            let choice = choose(machine, candidates()).expect("one fits any machine");
            (choice.profile.meta.name, choice.reason)
        };
        let (name, reason) = taken(&machine("amd epyc 9554", gpu));
        assert_eq!((name.as_str(), reason.contains("NVIDIA H200")), ("epyc-gpu", true));
        assert_eq!(taken(&machine("other", gpu)).0, "gpu");
        assert_eq!(taken(&machine("AMD EPYC 9554", None)).0, "epyc-measured");
        let (name, reason) = taken(&machine("other", Some("NVIDIA L4")));
        assert_eq!((name.as_str(), reason.contains("NVIDIA L4")), ("any", true));
        assert_eq!(taken(&Machine::default()).0, "any");

        let drafts =
            candidates().into_iter().filter(|profile| profile.meta.status == Status::Draft).collect();
        let choice = choose(&machine("AMD EPYC 9554", None), drafts).expect("two fit");
        assert_eq!(choice.profile.meta.name, "epyc", "of equals the first");
    }

    #[test]
    fn a_profile_for_another_machine_is_never_taken() {
        let candidates = vec![profile("gpu", Status::Verified, None, Some("NVIDIA H200"))];
        assert_eq!(choose(&machine("other", None), candidates), None);
    }

    #[test]
    fn every_profile_of_the_folder_is_embedded_and_valid() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("hw-profiles");
        let mut found = Vec::new();
        for entry in folder.read_dir().expect("the folder is there").flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                found.push(Profile::read(&path).expect("valid").meta.name);
            }
        }
        found.sort();
        let embedded: Vec<_> = EMBEDDED.iter().map(|(name, _)| (*name).to_owned()).collect();
        assert_eq!(found, embedded, "EMBEDDED lists the folder, sorted");
        for (name, text) in EMBEDDED {
            let profile = Profile::parse(text, Path::new(name)).expect("valid");
            assert_eq!(profile.meta.name, *name);
        }
    }

    #[test]
    fn any_machine_gets_a_profile_and_names_are_looked_up() {
        let choice = Profile::load("auto", &Machine::default()).expect("auto never fails");
        assert_eq!(choice.profile.meta.name, "generic-cpu");
        let choice = Profile::load("generic-cpu", &Machine::default()).expect("compiled in");
        assert_eq!(choice.reason, "asked for by name");
        let error = Profile::load("generic", &Machine::default()).expect_err("no such name").to_string();
        assert!(error.contains("\"generic\"") && error.contains("generic-cpu"), "{error}");
        let error = Profile::load("/nowhere/x.toml", &Machine::default()).expect_err("no such file");
        assert!(matches!(error, ProfileError::Read { .. }), "{error}");
    }
}
