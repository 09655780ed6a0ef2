//! Where an OpenAI-compatible server lives, and the key to it.

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::http;

/// Calls below the base; an address that ends in one of them stands for its base.
const CALLS: [&str; 4] = ["chat/completions", "responses", "audio/transcriptions", "audio/speech"];

/// The base of an API (`http://host:8000/v1`) and the key, checked when it is made.
#[derive(Clone)]
pub struct ApiBase {
    url: Url,
    authorization: Option<HeaderValue>,
}

impl ApiBase {
    /// The API at `url`: its base, the host alone (`/v1` is added), or the whole address of a call. A query string is
    /// kept. The environment variable `key_env`, if one is named, holds the key; it is sent as a bearer token. `what`
    /// names the server in messages.
    ///
    /// # Errors
    /// What is wrong: the address is no http(s) URL, the variable is not set, or no header can carry the key.
    pub fn new(what: &str, url: &str, key_env: Option<&str>) -> Result<Self, String> {
        let url = base_url(url).map_err(|problem| format!("{what} URL {url:?}: {problem}"))?;
        let Some(variable) = key_env else { return Ok(Self { url, authorization: None }) };
        let key = std::env::var(variable).map_err(|_| {
            format!("environment variable {variable}: not set, expected the key of the {what} server")
        })?;
        // The key itself stays out of every message.
        let authorization = http::bearer(&key).ok_or_else(|| {
            format!("the key of the {what} server holds characters that no HTTP header can carry")
        })?;
        Ok(Self { url, authorization: Some(authorization) })
    }

    /// The address of a call: `audio/speech`.
    #[must_use]
    pub fn call(&self, path: &str) -> Url {
        let mut url = self.url.clone();
        url.set_path(&format!("{}/{path}", self.url.path()));
        url
    }

    /// The base, for log lines.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The `Authorization` header.
    #[must_use]
    pub fn authorization(&self) -> Option<&HeaderValue> {
        self.authorization.as_ref()
    }

    /// Whether the server is on this machine: no proxy is asked for it.
    #[must_use]
    pub fn is_loopback(&self) -> bool {
        http::is_loopback(&self.url)
    }

    /// Whether certificates are needed.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }
}

impl std::fmt::Debug for ApiBase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ApiBase")
            .field("url", &self.url.as_str())
            .field("authorization", &self.authorization.as_ref().map(|_| "…"))
            .finish()
    }
}

fn base_url(text: &str) -> Result<Url, String> {
    let mut url = http::url(text)?;
    let path = url.path().trim_end_matches('/');
    let base = CALLS.iter().find_map(|call| path.strip_suffix(call)).unwrap_or(path).trim_end_matches('/');
    let base = if base.is_empty() { "/v1" } else { base }.to_owned();
    url.set_path(&base);
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_host_and_whole_address_mean_the_same() {
        for (given, expected) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/audio/speech"),
            ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/audio/speech"),
            ("http://127.0.0.1:8000/v1/audio/transcriptions", "http://127.0.0.1:8000/v1/audio/speech"),
            ("https://x.org/v1/chat/completions", "https://x.org/v1/audio/speech"),
            ("https://x.org/a/b?api-version=3", "https://x.org/a/b/audio/speech?api-version=3"),
        ] {
            let base = ApiBase::new("speech", given, None).expect("valid");
            assert_eq!(base.call("audio/speech").as_str(), expected);
        }
        for given in ["", "localhost:8000", "ftp://x.org/v1", "http://"] {
            let error = ApiBase::new("speech", given, None).expect_err(given);
            assert!(error.starts_with("speech URL"), "{error}");
        }
    }

    #[test]
    fn loopback_is_recognised() {
        let is_loopback = |url| ApiBase::new("speech", url, None).expect("valid").is_loopback();
        assert!(["http://127.0.0.1:1", "http://localhost", "http://[::1]:9"].into_iter().all(is_loopback));
        assert!(!["http://10.0.0.1", "https://localhost.example.org"].into_iter().any(is_loopback));
    }

    #[test]
    fn a_key_that_is_not_there_is_named_by_its_variable() {
        let error =
            ApiBase::new("speech", "http://h", Some("ANTIPHON_NO_SUCH_VARIABLE")).expect_err("not set");
        assert!(error.contains("ANTIPHON_NO_SUCH_VARIABLE: not set"), "{error}");
    }
}
