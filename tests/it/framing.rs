//! Where a client cuts its audio makes no difference (RC-026).

use serde_json::json;

use crate::client::Client;
use crate::rng::Rng;
use crate::server::Server;
use crate::signal::{RATE, is_level, level, samples_in, silence, utterance};

/// Levels of the utterances.
const LEVELS: [i16; 4] = [2_000, 9_000, 4_000, 15_000];

/// One detector window, milliseconds: the most by which a time may move.
const WINDOW_MS: u64 = 32;

/// What the server made of one utterance.
#[derive(Debug, Default, PartialEq, Eq)]
struct Turn {
    start_ms: u64,
    end_ms: u64,
    transcript: String,
}

/// Four utterances in about 20 s.
fn recording() -> Vec<i16> {
    let mut samples = silence(700);
    for at in LEVELS {
        samples.extend(level(3_100, at));
        samples.extend(silence(1_700));
    }
    samples
}

/// Streams the recording in these cuts and returns what the server made of it.
async fn turns(server: &Server, samples: &[i16], mut cut: impl FnMut() -> usize) -> Vec<Turn> {
    server.all_units_free().await;
    let mut client = Client::open(server.addr()).await;
    // Pushed at line speed, an answer would always be interrupted by the next utterance: none is asked for.
    let detection = json!({ "type": "server_vad", "create_response": false });
    client.update(json!({ "audio": { "input": { "turn_detection": detection } } })).await;
    let mut rest = samples;
    while !rest.is_empty() {
        let (chunk, tail) = rest.split_at(cut().min(rest.len()));
        client.append(chunk).await;
        rest = tail;
    }
    let mut turns: Vec<(String, Turn)> = Vec::new();
    let mut transcribed = 0;
    while transcribed < LEVELS.len() {
        let event = client.event().await;
        let item = event["item_id"].as_str().unwrap_or_default();
        let ms = |name: &str| event[name].as_u64().unwrap_or_else(|| panic!("no {name} in {event}"));
        let known = turns.iter_mut().find(|(id, _)| id == item).map(|(_, turn)| turn);
        match (event["type"].as_str().expect("a type"), known) {
            ("input_audio_buffer.speech_started", None) => {
                let turn = Turn { start_ms: ms("audio_start_ms"), ..Turn::default() };
                turns.push((item.to_owned(), turn));
            }
            ("input_audio_buffer.speech_stopped", Some(turn)) => turn.end_ms = ms("audio_end_ms"),
            ("conversation.item.input_audio_transcription.completed", Some(turn)) => {
                event["transcript"].as_str().expect("a transcript").clone_into(&mut turn.transcript);
                transcribed += 1;
            }
            ("error", _) => panic!("{event}"),
            _ => {}
        }
    }
    client.close().await;
    turns.into_iter().map(|(_, turn)| turn).collect()
}

#[tokio::test]
async fn every_cut_of_the_audio_gives_the_same_turns() {
    let server = Server::fake(1).await;
    let samples = recording();
    let expected = turns(&server, &samples, || samples_in(20)).await;
    for (turn, at) in expected.iter().zip(LEVELS) {
        let tag = turn.transcript.split("tag=").nth(1).and_then(|tag| tag.split(' ').next()?.parse().ok());
        assert!(tag.is_some_and(|tag| is_level(tag, at)), "{turn:?}, spoken was {at}");
    }
    for ms in [10, 32, 100, 600, 5_000] {
        same(&expected, &turns(&server, &samples, || samples_in(ms)).await, &format!("{ms} ms"));
    }
    let seed = Rng::seed_of_run();
    let mut rng = Rng::new(seed);
    let random =
        turns(&server, &samples, || 1 + usize::try_from(rng.below(4_000)).expect("below 4,000")).await;
    same(&expected, &random, &format!("1 to 4,000 samples, ANTIPHON_SEED={seed}"));
    let mut appends = 0;
    let single = turns(&server, &samples, || {
        appends += 1;
        // A burst of single samples in the middle of the first utterance.
        if (100..2_500).contains(&appends) { 1 } else { RATE / 50 }
    });
    same(&expected, &single.await, "2,400 appends of one sample");
}

fn same(expected: &[Turn], found: &[Turn], cut: &str) {
    assert_eq!(found.len(), expected.len(), "{cut}: {found:?}");
    for (expected, found) in expected.iter().zip(found) {
        assert!(
            found.start_ms.abs_diff(expected.start_ms) <= WINDOW_MS,
            "{cut}: {found:?}, expected {expected:?}"
        );
        assert!(
            found.end_ms.abs_diff(expected.end_ms) <= WINDOW_MS,
            "{cut}: {found:?}, expected {expected:?}"
        );
        assert_eq!(found.transcript, expected.transcript, "{cut}");
    }
}

#[tokio::test]
async fn a_change_of_turn_detection_holds_from_its_place_in_the_audio() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    for round in 0..20 {
        client.update(json!({ "audio": { "input": { "turn_detection": null } } })).await;
        client.stream(&utterance(3_000)).await;
        client.send(&json!({ "type": "input_audio_buffer.commit" })).await;
        // The detector may not have come to the audio yet.
        let turns = json!({ "type": "server_vad", "create_response": false });
        client.update(json!({ "audio": { "input": { "turn_detection": turns } } })).await;
        let heard = client.expect("conversation.item.input_audio_transcription.completed").await;
        assert!(heard["transcript"].as_str().is_some_and(|text| text.contains("dur")), "{round}: {heard}");
    }
}
