//! Values whose form on the wire differs from that in memory.

use serde::Serialize;
use serde::ser::Serializer;

use crate::message::RateLimits;

/// Writes milliseconds as seconds.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives references")]
pub(super) fn seconds<S: Serializer>(ms: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(f64::from(*ms) / 1_000.0)
}

/// Writes `rate_limits`: the limits that the model server has named.
pub(super) fn rate_limits<S: Serializer>(limits: &RateLimits, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Shown {
        name: &'static str,
        limit: u32,
        remaining: u32,
        #[serde(rename = "reset_seconds", serialize_with = "seconds")]
        reset_ms: u32,
    }
    let named = [("requests", limits.requests), ("tokens", limits.tokens)];
    serializer.collect_seq(named.into_iter().filter_map(|(name, limit)| {
        let limit = limit?;
        Some(Shown { name, limit: limit.limit, remaining: limit.remaining, reset_ms: limit.reset_ms })
    }))
}

/// Returns the shortest decimal that stands for this `f32`: 0.8 and not 0.800000011920929.
pub(super) fn decimal(number: f32) -> serde_json::Value {
    number.to_string().parse::<f64>().map_or(serde_json::Value::Null, Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_short() {
        assert_eq!(decimal(0.8).to_string(), "0.8");
        assert_eq!(decimal(1.1).to_string(), "1.1");
        assert_eq!(decimal(1.0).to_string(), "1.0");
    }
}
