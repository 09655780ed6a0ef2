//! Synthesis by a server (`--tts-url`): its audio arrives sample by sample, nothing else does, and its faults cost one
//! response (RC-047, RC-052).

use std::time::Duration;

use serde_json::json;

use crate::client::{Client, samples_of};
use crate::server::Server;
use crate::speech_server::{ScriptedSpeech, Speak, Then};

/// A request that is given up is gone well before this.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

/// Two clauses for the splitter.
const TWO_SENTENCES: &str =
    "This is the first sentence of the answer. And here comes the second one, a little later.";

async fn start(speech: &ScriptedSpeech, args: &[&str]) -> Server {
    let url = speech.url();
    let given = ["--tts-url", &url, "--tts-model", "scripted", "--tts-voice", "ash"];
    Server::fake_with(2, &[&given, args].concat()).await
}

/// `count` samples from `first` on, each one higher than the last.
fn ramp(first: i16, count: i16) -> Vec<i16> {
    (first..first + count).collect()
}

fn bytes(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

fn wav(samples: &[i16]) -> Vec<u8> {
    let spec = hound::WavSpec {
        channels: 1,
        sample_rate: 24_000,
        bits_per_sample: 16,
        sample_format: hound::SampleFormat::Int,
    };
    let mut file = std::io::Cursor::new(Vec::new());
    let mut writer = hound::WavWriter::new(&mut file, spec).expect("in memory");
    samples.iter().for_each(|&sample| writer.write_sample(sample).expect("in memory"));
    writer.finalize().expect("in memory");
    file.into_inner()
}

/// `bytes` in pieces of `len`.
fn cut(bytes: &[u8], len: usize) -> Vec<Vec<u8>> {
    bytes.chunks(len).map(<[u8]>::to_vec).collect()
}

fn pcm(samples: &[i16], then: Then) -> Speak {
    Speak::Pieces("audio/pcm", cut(&bytes(samples), 999), then)
}

/// The next answer is complete, and its audio is what the server makes of it.
async fn is_well(client: &mut Client, speech: &ScriptedSpeech) {
    let samples = ramp(-3_000, 6_000);
    speech.speaks([pcm(&samples, Then::End)]);
    client.ask("All is well again.").await;
    let answer = client.answer().await;
    assert_eq!((answer.status.as_str(), answer.text.trim()), ("completed", "All is well again."));
    assert!(answer.samples == samples, "{} samples, expected {}", answer.samples.len(), samples.len());
}

#[tokio::test]
async fn every_sample_arrives_however_it_is_cut() {
    let speech = ScriptedSpeech::start().await;
    let server = start(&speech, &[]).await;
    let mut client = Client::open(server.addr()).await;
    let samples = ramp(-10_000, 20_000);
    let (raw, file) = (bytes(&samples), wav(&samples));
    for (content_type, pieces) in [
        ("audio/pcm", cut(&raw, raw.len())),
        ("audio/pcm", cut(&raw, 1_001)),
        ("audio/pcm; rate=24000", cut(&raw, 333)),
        ("audio/wav", cut(&file, 1_001)),
        ("audio/x-wav", cut(&file, 7_777)),
        ("application/octet-stream", cut(&file, file.len())),
    ] {
        speech.speaks([Speak::Pieces(content_type, pieces, Then::End)]);
        client.ask("Speak, please.").await;
        let answer = client.answer().await;
        assert_eq!(answer.status, "completed", "{content_type}");
        assert!(answer.samples == samples, "{content_type}: {} samples", answer.samples.len());
    }
    // One piece of 6 s.
    let long: Vec<i16> =
        (0..144_000).map(|n| i16::try_from(n % 20_011 - 10_000).expect("a sample")).collect();
    speech.speaks([Speak::Pieces("audio/pcm", vec![bytes(&long)], Then::End)]);
    client.ask("Speak, please.").await;
    let answer = client.answer().await;
    assert!(answer.samples == long, "one piece: {} samples", answer.samples.len());
    let asked = speech.texts();
    let expected = json!({"input": "Speak, please.", "response_format": "pcm", "speed": 1.0,
        "model": "scripted", "voice": "ash"});
    assert!(asked.iter().all(|asked| *asked == expected), "{asked:?}");
}

#[tokio::test]
async fn clauses_are_spoken_in_their_order_and_audio_goes_out_before_its_end_has_come() {
    let speech = ScriptedSpeech::start().await;
    let server = start(&speech, &[]).await;
    let mut client = Client::open(server.addr()).await;
    let (first, second) = (ramp(0, 5_000), ramp(10_000, 5_001));
    speech.speaks([pcm(&first, Then::End), pcm(&second, Then::End)]);
    client.ask(TWO_SENTENCES).await;
    let answer = client.answer().await;
    assert_eq!(answer.status, "completed");
    assert!(answer.samples == [first.clone(), second].concat(), "{} samples", answer.samples.len());
    let asked: Vec<_> = speech.texts().iter().map(|asked| asked["input"].clone()).collect();
    assert_eq!(asked.len(), 2, "{asked:?}");

    // The end never comes; whole frames of what has come are heard, and a cancel takes the request along.
    speech.speaks([pcm(&first, Then::Stall)]);
    client.ask(TWO_SENTENCES).await;
    let created = client.expect("response.created").await;
    let mut heard = Vec::new();
    while heard.len() < 4_800 {
        heard.extend(samples_of(&client.expect("response.output_audio.delta").await));
    }
    assert!(heard == first[..4_800], "{} samples", heard.len());
    client.send(&json!({ "type": "response.cancel" })).await;
    assert_eq!(client.rest_of_answer(&created).await.status, "cancelled");
    speech.abandoned(1, CANCEL_LIMIT).await;
    is_well(&mut client, &speech).await;
}

#[tokio::test]
async fn no_byte_that_is_no_audio_is_heard() {
    let speech = ScriptedSpeech::start().await;
    let server = start(&speech, &["--tts-timeout-s", "1"]).await;
    let mut client = Client::open(server.addr()).await;
    let failures = [
        Speak::Answer(401, "application/json", r#"{"error": {"message": "bad key"}}"#),
        Speak::Answer(429, "application/json", r#"{"error": {"message": "too many"}}"#),
        Speak::Answer(500, "text/plain", "oh no"),
        Speak::Answer(200, "text/html", "<p>Welcome to the portal</p>"),
        Speak::Answer(200, "application/json", r#"{"error": "quota"}"#),
        Speak::Answer(200, "audio/mpeg", "not what was asked for"),
        Speak::Answer(200, "audio/pcm", "ID3\u{4}and what follows"),
        Speak::Silence,
        Speak::Pieces("audio/pcm", vec![], Then::Stall),
        Speak::Pieces("audio/pcm", vec![], Then::Break),
    ];
    for failure in failures {
        let before = speech.texts().len();
        speech.speaks([failure.clone()]);
        client.ask(TWO_SENTENCES).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, "failed", "{failure:?}: {:?}", answer.details);
        assert_eq!(answer.details["error"]["code"], "tts_failed", "{failure:?}: {:?}", answer.details);
        assert!(answer.samples.is_empty(), "{failure:?}: {} samples", answer.samples.len());
        is_well(&mut client, &speech).await;
        assert_eq!(
            speech.texts().len(),
            before + 2,
            "{failure:?}: nothing more is asked for a failed answer"
        );
    }
}

#[tokio::test]
async fn what_was_made_before_a_failure_is_heard() {
    let speech = ScriptedSpeech::start().await;
    let server = start(&speech, &["--tts-timeout-s", "1"]).await;
    let mut client = Client::open(server.addr()).await;
    let (first, second) = (ramp(0, 5_000), ramp(10_000, 5_001));
    for then in [Then::Break, Then::Stall] {
        speech.speaks([pcm(&first, Then::End), pcm(&second, then)]);
        client.ask(TWO_SENTENCES).await;
        let answer = client.answer().await;
        assert_eq!(answer.status, "failed", "{then:?}");
        let made = [&first[..], &second].concat();
        assert!(
            answer.samples == made,
            "{then:?}: {} samples, expected {}",
            answer.samples.len(),
            made.len()
        );
        is_well(&mut client, &speech).await;
    }
}

#[tokio::test]
async fn whoever_leaves_takes_the_request_along() {
    let speech = ScriptedSpeech::start().await;
    let server = start(&speech, &[]).await;
    let scripts = [Speak::Silence, pcm(&ramp(0, 5_000), Then::Stall), Speak::Silence];
    for (round, script) in (1..).zip(scripts) {
        let mut client = Client::open(server.addr()).await;
        speech.speaks([script]);
        client.ask(TWO_SENTENCES).await;
        speech.received(round, CANCEL_LIMIT).await;
        if round == 2 {
            client.reset();
        } else {
            client.cut();
        }
        speech.abandoned(round, CANCEL_LIMIT).await;
        server.all_units_free().await;
    }
    let mut client = Client::open(server.addr()).await;
    is_well(&mut client, &speech).await;
}
