//! Hardware profiles: what a machine is, what is chosen for it, what is promised on it, what was seen.
//!
//! A profile is one TOML file per machine class in `hw-profiles/`, whose README describes the format. The
//! files there are compiled in; `--profile auto` chooses among them. Runs on the main thread, before the
//! server starts.

mod choice;
mod command;
mod count;
mod error;
mod machine;
mod plan;
#[cfg(test)]
mod schema;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use choice::{Choice, choose, embedded};
pub use command::{ProfileCommand, run, validate};
pub use count::{Count, Whole};
pub use error::{Problem, ProfileError};
pub use machine::Machine;
pub use plan::{Counts, ExecutionProvider, Nice, Plan};

/// Metrics that a budget may promise and that evidence may show; the names are those of the benches.
pub const METRICS: &[&str] = &[
    "barge_in_stop",
    "endpoint_delay",
    "frame_jitter",
    "llm_ttft",
    "start_to_ready",
    "stt_final_after_speech_end",
    "ttfa",
    "tts_ttfb",
];

/// What may follow `<metric>_ms_` in a budget.
pub const STATISTICS: &[&str] = &["p50", "p90", "p99", "max"];

/// One hardware profile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the format.
    pub schema: Whole<1, 1>,
    /// What the profile is called and how far it can be trusted.
    pub meta: Meta,
    /// The machine; a key that is there must fit for `auto` to choose the profile.
    #[serde(default)]
    pub machine: Machine,
    /// What is chosen.
    pub plan: Plan,
    /// What is promised: `<metric>_ms_<statistic>`, in milliseconds.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub budget: BTreeMap<String, Whole<1, 60_000>>,
    /// What was seen, by metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, Evidence>,
}

/// Name and standing of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The file's name without `.toml`: `<cpu>-<accelerator|cpu>-<os>`, lower case, or one that says that it
    /// is generic.
    pub name: String,
    /// Who says so.
    pub status: Status,
    /// One sentence: for which machines.
    pub summary: String,
    /// Whom to ask.
    #[serde(default)]
    pub maintainer: Option<String>,
}

/// How far a profile can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Nobody has measured it.
    Draft,
    /// Measured once; the results are named in `[evidence]`.
    Measured,
    /// Reproduced by a second run on another day.
    Verified,
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Draft => "draft",
            Self::Measured => "measured",
            Self::Verified => "verified",
        })
    }
}

/// Where a result is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The result file, relative to the repository: `bench/results/<profile>/<date>-<commit>.jsonl`.
    pub result: String,
    /// Observations behind it.
    pub n: u32,
}

impl Profile {
    /// Reads the profile in `path`.
    ///
    /// # Errors
    /// [`ProfileError::Read`], [`ProfileError::Invalid`].
    pub fn read(path: &Path) -> Result<Self, ProfileError> {
        let text = std::fs::read_to_string(path)
            .map_err(|reason| ProfileError::Read { path: path.to_owned(), reason })?;
        let profile = Self::parse(&text, path)?;
        let stem = path.file_stem().unwrap_or_default();
        if stem == profile.meta.name.as_str() {
            return Ok(profile);
        }
        let expected = format!("{} as the file is called", stem.display());
        Err(ProfileError::Invalid(vec![Problem::new(path, "meta.name", &profile.meta.name, expected)]))
    }

