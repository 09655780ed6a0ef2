//! Hardware profiles: the properties of a machine, the plan for it, its budgets, and the evidence for these.
//!
//! A profile is one TOML file per machine class in `hw-profiles/`, whose README describes the format. The
//! files there are compiled in; `--profile auto` chooses among them. Runs on the main thread, before the
//! server starts.

mod choice;
mod command;
mod count;
mod difference;
mod dump;
mod error;
mod isa;
mod machine;
mod plan;
#[cfg(test)]
mod schema;

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub use choice::Choice;
pub use command::{ProfileCommand, run, validate};
pub use count::Whole;
pub use error::{Problem, ProfileError};
pub use machine::Machine;
pub use plan::{Counts, Nice, Plan};

/// Metrics that a budget may promise and that evidence may show, all in milliseconds, by the names that the
/// benches print.
pub const METRICS: &[&str] = &[
    "endpoint_wait",
    "leave_to_next_session",
    "leave_to_pool_idle",
    "llm_first_clause",
    "stt",
    "tts_first_audio",
    "voice_to_voice",
];

/// Statistics that may follow `<metric>_ms_` in a budget.
pub const STATISTICS: &[&str] = &["p50", "p90", "p95", "p99", "max"];

/// One hardware profile.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the format.
    pub schema: Whole<1, 1>,
    /// Name and standing of the profile.
    pub meta: Meta,
    /// The machine; `auto` chooses the profile only if the keys of [`CLASS`](difference::CLASS) that are present fit.
    #[serde(default)]
    pub machine: Machine,
    /// Numbers of units, workers and threads, and further choices.
    pub plan: Plan,
    /// Promised limits: `<metric>_ms_<statistic>`, in milliseconds.
    #[serde(default)]
    pub budget: BTreeMap<String, Whole<1, 60_000>>,
    /// Results behind the budget, by metric.
    #[serde(default)]
    pub evidence: BTreeMap<String, Evidence>,
}

/// Name and standing of a profile.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Meta {
    /// The file's name without `.toml`: `<cpu>-<accelerator|cpu>-<os>`, lower case, or a name that marks the
    /// profile as generic.
    pub name: String,
    /// Degree of trust.
    pub status: Status,
    /// The machines that the profile is for, in one sentence.
    pub summary: String,
    /// Person to ask; `None` if there is none.
    #[serde(default)]
    pub maintainer: Option<String>,
}

/// Degree of trust in a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// Not measured.
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

/// Reference to a result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Evidence {
    /// The result file, relative to the repository: `bench/results/<profile>/<date>-<commit>.jsonl`.
    pub result: String,
    /// Number of observations in the result.
    pub n: u32,
}

impl Profile {
    /// Reads the profile in `path`.
    ///
    /// # Errors
    /// [`ProfileError::Read`] if the file cannot be read, [`ProfileError::Invalid`] if its text is not valid
    /// or its name is not that of the file.
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

    /// Parses the text of a profile; `file` is the path in the errors.
    ///
    /// # Errors
    /// [`ProfileError::Invalid`] with the first problem of the syntax or of a value, or else with all rules
    /// between values that are broken.
    pub fn parse(text: &str, file: &Path) -> Result<Self, ProfileError> {
        let profile: Self = toml::from_str(text)
            .map_err(|error| ProfileError::Invalid(vec![Problem::of_toml(file, text, &error)]))?;
        let problems = profile.problems(file);
        if problems.is_empty() { Ok(profile) } else { Err(ProfileError::Invalid(problems)) }
    }

