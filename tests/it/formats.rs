//! Audio formats of a session, in and out, through a real server (RC-016, RC-028).

use antiphon::door::audio::{AudioFormat, Law, SampleRate};
use serde_json::{Value, json};

use crate::client::{Client, base64_of};
use crate::server::Server;
use crate::signal::is_level;

const FORMATS: [AudioFormat; 6] = [
    AudioFormat::Pcm(SampleRate::HZ_24K),
    AudioFormat::Pcmu,
    AudioFormat::Pcma,
    AudioFormat::Pcm(SampleRate::HZ_8K),
    AudioFormat::Pcm(SampleRate::HZ_16K),
    AudioFormat::Pcm(SampleRate::HZ_48K),
];

/// The format as the wire says it.
fn shown(format: AudioFormat) -> Value {
    match format {
        AudioFormat::Pcm(rate) => json!({ "type": "audio/pcm", "rate": rate.hz() }),
        AudioFormat::Pcmu => json!({ "type": "audio/pcmu" }),
        AudioFormat::Pcma => json!({ "type": "audio/pcma" }),
    }
}

fn samples_in(format: AudioFormat, ms: u32) -> usize {
    usize::try_from(format.rate().samples_in(ms)).unwrap()
}

/// The samples as bytes of `format`.
fn to_wire(samples: &[i16], format: AudioFormat) -> Vec<u8> {
    let Some(law) = format.law() else { return bytemuck::cast_slice(samples).to_vec() };
    let mut bytes = vec![0; samples.len()];
    law.compress(samples, &mut bytes);
    bytes
}

/// The samples that bytes of `format` are.
fn from_wire(bytes: &[u8], format: AudioFormat) -> Vec<i16> {
    let Some(law) = format.law() else {
        return bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
    };
    let mut samples = vec![0; bytes.len()];
    law.expand(bytes, &mut samples);
    samples
}

/// Sends bytes, 20 ms in each append.
async fn stream(client: &mut Client, bytes: &[u8], format: AudioFormat) {
    for piece in bytes.chunks(samples_in(format, 20) * format.sample_bytes()) {
        client.send(&json!({ "type": "input_audio_buffer.append", "audio": base64_of(piece) })).await;
    }
}

/// Two seconds of one level, and the silence that ends the turn.
fn utterance(level: i16, format: AudioFormat) -> Vec<u8> {
    to_wire(&[vec![level; samples_in(format, 2_000)], vec![0; samples_in(format, 900)]].concat(), format)
}

/// The bytes of the next answer's audio. Each delta is whole samples, and 100 ms at most.
async fn answered(client: &mut Client, format: AudioFormat) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let event = client.event().await;
        match event["type"].as_str() {
            Some("error") => panic!("{event}"),
            Some("response.output_audio.delta") => {
                let delta = event["delta"].as_str().expect("a delta");
                let delta = base64_simd::STANDARD.decode_to_vec(delta).expect("base64");
                assert!(
                    delta.len().is_multiple_of(format.sample_bytes()),
                    "{} bytes, {format:?}",
                    delta.len()
                );
                let samples = delta.len() / format.sample_bytes();
                assert!((1..=samples_in(format, 100)).contains(&samples), "{samples} samples, {format:?}");
                bytes.extend(delta);
            }
            Some("response.done") => {
                assert_eq!(event["response"]["status"], "completed", "{event}");
                return bytes;
            }
            _ => {}
        }
    }
}

/// How often the signal goes through zero upwards in a second, by the first and the last time.
fn pitch_hz(samples: &[i16], rate: SampleRate) -> f64 {
    let rises: Vec<_> = (1..samples.len()).filter(|n| samples[n - 1] < 0 && samples[*n] >= 0).collect();
    let [first, .., last] = rises[..] else { panic!("{} rises, expected a tone", rises.len()) };
    (rises.len() - 1) as f64 * f64::from(rate.hz()) / (last - first) as f64
}

/// Asks in writing for a tone, and checks what comes.
async fn hums(client: &mut Client, format: AudioFormat) {
    client.ask("Text becomes a tone.").await;
    let samples = from_wire(&answered(client, format).await, format);
    assert_eq!(samples.len(), samples_in(format, 20 * 60), "60 ms for each character, {format:?}");
    let pitch = pitch_hz(&samples, format.rate());
    assert!((pitch - 440.0).abs() < 4.4, "{pitch:.1} Hz, {format:?}");
    // A quarter of full scale: the other law is another loudness.
    let peak = samples.iter().map(|sample| sample.unsigned_abs()).max().unwrap_or(0);
    assert!(peak.abs_diff(8_192) <= 256, "peak {peak}, {format:?}");
}

