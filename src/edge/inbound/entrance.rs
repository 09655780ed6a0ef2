//! The socket that clients connect to, and the answers on it until the models are loaded.

use std::net::SocketAddr;

use axum::http::StatusCode;
use axum::routing::get;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::{admin, endpoints};

/// The bound socket, and the task that answers on it. `/health` gets 200, because the process is alive. `/ready` and
/// everything else get 503, because no client can be served yet.
#[derive(Debug)]
pub struct Entrance {
    socket: std::net::TcpListener,
    address: SocketAddr,
    answering: JoinHandle<()>,
}

impl Entrance {
    /// Binds `address` and begins to answer. Thread: on a tokio runtime.
    ///
    /// # Errors
    /// Returns the system's error if the port is taken, or not allowed for this user.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?.into_std()?;
        let listener = TcpListener::from_std(socket.try_clone()?)?;
        let app = Router::new()
            .route("/health", get(admin::health))
            .route(
                "/ready",
                get(|| async { (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "starting"}))) }),
            )
            .fallback(|| async { endpoints::starting() });
        let answering = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                tracing::error!(%error, "clients of a server that starts");
            }
        });
        Ok(Self { address: socket.local_addr()?, socket, answering })
    }

    /// Returns the address, with the port that the system chose for port 0.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops answering and returns the socket, for [`listen`](super::listener::listen).
    ///
    /// # Errors
    /// Returns the system's error if the runtime cannot take the socket.
    pub async fn open(self) -> std::io::Result<TcpListener> {
        self.answering.abort();
        // The accept loop is over after this await; the connections that it has accepted end by themselves.
        let _ = self.answering.await;
        TcpListener::from_std(self.socket)
    }
}
