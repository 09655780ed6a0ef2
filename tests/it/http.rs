//! A plain HTTP client for the endpoints beside the Realtime one.

use std::net::SocketAddr;

use reqwest::multipart::{Form, Part};
use reqwest::{Client, Response};
use serde_json::Value;

/// A client of one server.
#[derive(Debug)]
pub(crate) struct Http {
    client: Client,
    base: String,
}

impl Http {
    pub(crate) fn new(addr: SocketAddr) -> Self {
        // Installed already by another test of this process: as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let builder = Client::builder().no_proxy().pool_max_idle_per_host(0).tls_certs_only([]);
        Self { client: builder.build().expect("a client"), base: format!("http://{addr}/v1") }
    }

    pub(crate) async fn get(&self, path: &str) -> Response {
        let response = self.client.get(format!("{}/{path}", self.base)).send().await;
        response.unwrap_or_else(|error| panic!("GET {path}: {error}"))
    }

    /// Posts a body with these headers.
    pub(crate) async fn post(
        &self,
        path: &str,
        headers: &[(&str, &str)],
        body: impl Into<String>,
    ) -> Response {
        let mut request = self.client.post(format!("{}/{path}", self.base)).body(body.into());
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        request.send().await.unwrap_or_else(|error| panic!("POST {path}: {error}"))
    }

    /// Asks for speech.
    pub(crate) async fn speech(&self, body: &Value) -> Response {
        self.post("audio/speech", &[("content-type", "application/json")], body.to_string()).await
    }

    /// Asks for a transcript of `file`.
    pub(crate) async fn transcription(&self, file: Vec<u8>, fields: &[(&str, &str)]) -> Response {
        self.try_transcription(file, fields).await.unwrap_or_else(|error| panic!("transcription: {error}"))
    }

    pub(crate) async fn try_transcription(
        &self,
        file: Vec<u8>,
        fields: &[(&str, &str)],
    ) -> reqwest::Result<Response> {
        let mut form = Form::new().part("file", Part::bytes(file).file_name("speech.wav"));
        for (name, value) in fields {
            form = form.text((*name).to_owned(), (*value).to_owned());
        }
        self.client.post(format!("{}/audio/transcriptions", self.base)).multipart(form).send().await
    }
}

/// Status and `error` object of an answer that is an error.
pub(crate) async fn error_of(response: Response) -> (u16, Value) {
    let status = response.status().as_u16();
    let body = response.text().await.expect("a body");
    let value: Value = serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"));
    let error = &value["error"];
    assert!(error["message"].is_string() && error["type"].is_string(), "no error object: {value}");
    assert!(error.get("param").is_some() && error.get("code").is_some(), "no error object: {value}");
    (status, error.clone())
}
