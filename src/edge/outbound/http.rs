//! How this server asks another one over HTTP, whichever model lives there.

use std::net::IpAddr;
use std::time::Duration;

use reqwest::Url;
use reqwest::header::HeaderValue;

/// Idle connections are kept this long for the next turn; shorter than the 60 s after which common load balancers
/// drop them.
const IDLE_CONNECTION_KEPT: Duration = Duration::from_secs(50);

/// Longest body of an error response that is read, bytes.
const ERROR_BODY_BYTES_MAX: usize = 16 * 1_024;

/// An error response whose body takes longer is reported without the server's words.
const ERROR_BODY_WAIT: Duration = Duration::from_secs(1);

/// A client of a server that is on this machine (`loopback`) or not, with (`tls`) or without certificates. `connect`
/// limits the time until a connection stands.
///
/// # Errors
/// What is wrong, if the system has no trusted root certificates and `tls` needs them.
pub(in crate::edge) fn client(
    loopback: bool,
    tls: bool,
    connect: Duration,
) -> Result<reqwest::Client, String> {
    // The crypto provider of the process; fails only where one is installed already, which is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = reqwest::Client::builder()
        .user_agent(concat!("antiphon/", env!("CARGO_PKG_VERSION")))
        .connect_timeout(connect)
        .pool_idle_timeout(IDLE_CONNECTION_KEPT)
        .tcp_nodelay(true)
        // A redirect would turn the POST into a GET or carry the prompt elsewhere; it is reported as its status.
        .redirect(reqwest::redirect::Policy::none());
    if loopback {
        builder = builder.no_proxy();
    }
    if !tls {
        // No certificates are loaded for plain HTTP, so it works on systems that have none.
        builder = builder.tls_certs_only([]);
    }
    builder.build().map_err(|error| format!("HTTP client: {}", root_cause(&error)))
}

/// An address that can be asked.
///
/// # Errors
/// What is wrong: it is no URL, or none of http(s).
pub(in crate::edge) fn url(text: &str) -> Result<Url, String> {
    let url = Url::parse(text).map_err(|error| error.to_string())?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(format!("found scheme {other:?}, expected http or https")),
    }
}

/// Whether the server is on this machine: no proxy is asked for it.
pub(in crate::edge) fn is_loopback(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// The `Authorization` header with `key`, which no log shows; `None` if no header can carry it.
pub(in crate::edge) fn bearer(key: &str) -> Option<HeaderValue> {
    let mut header = HeaderValue::try_from(format!("Bearer {key}")).ok()?;
    header.set_sensitive(true);
    Some(header)
}

/// The innermost cause, which names what happened and not the address.
pub(in crate::edge) fn root_cause(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

/// The beginning of an error response's body, as much as comes in a moment.
pub(in crate::edge) async fn error_body(response: &mut reqwest::Response) -> Vec<u8> {
    let mut body = Vec::new();
    // Whatever has come within the time is used, so an elapsed time-out is no error.
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
