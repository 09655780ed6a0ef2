//! The connected sessions and their usage: the figures behind `/v1/pool` and `/v1/usage`.
//!
//! Only the edge uses the roster, so a mutex is fine: the lock is held for a few instructions, and no stage thread
//! takes it.
#![expect(clippy::disallowed_types, reason = "edge zone: never touched by a stage thread")]

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use crate::clock;
use crate::message::{Moment, TokenUsage, UnitId};
use crate::protocol::{ResponseStatus, ServerEvent};
use crate::unit::{SlotState, UnitSlab};

/// Sums over all sessions since the start.
#[derive(Clone, Debug, Default, PartialEq)]
struct Totals {
    input_tokens: u64,
    output_tokens: u64,
    audio_ms: u64,
    responses_completed: u64,
    responses_cancelled: u64,
    /// Failed responses by `status_details.error.code`.
    responses_failed: BTreeMap<&'static str, u64>,
    turns: u64,
    tool_calls: u64,
    connections: u64,
    errors_by_type: BTreeMap<&'static str, u64>,
    proxied: Proxied,
}

/// Sums over the calls that were passed on to the language model; 429 is not among 4xx.
#[derive(Clone, Debug, Default, PartialEq)]
struct Proxied {
    requests: u64,
    responses_2xx: u64,
    responses_4xx: u64,
    responses_429: u64,
    responses_5xx: u64,
    input_tokens: u64,
    output_tokens: u64,
}

/// The last session or request that had a unit.
#[derive(Clone, Debug, Default)]
struct Occupant {
    session_id: Option<String>,
    released_at: Option<Moment>,
}

/// The roster of one server.
#[derive(Debug)]
pub struct Roster {
    occupants: Mutex<Vec<Occupant>>,
    totals: Mutex<Totals>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Plain counters: a panic elsewhere leaves nothing half-done in them.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Roster {
    /// Makes the roster of `units` units.
    #[must_use]
    pub fn new(units: usize) -> Self {
        Self { occupants: Mutex::new(vec![Occupant::default(); units]), totals: Mutex::default() }
    }

    /// Notes that `unit` is taken: by a session, or by a request of another endpoint.
    pub fn occupy(&self, unit: UnitId, id: &str) {
        lock(&self.occupants)[unit.index()] = Occupant { session_id: Some(id.to_owned()), released_at: None };
    }

    /// Notes that a session has begun on `unit`.
    pub fn enter(&self, unit: UnitId, session_id: &str) {
        self.occupy(unit, session_id);
        lock(&self.totals).connections += 1;
    }

    /// Notes that the session or request has left `unit`.
    pub fn leave(&self, unit: UnitId) {
        lock(&self.occupants)[unit.index()].released_at = Some(clock::now());
    }

    /// Counts an event that is sent to a client.
    pub fn count(&self, event: &ServerEvent) {
        match event {
            ServerEvent::SpeechStarted { .. } => lock(&self.totals).turns += 1,
            ServerEvent::Error { error } => {
                *lock(&self.totals).errors_by_type.entry(error.fault().kind()).or_default() += 1;
            }
            ServerEvent::TranscriptionCompleted { usage, .. } => {
                lock(&self.totals).audio_ms += u64::from(usage.audio_ms);
            }
            ServerEvent::ArgumentsDone { .. } => lock(&self.totals).tool_calls += 1,
            ServerEvent::ResponseDone { response } => {
                let mut totals = lock(&self.totals);
                match &response.status {
                    ResponseStatus::Cancelled(_) => totals.responses_cancelled += 1,
                    ResponseStatus::Failed(error) => {
                        *totals.responses_failed.entry(error.code).or_default() += 1;
                        // As huggingface/speech-to-speech counts them.
                        totals.responses_completed += 1;
                    }
                    ResponseStatus::InProgress
                    | ResponseStatus::Completed
                    | ResponseStatus::Incomplete(_) => {
                        totals.responses_completed += 1;
                    }
                }
                drop(totals);
                if let Some(usage) = response.usage {
                    self.count_tokens(usage.tokens);
                }
            }
            _ => {}
        }
    }

    /// Counts the tokens of a response, as reported by the language model's server.
    pub fn count_tokens(&self, usage: TokenUsage) {
        let mut totals = lock(&self.totals);
        totals.input_tokens += u64::from(usage.input);
        totals.output_tokens += u64::from(usage.output);
    }

    /// Counts a call that was passed on to the language model and answered with this HTTP status.
    pub fn count_proxied(&self, status: u16) {
        let proxied = &mut lock(&self.totals).proxied;
        proxied.requests += 1;
        match status {
            200..300 => proxied.responses_2xx += 1,
            429 => proxied.responses_429 += 1,
            400..500 => proxied.responses_4xx += 1,
            500.. => proxied.responses_5xx += 1,
            _ => {}
        }
    }

    /// Counts the tokens of a call that was passed on, as reported by the language model's server.
    pub fn count_proxied_tokens(&self, input: u64, output: u64) {
        let proxied = &mut lock(&self.totals).proxied;
        proxied.input_tokens += input;
        proxied.output_tokens += output;
    }

    /// Returns the number of failed responses, by the code of the failure.
    #[must_use]
    pub fn responses_failed(&self) -> BTreeMap<&'static str, u64> {
        lock(&self.totals).responses_failed.clone()
    }

