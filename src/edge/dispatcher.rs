//! The dispatcher: one task that sleeps on the edge's doorbell, wakes the task that a ring is for, and drains the units
//! whose client has gone.

use std::sync::Arc;
use std::time::Duration;

use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;

use crate::clock;
use crate::limits::{CLAIM_WAIT_MS, DRAIN_MS_MAX};
use crate::message::{Epoch, Moment, UnitId};
use crate::sync::AlarmReader;
use crate::unit::{Drain, EdgeSignal, SlotState, UnitLease, UnitSlab};

/// Where the tasks of each unit wait.
#[derive(Debug)]
pub struct Wakers {
    session: Box<[Notify]>,
    llm: Box<[Notify]>,
    stt: Box<[Notify]>,
    tts: Box<[Notify]>,
    freed: Notify,
}

impl Wakers {
    /// For `units` units.
    #[must_use]
    pub fn new(units: usize) -> Arc<Self> {
        let notifies = || (0..units).map(|_| Notify::new()).collect();
        let [session, llm, stt, tts] = std::array::from_fn(|_| notifies());
        Arc::new(Self { session, llm, stt, tts, freed: Notify::new() })
    }

    /// Woken when a stage has something for the connection, or room.
    #[must_use]
    pub fn session(&self, unit: UnitId) -> &Notify {
        &self.session[unit.index()]
    }

    /// Woken when there is a prompt, a cancel, or room for text.
    #[must_use]
    pub fn llm(&self, unit: UnitId) -> &Notify {
        &self.llm[unit.index()]
    }

    /// Woken when there is speech for a recognition server, an end, or room for a transcript.
    #[must_use]
    pub fn stt(&self, unit: UnitId) -> &Notify {
        &self.stt[unit.index()]
    }

    /// Woken when there is text for a synthesis server, a cancel, or room for audio.
    #[must_use]
    pub fn tts(&self, unit: UnitId) -> &Notify {
        &self.tts[unit.index()]
    }

    /// Claims a unit; where all are taken but one is on its way back, waits for that a moment.
    pub async fn claim(&self, slab: &'static UnitSlab) -> Option<UnitLease> {
        let lease = UnitLease::claim(slab);
        if lease.is_some() {
            return lease;
        }
        // Who left before this client came may not have been heard: a new task runs before those that were woken with it.
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
        // One notice of a free unit may have stood for two.
        claimed.ok().or_else(|| UnitLease::claim(slab))
    }
}

/// A drain and its patience.
#[derive(Clone, Copy, Debug)]
struct Pending {
    drain: Drain,
    /// `None`: it has run out.
    quarantine_at: Option<Moment>,
}

/// Runs until the runtime ends.
///
/// # Errors
/// When the doorbell's descriptor cannot be watched.
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
        // Would-block is the usual answer after the timer. What is left over wakes the loop once more, no harm.
        let _ = pipe.try_read(&mut rings);
    }
}

/// Goes on with the drain of `unit`; true when that has made it free.
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
