//! `/v1/chat/completions`, `/v1/responses` and `/v1/models` passed on to the language model's server: what goes there,
//! what comes back.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::http::{Http, error_of};
use crate::server::Server;

/// A server whose answers say what it was asked.
#[derive(Debug)]
struct Upstream {
    addr: SocketAddr,
    /// Lets the second event of a stream go.
    more: Arc<Notify>,
    /// Streams whose reader has gone.
    abandoned: watch::Receiver<usize>,
    task: JoinHandle<()>,
}

impl Drop for Upstream {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Counts when it is dropped.
struct Reader(watch::Sender<usize>);

impl Drop for Reader {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

const EVENTS: [&str; 2] = [
    "data: {\"n\": 1, \"usage\":null}\r\n\r\n",
    "data: {\"usage\":{\"prompt_tokens\":6,\"completion_tokens\":2}}\r\n\r\ndata: [DONE]\r\n\r\n",
];

impl Upstream {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let addr = listener.local_addr().expect("bound");
        let more = Arc::new(Notify::new());
        let (abandon, abandoned) = watch::channel(0);
        let app = Router::new().fallback(answer).with_state((Arc::clone(&more), abandon));
        let task = tokio::spawn(async move { axum::serve(listener, app).await.expect("it listens") });
        Self { addr, more, abandoned, task }
    }

    fn url(&self) -> String {
        format!("http://{}/v1", self.addr)
    }
}

async fn answer(
    State((more, abandon)): State<(Arc<Notify>, watch::Sender<usize>)>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let request: Value = serde_json::from_slice(&body).unwrap_or_default();
    if request["stream"] == true {
        let reader = Reader(abandon);
        let second = stream::once(async move {
            let _reader = reader;
            more.notified().await;
            Ok::<_, std::io::Error>(EVENTS[1])
        });
        let events = stream::iter([Ok(EVENTS[0])]).chain(second);
        return ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events)).into_response();
    }
    let status = request["status"].as_u64().and_then(|status| u16::try_from(status).ok()).unwrap_or(200);
    let headers: serde_json::Map<_, _> = headers
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value.to_str().unwrap_or("?"))))
        .collect();
    let seen = json!({"method": method.as_str(), "path": uri.path(), "headers": headers,
        "body": String::from_utf8_lossy(&body)});
    let status = StatusCode::from_u16(status).expect("a status");
    (status, [("x-request-id", "7"), ("content-type", "application/json")], seen.to_string()).into_response()
}

async fn start(upstream: &Upstream, args: &[&str]) -> (Server, Http) {
    let url = upstream.url();
    let server = Server::fake_with(1, &[&["--serve-endpoints", "--llm-url", &url], args].concat()).await;
    let http = Http::new(server.addr());
    (server, http)
}

const JSON: (&str, &str) = ("content-type", "application/json");

async fn seen(response: reqwest::Response) -> Value {
    assert_eq!(response.headers()["x-request-id"], "7", "{response:?}");
    serde_json::from_str(&response.text().await.expect("a body")).expect("JSON")
}

#[tokio::test]
async fn body_and_headers_go_there_and_the_clients_credentials_do_not() {
    let upstream = Upstream::start().await;
    let (_server, http) = start(&upstream, &[]).await;
    let body = r#"{"model": "mine",  "seed": 18446744073709551615, "messages": []}"#;
    let headers = [
        JSON,
        ("authorization", "Bearer client"),
        ("cookie", "a=b"),
        ("x-trace", "42"),
        ("accept-encoding", "gzip"),
    ];
    let seen_there = seen(http.post("chat/completions", &headers, body).await).await;
    assert_eq!(
        (&seen_there["method"], &seen_there["path"]),
        (&json!("POST"), &json!("/v1/chat/completions"))
    );
    assert_eq!(seen_there["body"], body, "not a byte is changed where nothing is decided");
    assert_eq!(seen_there["headers"]["x-trace"], "42");
    assert_eq!(seen_there["headers"]["host"], upstream.addr.to_string());
    // What comes back packed could not be counted.
    for name in ["authorization", "cookie", "accept-encoding"] {
        assert!(seen_there["headers"].get(name).is_none(), "{seen_there}");
    }
    let models = seen(http.get("models").await).await;
    assert_eq!((&models["method"], &models["path"]), (&json!("GET"), &json!("/v1/models")));
}

