//! A Realtime client that is easy to script and hard to fool.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

/// No event takes longer than this, however busy the machine is.
pub(crate) const EVENT_LIMIT: Duration = Duration::from_secs(60);

/// Events that a failure shows.
const REMEMBERED_EVENTS: usize = 30;

/// What can come from the server.
#[derive(Debug)]
pub(crate) enum Heard {
    Event(Value),
    /// A close with its code and reason; `None`: without.
    Close(Option<(u16, String)>),
    /// The connection broke without a close.
    Broken(String),
}

/// Why there is no session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// TCP or the upgrade failed.
    Unreachable(String),
    /// The `error` object of the first event.
    Refused(Value, Option<(u16, String)>),
}

/// One session.
#[derive(Debug)]
pub(crate) struct Client {
    socket: WebSocketStream<TcpStream>,
    session: Value,
    remembered: VecDeque<String>,
}

/// A response from its `response.created` to its `response.done`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Answer {
    pub(crate) id: String,
    pub(crate) status: String,
    pub(crate) details: Value,
    pub(crate) text: String,
    pub(crate) samples: Vec<i16>,
    /// Types of all events from created to done, in their order.
    pub(crate) events: Vec<String>,
}

impl Answer {
    /// All samples are this one, and there are as many as `seconds` hold at 24 kHz.
    pub(crate) fn assert_is(&self, tag: i16, seconds: f64) {
        let foreign: Vec<_> = self.samples.iter().filter(|&&sample| sample != tag).take(5).collect();
        assert!(foreign.is_empty(), "{}: samples {foreign:?} among those of tag {tag}", self.id);
        let expected = (seconds * 24_000.0).round();
        assert_eq!(self.samples.len() as f64, expected, "{}: length of the answer of tag {tag}", self.id);
        assert_eq!(self.status, "completed", "{}", self.id);
    }
}

impl Client {
    /// Opens a session; there must be a unit for it.
    pub(crate) async fn open(addr: SocketAddr) -> Self {
        Self::try_open(addr).await.unwrap_or_else(|refusal| panic!("no session: {refusal:?}"))
    }

    /// Opens a session if there is a unit.
    pub(crate) async fn try_open(addr: SocketAddr) -> Result<Self, NoSession> {
        let unreachable = |error: &dyn std::fmt::Display| NoSession::Unreachable(error.to_string());
        let stream = TcpStream::connect(addr).await.map_err(|error| unreachable(&error))?;
        Self::over(stream, addr).await
    }

    /// Opens a session over a connection that is there.
    pub(crate) async fn over(stream: TcpStream, addr: SocketAddr) -> Result<Self, NoSession> {
        let unreachable = |error: &dyn std::fmt::Display| NoSession::Unreachable(error.to_string());
        stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
        let url = format!("ws://{addr}/v1/realtime?model=antiphon");
        let upgrade = client_async_with_config(url, stream, Some(WebSocketConfig::default()));
        let (socket, _) = timeout(EVENT_LIMIT, upgrade)
            .await
            .map_err(|error| unreachable(&error))?
            .map_err(|error| unreachable(&error))?;
        let mut client = Self { socket, session: Value::Null, remembered: VecDeque::new() };
        match client.hear().await {
            Heard::Event(event) if event["type"] == "session.created" => {
                client.session = event["session"].clone();
                Ok(client)
            }
            Heard::Event(event) if event["type"] == "error" => {
                let close = match client.hear().await {
                    Heard::Close(close) => close,
                    other => panic!("after the refusal {event}: {other:?}, expected a close"),
                };
                Err(NoSession::Refused(event["error"].clone(), close))
            }
            Heard::Event(event) => panic!("the first event is {event}, expected session.created or error"),
            Heard::Close(close) => Err(NoSession::Unreachable(format!("closed: {close:?}"))),
            Heard::Broken(error) => Err(NoSession::Unreachable(error)),
        }
    }

    /// The session object of `session.created`.
    pub(crate) fn session(&self) -> &Value {
        &self.session
    }

