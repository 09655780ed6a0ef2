//! What the tasks that serve clients have in common.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::roster::Roster;
use crate::edge::dispatcher::Wakers;
use crate::edge::outbound::language_model::LanguageModel;
use crate::rt::alloc::HeapCalls;
use crate::session::SessionConfig;
use crate::unit::UnitSlab;

/// What every connection needs.
#[derive(Debug)]
pub struct Shared {
    /// The units.
    pub slab: &'static UnitSlab,
    /// What the stage threads took from the heap.
    pub heap_calls: Vec<&'static HeapCalls>,
    /// Where tasks wait.
    pub wakers: Arc<Wakers>,
    /// The language model, for answers that need no unit.
    pub model: Arc<LanguageModel>,
    /// How sessions begin.
    pub session: Arc<SessionConfig>,
    /// Who is connected.
    pub roster: Roster,
    /// True once the server is stopping.
    pub shutdown: watch::Receiver<bool>,
    /// Held by each connection; the server has stopped when all are gone.
    pub alive: mpsc::Sender<()>,
}
