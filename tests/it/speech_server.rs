//! A recognition and synthesis server that does what a test says: the only faults it has are the scripted ones.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Multipart, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::signal::is_level;

/// What the server does with one recording.
#[derive(Clone, Debug)]
pub(crate) enum Hear {
    /// Answers with this text.
    Text(&'static str),
    /// Answers with this text, and says that it is in this language.
    In(&'static str, &'static str),
    /// The same, once the test says so.
    Late(&'static str),
    /// Answers with this status, content type and body.
    Answer(u16, &'static str, &'static str),
    /// Never answers.
    Silence,
}

/// What the server does with one text.
#[derive(Clone, Debug)]
pub(crate) enum Speak {
    /// Streams these pieces under this content type, then does this.
    Pieces(&'static str, Vec<Vec<u8>>, Then),
    /// Answers with this status, content type and body.
    Answer(u16, &'static str, &'static str),
    /// Never answers.
    Silence,
}

/// What comes after the pieces.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Then {
    /// A good end.
    End,
    /// The connection breaks.
    Break,
    /// Nothing.
    Stall,
}

/// A recording that was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Recorded {
    pub(crate) fields: BTreeMap<String, String>,
    pub(crate) file_name: String,
    pub(crate) wav: Bytes,
    pub(crate) authorization: Option<String>,
}

impl Recorded {
    /// The samples of the recording; it must be one of 16 kHz, mono.
    pub(crate) fn samples(&self) -> Vec<i16> {
        let reader = hound::WavReader::new(&self.wav[..]).expect("a WAV file");
        assert_eq!((reader.spec().channels, reader.spec().sample_rate), (1, 16_000));
        reader.into_samples().collect::<Result<_, _>>().expect("whole")
    }

    /// Milliseconds of it that have this level; the resampler may round.
    pub(crate) fn ms_of(&self, level: i16) -> usize {
        self.samples().iter().filter(|&&sample| is_level(sample.into(), level)).count() / 16
    }
}

#[derive(Debug, Default)]
struct Scripts {
    hear: VecDeque<Hear>,
    speak: VecDeque<Speak>,
    recorded: Vec<Recorded>,
    texts: Vec<Value>,
}

#[derive(Debug)]
struct Shared {
    scripts: Mutex<Scripts>,
    late: Notify,
    received: watch::Sender<usize>,
    abandoned: watch::Sender<usize>,
}

/// The server; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct ScriptedSpeech {
    addr: SocketAddr,
    shared: Arc<Shared>,
    task: JoinHandle<()>,
}

impl Drop for ScriptedSpeech {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl ScriptedSpeech {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared {
            scripts: Mutex::default(),
            late: Notify::new(),
            received: watch::Sender::new(0),
            abandoned: watch::Sender::new(0),
        });
        let app = Router::new()
            .route("/v1/audio/transcriptions", post(hear))
            .route("/v1/audio/speech", post(speak))
            .with_state(Arc::clone(&shared));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("it listens") });
        Self { addr, shared, task }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }

    /// What comes of the next recordings.
    pub(crate) fn hears(&self, scripts: impl IntoIterator<Item = Hear>) {
        self.shared.scripts.lock().expect("no panic while held").hear.extend(scripts);
    }

    /// What comes of the next texts.
    pub(crate) fn speaks(&self, scripts: impl IntoIterator<Item = Speak>) {
        self.shared.scripts.lock().expect("no panic while held").speak.extend(scripts);
    }

    /// Lets one late answer go.
    pub(crate) fn let_go(&self) {
        self.shared.late.notify_one();
    }

    /// Recordings so far.
    pub(crate) fn recorded(&self) -> Vec<Recorded> {
        self.shared.scripts.lock().expect("no panic while held").recorded.clone()
    }

    /// Bodies of the requests for speech so far.
    pub(crate) fn texts(&self) -> Vec<Value> {
        self.shared.scripts.lock().expect("no panic while held").texts.clone()
    }

    /// Waits until so many requests have come.
    pub(crate) async fn received(&self, count: usize, limit: Duration) {
        let mut received = self.shared.received.subscribe();
        let seen = timeout(limit, received.wait_for(|received| *received >= count)).await.is_ok();
        assert!(seen, "{} requests within {limit:?}, expected {count}", *received.borrow());
    }

    /// Waits until the server under test has hung up on so many requests.
    pub(crate) async fn abandoned(&self, count: usize, limit: Duration) {
        let mut abandoned = self.shared.abandoned.subscribe();
        let seen = timeout(limit, abandoned.wait_for(|abandoned| *abandoned >= count)).await.is_ok();
        assert!(seen, "{} requests abandoned within {limit:?}, expected {count}", *abandoned.borrow());
    }
}