    // What a client says.

    pub(crate) async fn send(&mut self, event: &Value) {
        self.send_message(Message::Text(event.to_string().into())).await;
    }

    pub(crate) async fn send_message(&mut self, message: Message) {
        if let Err(error) = self.try_send(message).await {
            panic!("the server takes nothing any more: {error}; it said {}", self.last_events());
        }
    }

    pub(crate) async fn try_send(&mut self, message: Message) -> Result<(), SocketError> {
        self.socket.send(message).await
    }

    pub(crate) async fn append(&mut self, samples: &[i16]) {
        self.send(&append_event(samples)).await;
    }

    /// Appends all of `samples` as fast as the server takes them, 20 ms at a time.
    pub(crate) async fn stream(&mut self, samples: &[i16]) {
        for chunk in samples.chunks(480) {
            self.append(chunk).await;
        }
    }

    /// A written question and the request to answer it.
    pub(crate) async fn ask(&mut self, text: &str) {
        self.send(&item_event(text)).await;
        self.send(&json!({ "type": "response.create" })).await;
    }

    /// Changes the session and waits for the confirmation.
    pub(crate) async fn update(&mut self, session: Value) -> Value {
        let mut session = session;
        session["type"] = json!("realtime");
        self.send(&json!({ "type": "session.update", "session": session })).await;
        self.expect("session.updated").await
    }

    // What it hears.

    /// What comes next.
    pub(crate) async fn hear(&mut self) -> Heard {
        loop {
            let Ok(message) = timeout(EVENT_LIMIT, self.socket.next()).await else {
                panic!("nothing came for {EVENT_LIMIT:?} after {}", self.last_events());
            };
            match message {
                Some(Ok(Message::Text(text))) => {
                    let event: Value = serde_json::from_str(&text)
                        .unwrap_or_else(|error| panic!("no JSON: {error}: {text}"));
                    self.remember(&event);
                    return Heard::Event(event);
                }
                Some(Ok(Message::Close(frame))) => return Heard::Close(frame.map(code_and_reason)),
                Some(Ok(Message::Binary(_))) => panic!("the server sent a binary message"),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Heard::Broken(error.to_string()),
                None => return Heard::Broken("end of stream".to_owned()),
            }
        }
    }

    /// The next message of any kind.
    pub(crate) async fn message(&mut self) -> Message {
        match timeout(EVENT_LIMIT, self.socket.next()).await {
            Ok(Some(Ok(message))) => message,
            other => panic!("{other:?} after {}, expected a message", self.last_events()),
        }
    }

    /// The next event; `error` events included.
    pub(crate) async fn event(&mut self) -> Value {
        match self.hear().await {
            Heard::Event(event) => event,
            other => panic!("{other:?} after {}, expected an event", self.last_events()),
        }
    }

    /// Reads until an event of this type; an `error` that is not looked for fails the test.
    pub(crate) async fn expect(&mut self, kind: &str) -> Value {
        loop {
            let event = self.event().await;
            if event["type"] == kind {
                return event;
            }
            assert_ne!(event["type"], "error", "while waiting for {kind}: {event}");
        }
    }

    /// The next whole response, from created to done; checks that it is legal in itself.
    pub(crate) async fn answer(&mut self) -> Answer {
        let created = self.expect("response.created").await;
        self.rest_of_answer(&created).await
    }

    /// The rest of a response whose `response.created` has been read.
    pub(crate) async fn rest_of_answer(&mut self, created: &Value) -> Answer {
        let id = created["response"]["id"].as_str().expect("a response has an id").to_owned();
        assert_eq!(created["response"]["status"], "in_progress");
        let mut answer = Answer { id, ..Answer::default() };
        loop {
            let event = self.event().await;
            if answer.take(&event) {
                return answer;
            }
        }
    }

    /// Both directions apart, to write and read at once.
    pub(crate) fn split(
        &mut self,
    ) -> (SplitSink<&mut WebSocketStream<TcpStream>, Message>, SplitStream<&mut WebSocketStream<TcpStream>>)
    {
        (&mut self.socket).split()
    }

