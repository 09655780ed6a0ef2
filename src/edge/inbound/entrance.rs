//! The socket that clients connect to, and the answers on it until the models are loaded.

use std::net::SocketAddr;

use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::map_response;
use axum::response::Response;
use axum::routing::get;
use axum::serve::Listener;
use axum::{Json, Router};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

use super::{admin, endpoints};

/// The bound socket, and the task that answers on it. `/health` gets 200, because the process is alive. `/ready` and
/// everything else get 503, because no client can be served yet. Each answer closes its connection, so that the next
/// request of a client comes in by the open door.
#[derive(Debug)]
pub struct Entrance {
    socket: std::net::TcpListener,
    address: SocketAddr,
    /// Set once: the server accepts clients itself.
    is_open: watch::Sender<bool>,
}

/// The socket as long as nobody else accepts on it. The task that serves connections lives on with those that are accepted
/// already: if the task ended, the HTTP library would close a connection whose request has not been read yet.
struct Doorkeeper {
    /// `None` after the opening.
    listener: Option<TcpListener>,
    is_open: watch::Receiver<bool>,
}

impl Listener for Doorkeeper {
    type Io = TcpStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (TcpStream, SocketAddr) {
        if let Some(listener) = &mut self.listener {
            tokio::select! {
                biased;
                // An error means that the entrance is gone, which is an end as well.
                _ = self.is_open.wait_for(|is_open| *is_open) => self.listener = None,
                accepted = Listener::accept(listener) => return accepted,
            }
        }
        std::future::pending().await
    }

    fn local_addr(&self) -> std::io::Result<SocketAddr> {
        self.listener.as_ref().ok_or(std::io::ErrorKind::NotConnected)?.local_addr()
    }
}

impl Entrance {
    /// Binds `address` and begins to answer. Thread: on a tokio runtime.
    ///
    /// # Errors
    /// Returns the system's error if the port is taken, or not allowed for this user.
    pub async fn bind(address: SocketAddr) -> std::io::Result<Self> {
        let socket = TcpListener::bind(address).await?.into_std()?;
        let listener = Some(TcpListener::from_std(socket.try_clone()?)?);
        let (is_open, receiver) = watch::channel(false);
        let app = Router::new()
            .route("/health", get(admin::health))
            .route(
                "/ready",
                get(|| async { (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "starting"}))) }),
            )
            .fallback(|| async { endpoints::starting() })
            .layer(map_response(close));
        let doorkeeper = Doorkeeper { listener, is_open: receiver };
        tokio::spawn(async move {
            if let Err(error) = axum::serve(doorkeeper, app).await {
                tracing::error!(%error, "clients of a server that starts");
            }
        });
        Ok(Self { address: socket.local_addr()?, socket, is_open })
    }

    /// Returns the address, with the port that the system chose for port 0.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops accepting and returns the socket, for [`listen`](super::listener::listen). Connections that have been accepted
    /// get their answer.
    ///
    /// # Errors
    /// Returns the system's error if the runtime cannot take the socket.
    pub fn open(self) -> std::io::Result<TcpListener> {
        self.is_open.send_replace(true);
        TcpListener::from_std(self.socket)
    }
}

async fn close(mut response: Response) -> Response {
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}
