//! The cancel counter: what is late is known to be late.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};

use antiphon_loom::edge::inbound::downlink::{Downlink, Pulled};
use antiphon_loom::message::{AnswerOut, AudioFrame, Generation, ResponseKey};
use antiphon_loom::unit::{GenerationCounter, Stamp};

use super::lease::slab;
use super::{explore, spawn};

#[test]
fn who_sees_the_bump_sees_what_was_done_before_it() {
    explore(|| {
        let (counter, done) = (Arc::new(GenerationCounter::new()), Arc::new(AtomicU64::new(0)));
        let reader = spawn({
            let (counter, done) = (Arc::clone(&counter), Arc::clone(&done));
            move || {
                if counter.is_stale(Generation::new(0)) {
                    assert_eq!(done.load(Ordering::Relaxed), 1);
                }
            }
        });
        done.store(1, Ordering::Relaxed);
        counter.bump();
        reader.join().unwrap();
    });
}

#[test]
fn two_bumps_are_two_generations() {
    explore(|| {
        let counter = Arc::new(GenerationCounter::new());
        let other = spawn({
            let counter = Arc::clone(&counter);
            move || counter.bump()
        });
        let mut bumps = [counter.bump(), other.join().unwrap()];
        bumps.sort();
        assert_eq!(bumps, [Generation::new(1), Generation::new(2)]);
        assert_eq!(counter.current(), Generation::new(2));
    });
}

#[test]
fn a_bump_is_seen_before_the_next_frame_goes_out() {
    explore(|| {
        let slab = slab();
        let mut lease = antiphon_loom::unit::UnitLease::claim(slab).expect("free");
        let (unit, old) = (lease.id(), lease.stamp(ResponseKey(1)));
        // A voice that works on the cancelled answer, and does not know yet.
        let voice = spawn(move || {
            let mut port = slab.unit(unit).tts.borrow();
            let mut frame = AudioFrame::empty(antiphon_loom::audio::SampleRate::HZ_24K);
            frame.len = 1;
            for _ in 0..2 {
                if !old.is_stale(&slab.unit(unit).status) {
                    port.answer_out.push(old, AnswerOut::Audio(frame)).expect("room for two");
                }
            }
        });
        let mut downlink = Downlink::new();
        lease.cancel();
        let pulled = downlink.pull(lease.status(), lease.port());
        assert!(matches!(pulled, Pulled::Nothing), "audio of a cancelled answer: {pulled:?}");
        voice.join().unwrap();
        let pulled = downlink.pull(lease.status(), lease.port());
        assert!(matches!(pulled, Pulled::Nothing), "audio of a cancelled answer: {pulled:?}");
    });
}
