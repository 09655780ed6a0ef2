//! Audio between the wire and the stages, without a socket: formats, rates, cuts, deltas. The detector is the energy
//! detector, the voice a fake one; everything else is the server's own code.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod hearing_rig;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../it/rng.rs"]
mod rng;
mod signal;
mod speaking_rig;

mod cuts;
mod deltas;
mod rates;
mod resampling;

use antiphon::door::audio::{Resampler, SampleRate};
use antiphon::door::unit::{Bell, Bells, EdgeBell, StageBell, UnitSlab};

/// Returns units that no other thread works on.
fn slab(units: usize, voice_rate: SampleRate) -> &'static UnitSlab {
    Resampler::prepare();
    let bell = || -> &'static StageBell { Box::leak(Box::new(StageBell::new(units, 1))) };
    let (edge, _) = EdgeBell::new(units).expect("a pipe");
    let bells = Bells {
        vad: bell(),
        stt: Bell::Workers(bell()),
        tts: Bell::Workers(bell()),
        edge: Box::leak(Box::new(edge)),
    };
    UnitSlab::leak(units, bells, voice_rate)
}
