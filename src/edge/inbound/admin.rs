//! `/health`, `/ready`, `/metrics`, `/v1/pool`, `/v1/usage`: these read counters and change nothing.

use std::fmt::Write;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::shared::Shared;
use crate::unit::SlotState;

/// Answers 200: the process is alive.
pub(super) async fn health() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

/// Answers 200 while new sessions are taken, and 503 while the server is stopping. Until every model has run,
/// `Entrance` answers.
pub(super) async fn ready(State(shared): State<Arc<Shared>>) -> Response {
    if *shared.shutdown.borrow() {
        return (StatusCode::SERVICE_UNAVAILABLE, Json(json!({"status": "stopping"}))).into_response();
    }
    let free = shared.slab.count(SlotState::Free);
    Json(json!({"status": "ready", "units": shared.slab.len(), "free": free})).into_response()
}

/// Answers with the state of each unit.
pub(super) async fn pool(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.roster.pool(shared.slab))
}

/// Answers with the sums since the start.
pub(super) async fn usage(State(shared): State<Arc<Shared>>) -> Json<Value> {
    Json(shared.roster.usage())
}

/// Answers with the counters in Prometheus' text format. Source: Prometheus, exposition formats, text-based format
/// 0.0.4.
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> ([(HeaderName, &'static str); 1], String) {
    let mut text = String::from("# HELP antiphon_units Units by state.\n# TYPE antiphon_units gauge\n");
    let states = [
        (SlotState::Free, "free"),
        (SlotState::Claimed, "claimed"),
        (SlotState::Draining, "draining"),
        (SlotState::Quarantined, "quarantined"),
    ];
    for (state, name) in states {
        let units = shared.slab.count(state);
        writeln!(text, "antiphon_units{{state=\"{name}\"}} {units}").expect("a String takes everything");
    }
    let totals = shared.slab.totals();
    let counters = [
        ("antiphon_claims_total", "Units claimed.", totals.claims),
        ("antiphon_stale_items_total", "Ring items dropped because they were stale.", totals.stale_items),
        ("antiphon_stage_panics_total", "Panics of a stage, per unit that was in it.", totals.stage_panics),
    ];
    for (name, help, value) in counters {
        writeln!(text, "# HELP {name} {help}\n# TYPE {name} counter\n{name} {value}")
            .expect("a String takes everything");
    }
    text += "# HELP antiphon_responses_failed_total Responses that failed, by status_details.error.code; of the language \
             model's server 429 is rate_limit_exceeded.\n# TYPE antiphon_responses_failed_total counter\n";
    for (code, value) in shared.roster.responses_failed() {
        writeln!(text, "antiphon_responses_failed_total{{code=\"{code}\"}} {value}")
            .expect("a String takes everything");
    }
    text += "# HELP antiphon_heap_calls_total Heap calls of a stage thread since its start: of the engine itself, and of \
             Rust code inside model calls.\n# TYPE antiphon_heap_calls_total counter\n";
    for calls in &shared.heap_calls {
        for (code, value) in [("engine", calls.own()), ("model", calls.foreign())] {
            let thread = calls.thread();
            writeln!(text, "antiphon_heap_calls_total{{thread=\"{thread}\",code=\"{code}\"}} {value}")
                .expect("a String takes everything");
        }
    }
    ([(CONTENT_TYPE, "text/plain; version=0.0.4")], text)
}
