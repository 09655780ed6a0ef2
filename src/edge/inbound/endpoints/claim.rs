//! A unit for one request.

use std::sync::Arc;

use tokio::sync::Notify;
use tokio::sync::mpsc;
use uuid::Uuid;

use super::error::ApiError;
use crate::edge::inbound::shared::Shared;
use crate::unit::UnitLease;

/// A claimed unit with its entry in the roster. Dropping the claim gives both back, on every path.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) lease: UnitLease,
    shared: Arc<Shared>,
    /// Held until the request ends; the server has stopped when all are gone.
    _alive: mpsc::Sender<()>,
}

impl Claim {
    /// Claims a unit, as a session does.
    pub(super) async fn new(shared: &Arc<Shared>) -> Result<Self, ApiError> {
        if *shared.shutdown.borrow() {
            return Err(ApiError::shutting_down());
        }
        let lease = shared.wakers.claim(shared.slab).await;
        let lease = lease.ok_or_else(|| ApiError::pool_full(shared.slab.len()))?;
        shared.roster.occupy(lease.id(), &format!("req_{}", Uuid::new_v4().simple()));
        Ok(Self { lease, shared: Arc::clone(shared), _alive: shared.alive.clone() })
    }

    /// Returns the notice of the request: a stage has something to read, or room.
    pub(super) fn woken(&self) -> &Notify {
        self.shared.wakers.session(self.lease.id())
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.shared.roster.leave(self.lease.id());
    }
}
