//! What client and server do in the same moment: whoever is first, each event has one outcome, and what comes next is whole
//! (RC-009, RC-010, RC-011, RC-013, RC-018).

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::SinkExt;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Answer, Client, item_event, samples_of};
use crate::llm::{Script, ScriptedLlm};
use crate::rng::Rng;
use crate::server::Server;
use crate::signal::{is_level, level, samples_in, silence, utterance};
use crate::speech_server::{Hear, ScriptedSpeech};

const COMPLETED: &str = "conversation.item.input_audio_transcription.completed";

/// A written question whose answer has begun.
async fn begun(client: &mut Client, text: &str) -> Answer {
    client.ask(text).await;
    let created = client.expect("response.created").await;
    Answer { id: created["response"]["id"].as_str().expect("an id").to_owned(), ..Answer::default() }
}

/// The next answer is the whole one to an utterance of this level: half a second of it.
async fn is_answered(client: &mut Client, at: i16, when: &str) {
    let answer = client.answer().await;
    let tag = *answer.samples.first().unwrap_or_else(|| panic!("{when}: an answer without audio"));
    assert!(is_level(tag.into(), at), "{when}: answered {tag}, spoken was {at}");
    assert!(answer.text.contains(&format!("tag={tag}")), "{when}: {:?} for {tag}", answer.text);
    answer.assert_is(tag, 0.5);
}

impl Client {
    /// Sends events so that they leave in one write.
    async fn send_at_once(&mut self, events: &[Value]) {
        let (mut sink, _stream) = self.split();
        for event in events {
            sink.feed(Message::Text(event.to_string().into())).await.expect("the server takes it");
        }
        sink.flush().await.expect("the server takes it");
    }

    /// An event that changes nothing and is confirmed.
    async fn send_marker(&mut self) {
        self.send(&json!({ "type": "session.update", "session": { "type": "realtime" } })).await;
    }
}

/// Reads until the turn is transcribed and nothing runs any more. The request `id` has become one response or one error by
/// then, before a marker that was sent behind it is confirmed; all answers are whole, one after the other. Returns whether
/// it was granted.
async fn settles(client: &mut Client, id: &str) -> bool {
    client.send_marker().await;
    let (mut markers, mut is_transcribed, mut is_quiet) = (1, false, false);
    let (mut responses, mut granted, mut refused) = (0, 0, 0);
    let (mut running, mut samples) = (None::<String>, 0);
    loop {
        let event = client.event().await;
        let kind = event["type"].as_str().expect("an event has a type");
        match kind {
            "error" => {
                let error = &event["error"];
                assert_eq!(error["code"], "conversation_already_has_active_response", "{event}");
                assert_eq!(error["event_id"], id, "{event}");
                assert!(running.is_some(), "{id}: refused, and nothing is running: {event}");
                refused += 1;
            }
            "response.created" => {
                assert_eq!(running, None, "{id}: two at once: {event}");
                running = event["response"]["id"].as_str().map(str::to_owned);
                granted += usize::from(event["response"]["metadata"]["asked"] == id);
                responses += 1;
                (samples, is_quiet) = (0, false);
            }
            "response.done" => {
                assert_eq!(running.take().as_deref(), event["response"]["id"].as_str(), "{event}");
                assert_eq!(event["response"]["status"], "completed", "{id}: {event}");
                assert_eq!(samples, samples_in(200), "{id}: samples of an answer");
            }
            COMPLETED => is_transcribed = true,
            "session.updated" => {
                assert_eq!(granted + refused, 1, "{id}: granted {granted} times, refused {refused} times");
                markers -= 1;
            }
            _ if kind.starts_with("response.") => {
                assert_eq!(event["response_id"].as_str(), running.as_deref(), "{id}: {event}");
                if kind == "response.output_audio.delta" {
                    samples += samples_of(&event).len();
                }
            }
            _ => {}
        }
        if markers > 0 || !is_transcribed || running.is_some() {
            continue;
        }
        if is_quiet {
            break;
        }
        // What is still to come of the turn comes before this one is confirmed.
        client.send_marker().await;
        (markers, is_quiet) = (1, true);
    }
    // The turn has its answer, or the client's is the answer to it.
    assert!(responses == 1 || (granted == 1 && responses == 2), "{id}: {responses} responses");
    granted == 1
}

