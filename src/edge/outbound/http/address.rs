//! Address of an OpenAI-compatible API, and the key to it.

use std::net::IpAddr;

use reqwest::Url;
use reqwest::header::HeaderValue;

/// Calls below the base; an address that ends in one of them stands for its base.
const CALLS: [&str; 4] = ["chat/completions", "responses", "audio/transcriptions", "audio/speech"];

/// Path of the API if an address names a host alone.
const DEFAULT_PATH: &str = "/v1";

/// Errors of an address or a key. The text begins with `URL` or `key`, so that the server's name may stand before it.
/// The key itself is not in the text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The text is no URL.
    #[error("URL {url:?}: {problem}")]
    NoUrl {
        /// Text that was given.
        url: String,
        /// The parser's message.
        problem: String,
    },
    /// The URL is of another protocol.
    #[error("URL {url:?}: found scheme {scheme:?}, expected http or https")]
    Scheme {
        /// URL that was given.
        url: String,
        /// Scheme of the URL.
        scheme: String,
    },
    /// The URL is the address of another call than the expected one.
    #[error("URL {url:?}: found the address of {found:?}, expected that of {expected:?}")]
    OtherCall {
        /// URL that was given.
        url: String,
        /// Call that the URL ends in.
        found: &'static str,
        /// Call that is expected.
        expected: &'static str,
    },
    /// The environment variable of the key is not set, or not UTF-8.
    #[error("key: environment variable {0} is not set")]
    NoKey(String),
    /// The key cannot stand in a header.
    #[error("key: found characters that no HTTP header can carry")]
    BadKey,
}

/// The base of an API (`http://host:8000/v1`) and the key to it, both checked by the constructor.
#[derive(Clone)]
pub struct ApiBase {
    /// URL without a slash at the end of its path.
    url: Url,
    /// Call that the address ended in; `None`: the base or the host.
    named: Option<&'static str>,
    authorization: Option<HeaderValue>,
}

impl ApiBase {
    /// Reads the address `url`: the base of the API, the host alone (`/v1` is added), or the whole address of a call. A
    /// query string is kept. `key` is sent as a bearer token.
    ///
    /// # Errors
    /// [`AddressError`] if the address is no http(s) URL or no header can carry the key.
    pub fn new(url: &str, key: Option<&str>) -> Result<Self, AddressError> {
        let text = || url.to_owned();
        let mut base = Url::parse(url)
            .map_err(|error| AddressError::NoUrl { url: text(), problem: error.to_string() })?;
        if !matches!(base.scheme(), "http" | "https") {
            return Err(AddressError::Scheme { url: text(), scheme: base.scheme().to_owned() });
        }
        let path = base.path().trim_end_matches('/').to_owned();
        let below = |call: &str| path.strip_suffix(call)?.strip_suffix('/');
        let named = CALLS.into_iter().find_map(|call| Some((call, below(call)?)));
        base.set_path(match named {
            Some((_, before)) => before.trim_end_matches('/'),
            None if path.is_empty() => DEFAULT_PATH,
            None => &path,
        });
        let authorization = key.map(bearer).transpose()?;
        Ok(Self { url: base, named: named.map(|(call, _)| call), authorization })
    }

    /// Returns the call that the address ended in: `chat/completions`; `None` if it was the base or the host.
    #[must_use]
    pub const fn named_call(&self) -> Option<&'static str> {
        self.named
    }

    /// Returns the address of the call `path`, such as `audio/speech`.
    #[must_use]
    pub fn call(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{path}", self.url.path().trim_end_matches('/')));
        url
    }

    /// Returns the base, for log lines.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// Returns the `Authorization` header; `None` without a key.
    pub(super) fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Returns true if the server is on this machine: no proxy is used then.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        let host = self.url.host_str().unwrap_or_default();
        let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
    }

    /// Returns true if certificates are needed.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }
}

