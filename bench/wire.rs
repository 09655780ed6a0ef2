//! Conversion of the socket's bytes to samples in a ring, and back.
#![allow(clippy::disallowed_methods, reason = "a bench reads clocks")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use antiphon::door::audio::AudioFormat;
use antiphon::door::edge::inbound::uplink::Uplink;
use antiphon::door::limits::AUDIO_IN_ITEMS;
use antiphon::door::message::{AudioIn, Epoch, FRAME_SAMPLES, UnitId};
use antiphon::door::protocol::{
    AudioDelta, Content, ConversationId, Decoded, Decoder, EventIds, Item, ItemId, ItemPlace, ItemStatus,
    MaxTokens, Modality, OnlyPart, ResponseId, ResponseObject, ResponseStatus, ServerEvent, Usage,
    encode_audio_delta,
};
use antiphon::door::unit::{Ringer, StageBell, ring};
use axum::extract::ws::Utf8Bytes;
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

/// Lengths of an append, milliseconds.
const LENGTHS_MS: [u64; 3] = [20, 100, 1_000];

/// Formats of the wire, with the suffix of their group. All rates of PCM cost the same per sample.
const FORMATS: [(&str, AudioFormat); 3] =
    [("", AudioFormat::DEFAULT), ("_pcmu", AudioFormat::Pcmu), ("_pcma", AudioFormat::Pcma)];

/// Returns audio whose samples differ.
fn samples(ms: u64, format: AudioFormat) -> Vec<i16> {
    (0..ms * u64::from(format.rate().hz()) / 1_000)
        .map(|n| i16::try_from((n * 7_919) % 65_536).unwrap_or(i16::MIN))
        .collect()
}

fn append_message(ms: u64, format: AudioFormat) -> Utf8Bytes {
    let samples = samples(ms, format);
    let audio = match format.law() {
        None => base64_simd::STANDARD.encode_to_string(bytemuck::cast_slice::<_, u8>(&samples)),
        Some(law) => {
            let mut bytes = vec![0; samples.len()];
            law.compress(&samples, &mut bytes);
            base64_simd::STANDARD.encode_to_string(bytes)
        }
    };
    format!(r#"{{"type":"input_audio_buffer.append","audio":"{audio}"}}"#).into()
}

fn append(c: &mut Criterion) {
    let mut group = c.benchmark_group("append");
    for ms in LENGTHS_MS {
        let message = append_message(ms, AudioFormat::DEFAULT);
        group.throughput(Throughput::Bytes(message.len() as u64));
        let mut decoder = Decoder::new();
        group.bench_function(BenchmarkId::new("decode", format!("{ms}ms")), |b| {
            b.iter(|| matches!(decoder.decode(black_box(message.as_str())), Ok(Decoded::Append(_))));
        });
        for (name, format) in FORMATS {
            let message = append_message(ms, format);
            group.throughput(Throughput::Bytes(message.len() as u64));
            group.bench_function(BenchmarkId::new(format!("to_ring{name}"), format!("{ms}ms")), |b| {
                b.iter_custom(|iterations| to_ring(&message, ms, format, iterations));
            });
        }
    }
    group.finish();
}

/// Returns the time to decode `message` into the slots of a ring; the pops of the frames are not timed.
fn to_ring(message: &Utf8Bytes, ms: u64, format: AudioFormat, iterations: u64) -> Duration {
    let bell: &'static StageBell = Box::leak(Box::new(StageBell::new(1, 1)));
    let ringer = Ringer::Stage(bell, UnitId::new(0));
    let (mut audio_in, mut consumer) = ring::<AudioIn>(AUDIO_IN_ITEMS, ringer, ringer);
    let (mut decoder, mut uplink) = (Decoder::new(), Uplink::new(format, Epoch::new(1)));
    let frames = samples(ms, format).len().div_ceil(FRAME_SAMPLES);
    let batch = (AUDIO_IN_ITEMS / frames) as u64;
    let mut spent = Duration::ZERO;
    let mut left = iterations;
    while left > 0 {
        let now = left.min(batch);
        let begin = Instant::now();
        for _ in 0..now {
            let Ok(Decoded::Append(append)) = decoder.decode(message.as_str()) else { panic!("an append") };
            uplink.append(message, append, &mut audio_in).expect("base64");
        }
        spent += begin.elapsed();
        assert!(!uplink.is_waiting(), "a batch fits the ring");
        let mut taken = 0;
        while consumer.pop().is_some() {
            taken += 1;
        }
        assert_eq!(taken, now * frames as u64);
        left -= now;
    }
    spent
}

fn delta(c: &mut Criterion) {
    let mut group = c.benchmark_group("delta");
    let mut event_ids = EventIds::new();
    for (ms, (name, format)) in [20, 100].into_iter().flat_map(|ms| FORMATS.map(|format| (ms, format))) {
        let (samples, mut text) = (samples(ms, format), String::with_capacity(16 * 1_024));
        group.throughput(Throughput::Bytes(2 * samples.len() as u64));
        let (response, item) = (ResponseId::fresh(), ItemId::fresh());
        let delta = AudioDelta { response, item, output_index: 0, format };
        group.bench_function(BenchmarkId::new(format!("encode{name}"), format!("{ms}ms")), |b| {
            b.iter(|| {
                text.clear();
                encode_audio_delta(black_box(&delta), event_ids.fresh(), black_box(&samples), &mut text);
                black_box(text.len())
            });
        });
    }
    group.finish();
}

/// Measures the events of an answer that are the most frequent and the largest.
fn event(c: &mut Criterion) {
    let mut group = c.benchmark_group("event");
    let (mut event_ids, mut text) = (EventIds::new(), String::with_capacity(16 * 1_024));
    let (response, item) = (ResponseId::fresh(), ItemId::fresh());
    let words = "The capital of France is Paris, as it has been for most of the last thousand years. ";
    let body = Item::answer(item.clone(), ItemStatus::Completed, vec![Content::OutputAudio(words.repeat(8))]);
    let events = [
        (
            "transcript_delta",
            ServerEvent::TranscriptDelta {
                place: ItemPlace { response_id: response.clone(), item_id: item, output_index: 0 },
                content_index: OnlyPart,
                delta: words.to_owned(),
            },
        ),
        (
            "response_done",
            ServerEvent::ResponseDone {
                response: Box::new(ResponseObject {
                    id: response,
                    conversation: Some(ConversationId::fresh()),
                    status: ResponseStatus::Completed,
                    output: vec![body],
                    modality: Modality::Audio,
                    tokens_max: MaxTokens::Unlimited,
                    format: AudioFormat::DEFAULT,
                    voice: "alloy".to_owned(),
                    metadata: None,
                    usage: Some(Usage::default()),
                }),
            },
        ),
    ];
    for (name, event) in events {
        group.bench_function(BenchmarkId::new("encode", name), |b| {
            b.iter(|| {
                text.clear();
                black_box(&event).encode(event_ids.fresh(), &mut text);
                black_box(text.len())
            });
        });
    }
    group.finish();
}

criterion_group!(benches, append, delta, event);
criterion_main!(benches);
