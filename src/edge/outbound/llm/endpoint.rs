//! Where a language model is served.

use reqwest::Url;
use reqwest::header::HeaderValue;

use super::ChatError;
use crate::config::LlmApi;
use crate::edge::outbound::http;

/// Path of the call below the base of the API.
const fn call(api: LlmApi) -> &'static str {
    match api {
        LlmApi::Chat => "/chat/completions",
        LlmApi::Responses => "/responses",
    }
}

/// A server of either API, as configured; checked when it is made.
#[derive(Clone)]
pub struct ChatEndpoint {
    /// The whole address of the call.
    pub(super) url: Url,
    /// How it is asked.
    pub(super) api: LlmApi,
    /// Value of the `model` field; `None`: the field is left out (llama.cpp serves its only model then).
    pub(super) model: Option<String>,
    /// The `Authorization` header.
    pub(super) authorization: Option<HeaderValue>,
    /// Send the caller's slot as `id_slot`. Only the built-in server is asked that way: others may refuse the field.
    pub(super) slot_hint: bool,
}

impl ChatEndpoint {
    /// The server at `url`: the base of the API (`http://host:8000/v1`), the host alone (`/v1` is added), or the whole
    /// address of the call (`…/chat/completions`, `…/responses`). Without `api` such an address decides, else it is chat
    /// completions. A query string is kept. `key` is sent as a bearer token.
    ///
    /// # Errors
    /// [`ChatError::Setup`] if the address is no http(s) URL or that of the other API, or the key cannot stand in a header.
    pub fn new(
        url: &str,
        api: Option<LlmApi>,
        model: Option<String>,
        key: Option<&str>,
    ) -> Result<Self, ChatError> {
        let (url, api) = call_url(url, api)
            .map_err(|problem| ChatError::Setup(format!("language model URL {url:?}: {problem}")))?;
        // The key itself stays out of every message.
        let no_header = || {
            ChatError::Setup(
                "the language model key holds characters that no HTTP header can carry".to_owned(),
            )
        };
        let authorization = key.map(|key| http::bearer(key).ok_or_else(no_header)).transpose()?;
        Ok(Self { url, api, model, authorization, slot_hint: false })
    }

    /// The same server, told with each request which slot of its cache the caller has.
    #[must_use]
    pub fn with_slot_hint(self) -> Self {
        Self { slot_hint: true, ..self }
    }

    /// The address of the call, for log lines.
    #[must_use]
    pub fn url(&self) -> &str {
        self.url.as_str()
    }

    /// The address of the list of models.
    pub(super) fn models_url(&self) -> Url {
        let mut url = self.url.clone();
        let base = url.path().strip_suffix(call(self.api)).expect("the address of the call ends so");
        url.set_path(&format!("{base}/models"));
        url
    }

    /// Whether the server is on this machine: no proxy is asked for it.
    pub(super) fn is_loopback(&self) -> bool {
        http::is_loopback(&self.url)
    }

    /// Whether certificates are needed.
    pub(super) fn is_tls(&self) -> bool {
        self.url.scheme() == "https"
    }
}

impl std::fmt::Debug for ChatEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChatEndpoint")
            .field("url", &self.url.as_str())
            .field("api", &self.api)
            .field("model", &self.model)
            .field("authorization", &self.authorization.as_ref().map(|_| "…"))
            .field("slot_hint", &self.slot_hint)
            .finish()
    }
}

fn call_url(text: &str, api: Option<LlmApi>) -> Result<(Url, LlmApi), String> {
    let mut url = http::url(text)?;
    let path = url.path().trim_end_matches('/');
    let named = [LlmApi::Chat, LlmApi::Responses].into_iter().find(|&api| path.ends_with(call(api)));
    let api = match (api, named) {
        (Some(api), Some(named)) if api != named => {
            return Err(format!("found the address of {:?}, expected that of {:?}", call(named), call(api)));
        }
        (api, named) => api.or(named).unwrap_or(LlmApi::Chat),
    };
    let base = path.strip_suffix(call(api)).unwrap_or(if path.is_empty() { "/v1" } else { path });
    let path = format!("{base}{}", call(api));
    url.set_path(&path);
    Ok((url, api))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_host_and_whole_address_mean_the_same() {
        for (given, expected) in [
            ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1/chat/completions"),
            ("http://127.0.0.1:8000/v1", "http://127.0.0.1:8000/v1/chat/completions"),
            ("http://127.0.0.1:8000/v1/", "http://127.0.0.1:8000/v1/chat/completions"),
            ("https://x.org/v1/chat/completions", "https://x.org/v1/chat/completions"),
            ("https://x.org/a/b?api-version=3", "https://x.org/a/b/chat/completions?api-version=3"),
        ] {
            assert_eq!(ChatEndpoint::new(given, None, None, None).expect("valid").url(), expected);
        }
        for given in ["", "localhost:8000", "ftp://x.org/v1", "http://"] {
            assert!(
                matches!(ChatEndpoint::new(given, None, None, None), Err(ChatError::Setup(_))),
                "{given:?}"
            );
        }
    }

    #[test]
    fn the_api_is_as_the_flag_or_the_address_says() {
        let new = |url, api| ChatEndpoint::new(url, api, None, None);
        for (given, api, expected) in [
            ("http://h", Some(LlmApi::Responses), "http://h/v1/responses"),
            ("http://h/v1/", Some(LlmApi::Responses), "http://h/v1/responses"),
            ("http://h/v1/responses", None, "http://h/v1/responses"),
            ("http://h/responses", Some(LlmApi::Responses), "http://h/responses"),
            ("http://h/v1", Some(LlmApi::Chat), "http://h/v1/chat/completions"),
        ] {
            assert_eq!(new(given, api).expect("valid").url(), expected);
        }
        let error = new("http://h/v1/responses", Some(LlmApi::Chat)).expect_err("the other API").to_string();
        assert!(error.contains("found the address of \"/responses\""), "{error}");
        for (given, expected) in [
            ("http://h/v1/responses", "http://h/v1/models"),
            ("https://x.org/a/b?api-version=3", "https://x.org/a/b/models?api-version=3"),
        ] {
            assert_eq!(new(given, None).expect("valid").models_url().as_str(), expected);
        }
    }

    #[test]
    fn loopback_is_recognised() {
        let is_loopback = |url| ChatEndpoint::new(url, None, None, None).expect("valid").is_loopback();
        assert!(["http://127.0.0.1:1", "http://localhost", "http://[::1]:9"].into_iter().all(is_loopback));
        assert!(!["http://10.0.0.1", "https://localhost.example.org"].into_iter().any(is_loopback));
    }

    #[test]
    fn the_key_is_checked_and_never_printed() {
        let endpoint =
            ChatEndpoint::new("http://h", None, Some("m".to_owned()), Some("sk-secret")).expect("valid");
        assert!(!format!("{endpoint:?}").contains("secret"));
        let error = ChatEndpoint::new("http://h", None, None, Some("sk-secret\n"))
            .expect_err("a line end in a header");
        assert!(!error.to_string().contains("secret"));
    }
}
