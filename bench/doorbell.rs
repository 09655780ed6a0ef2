//! Time from a push until the reader runs, for a worker that sleeps and for one that has just been awake.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a bench reads clocks and sleeps")]

mod report;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use antiphon::door::audio::SampleRate;
use antiphon::door::clock;
use antiphon::door::message::{Moment, UnitId};
use antiphon::door::rt::thread::ThreadSpec;
use antiphon::door::stage::{Deadlines, Stage, Urgency, WorkerSpec, spawn_worker};
use antiphon::door::unit::{Bells, EdgeBell, StageBell, UnitSlab};
use serde_json::json;

use report::Series;

/// Pushes of a measurement, and of a smoke run.
const PUSHES: [usize; 2] = [10_000, 50];

const UNIT: UnitId = UnitId::new(0);

/// Moment of the worker's last run, nanoseconds of the monotonic clock; 0 if there was none since the last push.
static RAN_AT: AtomicU64 = AtomicU64::new(0);

/// A stage that notes the moment of its last run.
struct Noting;

impl Stage for Noting {
    fn prepare(&mut self, _: &'static UnitSlab, _: UnitId, _: Moment, _: &mut Deadlines) -> Option<Urgency> {
        RAN_AT.store(clock::now().nanos(), Ordering::Release);
        None
    }

    fn call(&mut self, _: &'static UnitSlab, _: &[UnitId]) {}

    fn recover(&mut self, _: &'static UnitSlab, _: UnitId) {}
}

fn main() {
    let pushes = PUSHES[usize::from(!report::is_measurement())];
    let bell: &'static StageBell = Box::leak(Box::new(StageBell::new(1, 1)));
    let (edge, _) = EdgeBell::new(1).expect("a pipe");
    let bells = Bells { vad: bell, stt: bell.into(), tts: bell.into(), edge: Box::leak(Box::new(edge)) };
    let slab = UnitSlab::leak(1, bells, SampleRate::HZ_24K);
    let thread = ThreadSpec { name: "reader".to_owned(), nice: 0 };
    let worker = spawn_worker(WorkerSpec { thread, bell, worker: 0 }, slab, Noting).expect("a thread");
    // After 1 ms the worker and its core are asleep. 20 ms is the pace of a client's appends.
    for pause in [Duration::from_millis(1), Duration::from_millis(20)] {
        let pushes = if pause.as_millis() > 1 { pushes / 10 } else { pushes };
        let mut woken = Series::new("push_to_run", "us");
        let mut paid = Series::new("ring", "us");
        for _ in 0..pushes {
            std::thread::sleep(pause);
            RAN_AT.store(0, Ordering::Relaxed);
            let begin = clock::now();
            bell.ring(UNIT);
            paid.values.push(clock::now().since(begin).as_secs_f64() * 1e6);
            woken.values.push(Moment::from_nanos(ran_at()).since(begin).as_secs_f64() * 1e6);
        }
        let dimensions = json!({ "reader": "asleep", "pause_ms": u64::try_from(pause.as_millis()).expect("a pause of milliseconds") });
        report::print("doorbell", "profile=none", dimensions, &[woken, paid]);
    }
    bell.stop();
    worker.handle.join().expect("the reader does not panic");
}

/// Waits until the worker has run. Sleeps in between: on one core the worker could not run beside a busy loop.
fn ran_at() -> u64 {
    let limit = Instant::now() + Duration::from_secs(10);
    loop {
        match RAN_AT.load(Ordering::Acquire) {
            0 => std::thread::sleep(Duration::from_micros(50)),
            nanos => return nanos,
        }
        assert!(Instant::now() < limit, "the reader was not woken");
    }
}
