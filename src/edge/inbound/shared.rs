//! State that the tasks of all clients share.

use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::roster::Roster;
use crate::edge::dispatcher::Wakers;
use crate::edge::outbound::language_model::LanguageModel;
use crate::rt::alloc::HeapCalls;
use crate::session::SessionConfig;
use crate::unit::UnitSlab;

/// State that every connection needs.
#[derive(Debug)]
pub struct Shared {
    /// The units.
    pub slab: &'static UnitSlab,
    /// Heap calls of the stage threads.
    pub heap_calls: Vec<&'static HeapCalls>,
    /// Notices on which the tasks wait.
    pub wakers: Arc<Wakers>,
    /// The language model, for answers that need no unit.
    pub model: Arc<LanguageModel>,
    /// Settings with which sessions begin.
    pub session: Arc<SessionConfig>,
    /// Connected sessions and their usage.
    pub roster: Roster,
    /// True once the server is stopping.
    pub shutdown: watch::Receiver<bool>,
    /// Held by each connection; the server has stopped when all are gone.
    pub alive: mpsc::Sender<()>,
}
