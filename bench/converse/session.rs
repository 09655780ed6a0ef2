//! One session with a server, over one WebSocket.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{Sink, SinkExt, StreamExt};
use serde_json::json;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Message, Utf8Bytes};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use crate::event::Event;
use crate::target::Target;

/// Longest silence of a server that has not failed.
pub(crate) const EVENT_LIMIT: Duration = Duration::from_secs(60);

/// Longest time until the units that the last clients have left are free again.
const RELEASE_LIMIT: Duration = Duration::from_secs(2);

/// Read buffer of one session, bytes. Thousands of sessions shall fit in memory.
const READ_BUFFER_BYTES: usize = 16 * 1_024;

/// Errors of opening a session.
#[derive(Debug)]
pub(crate) enum NoSession {
    /// The server has no unit free.
    Refused {
        /// Code of the close that follows the error event; `None` if none follows.
        close: Option<u16>,
        /// Moment at which the error event had come.
        at: antiphon::door::message::Moment,
    },
    /// Any other error.
    Failed(anyhow::Error),
}

/// One session.
#[derive(Debug)]
pub(crate) struct Session {
    socket: WebSocketStream<TcpStream>,
}

impl Session {
    /// Connects and waits for `session.created`.
    pub(crate) async fn open(target: &Target) -> Result<Self, NoSession> {
        let connect = async {
            let stream = TcpStream::connect(target.addr()).await?;
            stream.set_nodelay(true)?;
            let config = WebSocketConfig::default().read_buffer_size(READ_BUFFER_BYTES);
            let (socket, _) = client_async_with_config(target.url(), stream, Some(config)).await?;
            anyhow::Ok(Self { socket })
        };
        let connected = timeout(EVENT_LIMIT, connect).await.unwrap_or_else(|late| Err(late.into()));
        let unreachable = |error: anyhow::Error| NoSession::Failed(error.context(target.url().to_owned()));
        let mut session = connected.map_err(unreachable)?;
        let first = session.next().await.map_err(NoSession::Failed)?;
        let at = antiphon::door::clock::now();
        let event = Event::parse(&first).map_err(NoSession::Failed)?;
        match (event.kind(), &event.error) {
            ("session.created", _) => Ok(session),
            ("error", Some(fault)) if &*fault.kind == "session_limit_reached" => {
                Err(NoSession::Refused { close: session.close_of_server().await, at })
            }
            _ => Err(NoSession::Failed(anyhow!(
                "the first event is {first}, expected session.created or session_limit_reached"
            ))),
        }
    }

    /// Opens a session with the settings of the command line. Waits for a unit that is on its way back.
    ///
    /// # Errors
    /// If the server gives no session.
    pub(crate) async fn ready(target: &Target) -> anyhow::Result<Self> {
        let deadline = antiphon::door::clock::now() + RELEASE_LIMIT;
        let mut session = loop {
            match Self::open(target).await {
                Ok(session) => break session,
                Err(NoSession::Refused { at, .. }) if at < deadline => {
                    tokio::time::sleep(RELEASE_LIMIT / 100).await;
                }
                Err(NoSession::Refused { .. }) => bail!("{}: no unit is free", target.url()),
                Err(NoSession::Failed(error)) => return Err(error),
            }
        };
        if let Some(update) = target.session_update() {
            session.send(update).await?;
            session.expect("session.updated").await?;
        }
        Ok(session)
    }

    pub(crate) async fn send(&mut self, event: Utf8Bytes) -> anyhow::Result<()> {
        self.socket.send(Message::Text(event)).await.context("the server takes nothing any more")
    }

    /// Sends a written question and the request to answer it, in one write.
    pub(crate) async fn ask(&mut self, text: &str) -> anyhow::Result<()> {
        self.socket.feed(Message::Text(item_event(text))).await?;
        self.send(Utf8Bytes::from_static(RESPONSE_CREATE)).await
    }

    /// Waits for the next event, as text.
    ///
    /// # Errors
    /// If the session is over, or nothing comes for [`EVENT_LIMIT`].
    pub(crate) async fn next(&mut self) -> anyhow::Result<Utf8Bytes> {
        let next = timeout(EVENT_LIMIT, next_text(&mut self.socket)).await;
        next.with_context(|| format!("no event for {EVENT_LIMIT:?}"))?
    }

    /// Waits for the next event, as text, without a limit. For callers with a limit for the whole.
    pub(crate) async fn next_unlimited(&mut self) -> anyhow::Result<Utf8Bytes> {
        next_text(&mut self.socket).await
    }

    /// Waits for the next event; returns `None` if there is none within `limit`.
    pub(crate) async fn next_within(&mut self, limit: Duration) -> anyhow::Result<Option<Utf8Bytes>> {
        timeout(limit, next_text(&mut self.socket)).await.ok().transpose()
    }

