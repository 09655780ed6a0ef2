//! Differences between a machine and the machine of a profile.

use std::fmt;

use serde_json::Value;

use super::machine::{Machine, notation};

/// Keys of `[machine]` that make the class of a machine: `auto` takes a profile only if all of these that
/// the profile states have the stated values. The most distinctive key comes first.
pub const CLASS: [&str; 4] = ["accelerator", "cpu_model", "isa", "cores_usable"];

/// Further keys that change the value of a plan: threads per core, clock, versions of the code that
/// computes. The other keys only explain a difference between two measurements; warnings about them would
/// come after every update of the system.
const WORTH: [&str; 5] = ["cores_physical", "accelerator_memory_bytes", "governor", "onnxruntime", "driver"];

/// A key with another value than stated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    key: String,
    found: String,
    expected: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, found, expected } = self;
        write!(f, "machine.{key}: found {found}, expected {expected}")
    }
}

impl Machine {
    /// Returns the keys that `stated` has and `wanted` accepts, and the differences of this machine in these
    /// keys. A key that is unknown here differs from every value.
    #[must_use]
    pub fn compare(&self, stated: &Self, wanted: impl Fn(&str) -> bool) -> (Vec<String>, Vec<Difference>) {
        let here = self.fields();
        let stated = stated.fields().into_iter().filter(|(key, value)| wanted(key) && !value.is_null());
        let (mut keys, mut differences) = (Vec::new(), Vec::new());
        for (key, expected) in stated {
            if !same(&here[&key], &expected) {
                let known = !here[&key].is_null();
                let found = if known { notation(&here[&key]) } else { "nothing".to_owned() };
                differences.push(Difference { key: key.clone(), found, expected: notation(&expected) });
            }
            keys.push(key);
        }
        (keys, differences)
    }

    /// Returns the differences of this machine from a profile's machine in the keys that matter to the plan.
    #[must_use]
    pub fn differences_that_matter(&self, stated: &Self) -> Vec<Difference> {
        self.compare(stated, |key| CLASS.contains(&key) || WORTH.contains(&key)).1
    }
}

/// Returns true if the values are equal; texts are compared without regard to ASCII case and outer white
/// space.
pub(super) fn same(found: &Value, expected: &Value) -> bool {
    match (found, expected) {
        (Value::String(found), Value::String(expected)) => found.trim().eq_ignore_ascii_case(expected.trim()),
        _ => found == expected,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::isa::Isa;
    use super::*;

    fn stated() -> Machine {
        Machine {
            cpu_model: Some("A Processor".to_owned()),
            isa: Some(BTreeSet::from([Isa::Avx2, Isa::Avx512f])),
            cores_usable: Some(2),
            memory_bytes: Some(1_073_741_824),
            kernel: Some("6.1.0".to_owned()),
            governor: Some("performance".to_owned()),
            ..Machine::default()
        }
    }

    fn lines(differences: &[Difference]) -> Vec<String> {
        differences.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_machine_is_itself() {
        let (keys, differences) = stated().compare(&stated(), |_| true);
        assert_eq!(keys, ["cpu_model", "isa", "cores_usable", "memory_bytes", "kernel", "governor"]);
        assert_eq!(differences, []);
        let shouting = Machine { cpu_model: Some(" A PROCESSOR ".to_owned()), ..stated() };
        assert_eq!(shouting.compare(&stated(), |_| true).1, []);
    }

    #[test]
    fn what_is_not_stated_is_not_compared() {
        assert_eq!(stated().compare(&Machine::default(), |_| true), (Vec::new(), Vec::new()));
        let other = Machine { kernel: Some("6.2.0".to_owned()), ..stated() };
        let (keys, differences) = other.compare(&stated(), |key| key == "governor");
        assert_eq!((keys, differences), (vec!["governor".to_owned()], Vec::new()));
    }

    #[test]
    fn each_difference_says_what_was_found_and_what_was_expected() {
        let here = Machine {
            isa: Some(BTreeSet::from([Isa::Avx2])),
            cores_usable: Some(4),
            memory_bytes: Some(2_147_483_648),
            governor: None,
            ..stated()
        };
        let (_, differences) = here.compare(&stated(), |_| true);
        let expected = [
            "machine.isa: found [\"avx2\"], expected [\"avx2\", \"avx512f\"]",
            "machine.cores_usable: found 4, expected 2",
            "machine.memory_bytes: found 2_147_483_648, expected 1_073_741_824",
            "machine.governor: found nothing, expected \"performance\"",
        ];
        assert_eq!(lines(&differences), expected);
        let matter = lines(&here.differences_that_matter(&stated()));
        assert_eq!(matter, [expected[0], expected[1], expected[3]]);
    }

    #[test]
    fn the_lists_name_keys_of_the_section() {
        let keys = Machine::default().fields();
        for key in CLASS.iter().chain(&WORTH) {
            assert!(keys.contains_key(*key), "{key}");
        }
        assert!(!WORTH.iter().any(|key| CLASS.contains(key)));
    }
}