    /// Formats the profile as the text of a file.
    #[must_use]
    pub fn to_toml(&self) -> String {
        #[derive(Serialize)]
        struct Head<'a> {
            schema: Whole<1, 1>,
            meta: &'a Meta,
        }
        #[derive(Serialize)]
        struct Tail<'a> {
            plan: &'a Plan,
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            budget: &'a BTreeMap<String, Whole<1, 60_000>>,
            #[serde(skip_serializing_if = "BTreeMap::is_empty")]
            evidence: &'a BTreeMap<String, Evidence>,
        }
        let Self { schema, meta, machine, plan, budget, evidence } = self;
        let head = toml::to_string(&Head { schema: *schema, meta });
        let tail = toml::to_string(&Tail { plan, budget, evidence });
        let written = "every field is a TOML value, tables come last";
        // The serializer writes numbers without digit groups.
        format!("{}\n[machine]\n{}\n{}", head.expect(written), machine.to_toml(), tail.expect(written))
    }

    /// Checks the rules between values, which the types cannot express.
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
                problem(&key, &"an empty text", "some text, or no such key".to_owned());
            }
        }
        if self.meta.status != Status::Draft && self.evidence.is_empty() {
            problem("meta.status", &self.meta.status, "draft, as there is no [evidence]".to_owned());
        }
        let (metrics, statistics) = (METRICS.join("|"), STATISTICS.join("|"));
        for key in self.budget.keys() {
            let promise = key
                .split_once("_ms_")
                .filter(|(metric, statistic)| METRICS.contains(metric) && STATISTICS.contains(statistic));
            let key = format!("budget.{key}");
            match promise {
                None => problem(&key, &"an unknown key", format!("<{metrics}>_ms_<{statistics}>")),
                Some((metric, _)) if !self.evidence.contains_key(metric) => {
                    problem(&key, &"a promise without evidence", format!("evidence.{metric} beside it"));
                }
                Some(_) => {}
            }
        }
        for (key, evidence) in &self.evidence {
            if !METRICS.contains(&key.as_str()) {
                problem(&format!("evidence.{key}"), &"an unknown key", metrics.clone());
            }
            if evidence.n == 0 {
                problem(&format!("evidence.{key}.n"), &0, "at least 1".to_owned());
            }
        }
        problems
    }

    /// Returns every text of the file, by its key.
    fn texts(&self) -> Vec<(String, String)> {
        let mut texts = vec![("meta.summary".to_owned(), self.meta.summary.clone())];
        texts.extend(self.meta.maintainer.clone().map(|text| ("meta.maintainer".to_owned(), text)));
        texts.extend(self.machine.fields().into_iter().filter_map(|(key, value)| {
            value.as_str().map(|text| (format!("machine.{key}"), text.to_owned()))
        }));
        texts.extend(
            self.evidence
                .iter()
                .map(|(metric, evidence)| (format!("evidence.{metric}.result"), evidence.result.clone())),
        );
        texts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::{LLM_SLOTS_MAX, UNITS_MAX, WORKERS_MAX};

    const GENERIC: &str = include_str!("../../hw-profiles/generic-cpu.toml");
    const MEASURED: &str = "
        [machine]
        cpu_model = 'x'
        memory_bytes = 137_438_953_472
        [budget]
        stt_ms_p99 = 1_200
        [evidence]
        stt = { result = 'bench/results/x/y.jsonl', n = 12_000 }
    ";

    fn parse(text: &str) -> Result<Profile, String> {
        Profile::parse(text, Path::new("x.toml")).map_err(|error| {
            let ProfileError::Invalid(problems) = error else { panic!("{error}") };
            problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        })
    }

    /// Returns the line with which the generic profile is refused after one change.
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
        assert_eq!(profile.budget["stt_ms_p99"].value(), 1_200);
        assert_eq!(profile.machine.memory_bytes, Some(137_438_953_472));
    }

    /// The cases: the change, the key that the line names, and a part of the line's text.
    #[test]
    fn a_wrong_value_is_named_with_line_key_found_and_expected() {
        let units = format!("found 0, expected a whole number in 1..={UNITS_MAX} or \"auto\"");
        let units_max = format!("found {}, expected a whole number in 1..={UNITS_MAX}", UNITS_MAX + 1);
        let workers = format!("found {}, expected a whole number in 1..={WORKERS_MAX}", WORKERS_MAX + 1);
        let slots = format!("found {}, expected a whole number in 1..={LLM_SLOTS_MAX}", LLM_SLOTS_MAX + 1);
        let set = |key: &str, value: usize| format!("{key} = {value}");
        let auto = |key: &str| format!("{key} = \"auto\"");
        let above = usize::from(WORKERS_MAX) + 1;
        for (from, to, key, says) in [
            // Out of range, above the limits of limits.rs.
            (auto("units"), set("units", 0), "plan.units", units.as_str()),
            (auto("units"), set("units", usize::from(UNITS_MAX) + 1), "plan.units", &units_max),
            (auto("vad_workers"), set("vad_workers", above), "plan.vad_workers", &workers),
            (auto("stt_workers"), set("stt_workers", above), "plan.stt_workers", &workers),
            (auto("tts_workers"), set("tts_workers", above), "plan.tts_workers", &workers),
            (auto("llm_slots"), set("llm_slots", usize::from(LLM_SLOTS_MAX) + 1), "plan.llm_slots", &slots),
            (set("llm", 8), set("llm", 20), "plan.nice.llm", "found 20, expected a whole number in 0..=19"),
            (
                set("vad_batch", 16),
                "vad_batch = -1".to_owned(),
                "plan.vad_batch",
                "found -1, expected a whole number in 1..=64",
            ),
            // Of another type.
            (auto("units"), "units = \"many\"".to_owned(), "plan.units", "\"many\", expected a whole number"),
            (auto("units"), "units = true".to_owned(), "plan.units", "`true`, expected a whole number"),
            (
                set("vad_batch", 16),
                "vad_batch = 1.5".to_owned(),
                "plan.vad_batch",
                "`1.5`, expected a whole number in 1..=64",
            ),
            (set("vad_batch", 16), auto("vad_batch"), "plan.vad_batch", "\"auto\", expected a whole number"),
            ("\"generic-cpu\"".to_owned(), "5".to_owned(), "meta.name", "`5`, expected a string"),
            // Not one of the words.
            ("\"draft\"".to_owned(), "\"good\"".to_owned(), "meta.status", "`good`, expected one of `draft`"),
            (
                "\"cpu\"".to_owned(),
                "\"abacus\"".to_owned(),
                "plan.execution_provider",
                "`abacus`, expected `cpu`",
            ),
            // Of another version.
            (set("schema", 1), set("schema", 2), "schema", "found 2, expected a whole number in 1..=1"),
        ] {
            let line = 1 + GENERIC.lines().position(|line| line.contains(&from)).expect("there");
            let error = refused(&from, &to);
            assert!(error.starts_with(&format!("x.toml:{line}: {key}: ")) && error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_wrong_value_of_the_machine_or_of_evidence_is_named() {
        for (section, line, says) in [
            ("machine", "cores_usable = -1", "`-1`, expected a whole number in 0..=65535"),
            ("machine", "cores_usable = 65536", "`65536`, expected a whole number in 0..=65535"),
            ("machine", "memory_bytes = \"94 GB\"", "\"94 GB\", expected a whole number, 0 or more"),
            ("machine", "isa = \"avx2\"", "\"avx2\", expected a list"),
            ("machine", "isa = [\"avx2\", \"sse\"]", "`sse`, expected one of `avx2`, `avx_vnni`"),
            ("machine", "smt = true", "unknown field `smt`, expected one of `cpu_model`"),
            ("budget", "stt_ms_p95 = 0", "found 0, expected a whole number in 1..=60000"),
            ("evidence", "stt = { result = \"x\" }", "missing field `n`"),
            ("evidence", "stt = { result = \"x\", n = -1 }", "`-1`, expected a whole number in 0..="),
            ("evidence", "stt = \"x\"", "\"x\", expected a section like Evidence"),
        ] {
            let lines = GENERIC.lines().count();
            let error = parse(&format!("{GENERIC}\n[{section}]\n{line}\n")).expect_err(line);
            let key = line.split(' ').next().expect("a key");
            let place = format!("x.toml:{}: {section}.{key}: ", lines + 3);
            assert!(error.starts_with(&place) && error.contains(says), "{error}");
        }
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

    /// The cases: the change in a measured profile, and the line about it.
    #[test]
    fn a_broken_rule_is_named() {
        let measured = GENERIC.replace("\"draft\"", "\"measured\"") + MEASURED;
        parse(&measured).expect("valid");
        let name = "lower-case letters, digits, '-', '.', '_', and not auto";
        let text = "found an empty text, expected some text, or no such key";
        for (from, to, line) in [
            (
                "\"generic-cpu\"",
                "\"Generic CPU\"",
                format!("meta.name: found \"Generic CPU\", expected {name}"),
            ),
            ("\"generic-cpu\"", "\"auto\"", format!("meta.name: found \"auto\", expected {name}")),
            ("\"Any machine, models on the processor.\"", "\" \"", format!("meta.summary: {text}")),
            ("cpu_model = 'x'", "cpu_model = ''", format!("machine.cpu_model: {text}")),
            ("'bench/results/x/y.jsonl'", "''", format!("evidence.stt.result: {text}")),
            ("n = 12_000", "n = 0", "evidence.stt.n: found 0, expected at least 1".to_owned()),
            (
                "stt_ms_p99",
                "voice_to_voice_ms_p99",
                "budget.voice_to_voice_ms_p99: found a promise without evidence, expected \
                 evidence.voice_to_voice beside it"
                    .to_owned(),
            ),
            (
                "stt_ms_p99",
                "stt_s_p99",
                format!(
                    "budget.stt_s_p99: found an unknown key, expected <{}>_ms_<{}>",
                    METRICS.join("|"),
                    STATISTICS.join("|")
                ),
            ),
            (
                "stt_ms_p99",
                "stt_ms_p42",
                format!(
                    "budget.stt_ms_p42: found an unknown key, expected <{}>_ms_<{}>",
                    METRICS.join("|"),
                    STATISTICS.join("|")
                ),
            ),
        ] {
            assert!(measured.contains(from), "{from}");
            let error = parse(&measured.replace(from, to)).expect_err(to);
            assert_eq!(error, format!("x.toml: {line}"));
        }
        for status in ["measured", "verified"] {
            let error = refused("\"draft\"", &format!("\"{status}\""));
            let line = format!("meta.status: found {status}, expected draft, as there is no [evidence]");
            assert_eq!(error, format!("x.toml: {line}"));
        }
        let error = parse(&format!("{GENERIC}\n[budget]\nstt_ms_p95 = 5\n")).expect_err("a draft");
        assert!(error.contains("found a promise without evidence"), "{error}");
    }

    #[test]
    fn every_broken_rule_is_named_at_once() {
        let text = format!("{GENERIC}{MEASURED}")
            .replace("\"generic-cpu\"", "\"Generic CPU\"")
            .replace("cpu_model = 'x'", "cpu_model = ''")
            .replace("stt = {", "latency = {")
            .replace("n = 12_000", "n = 0");
        let error = parse(&text).expect_err("five rules are broken");
        let keys: Vec<_> = error.lines().map(|line| line.split(": ").nth(1).expect("file: key: …")).collect();
        let expected =
            ["meta.name", "machine.cpu_model", "budget.stt_ms_p99", "evidence.latency", "evidence.latency.n"];
        assert_eq!(keys, expected, "{error}");
        let error = Profile::parse(&text, Path::new("x.toml")).expect_err("as before").to_string();
        assert!(error.contains("x.toml: meta.name: ") && error.contains("(and 4 more; "), "{error}");
    }

    /// A metric that no bench prints can never have evidence.
    #[test]
    fn every_metric_is_one_of_a_bench() {
        fn sources(folder: &Path) -> String {
            let paths = folder.read_dir().expect("a folder").flatten().map(|entry| entry.path());
            let is_source = |path: &Path| path.extension().is_some_and(|extension| extension == "rs");
            let text = |path: std::path::PathBuf| match path.is_dir() {
                true => sources(&path),
                false if is_source(&path) => std::fs::read_to_string(path).expect("readable"),
                false => String::new(),
            };
            paths.map(text).collect()
        }
        let benches = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("bench"));
        for metric in METRICS {
            assert!(benches.contains(&format!("\"{metric}\"")), "{metric}");
        }
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