    /// Parses the text of a profile; `file` is for the errors.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`] with the first problem of the syntax or of a value, else with every rule
    /// that the values break together.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text)
            .map_err(|error| ProfileError::Invalid(vec![Problem::of_toml(file, text, &error)]))?;
        let problems = profile.problems(file);
        if problems.is_empty() { Ok(profile) } else { Err(ProfileError::Invalid(problems)) }
    }

    /// The profile as the text of a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every field is a TOML value, tables come last")
    }

    /// The rules between values, which the types do not hold.
    fn problems(&self, file: &Path) -> Vec<Problem> {
        let mut problems = Vec::new();
        let mut problem = |key: &str, found: &dyn std::fmt::Display, expected: String| {
            problems.push(Problem::new(file, key, found, expected));
        };
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-._".contains(c);
        if self.meta.name.is_empty() || !self.meta.name.chars().all(plain) || self.meta.name == "auto" {
            let expected = "lower-case letters, digits, '-', '.', '_', and not auto".to_owned();
            problem("meta.name", &format!("{:?}", self.meta.name), expected);
        }
        for (key, text) in self.texts() {
            if text.trim().is_empty() {
                problem(key, &"an empty text", "some text, or no such key".to_owned());
            }
        }
        if self.meta.status != Status::Draft && self.evidence.is_empty() {
            problem("meta.status", &self.meta.status, "draft, as there is no [evidence]".to_owned());
        }
        let promises: BTreeSet<_> = METRICS
            .iter()
            .flat_map(|metric| STATISTICS.iter().map(move |statistic| format!("{metric}_ms_{statistic}")))
            .collect();
        for key in self.budget.keys().filter(|key| !promises.contains(*key)) {
            let (metrics, statistics) = (METRICS.join("|"), STATISTICS.join("|"));
            problem(&format!("budget.{key}"), &"an unknown key", format!("<{metrics}>_ms_<{statistics}>"));
        }
        for (key, evidence) in &self.evidence {
            if !METRICS.contains(&key.as_str()) {
                problem(&format!("evidence.{key}"), &"an unknown key", METRICS.join("|"));
            }
            if evidence.n == 0 {
                problem(&format!("evidence.{key}.n"), &0, "at least 1".to_owned());
            }
        }
        problems
    }

    /// Every text of the file.
    fn texts(&self) -> Vec<(&'static str, &str)> {
        let mut texts = vec![("meta.summary", self.meta.summary.as_str())];
        texts.extend(self.meta.maintainer.as_deref().map(|text| ("meta.maintainer", text)));
        texts.extend(self.machine.texts());
        texts.extend(self.evidence.values().map(|evidence| ("evidence.*.result", evidence.result.as_str())));
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GENERIC: &str = include_str!("../../hw-profiles/generic-cpu.toml");
    const MEASURED: &str = "
        [machine]
        cpu_model = 'x'
        memory_bytes = 137_438_953_472
        [budget]
        ttfa_ms_p99 = 1_200
        [evidence]
        ttfa = { result = 'bench/results/x/y.jsonl', n = 12_000 }
    ";

    fn parse(text: &str) -> Result<Profile, String> {
        Profile::parse(text, Path::new("x.toml")).map_err(|error| {
            let ProfileError::Invalid(problems) = error else { panic!("{error}") };
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        })
    }

    /// The generic profile with one thing changed is refused with this line.
    fn refused(from: &str, to: &str) -> String {
        assert!(GENERIC.contains(from), "{from}");
        let error = parse(&GENERIC.replacen(from, to, 1)).expect_err(to);
        assert!(!error.contains('\n') && error.starts_with("x.toml:"), "{error}");
        error
    }

    #[test]
    fn a_profile_survives_writing_and_reading() {
        for text in [GENERIC.to_owned(), format!("{GENERIC}{MEASURED}")] {
            let profile = parse(&text).expect("valid");
            assert_eq!(parse(&profile.to_toml()).expect("written by us"), profile);
        }
        let profile = parse(&format!("{GENERIC}{MEASURED}")).expect("valid");
        assert_eq!(profile.budget["ttfa_ms_p99"].value(), 1_200);
        assert_eq!(profile.machine.memory_bytes, Some(137_438_953_472));
    }

    #[test]
    fn a_wrong_value_is_named_with_line_key_found_and_expected() {
        let line = |key: &str| 1 + GENERIC.lines().position(|line| line.starts_with(key)).expect("there");
        let error = refused("units = \"auto\"", "units = 0");
        let units = line("units");
        assert_eq!(
            error,
            format!("x.toml:{units}: plan.units: found 0, expected a whole number in 1..=16384 or \"auto\"")
        );
        let error = refused("vad_batch = 16", "vad_batch = -1");
        assert!(error.contains("plan.vad_batch: found -1, expected a whole number in 1..=64"), "{error}");
        let error = refused("llm = 8", "llm = 20");
        assert!(error.contains("plan.nice.llm: found 20, expected a whole number in 0..=19"), "{error}");
        let error = refused("units = \"auto\"", "units = \"many\"");
        assert!(
            error.contains("plan.units: ") && error.contains("many") && error.contains("1..=16384"),
            "{error}"
        );
        let error = refused("vad_batch = 16", "vad_batch = 1.5");
        assert!(
            error.contains("plan.vad_batch: ") && error.contains("1.5") && error.contains("1..=64"),
            "{error}"
        );
        let error = refused("\"cpu\"", "\"abacus\"");
        assert!(error.contains("plan.execution_provider: ") && error.contains("abacus"), "{error}");
        let error = refused("schema = 1", "schema = 2");
        assert!(error.contains(": schema: found 2, expected a whole number in 1..=1"), "{error}");
    }

    #[test]
    fn keys_unknown_missing_and_twice_are_named() {
        let error = refused("units = ", "unitz = ");
        assert!(
            error.contains("plan.unitz: ") && error.contains("unknown field") && error.contains("units"),
            "{error}"
        );
        let error = refused("stt_workers = \"auto\"\n", "");
        assert!(error.contains("plan: missing field `stt_workers`"), "{error}");
        let error = refused("[meta]", "[mega]");
        assert!(error.contains("mega") && error.contains("expected one of"), "{error}");
        let error = refused("vad_batch = 16", "vad_batch = 16\nvad_batch = 16");
        assert!(error.contains("plan.vad_batch: duplicate key"), "{error}");
        refused("units = ", "units ");
    }

    #[test]
    fn every_broken_rule_is_named_at_once() {
        let text = format!("{GENERIC}{MEASURED}")
            .replace("\"generic-cpu\"", "\"Generic CPU\"")
            .replace("cpu_model = 'x'", "cpu_model = ''")
            .replace("ttfa_ms_p99", "ttfa_s_p99")
            .replace("ttfa = {", "latency = {")
            .replace("n = 12_000", "n = 0");
        let error = parse(&text).expect_err("five rules are broken");
        let keys: Vec<_> = error.lines().map(|line| line.split(": ").nth(1).expect("file: key: …")).collect();
        let expected =
            ["meta.name", "machine.cpu_model", "budget.ttfa_s_p99", "evidence.latency", "evidence.latency.n"];
        assert_eq!(keys, expected, "{error}");
        assert!(refused("\"draft\"", "\"verified\"").contains("meta.status: found verified, expected draft"));
    }

    #[test]
    fn the_name_is_the_name_of_the_file() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("other.toml");
        std::fs::write(&path, GENERIC).expect("writable");
        let error = Profile::read(&path).expect_err("another name").to_string();
        assert!(error.contains("meta.name: found generic-cpu, expected other"), "{error}");
    }
}
