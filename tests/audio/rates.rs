//! Changes of the format in the middle of the audio: no sample is lost, and times stay true.

use std::ops::Range;

use antiphon::door::audio::{AudioFormat, SampleRate};
use antiphon::door::limits::COMMIT_MS_MIN;
use antiphon::door::message::{VadMode, VadSettings};

use crate::cuts::{WINDOW_MS, are_the_recording};
use crate::hearing_rig::HearingRig;
use crate::signal::{FORMATS, RECORDING_MS, recording_at, sampled, signal_to_noise_db, sine_at};
use crate::slab;

/// Samples at a change of the rate beyond which the filter sees silence: 24 samples at 8 kHz, and some.
const EDGE_SAMPLES: usize = 64;

/// Returns every format after every format, without end.
fn changes() -> impl Iterator<Item = AudioFormat> {
    let pair = |n| [FORMATS[n / FORMATS.len() % FORMATS.len()], FORMATS[n % FORMATS.len()]];
    (0..).flat_map(pair)
}

/// Returns spans of these lengths, up to `end`.
fn spans(lengths_ms: &[u32], end: u32) -> Vec<Range<u32>> {
    let mut begin = 0;
    let next = |length: &u32| {
        let span = begin..(begin + length).min(end);
        begin = span.end;
        span
    };
    lengths_ms.iter().cycle().map(next).take_while(|span| !span.is_empty()).collect()
}

#[test]
fn turns_are_the_same_while_the_format_changes() {
    for lengths in [&[1_370][..], &[20], &[3, 480, 7]] {
        let mut rig = HearingRig::new(slab(1, SampleRate::HZ_24K), AudioFormat::DEFAULT);
        for (span, format) in spans(lengths, RECORDING_MS).into_iter().zip(changes()) {
            rig.set_format(format);
            rig.hear(&sampled(recording_at, format.rate(), span));
        }
        are_the_recording(&rig.turns(), &format!("formats for {lengths:?} ms"));
    }
}

#[test]
fn no_sample_is_lost_or_moved_at_a_change() {
    let mut rig = HearingRig::new(slab(1, SampleRate::HZ_24K), AudioFormat::DEFAULT).without_detector();
    let spans = spans(&[211, 50, 1_000], 20_000);
    for (span, format) in spans.iter().zip(changes()) {
        rig.set_format(format);
        rig.hear(&sampled(recording_at, format.rate(), span.clone()));
    }
    rig.commit();
    let turn = rig.only_turn();
    assert_eq!((turn.pcm.len(), turn.audio_ms), (16 * 20_000, Some(20_000)));
    let expected = sampled(recording_at, SampleRate::HZ_16K, 0..20_000);
    for (span, format) in spans.into_iter().zip(changes()) {
        let inside = 16 * span.start as usize + EDGE_SAMPLES..16 * span.end as usize - EDGE_SAMPLES;
        let clearness = signal_to_noise_db(&turn.pcm[inside.clone()], &expected[inside.clone()]);
        // The quiet hum between the utterances is a few steps high.
        let loud = expected[inside].iter().any(|sample| sample.unsigned_abs() > 1_000);
        let least = if format.law().is_some() { 25.0 } else { 50.0 };
        assert!(!loud || clearness > least, "{format:?} at {span:?} ms: {clearness:.1} dB");
    }
}

#[test]
fn both_laws_are_one_stream() {
    let hear = |formats: [AudioFormat; 2]| {
        let mut rig = HearingRig::new(slab(1, SampleRate::HZ_24K), AudioFormat::DEFAULT).without_detector();
        for (span, format) in spans(&[20], 1_000).into_iter().zip(formats.into_iter().cycle()) {
            rig.set_format(format);
            rig.hear(&sampled(sine_at, SampleRate::HZ_8K, span));
        }
        rig.commit();
        rig.only_turn().pcm
    };
    let expected = &sampled(sine_at, SampleRate::HZ_16K, 0..1_000)[EDGE_SAMPLES..16_000 - EDGE_SAMPLES];
    for formats in [[AudioFormat::Pcmu; 2], [AudioFormat::Pcma; 2], [AudioFormat::Pcmu, AudioFormat::Pcma]] {
        let clearness = signal_to_noise_db(&hear(formats)[EDGE_SAMPLES..16_000 - EDGE_SAMPLES], expected);
        assert!(clearness > 35.0, "{formats:?}: {clearness:.1} dB");
    }
}

#[test]
fn a_commit_counts_what_the_resampler_holds() {
    for format in FORMATS {
        for mode in [VadMode::Off, VadSettings::default().mode] {
            let mut rig = HearingRig::new(slab(1, SampleRate::HZ_24K), format);
            rig.set_mode(mode);
            let samples = sampled(sine_at, format.rate(), 0..COMMIT_MS_MIN);
            let (enough_but_1_ms, last_ms) =
                samples.split_at(samples.len() - samples.len() / COMMIT_MS_MIN as usize);
            rig.hear(enough_but_1_ms);
            rig.commit();
            assert_eq!(rig.refused_ms, [COMMIT_MS_MIN - 1], "{format:?}");
            rig.hear(last_ms);
            rig.commit();
            let turn = rig.only_turn();
            assert_eq!(turn.audio_ms, Some(COMMIT_MS_MIN), "{format:?}");
            assert_eq!(turn.pcm.len(), 16 * COMMIT_MS_MIN as usize, "{format:?}");
        }
    }
}

#[test]
fn what_is_cleared_has_passed_all_the_same() {
    for format in FORMATS {
        let mut rig = HearingRig::new(slab(1, SampleRate::HZ_24K), format);
        let second = vec![0; usize::try_from(format.rate().samples_in(1_000)).unwrap()];
        for _ in 0..3 {
            for piece in second.chunks(second.len() / 50) {
                rig.hear(piece);
                rig.clear();
            }
        }
        rig.hear(&sampled(recording_at, format.rate(), 0..5_000));
        let start = rig.only_turn().start_ms.expect("a start");
        assert!(start.abs_diff(3_000 + 400) <= WINDOW_MS, "{format:?}: {start}, spoken at 3,700 ms");
    }
}
