//! The engine's own source files, compiled with a `sync` that the model checker can see into.
//!
//! Everything below is `src/`; only [`sync`] is of this folder. What the engine's files import of `audio` and `model` is
//! plain state without atomics, so that is taken along as it is.

#![allow(missing_docs, reason = "the files document themselves in the package they belong to")]

pub mod sync;

#[path = "../../src/limits.rs"]
pub mod limits;

#[path = "../../src/language"]
pub mod language {
    mod code;

    pub use code::Language;
}

#[path = "../../src/message/mod.rs"]
pub mod message;

#[path = "../../src/unit/mod.rs"]
pub mod unit;

#[path = "../../src/audio"]
pub mod audio {
    mod endpointer;
    pub mod pcm;
    mod quantity;
    mod resample;

    pub use endpointer::{Endpointer, ONSET_WINDOWS, Transition};
    pub use pcm::Sample;
    pub use quantity::SampleRate;
    pub use resample::{ResampleError, Resampler};
}

#[path = "../../src/model"]
pub mod model {
    mod detector;
    mod speech;

    pub use detector::{DETECTOR_CONTEXT, DETECTOR_STATE, DETECTOR_WINDOW, DetectorStream};
    pub use speech::{Speech, SpeechSource};
}

#[path = "../../src/edge"]
pub mod edge {
    pub mod inbound {
        pub mod downlink;
    }
}
