//! Accepts clients: HTTP routes, the WebSocket upgrade, and the refusal while all units are taken.

use std::future::Future;
use std::sync::Arc;

use axum::Router;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Query, State};
use axum::response::Response;
use axum::routing::get;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;

use super::admin;
use super::connection::{self, close_socket};
use super::endpoints;
use super::shared::Shared;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::protocol::{EventIds, Fault, ServerEvent, SessionKind};

/// Most bytes of one read from a socket: twice an append of 100 ms. Each connection keeps such a buffer; the WebSocket
/// library's default is 128 KiB.
const READ_BUFFER_BYTES: usize = 16 * 1_024;

/// Bytes that the WebSocket layer holds before it begins to write by itself, and to wait. A connection never has as
/// much outstanding, so that it waits in one place only, for the flush. The buffer grows as needed.
const WRITE_BUFFER_BYTES: usize = 16 * 1_024 * 1_024;

/// Serves clients until `stop` is done; open connections continue by themselves. `serves_endpoints` adds the endpoints
/// beside the Realtime one.
///
/// # Errors
/// Returns an error if the listening socket fails.
pub async fn listen(
    listener: TcpListener,
    shared: Arc<Shared>,
    serves_endpoints: bool,
    stop: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let endpoints =
        if serves_endpoints { endpoints::router(Arc::clone(&shared)) } else { endpoints::disabled() };
    let app = Router::new()
        .route("/v1/realtime", get(realtime))
        .route("/v1/pool", get(admin::pool))
        .route("/v1/usage", get(admin::usage))
        .route("/health", get(admin::health))
        .route("/ready", get(admin::ready))
        .route("/metrics", get(admin::metrics))
        .with_state(shared)
        .merge(endpoints);
    let listener = axum::serve::ListenerExt::tap_io(listener, |socket| {
        // An audio delta shall not wait for the acknowledgement of the last one.
        if let Err(error) = socket.set_nodelay(true) {
            tracing::debug!(%error, "TCP_NODELAY");
        }
    });
    axum::serve(listener, app).with_graceful_shutdown(stop).await
}

/// Query of the upgrade; other parameters are accepted and ignored.
#[derive(Debug, serde::Deserialize)]
struct RealtimeQuery {
    /// Type of the session if it is `transcription`; other values are ignored.
    intent: Option<String>,
}

/// Handles `GET /v1/realtime`. Keys are accepted and ignored.
async fn realtime(
    State(shared): State<Arc<Shared>>,
    Query(RealtimeQuery { intent }): Query<RealtimeQuery>,
    upgrade: WebSocketUpgrade,
) -> Response {
    let kind = (intent.as_deref() == Some("transcription")).then_some(SessionKind::Transcription);
    upgrade
        .protocols(["realtime"])
        .max_message_size(MESSAGE_BYTES_MAX)
        .max_frame_size(MESSAGE_BYTES_MAX)
        .read_buffer_size(READ_BUFFER_BYTES)
        .write_buffer_size(WRITE_BUFFER_BYTES)
        .on_upgrade(move |socket| admit(socket, shared, kind))
}

async fn admit(socket: WebSocket, shared: Arc<Shared>, kind: Option<SessionKind>) {
    let _alive = shared.alive.clone();
    if *shared.shutdown.borrow() {
        return refuse(socket, Fault::ShuttingDown, 1001, "server is shutting down").await;
    }
    let Some(lease) = shared.wakers.claim(shared.slab).await else {
        let fault = Fault::SessionLimit { units: shared.slab.len() };
        return refuse(socket, fault, 1008, "all session slots are in use").await;
    };
    connection::serve(socket, lease, shared, kind).await;
}

/// Sends one error event and closes the socket. This touches no unit and is no error of a session.
async fn refuse(socket: WebSocket, fault: Fault, code: u16, reason: &str) {
    let (mut sink, mut stream) = socket.split();
    let event = ServerEvent::Error { error: fault.into() };
    let mut text = String::new();
    event.encode(EventIds::new().fresh(), &mut text);
    if sink.send(Message::Text(text.into())).await.is_ok() {
        close_socket(&mut sink, &mut stream, code, reason).await;
    }
}
