//! What a client may do wrong, and that it costs nothing but an `error` event (RC-025, RC-054, RC-055, RC-056).

use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use crate::client::{Client, EVENT_LIMIT, Heard, NoSession, append_event, base64_of, item_event};
use crate::server::Server;
use crate::signal::{is_level, level, silence, utterance};

/// Largest audio of one append, decoded: the reference's limit.
const APPEND_BYTES_MAX: usize = 15 * 1_024 * 1_024;

/// Memory that the server may keep of what one client has pushed at it.
const KEPT_BYTES_MAX: u64 = 128 * 1_024 * 1_024;

/// Says one utterance of this level and checks the answer; returns the transcript.
async fn is_answered(client: &mut Client, at: i16) -> String {
    client.stream(&utterance(at)).await;
    heard_and_answered(client, at).await
}

async fn heard_and_answered(client: &mut Client, at: i16) -> String {
    let mut transcript = String::new();
    loop {
        let event = client.event().await;
        assert_ne!(event["type"], "error", "{event}");
        if event["type"] == "conversation.item.input_audio_transcription.completed" {
            transcript = event["transcript"].as_str().expect("a transcript").to_owned();
        }
        if event["type"] == "response.created" {
            let answer = client.rest_of_answer(&event).await;
            let tag = *answer.samples.first().expect("an answer has audio");
            assert!(is_level(tag.into(), at), "answered with level {tag}, spoken was {at}");
            assert!(
                answer.samples.iter().all(|&sample| sample == tag),
                "the answer to {at} has foreign samples"
            );
            assert!(transcript.contains(&format!("tag={tag}")), "heard {transcript:?}, answered {tag}");
            return transcript;
        }
    }
}

/// Sends what is wrong; exactly one error must come of it, about this event, before the next event is answered.
async fn is_refused(client: &mut Client, bad: Message, event_id: Option<&str>) -> Value {
    let errors = errors_of(client, bad).await;
    let [error] = errors.as_slice() else { panic!("{} errors, expected one: {errors:?}", errors.len()) };
    assert_eq!(error["type"], "invalid_request_error", "{error}");
    if let Some(event_id) = event_id {
        assert_eq!(error["event_id"], event_id, "{error}");
    }
    assert!(error["message"].as_str().is_some_and(|message| !message.is_empty()), "{error}");
    error.clone()
}

/// All errors that come before a harmless event, sent afterwards, is answered.
async fn errors_of(client: &mut Client, message: Message) -> Vec<Value> {
    client.send_message(message).await;
    client.send(&json!({ "type": "session.update", "session": { "type": "realtime" } })).await;
    let mut errors = Vec::new();
    loop {
        let event = client.event().await;
        match event["type"].as_str() {
            Some("error") => errors.push(event["error"].clone()),
            Some("session.updated") => return errors,
            _ => {}
        }
    }
}

fn text(event: &Value) -> Message {
    Message::Text(event.to_string().into())
}

#[tokio::test]
async fn bad_audio_is_refused_whole_and_the_good_audio_around_it_is_heard() {
    let server = Server::fake(2).await;
    let mut undisturbed = Client::open(server.addr()).await;
    let expected = is_answered(&mut undisturbed, 5_000).await;

    let mut client = Client::open(server.addr()).await;
    let good = utterance(5_000);
    let (begin, end) = good.split_at(24_000);
    client.stream(begin).await;
    let bad_audio = [
        json!(base64_of(&[7; 481])),
        json!("###"),
        json!("_-_-"),
        json!("AAAA\r\nAAAA"),
        json!("AAA"),
        Value::Null,
        json!(17),
        json!([1, 2]),
    ];
    for (number, audio) in bad_audio.iter().enumerate() {
        let id = format!("bad_{number}");
        let event = json!({ "type": "input_audio_buffer.append", "event_id": id, "audio": audio });
        let error = is_refused(&mut client, text(&event), Some(&id)).await;
        assert_eq!(error["param"], "audio", "{error}");
    }
    let absent = json!({ "type": "input_audio_buffer.append", "event_id": "bad_absent" });
    is_refused(&mut client, text(&absent), Some("bad_absent")).await;
    // No audio at all is little to ask, and nothing to complain about.
    let nothing = json!({ "type": "input_audio_buffer.append", "audio": "" });
    assert_eq!(errors_of(&mut client, text(&nothing)).await, [] as [Value; 0]);
    client.stream(end).await;
    assert_eq!(heard_and_answered(&mut client, 5_000).await, expected, "not a byte more, less or moved");
}