impl std::fmt::Debug for ApiBase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiBase")
            .field("url", &self.url.as_str())
            .field("named", &self.named)
            .field("authorization", &self.authorization.as_ref().map(|_| "…"))
            .finish()
    }
}

/// Reads a key out of the environment variable `variable`, if one is named.
///
/// # Errors
/// [`AddressError::NoKey`] if the variable is not set, or not UTF-8.
pub fn key_from(variable: Option<&str>) -> Result<Option<String>, AddressError> {
    let read = |name: &str| std::env::var(name).map_err(|_| AddressError::NoKey(name.to_owned()));
    variable.map(read).transpose()
}

/// Makes the `Authorization` header with `key`, which no log shows.
fn bearer(key: &str) -> Result<HeaderValue, AddressError> {
    let mut header = HeaderValue::try_from(format!("Bearer {key}")).map_err(|_| AddressError::BadKey)?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn base(url: &str) -> ApiBase {
        ApiBase::new(url, None).expect(url)
    }

    #[test]
    fn base_host_and_whole_address_mean_the_same() {
        for (given, expected) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/audio/speech"),
            ("http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1/audio/speech"),
            ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/audio/speech"),
            ("http://127.0.0.1:8000/v1/audio/transcriptions", "http://127.0.0.1:8000/v1/audio/speech"),
            ("http://127.0.0.1:8000/v1/audio/speech/", "http://127.0.0.1:8000/v1/audio/speech"),
            ("https://x.org/v1/chat/completions", "https://x.org/v1/audio/speech"),
            ("https://x.org/a/b?api-version=3", "https://x.org/a/b/audio/speech?api-version=3"),
            ("https://x.org/my-responses", "https://x.org/my-responses/audio/speech"),
        ] {
            assert_eq!(base(given).call("audio/speech").as_str(), expected, "{given}");
        }
    }

    /// An address of a call without `/v1` before it gets none.
    #[test]
    fn the_whole_address_of_a_call_is_that_call() {
        for (given, call) in [
            ("http://h/responses", "responses"),
            ("http://h/chat/completions/", "chat/completions"),
            ("http://h//audio/speech", "audio/speech"),
        ] {
            let base = base(given);
            assert_eq!((base.named_call(), base.call(call).path()), (Some(call), &*format!("/{call}")));
        }
        assert_eq!(base("http://h/v1").named_call(), None);
    }

    #[test]
    fn what_is_no_address_is_named() {
        for (given, expected) in [
            ("", "URL \"\": "),
            ("http://", "URL \"http://\": "),
            ("localhost:8000", "URL \"localhost:8000\": found scheme \"localhost\", expected http or https"),
            ("ftp://x.org/v1", "URL \"ftp://x.org/v1\": found scheme \"ftp\", expected http or https"),
        ] {
            let error = ApiBase::new(given, None).expect_err(given).to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }

    #[test]
    fn loopback_is_recognised() {
        let is_loopback = |url| base(url).is_loopback();
        assert!(["http://127.0.0.1:1", "http://localhost", "http://[::1]:9"].into_iter().all(is_loopback));
        assert!(!["http://10.0.0.1", "https://localhost.example.org"].into_iter().any(is_loopback));
    }

    #[test]
    fn the_key_is_checked_and_never_printed() {
        let base = ApiBase::new("http://h", Some("sk-secret")).expect("valid");
        assert!(base.authorization().is_some() && !format!("{base:?}").contains("secret"));
        let error = ApiBase::new("http://h", Some("sk-secret\n")).expect_err("a line end in a header");
        assert_eq!(error, AddressError::BadKey);
        let error = key_from(Some("ANTIPHON_NO_SUCH_VARIABLE")).expect_err("not set");
        assert_eq!(error.to_string(), "key: environment variable ANTIPHON_NO_SUCH_VARIABLE is not set");
        assert_eq!(key_from(None), Ok(None));
    }
}