/// Says one utterance, and checks that it was heard and is answered with its level.
async fn is_answered(client: &mut Client, level: i16, input: AudioFormat, output: AudioFormat) {
    stream(client, &utterance(level, input), input).await;
    let bytes = answered(client, output).await;
    assert_eq!(bytes.len(), samples_in(output, 500) * output.sample_bytes(), "{input:?} to {output:?}");
    let samples = from_wire(&bytes, output);
    let tag = samples[0];
    assert!(samples.iter().all(|sample| *sample == tag), "{input:?} to {output:?}: foreign samples");
    // Companded twice, a level is off by half a step of 1/16 octave each time.
    let companded = input.law().is_some() || output.law().is_some();
    let near = tag.abs_diff(level) <= level.unsigned_abs() / 16;
    assert!(
        near && (companded || is_level(tag.into(), level)),
        "{input:?} to {output:?}: {tag}, spoken {level}"
    );
}

async fn set_formats(client: &mut Client, input: AudioFormat, output: AudioFormat) {
    let formats = json!({ "input": { "format": shown(input) }, "output": { "format": shown(output) } });
    let updated = client.update(json!({ "audio": formats })).await;
    let audio = &updated["session"]["audio"];
    assert_eq!(audio["input"]["format"], shown(input), "{updated}");
    assert_eq!(audio["output"]["format"], shown(output), "{updated}");
}

#[tokio::test]
async fn every_format_is_heard_and_spoken_in_every_other() {
    let server = Server::fake(2).await;
    // Between two pairs the format changes in a running session.
    let mut client = Client::open(server.addr()).await;
    assert_eq!(client.session()["audio"]["input"]["format"], shown(AudioFormat::DEFAULT));
    assert_eq!(client.session()["audio"]["output"]["format"], shown(AudioFormat::DEFAULT));
    for (input, output) in FORMATS.into_iter().flat_map(|input| FORMATS.map(|output| (input, output))) {
        set_formats(&mut client, input, output).await;
        hums(&mut client, output).await;
        is_answered(&mut client, 3_000, input, output).await;
    }
    client.close().await;
}

#[tokio::test]
async fn silence_of_each_law_is_no_speech_and_its_loudest_byte_is() {
    let server = Server::fake(1).await;
    for (format, silence, loudest) in [(AudioFormat::Pcmu, 0xFF, 0x00), (AudioFormat::Pcma, 0xD5, 0x2A)] {
        server.all_units_free().await;
        let mut client = Client::open(server.addr()).await;
        set_formats(&mut client, format, format).await;
        let quiet = vec![silence; samples_in(format, 3_000)];
        stream(&mut client, &quiet, format).await;
        stream(&mut client, &vec![loudest; samples_in(format, 1_000)], format).await;
        stream(&mut client, &quiet, format).await;
        let started = client.expect("input_audio_buffer.speech_started").await;
        // 300 ms before the onset, and no detector window is exact.
        let start = started["audio_start_ms"].as_u64().expect("a time");
        assert!(start.abs_diff(2_700) <= 32, "{format:?}: {started}");
        let law = format.law().expect("G.711");
        let mut sample = [0];
        law.expand(&[loudest], &mut sample);
        assert!(sample[0] < -32_000, "{law:?}");
        client.expect("input_audio_buffer.speech_stopped").await;
        assert_eq!(answered(&mut client, format).await.len(), 4_000, "8,000 bytes a second");
        client.close().await;
    }
}

#[tokio::test]
async fn a_response_may_have_a_format_of_its_own() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    for format in FORMATS {
        client.send(&crate::client::item_event("say dur=1 tag=3000")).await;
        let output = json!({ "format": shown(format) });
        client
            .send(&json!({ "type": "response.create", "response": { "audio": { "output": output } } }))
            .await;
        let created = client.expect("response.created").await;
        assert_eq!(created["response"]["audio"]["output"]["format"], shown(format), "{created}");
        let bytes = answered(&mut client, format).await;
        assert_eq!(bytes, to_wire(&vec![3_000; samples_in(format, 1_000)], format), "{format:?}");
        hums(&mut client, AudioFormat::DEFAULT).await;
    }
    client.close().await;
}

