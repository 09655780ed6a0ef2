//! Test sounds, 24 kHz mono: what the energy detector and the fake recogniser understand.

/// Rate of every signal here.
pub(crate) const RATE: usize = 24_000;

/// Samples of `ms` milliseconds.
pub(crate) const fn samples_in(ms: usize) -> usize {
    RATE * ms / 1_000
}

/// Silence.
pub(crate) fn silence(ms: usize) -> Vec<i16> {
    vec![0; samples_in(ms)]
}

/// A sound of one level. The energy detector hears speech (mean of |sample| above 300), and the fake recogniser makes
/// the level the tag of the answer.
pub(crate) fn level(ms: usize, level: i16) -> Vec<i16> {
    assert!(level.unsigned_abs() > 300, "level {level} is below what the energy detector hears");
    vec![level; samples_in(ms)]
}

/// A whole utterance of one level: speech long enough to be the median of the utterance with its padding, then the
/// silence that ends it (the default is 500 ms).
pub(crate) fn utterance(at: i16) -> Vec<i16> {
    [level(2_000, at), silence(900)].concat()
}

/// Whether a tag is the level of an utterance: the resampler may round.
pub(crate) fn is_level(tag: i64, level: i16) -> bool {
    (tag - i64::from(level.unsigned_abs())).abs() <= 2 + i64::from(level.unsigned_abs()) / 200
}