#[tokio::test]
async fn other_formats_and_rates_are_refused_and_change_nothing() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let session = client.session().clone();
    let formats = [
        json!({ "type": "audio/pcm", "rate": 44_100 }),
        json!({ "type": "audio/pcm", "rate": 0 }),
        json!({ "type": "audio/opus" }),
        json!("pcm16"),
    ];
    for direction in ["input", "output"] {
        for (number, format) in formats.iter().enumerate() {
            let id = format!("{direction}_{number}");
            let mut audio = json!({});
            audio[direction] = json!({ "format": format });
            let update = json!({ "type": "session.update", "event_id": id,
                                 "session": { "type": "realtime", "audio": audio, "instructions": "changed" } });
            is_refused(&mut client, text(&update), Some(&id)).await;
        }
    }
    let updated = client.update(json!({})).await;
    assert_eq!(updated["session"], session, "a refused update has no effect");
    is_answered(&mut client, 4_000).await;
}

#[tokio::test]
async fn odd_json_is_an_error_and_the_session_goes_on() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let deep_event = format!(r#"{{"type":"session.update","session":{deep}}}"#);
    let broken = [
        "{\"type\": \"session.update\", ",
        "",
        "nonsense",
        "[]",
        "[{\"type\":\"response.create\"}]",
        "null",
        "17",
        "\"response.create\"",
        "{}",
        "{\"type\": 5}",
        "{\"type\": null}",
        deep.as_str(),
        deep_event.as_str(),
    ];
    for message in broken {
        is_refused(&mut client, Message::Text(message.into()), None).await;
    }
    let spaces = " ".repeat(1_000_000);
    is_refused(&mut client, Message::Text(spaces.into()), None).await;
    let named = [
        json!({ "event_id": "e1" }),
        json!({ "event_id": "e2", "type": "no.such.event" }),
        json!({ "event_id": "e3", "type": "session.update" }),
        json!({ "event_id": "e4", "type": "session.update", "session": [] }),
        json!({ "event_id": "e5", "type": "conversation.item.create" }),
        json!({ "event_id": "e6", "type": "conversation.item.create", "item": { "type": "message", "role": "user" } }),
        json!({ "event_id": "e7", "type": "response.create", "response": 7 }),
    ];
    for event in named {
        is_refused(&mut client, text(&event), event["event_id"].as_str()).await;
    }
    is_answered(&mut client, 4_000).await;
}

#[tokio::test]
async fn a_binary_message_is_an_error_and_the_session_goes_on() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    is_refused(&mut client, Message::Binary(vec![1; 960].into()), None).await;
    is_refused(&mut client, Message::Binary(vec![].into()), None).await;
    is_answered(&mut client, 4_000).await;
}

#[tokio::test]
async fn text_of_every_kind_is_kept_or_refused_but_never_fatal() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let texts = ["a\u{0}b", "a\u{2028}b", "e\u{301}\u{200f}\u{202e}שלום", "🚀", &"x".repeat(200_000)];
    for content in texts {
        client.send(&item_event(content)).await;
        let added = client.expect("conversation.item.added").await;
        assert_eq!(added["item"]["content"][0]["text"], content, "the text comes back as it was");
    }
    // More than the conversation can hold is refused; what it holds already stays.
    let mut long = item_event(&"x".repeat(300_000));
    long["event_id"] = json!("long");
    is_refused(&mut client, text(&long), Some("long")).await;
    // Half a surrogate pair, as JavaScript cuts it: replaced, or refused.
    let item = item_event("HALF").to_string().replace("HALF", "abc \\ud83d");
    let errors = errors_of(&mut client, Message::Text(item.into())).await;
    assert!(errors.len() <= 1, "{errors:?}");
    // The same name twice: one of them counts, no error is needed.
    let twice = r#"{"type":"session.update","type":"session.update","session":{"type":"realtime"}}"#;
    client.send_message(Message::Text(twice.into())).await;
    client.expect("session.updated").await;
    is_answered(&mut client, 4_000).await;
}

