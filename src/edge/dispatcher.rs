//! The dispatcher: one task that sleeps on the edge's bell. The dispatcher wakes the task that a ring is for, and
//! drains the units whose client has gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;

use crate::clock;
use crate::limits::{CLAIM_WAIT_MS, DRAIN_MS_MAX};
use crate::message::{Epoch, Moment, UnitId};
use crate::sync::AlarmReader;
use crate::unit::{Drain, EdgeSignal, SlotState, UnitLease, UnitSlab};

/// Notices on which the tasks of each unit wait.
#[derive(Debug)]
pub struct Wakers {
    session: Box<[Notify]>,
    llm: Box<[Notify]>,
    stt: Box<[Notify]>,
    tts: Box<[Notify]>,
    freed: Notify,
}

impl Wakers {
    /// Makes the notices for `units` units.
    #[must_use]
    pub fn new(units: usize) -> Arc<Self> {
        let notifies = || (0..units).map(|_| Notify::new()).collect();
        let [session, llm, stt, tts] = std::array::from_fn(|_| notifies());
        Arc::new(Self { session, llm, stt, tts, freed: Notify::new() })
    }

    /// Returns the notice of the connection: a stage has something to read, or room.
    #[must_use]
    pub fn session(&self, unit: UnitId) -> &Notify {
        &self.session[unit.index()]
    }

    /// Returns the notice of the language model task: there is a prompt, a cancel, or room for text.
    #[must_use]
    pub fn llm(&self, unit: UnitId) -> &Notify {
        &self.llm[unit.index()]
    }

    /// Returns the notice of the recognition task: there is speech for the server, an end, or room for a transcript.
    #[must_use]
    pub fn stt(&self, unit: UnitId) -> &Notify {
        &self.stt[unit.index()]
    }

    /// Returns the notice of the synthesis task: there is text for the server, a cancel, or room for audio.
    #[must_use]
    pub fn tts(&self, unit: UnitId) -> &Notify {
        &self.tts[unit.index()]
    }

    /// Claims a unit. If all are taken but one is draining, waits for that one, [`CLAIM_WAIT_MS`] at most.
    pub async fn claim(&self, slab: &'static UnitSlab) -> Option<UnitLease> {
        let lease = UnitLease::claim(slab);
        if lease.is_some() {
            return lease;
        }
        // The dispatcher may not have seen yet that an earlier client left: a new task runs before those that were
        // woken with it.
        tokio::task::yield_now().await;
        if slab.count(SlotState::Draining) == 0 {
            return UnitLease::claim(slab);
        }
        let claim = async {
            loop {
                let freed = self.freed.notified();
                if let Some(lease) = UnitLease::claim(slab) {
                    return lease;
                }
                freed.await;
            }
        };
        let claimed = tokio::time::timeout(Duration::from_millis(CLAIM_WAIT_MS), claim).await;
        // One notice may have stood for two free units.
        claimed.ok().or_else(|| UnitLease::claim(slab))
    }
}

/// A drain and its deadline.
#[derive(Clone, Copy, Debug)]
struct Pending {
    drain: Drain,
    /// Start of the quarantine; `None`: the deadline has passed.
    quarantine_at: Option<Moment>,
}

/// Wakes tasks and drains units until the runtime ends.
///
/// # Errors
/// Returns an error if the descriptor of the bell cannot be watched.
pub async fn dispatch(
    slab: &'static UnitSlab,
    wakers: Arc<Wakers>,
    alarm: AlarmReader,
) -> std::io::Result<()> {
    let bell = slab.bells.edge;
    let pipe = Receiver::from_owned_fd(alarm.into())?;
    let mut rings = [0; 64];
    let mut drains: Vec<Option<Pending>> = vec![None; slab.len()];
    loop {
        bell.take_all(|signal, unit| match signal {
            EdgeSignal::Llm => wakers.llm(unit).notify_one(),
            EdgeSignal::Stt => wakers.stt(unit).notify_one(),
            EdgeSignal::Tts => wakers.tts(unit).notify_one(),
            EdgeSignal::Session => match slab.unit(unit).status.slot.load() {
                (SlotState::Claimed, _) => wakers.session(unit).notify_one(),
                (SlotState::Draining | SlotState::Quarantined, epoch) => {
                    if drain(slab, unit, epoch, &mut drains[unit.index()]) {
                        wakers.freed.notify_one();
                    }
                }
                (SlotState::Free, _) => {}
            },
        });
        if !bell.may_sleep() {
            tokio::task::yield_now().await;
            continue;
        }
        let now = clock::now();
        quarantine_late(slab, &mut drains, now);
        let next = drains.iter().flatten().filter_map(|pending| pending.quarantine_at).min();
        let timer = async {
            match next {
                Some(at) => tokio::time::sleep(at.since(now)).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            ready = pipe.readable() => ready?,
            () = timer => {}
        }
        bell.woken();
        // Would-block is the usual result after the timer. A byte that is left wakes the loop once more, which does no
        // harm.
        let _ = pipe.try_read(&mut rings);
    }
}

/// Advances the drain of `unit`; returns true if the unit is free now.
fn drain(slab: &UnitSlab, unit: UnitId, epoch: Epoch, slot: &mut Option<Pending>) -> bool {
    let pending = match slot {
        Some(pending) if pending.drain.epoch() == epoch => pending,
        _ => slot.insert(Pending {
            drain: Drain::new(epoch),
            quarantine_at: Some(clock::now() + Duration::from_millis(DRAIN_MS_MAX)),
        }),
    };
    let free = pending.drain.advance(slab, unit);
    if free {
        *slot = None;
    }
    free
}

fn quarantine_late(slab: &UnitSlab, drains: &mut [Option<Pending>], now: Moment) {
    for ((unit, _), pending) in slab.iter().zip(drains) {
        let Some(Pending { drain, quarantine_at }) = pending else { continue };
        if quarantine_at.take_if(|at| *at <= now).is_some() && drain.quarantine(slab, unit) {
            tracing::error!(%unit, ?drain, "drain took too long, unit in quarantine");
        }
    }
}
