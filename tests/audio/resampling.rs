//! Chunk borders leave no trace in a resampled stream, in and out (RC-027).

use antiphon::door::audio::{AudioFormat, SampleRate};
use antiphon::door::message::ResponseKey;

use crate::hearing_rig::HearingRig;
use crate::signal::{largest_difference_dbfs, line_dbfs, sampled, sine_at};
use crate::slab;
use crate::speaking_rig::{SpeakingRig, expected, joined};

/// Length of the sine, milliseconds.
const SINE_MS: u32 = 10_000;

const RATES: [SampleRate; 4] =
    [SampleRate::HZ_8K, SampleRate::HZ_16K, SampleRate::HZ_24K, SampleRate::HZ_48K];

/// Checks that `samples` are the sine of [`SINE_MS`], without clicks or drift, and with no edge but the stream's two.
fn is_the_sine(samples: &[i16], rate: SampleRate, what: &str) {
    let length = usize::try_from(rate.samples_in(SINE_MS)).unwrap();
    assert!(samples.len().abs_diff(length) <= 1, "{what}: {} samples, expected {length}", samples.len());
    let inside = length / 100..length * 99 / 100;
    let ideal = &sampled(sine_at, rate, 0..SINE_MS)[inside.clone()];
    let difference = largest_difference_dbfs(&samples[inside.clone()], ideal);
    assert!(difference < -60.0, "{what}: differs by {difference:.1} dBFS");
    for hz in [50.0, 950.0, 1_050.0] {
        let line = line_dbfs(&samples[inside.clone()], hz, rate);
        assert!(line < -70.0, "{what}: {line:.1} dBFS at {hz} Hz");
    }
}

/// Returns the sine that STT gets if the client sends it in chunks of `chunk_ms`.
fn heard(rate: SampleRate, chunk_ms: u32) -> Vec<i16> {
    let mut rig = HearingRig::new(slab(1, SampleRate::HZ_24K), AudioFormat::Pcm(rate)).without_detector();
    let samples = sampled(sine_at, rate, 0..SINE_MS);
    samples.chunks(usize::try_from(rate.samples_in(chunk_ms)).unwrap()).for_each(|chunk| rig.hear(chunk));
    rig.commit();
    rig.only_turn().pcm
}

#[test]
fn chunks_leave_no_trace_on_the_way_in() {
    for rate in RATES {
        let whole = heard(rate, SINE_MS);
        is_the_sine(&whole, SampleRate::HZ_16K, &format!("{rate:?} in"));
        for ms in [1, 20, 700] {
            assert!(heard(rate, ms) == whole, "{rate:?} in chunks of {ms} ms");
        }
    }
}

#[test]
fn clauses_leave_no_trace_on_the_way_out() {
    let response = ResponseKey(0);
    for voice_rate in [SampleRate::HZ_22K, SampleRate::HZ_24K] {
        for rate in RATES {
            let samples = usize::try_from(voice_rate.samples_in(SINE_MS)).unwrap();
            let whole = joined(&SpeakingRig::new(voice_rate, rate).say(response, &[samples]));
            is_the_sine(&whole, rate, &format!("{voice_rate:?} to {rate:?}"));
            assert!(whole == expected(voice_rate, rate, samples), "{voice_rate:?} to {rate:?}");
            let clauses = vec![samples / 500; 500];
            let chunked = joined(&SpeakingRig::new(voice_rate, rate).say(response, &clauses));
            assert!(chunked == whole, "{voice_rate:?} to {rate:?} in clauses of 20 ms");
        }
    }
}

#[test]
fn a_voice_may_change_its_rate() {
    let (first, second, out) = (SampleRate::HZ_22K, SampleRate::HZ_16K, SampleRate::HZ_24K);
    let mut rig = SpeakingRig::new(first, out);
    rig.begin(ResponseKey(0), &[333, 22_050]);
    rig.voice_rate = second;
    let found = joined(&rig.say(ResponseKey(0), &[16_001]));
    assert!(found == [expected(first, out, 22_383), expected(second, out, 16_001)].concat());
}

#[test]
fn streams_of_different_rates_do_not_meet() {
    let slab = slab(2, SampleRate::HZ_24K);
    let rates = [SampleRate::HZ_8K, SampleRate::HZ_48K];
    let mut rigs = rates.map(|rate| HearingRig::new(slab, AudioFormat::Pcm(rate)).without_detector());
    for begin in (0..SINE_MS).step_by(20) {
        for (rig, rate) in rigs.iter_mut().zip(rates) {
            rig.hear(&sampled(sine_at, rate, begin..begin + 20));
        }
    }
    for (rig, rate) in rigs.iter_mut().zip(rates) {
        rig.commit();
        assert!(rig.only_turn().pcm == heard(rate, 20), "{rate:?}");
    }
}

#[test]
fn a_cancelled_answer_leaves_nothing_in_the_resampler() {
    let samples = 22_050;
    for rate in RATES {
        for steps in [1, 2, 5] {
            let mut rig = SpeakingRig::new(SampleRate::HZ_22K, rate);
            rig.begin(ResponseKey(0), &[333, 44_100, 5_000]);
            (0..steps).for_each(|_| rig.step());
            rig.cancel();
            rig.deltas.clear();
            let deltas = rig.say(ResponseKey(1), &[samples]);
            assert!(deltas.iter().all(|delta| delta.response == ResponseKey(1)), "{rate:?}, {steps} steps");
            let clean = expected(SampleRate::HZ_22K, rate, samples);
            assert!(joined(&deltas) == clean, "{rate:?}, cancelled after {steps} steps");
        }
        // All clauses have been spoken, but not the end of the answer.
        let mut rig = SpeakingRig::new(SampleRate::HZ_22K, rate);
        rig.begin(ResponseKey(0), &[333]);
        (0..3).for_each(|_| rig.step());
        rig.cancel();
        rig.deltas.clear();
        assert_eq!(rig.say(ResponseKey(1), &[]), [], "{rate:?}: an answer without audio");
    }
}
