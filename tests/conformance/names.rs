//! The comparison of a case's expectations with the outputs.

use std::collections::HashMap;

use serde_json::Value;

/// The texts that names such as `$r` stand for in one case.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names(HashMap<String, String>);

impl Names {
    /// Returns a message of the client with the ids of the server in place of names.
    pub(crate) fn resolve(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.0.get(text).unwrap_or(text).as_str().into(),
            Value::Array(array) => array.iter().map(|value| self.resolve(value)).collect(),
            Value::Object(object) => {
                object.iter().map(|(key, value)| (key.clone(), self.resolve(value))).collect()
            }
            other => other.clone(),
        }
    }

    /// Checks that `found` has everything that `expected` names. A new name stands for the text found in its place.
    pub(crate) fn matches(&mut self, expected: &Value, found: &Value, path: &str) -> Result<(), String> {
        match (expected, found) {
            (Value::String(any), _) if any == "*" => Ok(()),
            (Value::String(name), Value::String(found)) if name.starts_with('$') => match self.0.get(name) {
                Some(bound) if bound == found => Ok(()),
                None if !self.0.values().any(|bound| bound == found) => {
                    self.0.insert(name.clone(), found.clone());
                    Ok(())
                }
                _ => Err(format!("{path}: {name} is not {found}")),
            },
            (Value::Object(expected), Value::Object(found)) => {
                expected.iter().try_for_each(|(key, expected)| {
                    let found = found.get(key).ok_or_else(|| format!("{path}.{key}: not there"))?;
                    self.matches(expected, found, &format!("{path}.{key}"))
                })
            }
            (Value::Array(expected), Value::Array(found)) if expected.len() == found.len() => expected
                .iter()
                .zip(found)
                .try_for_each(|(expected, found)| self.matches(expected, found, path)),
            _ if expected == found => Ok(()),
            _ => Err(format!("{path}: expected {expected}, found {found}")),
        }
    }
}