    /// Returns the body of `/v1/usage`, in the form of huggingface/speech-to-speech.
    #[must_use]
    pub fn usage(&self) -> Value {
        let totals = lock(&self.totals).clone();
        json!({
            "input_tokens": totals.input_tokens,
            "output_tokens": totals.output_tokens,
            "total_tokens": totals.input_tokens + totals.output_tokens,
            "audio_duration_s": totals.audio_ms as f64 / 1_000.0,
            "responses_completed": totals.responses_completed,
            "responses_cancelled": totals.responses_cancelled,
            "tool_calls": totals.tool_calls,
            "turns": totals.turns,
            "connections": totals.connections,
            "errors_by_type": totals.errors_by_type,
            "total_errors": totals.errors_by_type.values().sum::<u64>(),
            "llm_proxy": {
                "requests": totals.proxied.requests,
                "responses_2xx": totals.proxied.responses_2xx,
                "responses_4xx": totals.proxied.responses_4xx,
                "responses_429": totals.proxied.responses_429,
                "responses_5xx": totals.proxied.responses_5xx,
                "input_tokens": totals.proxied.input_tokens,
                "output_tokens": totals.proxied.output_tokens,
            },
        })
    }

    /// Returns the body of `/v1/pool`, in the form of huggingface/speech-to-speech.
    #[must_use]
    pub fn pool(&self, slab: &UnitSlab) -> Value {
        let now = clock::now();
        let occupants = lock(&self.occupants).clone();
        let mut in_use = 0;
        let units: Vec<Value> = slab
            .iter()
            .zip(occupants)
            .map(|((id, unit), occupy)| {
                let state = unit.status.slot.load().0;
                in_use += usize::from(state != SlotState::Free);
                let since = || {
                    let seconds = occupy.released_at.map_or(0.0, |at| now.since(at).as_secs_f64());
                    json!((seconds * 100.0).round() / 100.0)
                };
                let mut row = Map::new();
                row.insert("index".to_owned(), json!(id.index()));
                let (name, extra) = match state {
                    SlotState::Free => ("idle", None),
                    SlotState::Claimed => ("active", None),
                    SlotState::Draining => ("draining", Some("draining_for_s")),
                    SlotState::Quarantined => ("stuck", Some("stuck_for_s")),
                };
                row.insert("state".to_owned(), json!(name));
                let session = (state != SlotState::Free).then_some(occupy.session_id.as_deref()).flatten();
                row.insert("session_id".to_owned(), json!(session));
                if let Some(extra) = extra {
                    row.insert(extra.to_owned(), since());
                }
                Value::Object(row)
            })
            .collect();
        json!({"size": slab.len(), "in_use": in_use, "units": units})
    }
}
