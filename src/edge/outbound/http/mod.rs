//! HTTP calls of model servers, independent of the model: one kind of address, one client, one error.
//!
//! Dropping a future or a `Reply` closes its socket. No request is repeated.

mod address;
mod error;

use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, RequestBuilder, Response, StatusCode};

pub use address::{AddressError, ApiBase, key_from};
pub use error::CallError;
pub(super) use error::{error_text, first_words};

/// Wait for a connection, TLS included, and for a built-in server that is being started again.
pub(in crate::edge) const CONNECT_WAIT: Duration = Duration::from_secs(3);

/// Time that an idle connection is kept for the next turn; shorter than the 60 s after which common load balancers drop one.
const IDLE_CONNECTION_KEPT: Duration = Duration::from_secs(50);

/// Longest body of an error response that is read, bytes.
const ERROR_BODY_BYTES_MAX: usize = 16 * 1_024;

/// Wait for the body of an error response; after it the error is reported without the server's words.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(1);

/// A client with a pool of idle connections. Cheap to clone; clones share the pool.
#[derive(Clone, Debug)]
pub(super) struct HttpClient(reqwest::Client);

impl HttpClient {
    /// Makes a client for the server at `base`; `connect` limits the time until a connection stands.
    ///
    /// # Errors
    /// [`CallError::Setup`] if the server needs trusted root certificates and the system has none.
    pub(super) fn new(base: &ApiBase, connect: Duration) -> Result<Self, CallError> {
        Self::build(base.is_loopback(), base.is_tls(), connect)
    }

    /// Makes a client for servers on this machine, without TLS.
    ///
    /// # Errors
    /// [`CallError::Setup`] if the system denies what a client needs.
    pub(super) fn local(connect: Duration) -> Result<Self, CallError> {
        Self::build(true, false, connect)
    }

    fn build(is_loopback: bool, is_tls: bool, connect: Duration) -> Result<Self, CallError> {
        // Installs the crypto provider of the process. This fails only if one is installed already, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = reqwest::Client::builder()
            .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(connect)
            .pool_idle_timeout(IDLE_CONNECTION_KEPT)
            .tcp_nodelay(true)
            // A redirect would turn the POST into a GET or carry the prompt elsewhere; it is reported as its status.
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback {
            builder = builder.no_proxy();
        }
        if !is_tls {
            // No certificates are loaded for plain HTTP, so it works on systems that have none.
            builder = builder.tls_certs_only([]);
        }
        let http = builder.build();
        http.map(Self).map_err(|error| CallError::Setup(format!("HTTP client: {}", root_cause(&error))))
    }

    /// Sends a request for `path` below `base`, with the base's key and the additions of `fill`. Waits for the head of
    /// the answer, of any status.
    ///
    /// # Errors
    /// [`CallError::Unreachable`], [`CallError::Broken`]; [`CallError::Setup`] if the request cannot be written.
    pub(super) async fn send(
        &self,
        base: &ApiBase,
        method: Method,
        path: &str,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Response, CallError> {
        let mut request = self.0.request(method, base.call(path));
        if let Some(authorization) = base.authorization() {
            request = request.header(AUTHORIZATION, authorization);
        }
        fill(request).send().await.map_err(|error| {
            let cause = root_cause(&error);
            if error.is_connect() || error.is_timeout() {
                CallError::Unreachable(cause)
            } else if error.is_builder() {
                CallError::Setup(cause)
            } else {
                CallError::Broken(cause)
            }
        })
    }

    /// Sends a request like [`HttpClient::send`]; any status but 200 is an error.
    ///
    /// # Errors
    /// Those of [`HttpClient::send`], and [`CallError::Status`].
    pub(super) async fn call(
        &self,
        base: &ApiBase,
        method: Method,
        path: &str,
        fill: impl FnOnce(RequestBuilder) -> RequestBuilder,
    ) -> Result<Reply, CallError> {
        let response = self.send(base, method, path, fill).await?;
        if response.status() == StatusCode::OK { Ok(Reply(response)) } else { Err(status(response).await) }
    }
}

/// An answer with status 200, its body still to be read.
#[derive(Debug)]
pub(super) struct Reply(Response);

impl Reply {
    /// Returns the headers.
    pub(super) fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Returns the content type in lower case and without blanks; empty if there is none.
    pub(super) fn content_type(&self) -> String {
        let content_type = self.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        content_type.unwrap_or_default().to_ascii_lowercase().replace(' ', "")
    }

    /// Waits for the next bytes of the body; `None` at its end. Cancel safe.
    ///
    /// # Errors
    /// [`CallError::Broken`] if the connection breaks.
    pub(super) async fn chunk(&mut self) -> Result<Option<Bytes>, CallError> {
        self.0.chunk().await.map_err(|error| CallError::Broken(root_cause(&error)))
    }

    /// Reads the whole body.
    ///
    /// # Errors
    /// [`CallError::Broken`], also for more than `bytes_max` bytes.
    pub(super) async fn whole(mut self, bytes_max: usize) -> Result<Vec<u8>, CallError> {
        let mut body = Vec::new();
        while let Some(bytes) = self.chunk().await? {
            body.extend_from_slice(&bytes);
            if body.len() > bytes_max {
                return Err(CallError::Broken(format!("found more than {bytes_max} bytes")));
            }
        }
        Ok(body)
    }
}

/// Waits for `work`, at most for `limit`.
///
/// # Errors
/// Those of `work`, and [`CallError::Timeout`].
pub(super) async fn within<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, CallError>>,
) -> Result<T, CallError> {
    tokio::time::timeout(limit, work).await.unwrap_or(Err(CallError::Timeout(limit)))
}

/// Finds the innermost cause of `error`, which describes the failure and does not name the address.
fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

async fn status(mut response: Response) -> CallError {
    let status = response.status();
    let message = error::error_message(&error_body(&mut response).await)
        .unwrap_or_else(|| status.canonical_reason().unwrap_or("unknown status").to_owned());
    CallError::Status { status: status.as_u16(), message }
}

/// Reads the beginning of an error response's body, as much as comes within [`ERROR_BODY_WAIT`].
async fn error_body(response: &mut Response) -> Vec<u8> {
    let mut body = Vec::new();
    // All that has come within the time is used, so an elapsed time-out is no error.
    let _ = tokio::time::timeout(ERROR_BODY_WAIT, async {
        while let Ok(Some(bytes)) = response.chunk().await {
            let room = ERROR_BODY_BYTES_MAX - body.len();
            body.extend_from_slice(&bytes[..bytes.len().min(room)]);
            if body.len() == ERROR_BODY_BYTES_MAX {
                break;
            }
        }
    })
    .await;
    body
}
