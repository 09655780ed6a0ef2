//! Nobody hears anybody else, whatever dies when (RC-048, RC-049): many clients on few units, all leaving at random.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;

use crate::client::{Client, Heard, NoSession, append_event, item_event, samples_of};
use crate::rng::Rng;
use crate::server::Server;
use crate::signal::{is_level, utterance};

/// Clients at once.
const CLIENTS: usize = 64;

/// Units; fewer than clients, so that every unit goes from hand to hand and some clients are turned away.
const UNITS: usize = 60;

/// Sessions in all.
const CLAIMS: i64 = 10_000;

/// What one session asks for.
#[derive(Clone, Copy, Debug)]
enum Question {
    /// Written: the answer has exactly this level.
    Written(i16),
    /// Spoken at this level: the answer has the level that the server heard.
    Spoken(i16),
}

/// How one session ends.
#[derive(Clone, Copy, Debug)]
enum End {
    /// Close, after the answer is complete.
    AfterAnswer,
    /// Close, FIN or RST as soon as this many events have come.
    Close(u64),
    Cut(u64),
    Reset(u64),
    /// `response.cancel` after this many events, then a close.
    CancelAndClose(u64),
}

#[derive(Debug, Default)]
struct Seen {
    sessions: AtomicU64,
    refusals: AtomicU64,
    spoken: AtomicU64,
    deltas: AtomicU64,
    samples: AtomicU64,
    completed: AtomicU64,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_claims_and_no_foreign_sample() {
    let server = Server::fake(UNITS).await;
    let seed = Rng::seed_of_run();
    let (seen, left) = (Arc::new(Seen::default()), Arc::new(AtomicI64::new(CLAIMS)));
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let rng = Rng::new(seed ^ (number as u64) << 32);
        clients.spawn(visit(server.addr(), rng, Arc::clone(&left), Arc::clone(&seen)));
    }
    while let Some(client) = clients.join_next().await {
        client.unwrap_or_else(|error| panic!("ANTIPHON_SEED={seed}: {error}"));
    }
    server.all_units_free().await;
    println!("{seen:?}, ANTIPHON_SEED={seed}");
    let sessions = seen.sessions.load(Ordering::Relaxed);
    assert_eq!(sessions, CLAIMS as u64);
    // The test must have tested something.
    assert!(
        seen.samples.load(Ordering::Relaxed) > 1_000_000 && seen.spoken.load(Ordering::Relaxed) > 500,
        "{seen:?}"
    );
    assert!(seen.completed.load(Ordering::Relaxed) > sessions / 5, "{seen:?}");
    let usage = server.json("/v1/usage").await;
    assert_eq!(usage["connections"], sessions, "{usage}");
}

#[tokio::test]
async fn the_detector_of_foreign_samples_detects() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    client.ask("say dur=0.2 tag=1234").await;
    let answer = client.answer().await;
    answer.assert_is(1_234, 0.2);
    let foreign = tokio::spawn(async move { answer.assert_is(1_235, 0.2) });
    assert!(foreign.await.is_err(), "samples of 1234 passed for those of 1235");
}

/// Takes sessions until all claims are used up.
async fn visit(addr: SocketAddr, mut rng: Rng, left: Arc<AtomicI64>, seen: Arc<Seen>) {
    while left.fetch_sub(1, Ordering::Relaxed) > 0 {
        let client = loop {
            match Client::try_open(addr).await {
                Ok(client) => break client,
                Err(NoSession::Refused(error, close)) => {
                    assert_eq!(error["type"], "session_limit_reached", "{error}");
                    assert_eq!(close.map(|(code, _)| code), Some(1_008));
                    seen.refusals.fetch_add(1, Ordering::Relaxed);
                }
                Err(NoSession::Unreachable(error)) => panic!("no connection: {error}"),
            }
        };
        seen.sessions.fetch_add(1, Ordering::Relaxed);
        let level = 400 + i16::try_from(rng.below(32_000)).expect("below 32,000");
        let question = if rng.below(5) == 0 { Question::Spoken(level) } else { Question::Written(level) };
        let events = rng.below(30);
        let end = match rng.below(8) {
            0..=2 => End::AfterAnswer,
            3 => End::Close(events),
            4 | 5 => End::Cut(events),
            6 => End::Reset(events),
            _ => End::CancelAndClose(events),
        };
        talk(client, question, end, &mut rng, &seen).await;
    }
}

