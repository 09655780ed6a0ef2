//! A language model server that fails costs one response and no session (RC-051, RC-052).

use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

use crate::client::Client;
use crate::llm::{Api, Script, ScriptedLlm};
use crate::server::Server;
use crate::signal::{samples_in, utterance};

/// A stage or a request that is cancelled is gone well before this.
const CANCEL_LIMIT: Duration = Duration::from_secs(5);

fn words(text: &str) -> Vec<String> {
    text.split_inclusive(' ').map(str::to_owned).collect()
}

async fn start(llm: &ScriptedLlm) -> Server {
    start_with(llm, &[]).await
}

async fn start_with(llm: &ScriptedLlm, args: &[&str]) -> Server {
    let url = llm.url();
    let model = ["--llm-url", &url, "--llm-model", "scripted", "--llm-api", llm.api()];
    Server::fake_with(2, &[&model[..], args].concat()).await
}

/// The next question is answered: text as scripted, and as much audio as the fake voice makes of it.
async fn is_well(client: &mut Client, llm: &ScriptedLlm) {
    llm.script([Script::Say(words("All is well again."))]);
    client.ask("Are you there?").await;
    let answer = client.answer().await;
    assert_eq!((answer.status.as_str(), answer.text.trim()), ("completed", "All is well again."));
    assert!(answer.samples.len() > 24_000 / 2, "{} samples", answer.samples.len());
}

#[tokio::test]
async fn the_answer_is_what_the_model_says() {
    let llm = ScriptedLlm::start().await;
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    is_well(&mut client, &llm).await;
    let request = llm.requests().pop().expect("one request");
    let messages = request["messages"].as_array().expect("messages");
    let last = messages.last().expect("a message");
    assert_eq!((&last["role"], &last["content"]), (&"user".into(), &"Are you there?".into()), "{request}");
    assert_eq!(request["stream"], true, "{request}");
    // The next request has the answer in its history.
    is_well(&mut client, &llm).await;
    let request = llm.requests().pop().expect("a second request");
    let said = request["messages"].as_array().expect("messages").iter().any(|message| {
        message["role"] == "assistant"
            && message["content"].as_str().is_some_and(|text| text.contains("well again"))
    });
    assert!(said, "{request}");
}

#[tokio::test]
async fn every_failure_fails_one_response_and_the_session_goes_on() {
    for api in Api::ALL {
        failures(api).await;
    }
}

async fn failures(api: Api) {
    let llm = ScriptedLlm::start_as(api).await;
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    let failures = [
        Script::Status(500),
        Script::Status(429),
        Script::Status(404),
        Script::Nonsense,
        Script::CloseAfter(vec![]),
        Script::CloseAfter(words("This sentence is complete. But this one is")),
    ];
    for failure in failures {
        let before = llm.requests().len();
        llm.script([failure.clone()]);
        client.ask("Tell me something.").await;
        let answer = client.answer().await;
        assert_eq!(answer.status, "failed", "{failure:?}: {:?}", answer.details);
        assert_eq!(answer.details["type"], "failed", "{failure:?}: {:?}", answer.details);
        assert!(answer.details["error"].is_object(), "{failure:?}: {:?}", answer.details);
        assert_eq!(llm.requests().len(), before + 1, "{failure:?}: no storm of retries");
        is_well(&mut client, &llm).await;
    }
    let (_, metrics) = server.get("/metrics").await;
    let counted = "antiphon_responses_failed_total{code=\"rate_limit_exceeded\"} 1";
    assert!(metrics.contains(counted), "{counted} is not in {metrics}");
    // A spoken turn fails the same way, and its transcript is there all the same.
    llm.script([Script::Status(500)]);
    client.stream(&utterance(5_000)).await;
    client.expect("conversation.item.input_audio_transcription.completed").await;
    assert_eq!(client.answer().await.status, "failed");
    is_well(&mut client, &llm).await;
}

#[tokio::test]
async fn a_model_that_falls_silent_is_given_up() {
    for api in Api::ALL {
        stalls(api).await;
    }
}

async fn stalls(api: Api) {
    let mut llm = ScriptedLlm::start_as(api).await;
    let server = start_with(&llm, &["--llm-first-token-s", "1", "--llm-between-tokens-s", "1"]).await;
    let mut client = Client::open(server.addr()).await;
    let stalls = [Script::Silence, Script::OnlyHead, Script::StallAfter(words("This much and no more."))];
    for (number, stall) in stalls.into_iter().enumerate() {
        llm.script([stall.clone()]);
        client.ask("Tell me something.").await;
        let answer = client.answer().await;
        assert_eq!(answer.status, "failed", "{stall:?}: {:?}", answer.details);
        llm.abandoned(number + 1, CANCEL_LIMIT).await;
        is_well(&mut client, &llm).await;
    }
}