    /// Closes in order and waits for the server's close.
    pub(crate) async fn close(mut self) {
        let _ = self.socket.send(Message::Close(None)).await;
        while let Ok(Some(Ok(_))) = timeout(EVENT_LIMIT, self.socket.next()).await {}
    }

    /// Reads to the end; the close that the server sends.
    pub(crate) async fn closed_by_server(&mut self) -> Option<(u16, String)> {
        loop {
            match self.hear().await {
                Heard::Event(_) => {}
                Heard::Close(close) => {
                    // The answer to the close goes out, and the server ends the connection.
                    while let Ok(Some(Ok(_))) = timeout(EVENT_LIMIT, self.socket.next()).await {}
                    return close;
                }
                Heard::Broken(error) => panic!("{error} after {}, expected a close", self.last_events()),
            }
        }
    }

    /// Leaves without a close: FIN.
    pub(crate) fn cut(self) {
        drop(self.socket.into_inner());
    }

    /// Leaves without a close: RST.
    pub(crate) fn reset(self) {
        let stream = self.socket.into_inner();
        stream.set_zero_linger().expect("an open socket");
        drop(stream);
    }

    fn remember(&mut self, event: &Value) {
        let mut text = event.to_string();
        if text.len() > 300 {
            text = text.chars().take(300).collect();
        }
        self.remembered.push_back(text);
        if self.remembered.len() > REMEMBERED_EVENTS {
            self.remembered.pop_front();
        }
    }

    /// The last events, for messages of failed tests.
    pub(crate) fn last_events(&self) -> String {
        let lines: Vec<_> = self.remembered.iter().map(|line| format!("\n  {line}")).collect();
        lines.concat()
    }
}

impl Answer {
    /// Takes one event; `true` if it was the last of this response.
    pub(crate) fn take(&mut self, event: &Value) -> bool {
        let kind = event["type"].as_str().expect("an event has a type");
        let is_mine = event["response_id"] == self.id.as_str() || event["response"]["id"] == self.id.as_str();
        if kind.starts_with("response.") {
            assert!(is_mine, "an event of another response within {}: {event}", self.id);
            self.events.push(kind.to_owned());
        }
        assert_ne!(kind, "error", "within {}: {event}", self.id);
        match kind {
            "response.output_audio.delta" => self.samples.extend(samples_of(event)),
            "response.output_audio_transcript.delta" | "response.output_text.delta" => {
                self.text += event["delta"].as_str().expect("a text delta has a delta");
            }
            "response.done" => {
                self.status = event["response"]["status"].as_str().unwrap_or("?").to_owned();
                self.details = event["response"]["status_details"].clone();
                return true;
            }
            _ => {}
        }
        false
    }
}

pub(crate) fn append_event(samples: &[i16]) -> Value {
    json!({ "type": "input_audio_buffer.append", "audio": base64_of(bytemuck::cast_slice(samples)) })
}

pub(crate) fn item_event(text: &str) -> Value {
    let content = json!([{ "type": "input_text", "text": text }]);
    json!({ "type": "conversation.item.create", "item": { "type": "message", "role": "user", "content": content } })
}

pub(crate) fn base64_of(bytes: &[u8]) -> String {
    base64_simd::STANDARD.encode_to_string(bytes)
}

/// Samples of an audio delta: whole ones, and not more than a second of them.
pub(crate) fn samples_of(event: &Value) -> Vec<i16> {
    let delta = event["delta"].as_str().expect("an audio delta has a delta");
    let bytes = base64_simd::STANDARD.decode_to_vec(delta).unwrap_or_else(|error| panic!("{error}: {event}"));
    assert!(bytes.len().is_multiple_of(2), "a delta of {} bytes, expected whole samples", bytes.len());
    assert!(!bytes.is_empty(), "a delta without a sample");
    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect()
}

fn code_and_reason(frame: CloseFrame) -> (u16, String) {
    (frame.code.into(), frame.reason.to_string())
}
