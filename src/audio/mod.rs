//! Pure signal handling: quantities, sample formats, companding, resampling, WAV, log-mel features. No thread, no clock, no
//! ring.

mod endpointer;
mod format;
mod g711;
pub mod log_mel;
pub mod pcm;
mod quantity;
mod resample;
pub mod wav;

pub use endpointer::{Endpointer, ONSET_WINDOWS, Transition};
pub use format::{AudioFormat, pcm_rate};
pub use g711::Law;
pub use pcm::Sample;
pub use quantity::SampleRate;
pub use resample::{ResampleError, Resampler};
