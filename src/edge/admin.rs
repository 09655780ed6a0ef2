//! `/health`, `/ready`, `/v1/pool`, `/v1/usage`: read counters, touch nothing.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::listener::Shared;
use crate::unit::SlotState;

/// The process answers.
pub(super) async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// 200 once every model has run and while new sessions are taken; 503 while the server is stopping.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    if *shared.shutdown.borrow() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "stopping"}))).into_response();
    }
    let free = shared.slab.count(SlotState::Free);
    Json(json!({"status": "ready", "units": shared.slab.len(), "free": free})).into_response()
}

/// State of each unit.
pub(super) async fn pool(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.roster.pool(shared.slab))
}

/// Sums since the start.
pub(super) async fn usage(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.roster.usage())
}