    /// Reads on to an event of this type.
    ///
    /// # Errors
    /// If an `error` event comes first.
    pub(crate) async fn expect(&mut self, kind: &str) -> anyhow::Result<()> {
        loop {
            let text = self.next().await?;
            let event = Event::parse(&text)?;
            if event.kind() == kind {
                return Ok(());
            }
            if event.kind() == "error" {
                bail!("while waiting for {kind}: {text}");
            }
        }
    }

    /// Splits the session into its two directions.
    pub(crate) fn split(self) -> (Sender, Receiver) {
        let (sink, stream) = self.socket.split();
        (Sender(sink), Receiver(stream))
    }

    /// Sends a WebSocket close and waits for the server's.
    pub(crate) async fn close(mut self) {
        // The server may have closed already.
        let _ = self.socket.send(Message::Close(None)).await;
        while let Ok(Some(Ok(_))) = timeout(EVENT_LIMIT, self.socket.next()).await {}
    }

    /// Leaves without a WebSocket close: FIN.
    pub(crate) fn cut(self) {
        drop(self.socket.into_inner());
    }

    /// Leaves without a WebSocket close: RST.
    pub(crate) fn reset(self) -> anyhow::Result<()> {
        self.socket.into_inner().set_zero_linger().context("an open socket")
    }

    async fn close_of_server(mut self) -> Option<u16> {
        let mut code = None;
        while let Ok(Some(Ok(message))) = timeout(EVENT_LIMIT, self.socket.next()).await {
            if let Message::Close(Some(frame)) = message {
                code = Some(frame.code.into());
            }
        }
        code
    }
}

/// The way to the server.
#[derive(Debug)]
pub(crate) struct Sender(SplitSink<WebSocketStream<TcpStream>, Message>);

impl Sender {
    /// Passes an event to the socket; returns `false` if the socket does not take one at once.
    pub(crate) async fn offer(&mut self, event: &Utf8Bytes) -> anyhow::Result<bool> {
        let sink = &mut self.0;
        poll_fn(|context| {
            if Pin::new(&mut *sink).poll_ready(context)?.is_pending() {
                return Poll::Ready(Ok(false));
            }
            Pin::new(&mut *sink).start_send(Message::Text(event.clone()))?;
            // Bytes that the kernel does not take now wait in the WebSocket's own buffer.
            if let Poll::Ready(flushed) = Pin::new(&mut *sink).poll_flush(context) {
                flushed?;
            }
            Poll::Ready(Ok(true))
        })
        .await
    }

    /// Waits until the socket takes an event. Many events may go out in one write.
    pub(crate) async fn feed(&mut self, event: &Utf8Bytes) -> anyhow::Result<()> {
        Ok(self.0.feed(Message::Text(event.clone())).await?)
    }

    pub(crate) async fn flush(&mut self) -> anyhow::Result<()> {
        Ok(self.0.flush().await?)
    }
}

/// The way from the server.
#[derive(Debug)]
pub(crate) struct Receiver(SplitStream<WebSocketStream<TcpStream>>);

impl Receiver {
    /// Waits for the next event, as text, without a limit.
    ///
    /// # Errors
    /// If the session is over.
    pub(crate) async fn next(&mut self) -> anyhow::Result<Utf8Bytes> {
        next_text(&mut self.0).await
    }
}

async fn next_text<S>(stream: &mut S) -> anyhow::Result<Utf8Bytes>
where
    S: futures_util::Stream<Item = Result<Message, tokio_tungstenite::tungstenite::Error>> + Unpin,
{
    loop {
        match stream.next().await {
            Some(Ok(Message::Text(text))) => return Ok(text),
            Some(Ok(Message::Close(frame))) => bail!("closed by the server: {frame:?}"),
            Some(Ok(Message::Binary(_))) => bail!("a binary message, expected text"),
            Some(Ok(_)) => {}
            Some(Err(error)) => return Err(error).context("the connection broke"),
            None => bail!("the connection has ended"),
        }
    }
}

pub(crate) const RESPONSE_CREATE: &str = r#"{"type":"response.create"}"#;

pub(crate) const RESPONSE_CANCEL: &str = r#"{"type":"response.cancel"}"#;

/// A `session.update` that changes nothing. Its answer shows that the server has read everything sent before.
pub(crate) const PROBE: &str = r#"{"type":"session.update","session":{"type":"realtime"}}"#;

fn item_event(text: &str) -> Utf8Bytes {
    let content = json!([{ "type": "input_text", "text": text }]);
    let item = json!({ "type": "message", "role": "user", "content": content });
    json!({ "type": "conversation.item.create", "item": item }).to_string().into()
}
