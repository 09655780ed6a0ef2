//! The client's cuts of its audio make no difference, at any rate (RC-026).

use antiphon::door::audio::{AudioFormat, SampleRate};

use crate::hearing_rig::{HearingRig, Turn};
use crate::rng::Rng;
use crate::signal::{FORMATS, RECORDING_MS, UTTERANCES_MS, recording_at, sampled, signal_to_noise_db};
use crate::slab;

/// Length of a detector window, and the most by which a time may be off, milliseconds.
pub(crate) const WINDOW_MS: u32 = 32;

/// Audio that VAD puts before an onset, and the silence for which VAD waits, in whole windows; milliseconds.
const PREFIX_MS: u32 = 300;
const SILENCE_MS: u32 = 512;

/// Streams the recording in pieces of `cut` samples; returns the turns.
fn turns(format: AudioFormat, recording: &[i16], mut cut: impl FnMut() -> usize) -> Vec<Turn> {
    let mut rig = HearingRig::new(slab(1, SampleRate::HZ_24K), format);
    let mut rest = recording;
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at(cut().min(rest.len()));
        rig.hear(chunk);
        rest = tail;
    }
    rig.turns()
}

/// Checks that `turns` are the recording's utterances.
pub(crate) fn are_the_recording(turns: &[Turn], what: &str) {
    assert_eq!(turns.len(), UTTERANCES_MS.len(), "{what}: {} turns", turns.len());
    for (turn, spoken) in turns.iter().zip(&UTTERANCES_MS) {
        let (start, end) = (turn.start_ms.expect("a start"), turn.end_ms.expect("an end"));
        assert!(
            start.abs_diff(spoken.start - PREFIX_MS) <= WINDOW_MS,
            "{what}: {start}, spoken at {spoken:?}"
        );
        assert!(end.abs_diff(spoken.end + SILENCE_MS) <= WINDOW_MS, "{what}: {end}, spoken at {spoken:?}");
        assert_eq!(turn.audio_ms, Some(end - start), "{what}");
        assert_eq!(turn.pcm.len(), 16 * (end - start) as usize, "{what}");
    }
}

/// Returns the signal-to-noise ratio of an utterance at STT, decibels.
fn clearness_db(turn: &Turn) -> f64 {
    let (start, end) = (turn.start_ms.expect("a start"), turn.end_ms.expect("an end"));
    signal_to_noise_db(&turn.pcm, &sampled(recording_at, SampleRate::HZ_16K, start..end))
}

#[test]
fn every_cut_gives_the_same_turns_and_samples() {
    let seed = Rng::seed_of_run();
    for format in FORMATS {
        let samples_in = |ms| usize::try_from(format.rate().samples_in(ms)).unwrap();
        let recording = sampled(recording_at, format.rate(), 0..RECORDING_MS);
        let expected = turns(format, &recording, || samples_in(20));
        are_the_recording(&expected, &format!("{format:?}"));
        for ms in [10, 32, 100, 600, 5_000, RECORDING_MS] {
            assert!(turns(format, &recording, || samples_in(ms)) == expected, "{format:?} in {ms} ms");
        }
        let mut rng = Rng::new(seed);
        let random = turns(format, &recording, || 1 + usize::try_from(rng.below(4_000)).unwrap());
        assert!(random == expected, "{format:?} in 1 to 4,000 samples, ANTIPHON_SEED={seed}");
        let mut appends = 0;
        let single = turns(format, &recording, || {
            appends += 1;
            // A burst of single samples in the middle of the first utterance.
            if (100..2_500).contains(&appends) { 1 } else { samples_in(20) }
        });
        assert!(single == expected, "{format:?}, 2,400 appends of one sample");
    }
}

/// RC-028: decoded audio is the spoken audio; a byte of the other law, a shifted byte or another rate would be noise.
#[test]
fn every_format_is_heard_as_it_was_spoken() {
    for format in FORMATS {
        let least = if format.law().is_some() { 30.0 } else { 60.0 };
        let recording = sampled(recording_at, format.rate(), 0..RECORDING_MS);
        for turn in turns(format, &recording, || 480) {
            let clearness = clearness_db(&turn);
            assert!(clearness > least, "{format:?}: {clearness:.1} dB, turn at {:?} ms", turn.start_ms);
        }
    }
}

/// RC-025: the good audio around refused audio is heard as if the refused audio had not come.
#[test]
fn bad_audio_is_refused_and_leaves_no_trace() {
    let long = "A".repeat(4_000);
    let no_base64 =
        ["###", "_-_-", r"AAAA\r\nAAAA", "AAA", "A", "AA==AAAA", "====", "AAAé", &(long.clone() + "#")];
    for format in FORMATS {
        let recording = sampled(recording_at, format.rate(), 0..RECORDING_MS);
        let expected = turns(format, &recording, || 480);
        let mut rig = HearingRig::new(slab(1, SampleRate::HZ_24K), format);
        for (piece, number) in recording.chunks(480).zip(0..) {
            rig.hear(piece);
            let audio = no_base64[number % no_base64.len()];
            assert_eq!(rig.hear_nothing(audio), "invalid_base64", "{format:?}: {audio}");
            if format.sample_bytes() == 2 {
                assert_eq!(rig.hear_nothing("AAAA"), "invalid_audio_length", "{format:?}: half a sample");
            }
        }
        assert!(rig.turns() == expected, "{format:?}");
    }
}