/// What was written before the fault is told, and the sentence that was complete is heard to its end.
#[tokio::test]
async fn a_sentence_that_was_complete_is_spoken_before_the_failure() {
    const SENTENCE: &str = "This sentence is complete.";
    const WRITTEN: &str = "This sentence is complete. But this one is";
    for api in Api::ALL {
        let llm = ScriptedLlm::start_as(api).await;
        let patience = ["--llm-first-token-s", "20", "--llm-between-tokens-s", "1"];
        let server = start_with(&llm, &patience).await;
        let mut client = Client::open(server.addr()).await;
        llm.script([Script::Say(words(SENTENCE))]);
        client.ask("Tell me something.").await;
        let sentence = client.answer().await;
        assert_eq!((sentence.status.as_str(), sentence.text.trim_end()), ("completed", SENTENCE));
        assert_eq!(sentence.samples.len(), SENTENCE.len() * samples_in(60));
        for fault in [Script::CloseAfter(words(WRITTEN)), Script::StallAfter(words(WRITTEN))] {
            llm.script([fault.clone()]);
            client.ask("Tell me something.").await;
            let answer = client.answer().await;
            assert_eq!(answer.status, "failed", "{fault:?} of {api:?}: {:?}", answer.details);
            assert!(answer.text.starts_with(WRITTEN), "{fault:?} of {api:?}: {:?}", answer.text);
            let (heard, whole) = (answer.samples.len(), sentence.samples.len());
            assert!(heard >= whole, "{fault:?} of {api:?}: {heard} samples of {whole}");
            assert!(answer.samples.starts_with(&sentence.samples), "{fault:?} of {api:?}: other audio");
        }
    }
}

#[tokio::test]
async fn a_server_that_is_not_there_fails_the_response() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}/v1", listener.local_addr().expect("bound"));
    drop(listener);
    let server = Server::fake_with(1, &["--llm-url", &url, "--llm-model", "scripted"]).await;
    let mut client = Client::open(server.addr()).await;
    for _ in 0..2 {
        client.ask("Tell me something.").await;
        assert_eq!(client.answer().await.status, "failed");
    }
}

#[tokio::test]
async fn a_server_without_the_encryption_that_was_asked_for_fails_the_response() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("https://{}/v1", listener.local_addr().expect("bound"));
    let plain = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    let server = Server::fake_with(1, &["--llm-url", &url, "--llm-model", "scripted"]).await;
    let mut client = Client::open(server.addr()).await;
    for _ in 0..2 {
        client.ask("Tell me something.").await;
        let answer = client.answer().await;
        assert_eq!(answer.status, "failed", "{:?}", answer.details);
        assert!(answer.details["error"]["message"].is_string(), "{:?}", answer.details);
    }
    plain.abort();
}

#[tokio::test]
async fn whoever_leaves_or_cancels_takes_the_request_along() {
    let mut llm = ScriptedLlm::start().await;
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    llm.script([Script::StallAfter(words("A first sentence, complete. "))]);
    client.ask("Tell me something.").await;
    let created = client.expect("response.created").await;
    client.expect("response.output_audio.delta").await;
    client.send(&serde_json::json!({ "type": "response.cancel" })).await;
    let cancelled = client.rest_of_answer(&created).await;
    assert_eq!(cancelled.status, "cancelled");
    llm.abandoned(1, CANCEL_LIMIT).await;
    is_well(&mut client, &llm).await;

    // A response that is created has not asked the model yet: who leaves then takes no request along.
    let asked = llm.requests().len();
    llm.script([Script::Silence]);
    client.ask("Tell me more.").await;
    llm.received(asked + 1, CANCEL_LIMIT).await;
    client.cut();
    llm.abandoned(2, CANCEL_LIMIT).await;
    server.all_units_free().await;

    llm.script([Script::Silence]);
    let mut client = Client::open(server.addr()).await;
    client.ask("Tell me more.").await;
    llm.received(asked + 2, CANCEL_LIMIT).await;
    client.reset();
    llm.abandoned(3, CANCEL_LIMIT).await;
    server.all_units_free().await;
}
