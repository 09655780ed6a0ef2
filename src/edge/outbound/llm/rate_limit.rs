//! Rate limits of a server, from the headers of a response.
//!
//! # Source
//! OpenAI API guide, "Rate limits", "Rate limits in headers".

use reqwest::header::HeaderMap;

use crate::message::{RateLimit, RateLimits};

/// Reads the limits that the headers name; `None` if they name none.
pub(super) fn rate_limits(headers: &HeaderMap) -> Option<RateLimits> {
    let limits =
        RateLimits { requests: rate_limit(headers, "requests"), tokens: rate_limit(headers, "tokens") };
    (limits.requests.is_some() || limits.tokens.is_some()).then_some(limits)
}

/// Reads the limit of `what`. A time of reset that is missing, or of an unknown form, is 0.
fn rate_limit(headers: &HeaderMap, what: &str) -> Option<RateLimit> {
    let text = |part: &str| headers.get(format!("x-ratelimit-{part}-{what}"))?.to_str().ok().map(str::trim);
    Some(RateLimit {
        limit: text("limit")?.parse().ok()?,
        remaining: text("remaining")?.parse().ok()?,
        reset_ms: text("reset").and_then(milliseconds).unwrap_or(0),
    })
}

/// Converts `6m0s`, `1s`, `120ms`, `1h2m3.5s`, or a number of seconds, into milliseconds, rounded up.
fn milliseconds(text: &str) -> Option<u32> {
    let mut total = 0.0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        let (number, tail) = rest.split_at(digits);
        let letters = tail.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(tail.len());
        let (quantity, tail) = tail.split_at(letters);
        let factor = match quantity {
            "ns" => 1e-6,
            "us" | "µs" => 1e-3,
            "ms" => 1.0,
            "s" | "" => 1e3,
            "m" => 60e3,
            "h" => 3_600e3,
            "d" => 86_400e3,
            _ => return None,
        };
        total += number.parse::<f64>().ok()? * factor;
        rest = tail;
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a cast from a float ends at the type's limits"
    )]
    let ms = total.ceil() as u32;
    (!text.is_empty()).then_some(ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_as_servers_write_them() {
        for (text, expected) in [
            ("1s", Some(1_000)),
            ("6m0s", Some(360_000)),
            ("120ms", Some(120)),
            ("1h2m3.5s", Some(3_723_500)),
            ("2m59.56s", Some(179_560)),
            ("7.66", Some(7_660)),
            ("450µs", Some(1)),
            ("0", Some(0)),
            ("9999999d", Some(u32::MAX)),
            ("", None),
            ("soon", None),
            ("5 s", None),
            ("2026-08-10T00:00:00Z", None),
            ("1.2.3s", None),
        ] {
            assert_eq!(milliseconds(text), expected, "{text:?}");
        }
    }

    #[test]
    fn only_what_is_named_is_a_limit() {
        let headers = |lines: &[(&'static str, &'static str)]| {
            lines
                .iter()
                .map(|&(name, value)| (name.parse().expect("a name"), value.parse().expect("a value")))
                .collect()
        };
        assert_eq!(rate_limits(&headers(&[("x-ratelimit-limit-requests", "5")])), None);
        assert_eq!(
            rate_limits(&headers(&[
                ("x-ratelimit-limit-tokens", "-1"),
                ("x-ratelimit-remaining-tokens", "1")
            ])),
            None
        );
        let requests = [("x-ratelimit-limit-requests", "60"), ("x-ratelimit-remaining-requests", "59")];
        let expected = RateLimit { limit: 60, remaining: 59, reset_ms: 0 };
        assert_eq!(
            rate_limits(&headers(&requests)),
            Some(RateLimits { requests: Some(expected), tokens: None })
        );
    }
}