/// RC-009: from 50 ms before the audio that ends a turn to 50 ms after it, in steps of 5 ms.
#[tokio::test]
async fn a_create_around_the_end_of_a_turn_is_granted_or_refused() {
    const ROUNDS: usize = 105;
    let llm = ScriptedLlm::start().await;
    let server = Server::fake_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let mut client = Client::open(server.addr()).await;
    // An answer takes 50 ms: some requests meet one that is running.
    let answer = Script::Say(vec!["say dur=0.2 tag=77 rt=4".to_owned()]);
    llm.script(std::iter::repeat_n(answer, 2 * ROUNDS));
    let mut granted = 0;
    for round in 0..ROUNDS {
        let step = round % 21;
        let id = format!("create_{round}");
        let asked = json!({ "metadata": { "asked": id } });
        let create = json!({ "type": "response.create", "event_id": id, "response": asked });
        client.stream(&[level(1_000, 5_000), silence(300)].concat()).await;
        // From here on the speech interrupts nothing more.
        client.expect("input_audio_buffer.speech_started").await;
        if step < 10 {
            client.send(&create).await;
            tokio::time::sleep(Duration::from_millis(5 * (10 - step as u64))).await;
        }
        client.stream(&silence(600)).await;
        if step >= 10 {
            tokio::time::sleep(Duration::from_millis(5 * (step as u64 - 10))).await;
            client.send(&create).await;
        }
        granted += usize::from(settles(&mut client, &id).await);
    }
    println!("{granted} of {ROUNDS} requests were granted");
    assert!(granted > 0, "all were refused: the sweep must begin before the turn's own response");
    assert!(granted < ROUNDS, "none was refused: the sweep must go over the turn's own response");
}

/// RC-010: the old answer is at any place when the three events arrive together.
#[tokio::test]
async fn cancel_item_and_create_in_one_write_are_taken_in_their_order() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let seed = Rng::seed_of_run();
    let mut rng = Rng::new(seed);
    for round in 0..100_i16 {
        let mut old = begun(&mut client, "say dur=60 tag=1 rt=10").await;
        for _ in 0..rng.below(15) {
            assert!(!old.take(&client.event().await), "round {round}: six seconds are over at once");
        }
        let question = item_event(&format!("say dur=0.2 tag={}", 500 + round));
        let (cancel, create) = (json!({ "type": "response.cancel" }), json!({ "type": "response.create" }));
        client.send_at_once(&[cancel, question, create]).await;
        while !old.take(&client.event().await) {}
        assert_eq!(old.status, "cancelled", "round {round}, ANTIPHON_SEED={seed}");
        assert_eq!(old.details["reason"], "client_cancelled", "round {round}, ANTIPHON_SEED={seed}");
        client.answer().await.assert_is(500 + round, 0.2);
    }
}

/// RC-010: the old answer is inside the voice, which nothing stops.
#[tokio::test]
async fn what_the_voice_is_busy_with_when_it_is_cancelled_never_comes_out() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let mut was_busy = 0;
    for round in 0..10_i16 {
        let mut old = begun(&mut client, "say dur=60 tag=1 rt=10 lat=0.8").await;
        tokio::time::sleep(Duration::from_millis(80 * round.unsigned_abs() as u64)).await;
        let question = item_event(&format!("say dur=0.2 tag={}", 500 + round));
        let (cancel, create) = (json!({ "type": "response.cancel" }), json!({ "type": "response.create" }));
        client.send_at_once(&[cancel, question, create]).await;
        while !old.take(&client.event().await) {}
        assert_eq!(old.status, "cancelled", "round {round}");
        assert_eq!(old.details["reason"], "client_cancelled", "round {round}");
        was_busy += usize::from(old.samples.is_empty());
        // Fails on anything of the old response.
        client.answer().await.assert_is(500 + round, 0.2);
    }
    assert!(was_busy > 0, "the voice was done with the old answer each time");
}

