//! The choice of a profile for a machine.

use std::path::Path;

use serde_json::Value;

use super::difference::{CLASS, same};
use super::error::ProfileError;
use super::machine::{Machine, notation};
use super::{Profile, Status};

/// The profiles that are compiled in: the texts of `hw-profiles/*.toml`.
const EMBEDDED: &[(&str, &str)] = &[
    ("generic-cpu", include_str!("../../hw-profiles/generic-cpu.toml")),
    ("xeon-avx512-2c-cpu-debian12", include_str!("../../hw-profiles/xeon-avx512-2c-cpu-debian12.toml")),
];

/// A profile and the reason for its choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The profile.
    pub profile: Profile,
    /// One clause for the log: the matching keys of the machine, or the argument that named the profile.
    pub reason: String,
}

impl Profile {
    /// Loads the profile that `argument` names: `auto` for the best one for `machine`, the name of a profile
    /// that is compiled in, or a path that ends in `.toml`.
    ///
    /// # Errors
    /// [`ProfileError::Unknown`] if no such profile is compiled in; the errors of [`Profile::read`] for a
    /// path.
    pub fn load(argument: &str, machine: &Machine) -> Result<Choice, ProfileError> {
        if argument == "auto" {
            return Ok(Self::automatic(machine));
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

    /// Returns the best of the compiled-in profiles for `machine`.
    #[must_use]
    pub fn automatic(machine: &Machine) -> Choice {
        choose(machine, embedded()).expect("generic-cpu states nothing of a machine, so it fits every one")
    }
}

/// Returns the profiles that are compiled in, in the order of their names.
#[must_use]
pub fn embedded() -> Vec<Profile> {
    let parse = |(name, text): &(&str, &str)| {
        Profile::parse(text, Path::new(name))
            .expect("a test holds that every profile in hw-profiles/ is valid")
    };
    EMBEDDED.iter().map(parse).collect()
}

/// Returns the text of the compiled-in profile `name`, as its author wrote it.
pub(super) fn embedded_text(name: &str) -> Option<&'static str> {
    EMBEDDED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

/// Quality of the fit of a profile to a machine. Later fields break ties of earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Fit {
    /// True for each key of [`CLASS`] that the profile states.
    stated: [bool; CLASS.len()],
    status: Status,
}

/// Returns `None` if the profile states a key of [`CLASS`] with a value that this machine does not have. A
/// key that the profile does not state fits every machine.
fn fit(profile: &Profile, machine: &Machine) -> Option<Fit> {
    let (expected, found) = (profile.machine.fields(), machine.fields());
    let stated = CLASS.map(|key| !expected[key].is_null());
    let fits = |key: &str| expected[key].is_null() || same(&found[key], &expected[key]);
    CLASS.iter().all(|key| fits(key)).then_some(Fit { stated, status: profile.meta.status })
}

/// Returns the best of `candidates` for `machine`; `None` if none fits. Among those that fit, keys stated
/// early in [`CLASS`] count most, then the better measured profile, then the first.
#[must_use]
pub fn choose(machine: &Machine, candidates: Vec<Profile>) -> Option<Choice> {
    let fitting = candidates.into_iter().filter_map(|profile| Some((fit(&profile, machine)?, profile)));
    let (fit, profile) = fitting.reduce(|best, next| if next.0 > best.0 { next } else { best })?;
    let here = machine.fields();
    let facts = |wanted: [bool; CLASS.len()]| {
        let keys = CLASS.iter().zip(wanted).filter_map(|(key, wanted)| wanted.then_some(*key));
        let facts = keys.map(|key| match &here[key] {
            Value::Null => format!("no {key}"),
            value => format!("{key} {}", notation(value)),
        });
        facts.collect::<Vec<_>>().join(", ")
    };
    let reason = if fit.stated.contains(&true) {
        format!("made for {}", facts(fit.stated))
    } else {
        format!("fits any machine; none is made for one with {}", facts(CLASS.map(|_| true)))
    };
    Some(Choice { profile, reason })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;

    use serde_json::json;

    use super::super::{Evidence, isa::Isa};
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

    /// Processors of one name differ in class by their extensions and their number of cores.
    #[test]
    fn a_profile_does_not_claim_every_processor_of_that_name() {
        let all = embedded();
        let xeon = all.iter().find(|profile| profile.meta.name == "xeon-avx512-2c-cpu-debian12");
        let xeon = xeon.expect("compiled in").machine.clone();
        let taken = |machine: &Machine| {
            let choice = Profile::automatic(machine);
            (choice.profile.meta.name, choice.reason)
        };
        let (name, reason) = taken(&xeon);
        assert_eq!(name, "xeon-avx512-2c-cpu-debian12");
        let facts = "cpu_model \"Intel(R) Xeon(R) Processor\", isa [\"avx2\", \"avx_vnni\", \"avx512f\", \
                     \"avx512bw\", \"avx512_vnni\"], cores_usable 2";
        assert_eq!(reason, format!("made for {facts}"));
        // Keys outside the class do not matter here.
        let moved = Machine { kernel: None, cores_logical: Some(64), memory_bytes: Some(1), ..xeon.clone() };
        assert_eq!(taken(&moved).0, "xeon-avx512-2c-cpu-debian12");

        let with_amx = xeon.isa.iter().flatten().copied().chain([Isa::AmxInt8]).collect::<BTreeSet<_>>();
        for other in [
            Machine { cores_usable: Some(4), ..xeon.clone() },
            Machine { isa: Some(BTreeSet::from([Isa::Avx2])), ..xeon.clone() },
            Machine { isa: Some(with_amx), ..xeon.clone() },
            Machine { isa: None, ..xeon.clone() },
            Machine { cpu_model: Some("AMD EPYC".to_owned()), ..xeon.clone() },
        ] {
            let (name, reason) = taken(&other);
            assert_eq!(name, "generic-cpu", "{other:?}");
            assert!(
                reason.starts_with("fits any machine; none is made for one with no accelerator, cpu_"),
                "{reason}"
            );
        }
    }

    /// Returns the problems of a profile's evidence: missing files, and numbers of observations that differ
    /// from the files.
    fn problems_of_evidence(profile: &Profile, repository: &Path) -> Vec<String> {
        let name = &profile.meta.name;
        let mut problems = Vec::new();
        for (metric, evidence) in &profile.evidence {
            let place = format!("{name}: evidence.{metric}: {}", evidence.result);
            let Ok(text) = fs::read_to_string(repository.join(&evidence.result)) else {
                problems.push(format!("{place}: found no such file, expected a result file"));
                continue;
            };
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default());
            let ours = lines.filter(|line| line["measured"] == true && line["profile"] == name.as_str());
            let n: u64 = ours.filter_map(|line| line["metrics"][metric]["n"].as_u64()).sum();
            if n != u64::from(evidence.n) {
                problems.push(format!("{place}: found {n} observations, expected {}", evidence.n));
            }
        }
        problems
    }