#[tokio::test]
async fn a_text_message_that_is_no_utf8_closes_with_1007() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let bytes = b"{\"type\":\"\xff\xfe\"}".to_vec();
    client.send_message(Message::Frame(Frame::message(bytes, OpCode::Data(Data::Text), true))).await;
    let close = client.closed_by_server().await;
    assert_eq!(close.map(|(code, _)| code), Some(1_007));
    server.all_units_free().await;
}

#[tokio::test]
async fn appends_up_to_15_mib_are_taken_in_one_frame_and_in_fragments() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let before = server.usage().rss_bytes;
    let mut sent_ms = 0;
    for mebibytes in [1, 10, 15] {
        let samples = vec![0_i16; mebibytes * 1_024 * 1_024 / 2];
        let event = append_event(&samples).to_string();
        assert_eq!(errors_of(&mut client, Message::Text(event.clone().into())).await, [] as [Value; 0]);
        send_in_fragments(&mut client, event.as_bytes(), 64 * 1_024).await;
        assert_eq!(errors_of(&mut client, text(&append_event(&[0; 480]))).await, [] as [Value; 0]);
        sent_ms += 2 * samples.len() / 24 + 20;
    }
    // Times count all audio that was written, so they say whether all of it has arrived.
    client.stream(&utterance(6_000)).await;
    let started = client.expect("input_audio_buffer.speech_started").await;
    let start_ms = started["audio_start_ms"].as_u64().expect("a time");
    assert!(
        start_ms.abs_diff(sent_ms as u64) <= 400,
        "speech at {start_ms} ms, silence before it {sent_ms} ms"
    );
    heard_and_answered(&mut client, 6_000).await;
    let grown = server.usage().rss_bytes.saturating_sub(before);
    assert!(grown < KEPT_BYTES_MAX, "the server keeps {grown} bytes");
}

#[tokio::test]
async fn larger_appends_are_refused_with_a_reason() {
    let server = Server::fake(1).await;
    for bytes in [APPEND_BYTES_MAX + 2, 70 * 1_024 * 1_024] {
        let client = Client::open(server.addr()).await;
        let event = json!({ "type": "input_audio_buffer.append", "event_id": "big", "audio": base64_of(&vec![0; bytes]) });
        match refusal_of_large(client, event.to_string()).await {
            (Heard::Event(error), Some(mut client)) => {
                assert_eq!(error["type"], "error", "{bytes} bytes: {error}");
                is_answered(&mut client, 4_000).await;
                client.close().await;
            }
            (Heard::Close(Some((code, reason))), _) => {
                assert_eq!(code, 1_009, "{bytes} bytes: {reason}");
                assert!(!reason.is_empty(), "{bytes} bytes: a close without a reason");
            }
            (other, _) => panic!("{bytes} bytes: {other:?}, expected an error or a close with its reason"),
        }
        server.all_units_free().await;
    }
}

/// The limit is admission: what a server keeps of large messages is bounded by its units.
#[tokio::test]
async fn a_hundred_largest_appends_at_once_cost_what_the_units_may_hold() {
    const UNITS: usize = 4;
    let server = Server::fake(UNITS).await;
    let addr = server.addr();
    let before = server.usage().rss_bytes;
    let append = text(&append_event(&vec![0; APPEND_BYTES_MAX / 2]));
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..100 {
        let append = append.clone();
        clients.spawn(async move {
            let mut client = match Client::try_open(addr).await {
                Ok(client) => client,
                Err(NoSession::Refused(error, _)) => {
                    assert_eq!(error["type"], "session_limit_reached", "{error}");
                    return 0_usize;
                }
                Err(other) => panic!("{other:?}, expected a session or its refusal"),
            };
            assert_eq!(errors_of(&mut client, append).await, [] as [Value; 0]);
            client.close().await;
            1
        });
    }
    let taken: usize = clients.join_all().await.into_iter().sum();
    assert!(taken >= UNITS, "{taken} appends taken by {UNITS} units");
    let grown = server.usage().rss_bytes.saturating_sub(before);
    assert!(grown < UNITS as u64 * KEPT_BYTES_MAX, "the server keeps {grown} bytes");
    server.all_units_free().await;
}

