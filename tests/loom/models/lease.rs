//! A unit from claim to claim: the lease, the stages that pass its markers on, the drainer, and the next client.

use antiphon_loom::audio::SampleRate;
use antiphon_loom::message::{Envelope, Epoch, UnitId};
use antiphon_loom::unit::{Bells, Drain, EdgeBell, SlotState, StageBell, UnitLease, UnitSlab};

use super::{explore, spawn};

const UNIT: UnitId = UnitId::new(0);

/// One unit. Leaked, as in the server: it holds no thread and no more than the pages that were touched.
pub(super) fn slab() -> &'static UnitSlab {
    let stage = || -> &'static StageBell { Box::leak(Box::new(StageBell::new(1, 1))) };
    let (edge, _) = EdgeBell::new(1).expect("no system is asked");
    let bells =
        Bells { vad: stage(), stt: stage().into(), tts: stage().into(), edge: Box::leak(Box::new(edge)) };
    UnitSlab::leak(1, bells, SampleRate::HZ_24K)
}

/// All stages, once: the markers that have come in go out.
fn stages(slab: &UnitSlab) {
    let unit = slab.unit(UNIT);
    while let Some(envelope) = unit.vad.borrow().audio_in.pop() {
        if let Envelope::SessionEnd(epoch) = envelope {
            unit.stt.borrow().events.push_end(epoch);
        }
    }
    while let Some(envelope) = unit.llm.borrow().text_prompts.pop() {
        if let Envelope::SessionEnd(epoch) = envelope {
            unit.tts.borrow().answer_out.push_end(epoch);
        }
    }
}

/// The dispatcher, once: what it does when the unit has rung.
fn dispatch(slab: &UnitSlab, drain: &mut Option<Drain>) {
    if let (SlotState::Draining | SlotState::Quarantined, epoch) = slab.unit(UNIT).status.slot.load() {
        drain.get_or_insert(Drain::new(epoch)).advance(slab, UNIT);
    }
}

/// A new client: its unit is clean.
fn next_client(slab: &'static UnitSlab, old: Epoch) -> Option<UnitLease> {
    let mut lease = UnitLease::claim(slab)?;
    assert!(lease.epoch() > old);
    let port = lease.port();
    assert!(port.vad_events.is_empty() && port.stt_events.is_empty() && port.answer_out.is_empty());
    assert_eq!(port.audio_in.room(), antiphon_loom::limits::AUDIO_IN_ITEMS);
    Some(lease)
}

#[test]
fn two_clients_one_unit() {
    explore(|| {
        let slab = slab();
        let other = spawn(move || UnitLease::claim(slab));
        let mine = UnitLease::claim(slab);
        let other = other.join().unwrap();
        assert!(mine.is_some() ^ other.is_some());
    });
}

#[test]
fn the_port_is_back_before_the_drainer_takes_it() {
    explore(|| {
        let slab = slab();
        let lease = UnitLease::claim(slab).expect("free");
        let old = lease.epoch();
        let leaving = spawn(move || drop(lease));
        let mut drain = None;
        dispatch(slab, &mut drain);
        leaving.join().unwrap();
        stages(slab);
        dispatch(slab, &mut drain);
        next_client(slab, old).expect("drained");
    });
}

#[test]
fn a_marker_in_flight_never_reaches_a_new_claim() {
    explore(|| {
        let slab = slab();
        let lease = UnitLease::claim(slab).expect("free");
        let old = lease.epoch();
        drop(lease);
        let passing = spawn(move || stages(slab));
        let mut drain = None;
        dispatch(slab, &mut drain);
        let early = next_client(slab, old);
        passing.join().unwrap();
        if let Some(mut lease) = early {
            assert!(lease.port().stt_events.is_empty() && lease.port().answer_out.is_empty());
        } else {
            dispatch(slab, &mut drain);
            next_client(slab, old).expect("drained");
        }
    });
}

#[test]
fn a_unit_that_was_given_up_comes_back() {
    explore(|| {
        let slab = slab();
        let lease = UnitLease::claim(slab).expect("free");
        let old = lease.epoch();
        let leaving = spawn(move || {
            drop(lease);
            stages(slab);
        });
        let mut drain = None;
        dispatch(slab, &mut drain);
        if let Some(drain) = &drain {
            drain.quarantine(slab, UNIT);
        }
        dispatch(slab, &mut drain);
        leaving.join().unwrap();
        dispatch(slab, &mut drain);
        next_client(slab, old).expect("drained");
    });
}

#[test]
fn a_claim_beside_the_end_of_a_drain_loses_no_unit() {
    explore(|| {
        let slab = slab();
        let lease = UnitLease::claim(slab).expect("free");
        let old = lease.epoch();
        drop(lease);
        stages(slab);
        let claiming = spawn(move || next_client(slab, old));
        dispatch(slab, &mut None);
        let early = claiming.join().unwrap();
        assert!(early.is_some() || next_client(slab, old).is_some(), "a unit got lost");
    });
}
