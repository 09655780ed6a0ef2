//! Pure signal handling: quantities, resampling, the detector's per-stream state. No thread, no clock, no ring.

mod quantity;

pub use quantity::SampleRate;