async fn talk(mut client: Client, question: Question, end: End, rng: &mut Rng, seen: &Seen) {
    if let Err(error) = say(&mut client, question, rng).await {
        panic!("{question:?}: the server takes nothing any more: {error}; it said {}", client.last_events());
    }
    if let Question::Spoken(_) = question {
        seen.spoken.fetch_add(1, Ordering::Relaxed);
    }
    let mut heard = 0;
    let mut tag = match question {
        Question::Written(tag) => Some(tag),
        Question::Spoken(_) => None,
    };
    loop {
        match end {
            End::Close(events) if heard >= events => return client.close().await,
            End::Cut(events) if heard >= events => return client.cut(),
            End::Reset(events) if heard >= events => return client.reset(),
            End::CancelAndClose(events) if heard >= events => {
                let _ = client
                    .try_send(Message::Text(json!({ "type": "response.cancel" }).to_string().into()))
                    .await;
                return client.close().await;
            }
            _ => {}
        }
        let Heard::Event(event) = client.hear().await else {
            panic!("{question:?}, {end:?}: closed by the server after {}", client.last_events());
        };
        heard += 1;
        is_mine(&event, question, &mut tag, seen);
        if event["type"] == "response.done" {
            assert_eq!(event["response"]["status"], "completed", "{event}");
            seen.completed.fetch_add(1, Ordering::Relaxed);
            return client.close().await;
        }
    }
}

async fn say(
    client: &mut Client,
    question: Question,
    rng: &mut Rng,
) -> Result<(), tokio_tungstenite::tungstenite::Error> {
    match question {
        Question::Written(tag) => {
            let dur = 0.05 + rng.below(40) as f64 / 100.0;
            let item = item_event(&format!("say dur={dur:.2} tag={tag} rt=0"));
            client.try_send(Message::Text(item.to_string().into())).await?;
            client.try_send(Message::Text(json!({ "type": "response.create" }).to_string().into())).await
        }
        Question::Spoken(level) => {
            for chunk in utterance(level).chunks(4_800) {
                client.try_send(Message::Text(append_event(chunk).to_string().into())).await?;
            }
            Ok(())
        }
    }
}

/// Every sample and every word must be of this session's own question.
fn is_mine(event: &Value, question: Question, tag: &mut Option<i16>, seen: &Seen) {
    match event["type"].as_str().expect("an event has a type") {
        "response.output_audio.delta" => {
            let tag = tag.unwrap_or_else(|| panic!("{question:?}: audio before the transcript: {event}"));
            let samples = samples_of(event);
            if let Some(foreign) = samples.iter().find(|&&sample| sample != tag) {
                panic!("{question:?}: a sample of {foreign} in the answer of {tag}");
            }
            seen.deltas.fetch_add(1, Ordering::Relaxed);
            seen.samples.fetch_add(samples.len() as u64, Ordering::Relaxed);
        }
        "conversation.item.input_audio_transcription.completed" => {
            let Question::Spoken(level) = question else { panic!("{question:?}: a transcript: {event}") };
            let heard = event["transcript"].as_str().and_then(|text| text.split("tag=").nth(1));
            let heard = heard.and_then(|rest| rest.split(' ').next()?.parse().ok());
            let heard: i16 = heard.unwrap_or_else(|| panic!("no tag in {event}"));
            assert!(is_level(heard.into(), level), "{question:?}: heard {heard}");
            *tag = Some(heard);
        }
        "input_audio_buffer.speech_started" => {
            assert!(matches!(question, Question::Spoken(_)), "{question:?}: somebody else's speech: {event}");
        }
        "error" => panic!("{question:?}: {event}"),
        _ => {}
    }
}