/// RC-011: the user interrupts, and the client says so too, 0 to 30 ms later.
#[tokio::test]
async fn a_cancel_behind_an_interruption_is_harmless() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    for delay_ms in 0..=30 {
        let when = format!("{delay_ms} ms");
        let mut old = begun(&mut client, "say dur=60 tag=5 rt=1").await;
        while old.samples.is_empty() {
            assert!(!old.take(&client.event().await), "{when}: a minute is over at once");
        }
        client.stream(&level(1_000, 9_000)).await;
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        client.send(&json!({ "type": "response.cancel", "event_id": when })).await;
        client.stream(&silence(900)).await;
        let mut is_over = false;
        loop {
            let event = client.event().await;
            if event["type"] == "error" {
                assert_eq!(event["error"]["code"], "response_cancel_not_active", "{event}");
                assert_eq!(event["error"]["event_id"], when.as_str(), "{event}");
                assert!(is_over && old.details["reason"] == "turn_detected", "{when}: {:?}", old.details);
                break;
            }
            is_over = is_over || old.take(&event);
            if is_over && old.details["reason"] == "client_cancelled" {
                break;
            }
        }
        assert_eq!(old.status, "cancelled", "{when}");
        is_answered(&mut client, 9_000, &when).await;
        client.ask("say dur=0.2 tag=45").await;
        client.answer().await.assert_is(45, 0.2);
    }
}

/// RC-013: from 88 ms before the automatic commit to 72 ms after it, in steps of 4 ms of audio.
#[tokio::test]
async fn a_commit_around_the_automatic_one_makes_one_item_or_one_error() {
    let server = Server::fake(1).await;
    let audio = [level(2_000, 6_000), silence(1_500)].concat();
    let (mut won, mut lost) = (0, 0);
    for position_ms in (2_440..=2_600).step_by(4) {
        server.all_units_free().await;
        let mut client = Client::open(server.addr()).await;
        let (before, after) = audio.split_at(samples_in(position_ms));
        client.stream(before).await;
        client.send(&json!({ "type": "input_audio_buffer.commit", "event_id": "mine" })).await;
        client.stream(after).await;
        // The detector confirms it behind everything that came before.
        client.send(&json!({ "type": "input_audio_buffer.clear" })).await;
        let mut seen: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let mut is_marked = false;
        loop {
            let event = client.event().await;
            let kind = event["type"].as_str().expect("an event has a type").to_owned();
            seen.entry(kind.clone()).or_default().push(event);
            let count = |kind: &str| seen.get(kind).map_or(0, Vec::len);
            if kind == "session.updated" {
                break;
            }
            let is_settled = count("input_audio_buffer.cleared") == 1 && count(COMPLETED) == 1;
            if is_settled && count("response.done") == count("error") && !is_marked {
                client.send_marker().await;
                is_marked = true;
            }
        }
        let all = |kind: &str| seen.get(kind).cloned().unwrap_or_default();
        let when = format!("commit at {position_ms} ms: {:?}", seen.keys().collect::<Vec<_>>());
        let committed = all("input_audio_buffer.committed");
        assert_eq!(committed.len(), 1, "{when}");
        let started = all("input_audio_buffer.speech_started");
        assert_eq!(started.len(), 1, "{when}");
        assert_eq!(started[0]["item_id"], committed[0]["item_id"], "{when}");
        assert_eq!(all(COMPLETED).len(), 1, "{when}");
        let errors = all("error");
        // Who commits by hand asks for the answer by hand.
        assert_eq!(all("response.created").len(), errors.len(), "{when}");
        match errors.as_slice() {
            [] => won += 1,
            [event] => {
                assert_eq!(event["error"]["code"], "input_audio_buffer_commit_empty", "{event}");
                assert_eq!(event["error"]["event_id"], "mine", "{event}");
                lost += 1;
            }
            more => panic!("{when}: {more:?}"),
        }
        client.close().await;
    }
    assert!(won > 0 && lost > 0, "won {won}, lost {lost}: the sweep must go over the end of the turn");
}