    #[test]
    fn evidence_is_there() {
        let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
        for profile in embedded() {
            assert_eq!(problems_of_evidence(&profile, repository), [""; 0]);
        }
    }

    #[test]
    fn evidence_that_is_not_there_is_found_out() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let line = |profile: &str, measured: bool, metric: &str| {
            let metrics = json!({ metric: { "n": 20 } });
            json!({ "profile": profile, "measured": measured, "metrics": metrics }).to_string() + "\n"
        };
        let lines = [
            line("here", true, "stt"),
            line("here", true, "stt"),
            line("here", false, "stt"),
            line("there", true, "stt"),
            line("here", true, "voice_to_voice"),
        ];
        fs::write(folder.path().join("y.jsonl"), lines.concat()).expect("writable");
        let problems = |metric: &str, result: &str, n| {
            let mut profile = profile("here", Status::Measured, None, None);
            let evidence = Evidence { result: result.to_owned(), n };
            profile.evidence.insert(metric.to_owned(), evidence);
            problems_of_evidence(&profile, folder.path())
        };
        assert_eq!(problems("stt", "y.jsonl", 40), [""; 0]);
        let counted = "here: evidence.stt: y.jsonl: found 40 observations, expected 60";
        assert_eq!(problems("stt", "y.jsonl", 60), [counted]);
        let missing = "here: evidence.stt: z.jsonl: found no such file, expected a result file";
        assert_eq!(problems("stt", "z.jsonl", 40), [missing]);
        assert_eq!(problems("endpoint_wait", "y.jsonl", 1).len(), 1);
    }

    #[test]
    fn the_readme_lists_every_profile_with_its_status() {
        let readme = include_str!("../../hw-profiles/README.md");
        for Profile { meta, .. } in embedded() {
            let row = format!("| `{}` | {} |", meta.name, meta.status);
            assert!(readme.contains(&row), "{row}");
        }
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
