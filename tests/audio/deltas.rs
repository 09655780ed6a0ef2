//! The lengths of audio deltas (RC-068), and their format.

use antiphon::door::audio::{AudioFormat, SampleRate};
use antiphon::door::limits::DELTA_MS_MAX;
use antiphon::door::message::{AnswerOut, AudioFrame, FRAME_SAMPLES, ResponseKey};
use antiphon::door::protocol::{AudioDelta, EventIds, ItemId, ResponseId, encode_audio_delta};

use crate::signal::{FORMATS, from_wire, to_wire};
use crate::speaking_rig::{Delta, SpeakingRig, expected, joined};

/// Lengths of a voice's pieces, samples.
const PIECES: [&[usize]; 4] =
    [&[1, 7, 333, 100_000], &[100_000, 1], &[1; 40], &[480, 7, 479, 481, 333, 1, 2_400, 2_401]];

/// Returns the audio of a delta in the bytes that the client gets.
fn on_the_wire(delta: &Delta, format: AudioFormat) -> Vec<u8> {
    let (response, item) = (ResponseId::fresh(), ItemId::fresh());
    let place = AudioDelta { response, item, output_index: 0, format };
    let mut text = String::new();
    encode_audio_delta(&place, EventIds::new().fresh(), &delta.samples, &mut text);
    let event: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    base64_simd::STANDARD.decode_to_vec(event["delta"].as_str().expect("a delta")).expect("base64")
}

fn check(deltas: &[Delta], rate: SampleRate, clauses: usize) {
    let longest = usize::try_from(rate.samples_in(DELTA_MS_MAX)).unwrap();
    for delta in deltas {
        assert_eq!(delta.rate, rate);
        assert!((1..=longest).contains(&delta.samples.len()), "{} samples, {rate:?}", delta.samples.len());
    }
    // Only the end of a clause, and the rest in the resampler at the end of the answer, may be less than a frame.
    let short = deltas.iter().filter(|delta| delta.samples.len() < FRAME_SAMPLES).count();
    assert!(short <= clauses + 1, "{short} deltas of less than a frame from {clauses} clauses, {rate:?}");
}

#[test]
fn deltas_have_whole_samples_and_no_more_than_100_ms() {
    for (voice_rate, format) in [SampleRate::HZ_22K, SampleRate::HZ_24K]
        .into_iter()
        .flat_map(|rate| FORMATS.map(|format| (rate, format)))
    {
        for (pieces, steps_per_read) in
            PIECES.iter().flat_map(|pieces| [1, 3, 60].map(|steps| (pieces, steps)))
        {
            let mut rig = SpeakingRig::new(voice_rate, format.rate());
            rig.steps_per_read = steps_per_read;
            let deltas = rig.say(ResponseKey(0), pieces);
            check(&deltas, format.rate(), pieces.len());
            let whole = expected(voice_rate, format.rate(), pieces.iter().sum());
            assert!(joined(&deltas) == whole, "{voice_rate:?} to {format:?}, {pieces:?}");
            let bytes: Vec<u8> = deltas
                .iter()
                .flat_map(|delta| {
                    let bytes = on_the_wire(delta, format);
                    assert_eq!(from_wire(&bytes, format).len(), delta.samples.len());
                    bytes
                })
                .collect();
            assert!(bytes == to_wire(&whole, format), "{voice_rate:?} to {format:?}, {pieces:?}");
        }
    }
}

#[test]
fn a_slow_reader_gets_full_deltas() {
    for format in FORMATS {
        let mut rig = SpeakingRig::new(SampleRate::HZ_24K, format.rate());
        rig.steps_per_read = 1_000_000;
        rig.begin(ResponseKey(0), &[240_000]);
        (0..12).for_each(|_| rig.step());
        rig.read();
        let frames = usize::try_from(format.rate().samples_in(DELTA_MS_MAX)).unwrap() / FRAME_SAMPLES;
        let (_, full) = rig.deltas.split_last().expect("deltas");
        assert!(
            full.len() > 5 && full.iter().all(|delta| delta.samples.len() == frames * FRAME_SAMPLES),
            "{format:?}"
        );
    }
}

#[test]
fn a_cancelled_answer_ends_in_whole_deltas_and_nothing_of_it_follows() {
    for format in FORMATS {
        let mut rig = SpeakingRig::new(SampleRate::HZ_22K, format.rate());
        rig.begin(ResponseKey(0), &[1, 7, 333, 100_000]);
        (0..6).for_each(|_| rig.step());
        let sent = std::mem::take(&mut rig.deltas);
        check(&sent, format.rate(), 4);
        let whole = expected(SampleRate::HZ_22K, format.rate(), 100_341);
        assert!(!sent.is_empty() && whole.starts_with(&joined(&sent)), "{format:?}");
        rig.cancel();
        (0..6).for_each(|_| rig.step());
        assert_eq!(rig.deltas, [], "{format:?}");
    }
}

#[test]
fn an_answer_keeps_the_rate_that_it_began_with() {
    let mut rig = SpeakingRig::new(SampleRate::HZ_22K, SampleRate::HZ_24K);
    rig.begin(ResponseKey(0), &[22_050]);
    (0..3).for_each(|_| rig.step());
    rig.set_rate(SampleRate::HZ_8K);
    let mut first = std::mem::take(&mut rig.deltas);
    assert!(!first.is_empty());
    first.extend(rig.say(ResponseKey(0), &[]));
    check(&first, SampleRate::HZ_24K, 1);
    assert!(joined(&first) == expected(SampleRate::HZ_22K, SampleRate::HZ_24K, 22_050));
    let second = rig.say(ResponseKey(1), &[22_050]);
    check(&second, SampleRate::HZ_8K, 1);
    assert!(joined(&second) == expected(SampleRate::HZ_22K, SampleRate::HZ_8K, 22_050));
}

#[test]
fn what_has_another_rate_or_response_is_another_delta() {
    let mut rig = SpeakingRig::new(SampleRate::HZ_24K, SampleRate::HZ_24K);
    let (low, high) = (SampleRate::HZ_8K, SampleRate::HZ_48K);
    let frames = [(0, low, 480), (0, high, 480), (0, high, 480), (0, low, 1), (1, low, 2), (1, low, 3)];
    for (response, rate, len) in frames {
        let stamp = rig.stamp(ResponseKey(response));
        let mut frame = AudioFrame::empty(rate);
        frame.len = len;
        let mut port = rig.lease.unit().tts.borrow();
        port.answer_out.push(stamp, AnswerOut::Audio(frame)).expect("there is room");
    }
    rig.read();
    let found: Vec<_> = rig.deltas.iter().map(|d| (d.response.0, d.rate, d.samples.len())).collect();
    assert_eq!(found, [(0, low, 480), (0, high, 960), (0, low, 1), (1, low, 5)]);
}