/// RC-013: the user speaks on behind the commit, on another level to be told apart.
#[tokio::test]
async fn a_commit_in_the_middle_of_speech_makes_two_items_and_loses_nothing() {
    let speech = ScriptedSpeech::start().await;
    let server = Server::fake_with(1, &["--stt-url", &speech.url(), "--stt-model", "scripted"]).await;
    for position_ms in [500, 1_000, 1_500] {
        server.all_units_free().await;
        let mut client = Client::open(server.addr()).await;
        speech.hears([Hear::Text("Half a sentence"), Hear::Text("say dur=0.2 tag=77")]);
        client.stream(&level(position_ms, 5_000)).await;
        client.send(&json!({ "type": "input_audio_buffer.commit" })).await;
        client.stream(&[level(2_000 - position_ms, 9_000), silence(900)].concat()).await;
        let mut seen: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        let created = loop {
            let event = client.event().await;
            let kind = event["type"].as_str().expect("an event has a type").to_owned();
            if kind == "response.created" {
                break event;
            }
            seen.entry(kind).or_default().push(event);
        };
        client.rest_of_answer(&created).await.assert_is(77, 0.2);
        let when = format!("commit at {position_ms} ms: {:?}", seen.keys().collect::<Vec<_>>());
        let all = |kind: &str| seen.get(kind).cloned().unwrap_or_default();
        let started = all("input_audio_buffer.speech_started");
        let [_, again] = &started[..] else { panic!("{when}: {started:?}") };
        assert!(again["audio_start_ms"].as_u64() >= Some(position_ms as u64), "{when}: {again}");
        let items =
            |kind: &str| all(kind).into_iter().map(|event| event["item_id"].clone()).collect::<Vec<_>>();
        let spoken = items("input_audio_buffer.speech_started");
        assert_ne!(spoken[0], spoken[1], "{when}");
        assert_eq!(items("input_audio_buffer.committed"), spoken, "{when}");
        assert_eq!(items("input_audio_buffer.speech_stopped"), spoken[1..], "{when}");
        assert_eq!(items(COMPLETED), spoken, "{when}");
        assert_eq!(all("error"), [Value::Null; 0], "{when}");
        // Each half is in its own recording, to the sample but for the resampler's edges.
        let [.., first, second] = &speech.recorded()[..] else { panic!("{when}: no recordings") };
        let halves = [first, second].map(|recorded| [5_000, 9_000].map(|level| recorded.ms_of(level)));
        let expected = [[position_ms, 0], [0, 2_000 - position_ms]];
        assert!(
            halves.as_flattened().iter().zip(expected.as_flattened()).all(|(a, b)| a.abs_diff(*b) <= 5),
            "{when}: {halves:?}"
        );
        client.close().await;
    }
}

/// RC-018: the user speaks at 200 random places of an answer of three sentences.
#[tokio::test]
async fn speech_anywhere_in_an_answer_ends_it_and_gets_its_own_bit_by_bit() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let seed = Rng::seed_of_run();
    let mut rng = Rng::new(seed);
    for round in 0..200_i16 {
        let when = format!("round {round}, ANTIPHON_SEED={seed}");
        let (tag, at) = (100 + round, 2_000 + 50 * round);
        let sentence = format!("Say dur=2 tag={tag} rt=4. ");
        let mut old = begun(&mut client, sentence.repeat(3).trim_end()).await;
        let mut is_over = false;
        for _ in 0..rng.below(30) {
            is_over = old.take(&client.event().await);
            if is_over {
                break;
            }
        }
        client.stream(&utterance(at)).await;
        while !is_over {
            is_over = old.take(&client.event().await);
        }
        assert!(["cancelled", "completed"].contains(&old.status.as_str()), "{when}: {}", old.status);
        assert!(old.samples.iter().all(|&sample| sample == tag), "{when}");
        // Fails on anything of the old response.
        is_answered(&mut client, at, &when).await;
    }
}

/// RC-018: a sentence is inside the voice, which nothing stops, and two more wait for it.
#[tokio::test]
async fn speech_while_the_voice_is_busy_gets_its_own_answer_bit_by_bit() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let seed = Rng::seed_of_run();
    let mut rng = Rng::new(seed);
    let mut was_busy = 0;
    for round in 0..8_i16 {
        let when = format!("round {round}, ANTIPHON_SEED={seed}");
        let (tag, at) = (100 + round, 2_000 + 500 * round);
        let sentence = format!("Say dur=2 tag={tag} rt=4 lat=1.5. ");
        let mut old = begun(&mut client, sentence.repeat(3).trim_end()).await;
        // The first two rounds meet the first sentence.
        let delay_ms = rng.below(if round < 2 { 1_000 } else { 3_000 });
        tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        client.stream(&utterance(at)).await;
        while !old.take(&client.event().await) {}
        assert_eq!(
            (old.status.as_str(), &old.details["reason"]),
            ("cancelled", &json!("turn_detected")),
            "{when}"
        );
        assert!(old.samples.iter().all(|&sample| sample == tag), "{when}");
        was_busy += usize::from(old.samples.is_empty());
        // Fails on anything of the old response.
        is_answered(&mut client, at, &when).await;
    }
    assert!(was_busy > 0, "ANTIPHON_SEED={seed}: the first sentence was out each time");
}