/// Sends and reads at once, since a server may refuse a message while it is still coming.
async fn refusal_of_large(mut client: Client, event: String) -> (Heard, Option<Client>) {
    let sent = client.try_send_while_reading(Message::Text(event.into())).await;
    let heard = match sent {
        Some(heard) => heard,
        None => client.hear().await,
    };
    let goes_on = matches!(heard, Heard::Event(_));
    (heard, goes_on.then_some(client))
}

async fn send_in_fragments(client: &mut Client, bytes: &[u8], size: usize) {
    let count = bytes.chunks(size).len();
    for (number, piece) in bytes.chunks(size).enumerate() {
        let kind = if number == 0 { Data::Text } else { Data::Continue };
        let frame = Frame::message(piece.to_vec(), OpCode::Data(kind), number + 1 == count);
        client.send_message(Message::Frame(frame)).await;
    }
}

#[tokio::test]
async fn half_an_hour_of_audio_at_once_neither_grows_the_server_nor_delays_it_for_good() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let before = server.usage().rss_bytes;
    let quiet = append_event(&silence(1_000)).to_string();
    let mut largest = 0;
    for second in 0..1_800 {
        client.send_message(Message::Text(quiet.clone().into())).await;
        if second % 60 == 0 {
            largest = largest.max(server.usage().rss_bytes);
        }
    }
    is_answered(&mut client, 6_000).await;
    let grown = largest.max(server.usage().rss_bytes).saturating_sub(before);
    assert!(grown < KEPT_BYTES_MAX, "half an hour of audio takes {grown} bytes");
}

#[tokio::test]
async fn audio_that_nobody_commits_is_kept_within_bounds() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    client.update(json!({ "audio": { "input": { "turn_detection": null } } })).await;
    let before = server.usage().rss_bytes;
    let loud = append_event(&level(1_000, 3_000)).to_string();
    for _ in 0..900 {
        client.send_message(Message::Text(loud.clone().into())).await;
    }
    client.send(&json!({ "type": "input_audio_buffer.clear" })).await;
    client.expect("input_audio_buffer.cleared").await;
    let grown = server.usage().rss_bytes.saturating_sub(before);
    assert!(grown < KEPT_BYTES_MAX, "15 minutes of audio without a commit take {grown} bytes");
    client.stream(&level(1_000, 7_000)).await;
    client.send(&json!({ "type": "input_audio_buffer.commit" })).await;
    let heard = client.expect("conversation.item.input_audio_transcription.completed").await;
    client.send(&json!({ "type": "response.create" })).await;
    let answer = client.answer().await;
    let tag = *answer.samples.first().expect("an answer has audio");
    assert!(is_level(tag.into(), 7_000), "answered with level {tag}");
    assert!(heard["transcript"].as_str().is_some_and(|said| said.contains(&format!("tag={tag}"))), "{heard}");
}

impl Client {
    /// Sends; if the server says something before all is sent, what it says.
    async fn try_send_while_reading(&mut self, message: Message) -> Option<Heard> {
        let (mut sink, mut stream) = self.split();
        let send = sink.send(message);
        tokio::pin!(send);
        let mut heard = None;
        let mut is_sent = false;
        while heard.is_none() && !is_sent {
            tokio::select! {
                biased;
                message = stream.next() => heard = Some(heard_from(message)),
                sent = &mut send => match sent {
                    Ok(()) => is_sent = true,
                    // The reason, if there is one, is already here.
                    Err(_) => heard = Some(heard_from(timeout(EVENT_LIMIT, stream.next()).await.ok().flatten())),
                },
            }
        }
        // A refusal is an answer to a whole message if the session goes on: the rest must go out.
        if matches!(heard, Some(Heard::Event(_))) && !is_sent {
            let _ = timeout(Duration::from_secs(30), send).await;
        }
        heard
    }
}

fn heard_from(message: Option<Result<Message, tokio_tungstenite::tungstenite::Error>>) -> Heard {
    match message {
        Some(Ok(Message::Text(text))) => Heard::Event(serde_json::from_str(&text).expect("JSON")),
        Some(Ok(Message::Close(frame))) => Heard::Close(frame.map(|f| (f.code.into(), f.reason.to_string()))),
        other => Heard::Broken(format!("{other:?}")),
    }
}