#[tokio::test]
async fn a_wrong_format_is_an_error_and_changes_nothing() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let (input, output) = (AudioFormat::Pcmu, AudioFormat::Pcma);
    set_formats(&mut client, input, output).await;
    let wrong = [
        json!({ "type": "g711_ulaw" }),
        json!({ "type": "mulaw" }),
        json!({ "type": "pcm16" }),
        json!({ "type": "AUDIO/PCM" }),
        json!({ "type": "audio/pcm", "rate": 44_100 }),
        json!({ "type": "audio/pcm", "rate": 22_050 }),
        json!({ "type": "audio/pcm", "rate": 0 }),
        json!({ "type": "audio/pcm", "rate": "24000" }),
        json!({ "type": "audio/pcmu", "rate": 24_000 }),
        json!("g711_ulaw"),
        json!(["audio/pcm"]),
    ];
    for (format, side) in wrong.iter().flat_map(|format| ["input", "output"].map(|side| (format, side))) {
        let audio = json!({ side: { "format": format } });
        let session = json!({ "type": "realtime", "instructions": "not kept", "audio": audio });
        client.send(&json!({ "type": "session.update", "event_id": "wrong", "session": session })).await;
        let event = client.event().await;
        assert_eq!(event["type"], "error", "{format} as {side}: {event}");
        let error = &event["error"];
        assert_eq!((&error["type"], &error["event_id"]), (&json!("invalid_request_error"), &json!("wrong")));
        let param = error["param"].as_str().expect("a param");
        assert!(param.starts_with(&format!("session.audio.{side}.format")), "{error}");
        let session = client.update(json!({})).await["session"].take();
        assert_eq!(session["audio"]["input"]["format"], shown(input), "after {format}");
        assert_eq!(session["audio"]["output"]["format"], shown(output), "after {format}");
        assert_ne!(session["instructions"], "not kept");
    }
    is_answered(&mut client, 5_000, input, output).await;
    client.close().await;
}

/// A client in the manner of huggingface/speech-to-speech's: it names no format, and means 16 kHz both ways.
#[tokio::test]
async fn a_session_that_names_no_format_has_the_default_rate() {
    let server = Server::fake_with(1, &["--default-rate", "16000"]).await;
    let mut client = Client::open(server.addr()).await;
    let meant = AudioFormat::Pcm(SampleRate::HZ_16K);
    let audio = &client.session()["audio"];
    assert_eq!((&audio["input"]["format"], &audio["output"]["format"]), (&shown(meant), &shown(meant)));
    is_answered(&mut client, 5_000, meant, meant).await;
    let turns = json!({ "turn_detection": { "type": "server_vad" } });
    let updated = client.update(json!({ "audio": { "input": turns } })).await;
    assert_eq!(updated["session"]["audio"]["input"]["format"], shown(meant));
    is_answered(&mut client, 7_000, meant, meant).await;
    // A format that is named holds.
    set_formats(&mut client, AudioFormat::DEFAULT, AudioFormat::Pcmu).await;
    is_answered(&mut client, 3_000, AudioFormat::DEFAULT, AudioFormat::Pcmu).await;
    client.close().await;
}

/// RC-016: what was sent is counted in samples; a byte of G.711 is 1/8 ms.
#[tokio::test]
async fn truncation_counts_the_samples_of_every_format() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    for format in FORMATS {
        set_formats(&mut client, AudioFormat::DEFAULT, format).await;
        client.ask("say dur=2 tag=500").await;
        let added = client.expect("response.output_item.added").await;
        let item = &added["item"]["id"];
        answered(&mut client, format).await;
        let truncate = |ms| json!({ "type": "conversation.item.truncate", "item_id": item, "content_index": 0, "audio_end_ms": ms });
        for ms in [9_100, 2_001] {
            client.send(&truncate(ms)).await;
            let event = client.event().await;
            assert_eq!(event["type"], "error", "{format:?}, {ms} ms: {event}");
            assert!(event["error"]["message"].as_str().is_some_and(|text| text.contains("2000")), "{event}");
        }
        for ms in [2_000, 1_234] {
            client.send(&truncate(ms)).await;
            let truncated = client.expect("conversation.item.truncated").await;
            assert_eq!(truncated["audio_end_ms"], ms, "{format:?}");
        }
    }
    is_answered(&mut client, 3_000, AudioFormat::DEFAULT, FORMATS[FORMATS.len() - 1]).await;
    client.close().await;
}

/// What the tests above rest on: the laws differ where it matters.
#[test]
fn a_level_in_the_wrong_law_is_another_level() {
    for level in [500, 3_000, 5_000, 8_192] {
        let (mut byte, mut sample) = ([0], [0]);
        Law::Mu.compress(&[level], &mut byte);
        Law::A.expand(&byte, &mut sample);
        assert!(
            sample[0].abs_diff(level) > level.unsigned_abs() / 8,
            "{level} is {} in the other law",
            sample[0]
        );
    }
}
