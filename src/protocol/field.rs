//! Typed access to a parsed event, with the path of every value for the `param` of errors.

use std::ops::RangeInclusive;

use simd_json::prelude::{TypedScalarValue, ValueAsScalar, ValueIntoString};
use simd_json::tape;

use super::error::{Fault, quoted};

/// A field of an update. `null` differs from an absent field: `null` sets the field back to its default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// The field is absent and keeps its value.
    #[default]
    Keep,
    /// The field is `null` and goes back to its default.
    Clear,
    /// The field has a new value.
    Set(T),
}

impl<T> Patch<T> {
    /// Returns the value that was set.
    pub fn set(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// Returns the change with its value converted by `make`.
    pub fn map<U>(self, make: impl FnOnce(T) -> U) -> Patch<U> {
        match self {
            Self::Keep => Patch::Keep,
            Self::Clear => Patch::Clear,
            Self::Set(value) => Patch::Set(make(value)),
        }
    }

    /// Writes the change into `field`. `cleared` makes the value that `null` stands for.
    pub fn apply(self, field: &mut T, cleared: impl FnOnce() -> T) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = cleared(),
            Self::Set(value) => *field = value,
        }
    }
}

/// One value of the event, with its path.
#[derive(Debug)]
pub(super) struct Field<'t, 'i> {
    value: tape::Value<'t, 'i>,
    path: String,
}

/// One object of the event, with its path.
pub(super) struct Fields<'t, 'i> {
    object: tape::Object<'t, 'i>,
    path: String,
}

impl<'t, 'i> Fields<'t, 'i> {
    /// Returns the members of the event itself.
    pub(super) fn root(value: tape::Value<'t, 'i>) -> Result<Self, Fault> {
        match value.as_object() {
            Some(object) => Ok(Self { object, path: String::new() }),
            None => Err(Fault::NotAnObject { found: json_type(value) }),
        }
    }