/// Says that the other side has hung up, unless it is forgotten before.
struct Patience(Arc<Shared>);

impl Drop for Patience {
    fn drop(&mut self) {
        self.0.abandoned.send_modify(|count| *count += 1);
    }
}

fn answer(status: u16, content_type: &'static str, body: impl Into<Body>) -> Response {
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [(header::CONTENT_TYPE, content_type)], body.into()).into_response()
}

async fn hear(State(shared): State<Arc<Shared>>, headers: HeaderMap, mut form: Multipart) -> Response {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let mut recorded = Recorded {
        fields: BTreeMap::new(),
        file_name: String::new(),
        wav: Bytes::new(),
        authorization: authorization.map(str::to_owned),
    };
    while let Some(field) = form.next_field().await.expect("a good form") {
        let name = field.name().expect("a field has a name").to_owned();
        if name == "file" {
            recorded.file_name = field.file_name().unwrap_or_default().to_owned();
            recorded.wav = field.bytes().await.expect("a whole file");
        } else {
            recorded.fields.insert(name, field.text().await.expect("text"));
        }
    }
    let script = {
        let mut scripts = shared.scripts.lock().expect("no panic while held");
        scripts.recorded.push(recorded);
        scripts.hear.pop_front().expect("a script for every recording")
    };
    shared.received.send_modify(|count| *count += 1);
    let patience = Patience(Arc::clone(&shared));
    let text = |text| answer(200, "application/json", json!({ "text": text }).to_string());
    let response = match script {
        Hear::Text(said) => text(said),
        Hear::In(said, language) => {
            answer(200, "application/json", json!({ "text": said, "language": language }).to_string())
        }
        Hear::Late(said) => {
            shared.late.notified().await;
            text(said)
        }
        Hear::Answer(status, content_type, body) => answer(status, content_type, body),
        Hear::Silence => std::future::pending().await,
    };
    std::mem::forget(patience);
    response
}

async fn speak(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let script = {
        let mut scripts = shared.scripts.lock().expect("no panic while held");
        scripts.texts.push(serde_json::from_slice(&body).expect("a request is JSON"));
        scripts.speak.pop_front().expect("a script for every text")
    };
    shared.received.send_modify(|count| *count += 1);
    let patience = Patience(Arc::clone(&shared));
    match script {
        Speak::Pieces(content_type, pieces, then) => {
            let pieces = stream::iter(pieces).then(|piece| async {
                // Each piece on its own way, as far as the kernel lets it.
                tokio::time::sleep(Duration::from_millis(1)).await;
                Ok(piece)
            });
            let end = stream::once(async move {
                match then {
                    Then::Stall => std::future::pending().await,
                    // What was sent before is on its way by then.
                    Then::Break => tokio::time::sleep(Duration::from_millis(100)).await,
                    Then::End => {}
                }
                std::mem::forget(patience);
                Err(std::io::Error::other("scripted break"))
            });
            let end = end.filter(move |_| std::future::ready(matches!(then, Then::Break)));
            answer(200, content_type, Body::from_stream(pieces.chain(end)))
        }
        Speak::Answer(status, content_type, body) => {
            std::mem::forget(patience);
            answer(status, content_type, body)
        }
        Speak::Silence => std::future::pending().await,
    }
}
