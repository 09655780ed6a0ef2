//! Address of a language model's server.

use crate::config::LlmApi;
use crate::edge::outbound::http::{AddressError, ApiBase};

/// Returns the path of an API's call below the base.
const fn call(api: LlmApi) -> &'static str {
    match api {
        LlmApi::Chat => "chat/completions",
        LlmApi::Responses => "responses",
    }
}

/// A server of either API, as configured; checked by the constructor.
#[derive(Clone, Debug)]
pub struct ChatEndpoint {
    pub(super) base: ApiBase,
    /// API of the calls.
    pub(super) api: LlmApi,
    /// Value of the `model` field; `None`: the field is left out (llama.cpp serves its only model then).
    model: Option<String>,
    /// True for the built-in server: `antiphon_caller` names the session that asks. Other servers may refuse the field.
    pub(super) names_caller: bool,
}

impl ChatEndpoint {
    /// Makes the endpoint at `url`, an address for [`ApiBase::new`]. Without `api` the call that the address ends in
    /// decides, else it is chat completions. `key` is sent as a bearer token.
    ///
    /// # Errors
    /// [`AddressError`] if the address is no http(s) URL or that of the other API, or the key cannot stand in a header.
    pub fn new(
        url: &str,
        api: Option<LlmApi>,
        model: Option<String>,
        key: Option<&str>,
    ) -> Result<Self, AddressError> {
        let base = ApiBase::new(url, key)?;
        let named = [LlmApi::Chat, LlmApi::Responses];
        let named = named.into_iter().find(|&api| base.named_call() == Some(call(api)));
        let api = match (api, named) {
            (Some(api), Some(named)) if api != named => {
                let (url, found, expected) = (url.to_owned(), call(named), call(api));
                return Err(AddressError::OtherCall { url, found, expected });
            }
            (api, named) => api.or(named).unwrap_or(LlmApi::Chat),
        };
        Ok(Self { base, api, model, names_caller: false })
    }

    /// Makes the endpoint name the session that asks in each request.
    #[must_use]
    pub fn with_caller(self) -> Self {
        Self { names_caller: true, ..self }
    }

    /// Returns the address of the call, for log lines.
    #[must_use]
    pub fn url(&self) -> String {
        self.base.call(self.call()).into()
    }

    /// Returns the name of the model; `None`: the server's only one.
    #[must_use]
    pub fn model(&self) -> Option<&str> {
        self.model.as_deref()
    }

    /// Returns the path of the call below the base.
    pub(super) const fn call(&self) -> &'static str {
        call(self.api)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_api_is_as_the_flag_or_the_address_says() {
        let new = |url, api| ChatEndpoint::new(url, api, None, None);
        for (given, api, expected) in [
            ("http://h", None, "http://h/v1/chat/completions"),
            ("http://h/v1", None, "http://h/v1/chat/completions"),
            ("https://x.org/v1/chat/completions", None, "https://x.org/v1/chat/completions"),
            ("https://x.org/a/b?api-version=3", None, "https://x.org/a/b/chat/completions?api-version=3"),
            ("http://h", Some(LlmApi::Responses), "http://h/v1/responses"),
            ("http://h/v1/", Some(LlmApi::Responses), "http://h/v1/responses"),
            ("http://h/v1/responses", None, "http://h/v1/responses"),
            ("http://h/responses", Some(LlmApi::Responses), "http://h/responses"),
            ("http://h/v1", Some(LlmApi::Chat), "http://h/v1/chat/completions"),
            ("http://h/v1/audio/speech", None, "http://h/v1/chat/completions"),
        ] {
            assert_eq!(new(given, api).expect("valid").url(), expected);
        }
        let error = new("http://h/v1/responses", Some(LlmApi::Chat)).expect_err("the other API").to_string();
        assert!(
            error.ends_with("found the address of \"responses\", expected that of \"chat/completions\""),
            "{error}"
        );
    }
}