    /// Returns the path of the member `name`.
    pub(super) fn path(&self, name: &str) -> String {
        if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) }
    }

    /// Returns the member `name`, also one that is `null`. Of a repeated member the last one counts.
    fn member(&self, name: &str) -> Option<Field<'t, 'i>> {
        let (_, value) = self.object.iter().filter(|(key, _)| *key == name).last()?;
        Some(Field { value, path: self.path(name) })
    }

    /// Reads the member `name` with `read`, unless the member is absent or `null`.
    pub(super) fn patch<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Field<'t, 'i>) -> Result<T, Fault>,
    ) -> Result<Patch<T>, Fault> {
        match self.member(name) {
            None => Ok(Patch::Keep),
            Some(field) if field.value.is_null() => Ok(Patch::Clear),
            Some(field) => read(&field).map(Patch::Set),
        }
    }

    /// Reads the member `name` with `read`; `None` if the member is absent or `null`.
    pub(super) fn optional<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Field<'t, 'i>) -> Result<T, Fault>,
    ) -> Result<Option<T>, Fault> {
        self.patch(name, read).map(Patch::set)
    }

    /// Reads the member `name` with `read`. An absent member is a fault, and `null` is a value of the wrong type.
    pub(super) fn required<T>(
        &self,
        name: &str,
        read: impl FnOnce(&Field<'t, 'i>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        read(&self.member(name).ok_or_else(|| Fault::Missing { param: self.path(name) })?)
    }

    /// Iterates over all members, in the order of the message.
    pub(super) fn members(&self) -> impl Iterator<Item = (&'i str, Field<'t, 'i>)> + '_ {
        self.object.iter().map(|(name, value)| (name, Field { value, path: self.path(name) }))
    }
}

impl<'t, 'i> Field<'t, 'i> {
    pub(super) fn path(&self) -> &str {
        &self.path
    }

    pub(super) fn text(&self) -> Result<&'i str, Fault> {
        self.value.into_string().ok_or_else(|| self.wrong_type("a string"))
    }

    /// Reads a string of at most `allowed` bytes.
    pub(super) fn text_up_to(&self, allowed: usize) -> Result<&'i str, Fault> {
        let text = self.text()?;
        if text.len() > allowed {
            return Err(Fault::TooLong { param: self.path.clone(), found: text.len(), allowed });
        }
        Ok(text)
    }

    /// Reads a string of at most `allowed` bytes and copies it.
    pub(super) fn owned_up_to(&self, allowed: usize) -> Result<String, Fault> {
        self.text_up_to(allowed).map(ToOwned::to_owned)
    }

    pub(super) fn boolean(&self) -> Result<bool, Fault> {
        self.value.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    pub(super) fn integer(&self, range: RangeInclusive<u32>) -> Result<u32, Fault> {
        let number = match (self.value.as_i64(), self.value.as_u64()) {
            (Some(number), _) => i128::from(number),
            (None, Some(number)) => i128::from(number),
            (None, None) => return Err(self.wrong_type("an integer")),
        };
        match u32::try_from(number) {
            Ok(number) if range.contains(&number) => Ok(number),
            _ => Err(self.wrong_value(number.to_string(), format!("{} to {}", range.start(), range.end()))),
        }
    }

    pub(super) fn number(&self, range: RangeInclusive<f32>) -> Result<f32, Fault> {
        #[expect(clippy::cast_precision_loss, reason = "whatever is in range is exact, the rest is refused")]
        let number = self.value.as_f64().or_else(|| self.value.as_i64().map(|number| number as f64));
        let number = number.ok_or_else(|| self.wrong_type("a number"))?;
        if !(f64::from(*range.start())..=f64::from(*range.end())).contains(&number) {
            return Err(self.wrong_value(number.to_string(), format!("{} to {}", range.start(), range.end())));
        }
        #[expect(clippy::cast_possible_truncation, reason = "in range; the nearest value is what is meant")]
        let nearest = number as f32;
        Ok(nearest)
    }

    pub(super) fn fields(&self) -> Result<Fields<'t, 'i>, Fault> {
        let object = self.value.as_object().ok_or_else(|| self.wrong_type("an object"))?;
        Ok(Fields { object, path: self.path.clone() })
    }

    /// Reads the elements of an array, each with its index in the path.
    pub(super) fn elements(&self) -> Result<Vec<Field<'t, 'i>>, Fault> {
        let array = self.value.as_array().ok_or_else(|| self.wrong_type("an array"))?;
        let element = |(at, value)| Field { value, path: format!("{}[{at}]", self.path) };
        Ok(array.iter().enumerate().map(element).collect())
    }

    pub(super) fn is_string(&self) -> bool {
        self.value.as_str().is_some()
    }

    /// Returns the value unchanged, for fields that are kept and shown but not interpreted.
    pub(super) fn json(&self) -> serde_json::Value {
        json(self.value)
    }

    fn wrong_type(&self, expected: &'static str) -> Fault {
        Fault::WrongType { param: self.path.clone(), found: json_type(self.value), expected }
    }

    pub(super) fn wrong_value(&self, found: impl Into<String>, expected: impl Into<String>) -> Fault {
        Fault::WrongValue { param: self.path.clone(), found: found.into(), expected: expected.into() }
    }

    /// Makes the fault for a string that is none of the accepted words.
    pub(super) fn wrong_word(&self, found: &str, expected: impl Into<String>) -> Fault {
        self.wrong_value(quoted(found), expected)
    }

    pub(super) fn not_implemented(&self, feature: impl Into<String>, supported: &'static str) -> Fault {
        Fault::NotImplemented { param: self.path.clone(), feature: feature.into(), supported }
    }
}

/// Converts the value. The parser's limit on the depth bounds the recursion.
fn json(value: tape::Value<'_, '_>) -> serde_json::Value {
    if let Some(object) = value.as_object() {
        return object.iter().map(|(name, value)| (name.to_owned(), json(value))).collect();
    }
    if let Some(array) = value.as_array() {
        return array.iter().map(json).collect();
    }
    match (value.as_str(), value.as_bool(), value.as_i64(), value.as_u64(), value.as_f64()) {
        (Some(text), ..) => text.into(),
        (_, Some(flag), ..) => flag.into(),
        (_, _, Some(number), ..) => number.into(),
        (_, _, _, Some(number), _) => number.into(),
        (.., Some(number)) => number.into(),
        _ => serde_json::Value::Null,
    }
}

fn json_type(value: tape::Value<'_, '_>) -> &'static str {
    if value.is_null() {
        "null"
    } else if value.as_bool().is_some() {
        "a boolean"
    } else if value.as_str().is_some() {
        "a string"
    } else if value.is_array() {
        "an array"
    } else if value.is_object() {
        "an object"
    } else {
        "a number"
    }
}
