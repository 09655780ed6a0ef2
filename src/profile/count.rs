//! Whole numbers of a profile, with their ranges in their types.

use std::fmt;

use serde::de::{self, Deserializer, Visitor};
use serde::{Deserialize, Serialize, Serializer};

/// A whole number in `MIN..=MAX`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Whole<const MIN: u16, const MAX: u16>(u16);

impl<const MIN: u16, const MAX: u16> Whole<MIN, MAX> {
    /// Returns the number, if it is in the range.
    #[must_use]
    pub const fn new(value: u16) -> Option<Self> {
        if MIN <= value && value <= MAX { Some(Self(value)) } else { None }
    }

    /// Returns the number.
    #[must_use]
    pub const fn value(self) -> u16 {
        self.0
    }

    fn parse<E: de::Error>(value: i64, or_auto: &str) -> Result<Self, E> {
        u16::try_from(value).ok().and_then(Self::new).ok_or_else(|| {
            E::custom(format!("found {value}, expected a whole number in {MIN}..={MAX}{or_auto}"))
        })
    }
}

impl<'de, const MIN: u16, const MAX: u16> Deserialize<'de> for Whole<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct WholeVisitor<const MIN: u16, const MAX: u16>;
        impl<const MIN: u16, const MAX: u16> Visitor<'_> for WholeVisitor<MIN, MAX> {
            type Value = Whole<MIN, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number in {MIN}..={MAX}")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                Whole::parse(value, "")
            }
        }
        deserializer.deserialize_any(WholeVisitor)
    }
}

/// A number of threads, slots or units: fixed, or left to the rule that the plan documents for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Count<const MAX: u16> {
    /// The value of the plan's rule for the cores at hand.
    Auto,
    /// A fixed number.
    Fixed(Whole<1, MAX>),
}

impl<const MAX: u16> Count<MAX> {
    /// Returns the fixed number, or else `auto`, kept in range.
    #[must_use]
    pub fn or(self, auto: u16) -> u16 {
        match self {
            Self::Auto => auto.clamp(1, MAX),
            Self::Fixed(number) => number.value(),
        }
    }
}

impl<const MAX: u16> Serialize for Count<MAX> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Auto => serializer.serialize_str("auto"),
            Self::Fixed(number) => number.serialize(serializer),
        }
    }
}

impl<'de, const MAX: u16> Deserialize<'de> for Count<MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct CountVisitor<const MAX: u16>;
        impl<const MAX: u16> Visitor<'_> for CountVisitor<MAX> {
            type Value = Count<MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number in 1..={MAX} or \"auto\"")
            }

            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Self::Value, E> {
                Whole::parse(value, " or \"auto\"").map(Count::Fixed)
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<Self::Value, E> {
                if text == "auto" {
                    return Ok(Count::Auto);
                }
                Err(E::invalid_value(de::Unexpected::Str(text), &self))
            }
        }
        deserializer.deserialize_any(CountVisitor)
    }
}
