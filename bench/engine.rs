//! The engine's own steps: ring, claim, discard check, doorbell. No model, no socket.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a bench reads clocks, starts threads and makes them wait for each other"
)]

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use antiphon::door::audio::SampleRate;
use antiphon::door::message::{AudioFrame, AudioIn, Envelope, Epoch, Generation, UnitId};
use antiphon::door::unit::{
    Bells, Drain, EdgeBell, GenerationCounter, Ringer, SlotState, StageBell, Stamp, UnitLease, UnitSlab, ring,
};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// Sizes of the pool.
const UNITS: [usize; 3] = [1, 64, 4_096];

/// Claims between two readings of the clock, which costs as much as a claim.
const BATCH: usize = 64;

fn bell(units: usize) -> &'static StageBell {
    Box::leak(Box::new(StageBell::new(units, 1)))
}

fn slab(units: usize) -> &'static UnitSlab {
    let (edge, _) = EdgeBell::new(units).expect("a pipe");
    let bells = Bells {
        vad: bell(units),
        stt: bell(units).into(),
        tts: bell(units).into(),
        edge: Box::leak(Box::new(edge)),
    };
    UnitSlab::leak(units, bells, SampleRate::HZ_24K)
}

/// Does the work of the stages and the drainer: passes the unit's markers on, and makes the unit free.
fn bring_back(slab: &UnitSlab, unit: UnitId) {
    let (SlotState::Draining, epoch) = slab.unit(unit).status.slot.load() else { return };
    while let Some(envelope) = slab.unit(unit).vad.borrow().audio_in.pop() {
        if let Envelope::SessionEnd(epoch) = envelope {
            slab.unit(unit).stt.borrow().events.push_end(epoch);
        }
    }
    while let Some(envelope) = slab.unit(unit).llm.borrow().text_prompts.pop() {
        if let Envelope::SessionEnd(epoch) = envelope {
            slab.unit(unit).tts.borrow().answer_out.push_end(epoch);
        }
    }
    assert!(Drain::new(epoch).advance(slab, unit), "both markers are there");
}

/// Drops the leases and makes their units free.
fn release(leases: &mut Vec<UnitLease>, slab_of: impl Fn(usize) -> &'static UnitSlab) {
    for (at, lease) in leases.drain(..).enumerate() {
        let unit = lease.id();
        drop(lease);
        bring_back(slab_of(at), unit);
    }
}

/// Measures `UnitLease::claim` alone; the release of the units is not timed.
fn claim_alone(c: &mut Criterion) {
    let mut group = c.benchmark_group("claim");
    for units in UNITS {
        // There are as many pools of one unit as claims in a batch.
        let pools: Vec<_> = (0..if units == 1 { BATCH } else { 1 }).map(|_| slab(units)).collect();
        let pool = |at: usize| pools[at % pools.len()];
        let mut leases = Vec::with_capacity(BATCH);
        group.bench_function(BenchmarkId::new("alone", units), |b| {
            b.iter_custom(|iterations| {
                let mut spent = Duration::ZERO;
                let mut left = iterations;
                while left > 0 {
                    let batch = left.min(BATCH as u64);
                    let begin = Instant::now();
                    for at in 0..usize::try_from(batch).expect("a batch is no more than BATCH") {
                        leases.push(UnitLease::claim(pool(at)).expect("free"));
                    }
                    spent += begin.elapsed();
                    release(&mut leases, pool);
                    left -= batch;
                }
                spent
            });
        });
    }
    for units in &UNITS[1..] {
        let pool = slab(*units);
        group.bench_function(BenchmarkId::new("two_threads", units), |b| {
            b.iter_custom(|iterations| contended(pool, iterations));
        });
    }
    group.finish();
}

/// Returns the time of the slower of two threads that claim from one pool at once, `iterations` each.
fn contended(pool: &'static UnitSlab, iterations: u64) -> Duration {
    let barrier = Barrier::new(2);
    let claims = || {
        let mut leases = Vec::with_capacity(BATCH / 2);
        let mut spent = Duration::ZERO;
        let mut left = iterations;
        while left > 0 {
            let batch = left.min(BATCH as u64 / 2);
            barrier.wait();
            let begin = Instant::now();
            for _ in 0..batch {
                leases.push(UnitLease::claim(pool).expect("half of a batch each"));
            }
            spent += begin.elapsed();
            barrier.wait();
            release(&mut leases, |_| pool);
            left -= batch;
        }
        spent
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(claims);
        let mine = claims();
        mine.max(other.join().expect("no claim fails"))
    })
}

/// Measures a whole cycle on one thread: claim, drop, both markers through all stages, free again.
fn claim_to_claim(c: &mut Criterion) {
    let pool = slab(64);
    c.bench_function("claim_to_claim", |b| {
        b.iter(|| {
            let lease = UnitLease::claim(pool).expect("free");
            let unit = lease.id();
            drop(lease);
            bring_back(pool, unit);
        });
    });
}

/// Measures frames of 20 ms through a ring, with both ends on one thread and the reader's bell rung each time.
fn ring_frames(c: &mut Criterion) {
    let unit = UnitId::new(0);
    let (writer, reader) = (bell(1), bell(1));
    let (mut producer, mut consumer) =
        ring::<AudioIn>(50, Ringer::Stage(writer, unit), Ringer::Stage(reader, unit));
    let (epoch, item) = (Epoch::new(1), AudioIn::Audio(AudioFrame::empty(SampleRate::HZ_24K)));
    let mut group = c.benchmark_group("ring");
    group.bench_function("push_pop_20ms", |b| {
        b.iter(|| {
            producer.push(epoch, black_box(item)).expect("room");
            black_box(consumer.pop().expect("pushed"))
        });
    });
    group.bench_function("push_pop_marker", |b| {
        b.iter(|| {
            producer.push_end(epoch);
            black_box(consumer.is_empty());
            black_box(consumer.pop().expect("pushed"))
        });
    });
    group.finish();
}

/// Measures the check for stale items, which a stage makes for each item.
fn discard_check(c: &mut Criterion) {
    let counter = GenerationCounter::new();
    counter.bump();
    let mut group = c.benchmark_group("discard_check");
    group.bench_function("is_stale", |b| {
        b.iter(|| black_box(&counter).is_stale(black_box(Generation::new(1))))
    });
    let pool = slab(1);
    let lease = UnitLease::claim(pool).expect("free");
    let (unit, epoch) = (lease.status(), lease.epoch());
    group.bench_function("is_over", |b| b.iter(|| black_box(epoch).is_stale(black_box(unit))));
    group.finish();
}

/// Measures the cost to a push of a bell whose reader is awake.
fn ring_awake(c: &mut Criterion) {
    let bell = bell(1);
    let (unit, mut cursor, mut out) = (UnitId::new(0), 0, [UnitId::new(0)]);
    let mut group = c.benchmark_group("doorbell");
    bell.ring(unit);
    group.bench_function("ring_pending", |b| b.iter(|| bell.ring(black_box(unit))));
    group.bench_function("ring_take_put_back", |b| {
        b.iter(|| {
            bell.ring(black_box(unit));
            assert_eq!(bell.take(&mut cursor, &mut out), 1);
            bell.put_back(unit);
        });
    });
    group.finish();
}

criterion_group!(benches, claim_alone, claim_to_claim, ring_frames, discard_check, ring_awake);
criterion_main!(benches);