/// What would choose a slot of the model's server, or speak for a session of this one, is not passed on.
#[tokio::test]
async fn nobody_asks_in_the_name_of_another() {
    let upstream = Upstream::start().await;
    let (_server, http) = start(&upstream, &[]).await;
    let body = r#"{"id_slot": 0, "messages": [], "antiphon_caller": {"unit": 0}, "id\u005fslot": 1}"#;
    for path in ["chat/completions", "responses"] {
        let seen = seen(http.post(path, &[JSON], body).await).await;
        let sent: Value = serde_json::from_str(seen["body"].as_str().expect("text")).expect("JSON");
        assert_eq!((sent.get("id_slot"), sent.get("antiphon_caller")), (None, None), "{sent}");
        assert_eq!(sent["messages"], json!([]));
    }
}

#[tokio::test]
async fn the_servers_key_and_model_are_used_and_nothing_is_stored() {
    let upstream = Upstream::start().await;
    let (_server, http) = start(&upstream, &["--llm-model", "ours", "--llm-key-env", "CARGO_PKG_NAME"]).await;
    for (path, store) in [("chat/completions", Value::Null), ("responses", json!(false))] {
        let body = r#"{"model": "theirs", "input": "Hi"}"#;
        let seen = seen(http.post(path, &[JSON, ("authorization", "Bearer client")], body).await).await;
        assert_eq!(seen["path"], format!("/v1/{path}"));
        assert_eq!(seen["headers"]["authorization"], concat!("Bearer ", env!("CARGO_PKG_NAME")));
        let sent: Value = serde_json::from_str(seen["body"].as_str().expect("text")).expect("JSON");
        assert_eq!((&sent["model"], &sent["store"], &sent["input"]), (&json!("ours"), &store, &json!("Hi")));
    }
}

#[tokio::test]
async fn statuses_come_back_as_they_are() {
    let upstream = Upstream::start().await;
    let (server, http) = start(&upstream, &[]).await;
    for status in [400, 401, 404, 429, 500, 503] {
        let answer = http.post("chat/completions", &[JSON], format!("{{\"status\": {status}}}")).await;
        assert_eq!(answer.status().as_u16(), status);
        seen(answer).await;
    }
    let asked = http.post("responses", &[JSON], r#"{"usage":{"input_tokens": 9, "output_tokens": 4}}"#).await;
    // The usage stands in the body that comes back, as a string: it is not counted.
    seen(asked).await;
    let counted = &server.json("/v1/usage").await["llm_proxy"];
    let expected = json!({"requests": 7, "responses_2xx": 1, "responses_4xx": 3, "responses_429": 1, "responses_5xx": 2,
        "input_tokens": 0, "output_tokens": 0});
    assert_eq!(*counted, expected);
    for body in ["[]", "7", "no JSON"] {
        let (status, error) = error_of(http.post("chat/completions", &[JSON], body).await).await;
        assert_eq!((status, error["type"].as_str()), (400, Some("invalid_request_error")), "{body}");
    }
}

#[tokio::test]
async fn events_come_as_they_are_made_and_whoever_leaves_takes_the_call_along() {
    let mut upstream = Upstream::start().await;
    let (server, http) = start(&upstream, &[]).await;
    for path in ["chat/completions", "responses"] {
        let mut answer = http.post(path, &[JSON], r#"{"stream": true}"#).await;
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        // The second one is not made before the first one has arrived.
        assert_eq!(answer.chunk().await.expect("an event").expect("an event"), EVENTS[0]);
        upstream.more.notify_one();
        assert_eq!(answer.chunk().await.expect("an event").expect("an event"), EVENTS[1]);
        assert_eq!(answer.chunk().await.expect("the end"), None);
    }
    let counted = &server.json("/v1/usage").await["llm_proxy"];
    assert_eq!((&counted["input_tokens"], &counted["output_tokens"]), (&json!(12), &json!(4)), "{counted}");
    let ended = *upstream.abandoned.borrow_and_update();
    let mut answer = http.post("chat/completions", &[JSON], r#"{"stream": true}"#).await;
    answer.chunk().await.expect("an event").expect("an event");
    drop(answer);
    let gone = upstream.abandoned.wait_for(|count| *count > ended);
    tokio::time::timeout(Duration::from_secs(5), gone).await.expect("within 5 s").expect("counted");
}

#[tokio::test]
async fn a_model_that_is_not_there_is_said() {
    let (_server, http) = {
        let server = Server::fake_with(1, &["--serve-endpoints"]).await;
        let http = Http::new(server.addr());
        (server, http)
    };
    let (status, error) = error_of(http.post("chat/completions", &[JSON], "{}").await).await;
    assert_eq!((status, error["type"].as_str()), (501, Some("not_implemented")));
    drop((_server, http));
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    drop(listener);
    let server = Server::fake_with(1, &["--serve-endpoints", "--llm-url", &url]).await;
    let (status, error) = error_of(Http::new(server.addr()).post("responses", &[JSON], "{}").await).await;
    assert_eq!((status, error["type"].as_str()), (502, Some("upstream_unreachable")));
}
