//! A turn against a scripted server.

use futures_util::future::join;
use tokio::net::{TcpListener, TcpStream};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, accept_async};

use super::*;

type Server = WebSocketStream<TcpStream>;

/// Asks a server that is played by `script`, on a new socket.
async fn ask<F: Future<Output = ()>>(
    question: Question,
    limit: Duration,
    script: impl FnOnce(Server) -> F,
) -> Result<Answer, TalkError> {
    ask_at(TalkRate::Named, question, limit, script).await
}

async fn ask_at<F: Future<Output = ()>>(
    rate: TalkRate,
    question: Question,
    limit: Duration,
    script: impl FnOnce(Server) -> F,
) -> Result<Answer, TalkError> {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("ws://{}/v1/realtime", listener.local_addr().expect("bound"));
    let serve = async {
        let (stream, _) = listener.accept().await.expect("one client");
        script(accept_async(stream).await.expect("an upgrade")).await;
    };
    join(converse(&url, &question, rate, limit), serve).await.0
}

fn question() -> Question {
    Question::Spoken(Recording::from_samples(vec![1_000; 2_400], SampleRate::HZ_24K).expect("there is sound"))
}

async fn emit(server: &mut Server, events: &[Value]) {
    for event in events {
        server.send(Message::Text(event.to_string().into())).await.expect("the client reads");
    }
}

async fn opened(server: &mut Server) {
    emit(server, &[json!({ "type": "session.created", "session": {} })]).await;
    let update = received(server).await.expect("a session.update");
    assert_eq!(update["session"]["audio"]["input"]["format"], json!({ "type": "audio/pcm", "rate": 24_000 }));
    emit(server, &[json!({ "type": "session.updated", "session": {} })]).await;
}

async fn received(server: &mut Server) -> Option<Value> {
    match server.next().await? {
        Ok(Message::Text(text)) => serde_json::from_str(&text).ok(),
        _ => None,
    }
}

async fn append(server: &mut Server) -> Vec<i16> {
    let event = received(server).await.expect("an append");
    assert_eq!(event["type"], "input_audio_buffer.append");
    decoded(event["audio"].as_str().expect("base64")).expect("whole samples")
}

/// Reads until the client closes.
async fn drained(server: &mut Server) {
    while received(server).await.is_some() {}
}

fn utterance(item: &str, transcript: &str) -> [Value; 3] {
    [
        json!({ "type": "input_audio_buffer.speech_started", "item_id": item }),
        json!({ "type": "input_audio_buffer.speech_stopped", "item_id": item }),
        json!({ "type": "conversation.item.input_audio_transcription.completed", "item_id": item, "transcript": transcript }),
    ]
}

fn response(id: &str, text: &str, samples: &[i16], status: &str) -> [Value; 4] {
    let audio = base64_simd::STANDARD.encode_to_string(bytemuck::cast_slice::<i16, u8>(samples));
    [
        json!({ "type": "response.created", "response": { "id": id } }),
        json!({ "type": "response.output_audio_transcript.delta", "response_id": id, "delta": text }),
        json!({ "type": "response.output_audio.delta", "response_id": id, "delta": audio }),
        json!({ "type": "response.done", "response": { "id": id, "status": status,
                "status_details": { "error": { "message": "the model is out" } } } }),
    ]
}

#[tokio::test]
async fn a_spoken_question_is_streamed_whole_and_its_answer_collected() {
    let answer = ask(question(), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        for _ in 0..5 {
            assert_eq!(append(&mut server).await, [1_000; 480], "the recording comes first");
        }
        assert_eq!(append(&mut server).await, [0; 480], "silence follows");
        emit(&mut server, &utterance("item_1", "Ten of clubs.")).await;
        emit(&mut server, &response("resp_1", "Well then.", &[1, 2, 3], "completed")).await;
        drained(&mut server).await;
    });
    let answer = answer.await.expect("an answer");
    assert_eq!(answer.transcript.as_deref(), Some("Ten of clubs."));
    assert_eq!((answer.reply.as_str(), answer.samples.as_slice()), ("Well then.", [1, 2, 3].as_slice()));
    let times = answer.times;
    assert!(times.transcript_ms <= times.first_text_ms && times.first_audio_ms <= Some(times.done_ms));
}

#[tokio::test]
async fn an_answer_that_the_user_cut_off_does_not_count() {
    let answer = ask(question(), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        emit(&mut server, &utterance("item_1", "Ten")).await;
        let [created, text, audio, done] = response("resp_1", "Hm?", &[9; 5], "cancelled");
        emit(&mut server, &[created, text, audio]).await;
        let [started, stopped, transcribed] = utterance("item_2", "of clubs");
        emit(&mut server, &[started, done, stopped, transcribed]).await;
        emit(&mut server, &response("resp_2", "I see.", &[7], "completed")).await;
        drained(&mut server).await;
    });
    let answer = answer.await.expect("an answer");
    assert_eq!(answer.transcript.as_deref(), Some("Ten of clubs"));
    assert_eq!((answer.reply.as_str(), answer.samples.as_slice()), ("I see.", [7].as_slice()));
}

#[tokio::test]
async fn a_written_question_needs_no_transcript() {
    let answer = ask(Question::Written("Hello".to_owned()), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        let item = received(&mut server).await.expect("an item");
        assert_eq!(item["item"]["content"][0]["text"], "Hello");
        assert_eq!(received(&mut server).await.expect("a request")["type"], "response.create");
        emit(&mut server, &response("resp_1", "Hi.", &[4, 5], "completed")).await;
        drained(&mut server).await;
    });
    let answer = answer.await.expect("an answer");
    assert_eq!((answer.transcript, answer.reply.as_str()), (None, "Hi."));
}

#[tokio::test]
async fn a_rate_that_is_not_named_is_the_servers() {
    let rate = TalkRate::Unnamed(SampleRate::HZ_16K);
    for (format, fits) in [
        (json!({ "type": "audio/pcm", "rate": 16_000 }), true),
        // A server that does not name its rate.
        (Value::Null, true),
        (json!({ "type": "audio/pcm", "rate": 24_000 }), false),
    ] {
        let question = Question::Written("Hello".to_owned());
        let answer = ask_at(rate, question, Duration::from_secs(20), async |mut server| {
            let audio = json!({ "input": { "format": format }, "output": { "format": format } });
            emit(&mut server, &[json!({ "type": "session.created", "session": { "audio": audio } })]).await;
            let Some(update) = received(&mut server).await else { return };
            let expected = json!({ "input": { "turn_detection": { "type": "server_vad" } } });
            assert_eq!(update["session"]["audio"], expected);
            emit(&mut server, &[json!({ "type": "session.updated", "session": {} })]).await;
            emit(&mut server, &response("resp_1", "Hi.", &[4, 5], "completed")).await;
            drained(&mut server).await;
        });
        match answer.await {
            Ok(answer) => assert!(fits && answer.rate == SampleRate::HZ_16K, "{answer:?}"),
            Err(error) => {
                assert!(
                    !fits && error.to_string().contains("24000 Hz, and --default-rate says 16000 Hz"),
                    "{error}"
                );
            }
        }
    }
}

#[tokio::test]
async fn a_refusal_an_error_and_a_failed_response_are_told_apart() {
    let refused = ask(question(), Duration::from_secs(20), async |mut server| {
        let error = json!({ "type": "session_limit_reached", "message": "all 1 units are in use" });
        emit(&mut server, &[json!({ "type": "error", "error": error })]).await;
    });
    assert!(
        matches!(refused.await, Err(TalkError::Refused { message }) if message == "all 1 units are in use")
    );

    let error = ask(question(), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        let error = json!({ "type": "invalid_request_error", "code": "invalid_value", "message": "no" });
        emit(&mut server, &[json!({ "type": "error", "error": error })]).await;
        drained(&mut server).await;
    });
    assert!(
        matches!(error.await, Err(TalkError::Server { kind, .. }) if kind == "invalid_request_error/invalid_value")
    );

    let failed = ask(question(), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        emit(&mut server, &utterance("item_1", "Ten")).await;
        emit(&mut server, &response("resp_1", "", &[], "failed")).await;
        drained(&mut server).await;
    });
    assert!(matches!(failed.await, Err(TalkError::Failed { message }) if message == "the model is out"));
}

#[tokio::test]
async fn a_close_in_the_middle_is_reported_with_its_reason() {
    let closed = ask(question(), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        let reason = CloseFrame { code: CloseCode::Away, reason: "shutting down".into() };
        server.close(Some(reason)).await.expect("a close");
        while let Some(Ok(_)) = server.next().await {}
    });
    assert!(matches!(closed.await, Err(TalkError::Closed { reason }) if reason.contains("shutting down")));
}

#[tokio::test]
async fn a_server_that_says_nothing_and_one_that_says_nonsense_are_errors() {
    let silent = ask(question(), Duration::from_millis(60), async |mut server| {
        opened(&mut server).await;
        drained(&mut server).await;
    });
    assert!(matches!(silent.await, Err(TalkError::Silent { waited_for: "the server to hear speech", .. })));

    let nonsense = ask(question(), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        server.send(Message::Text("hello".into())).await.expect("sent");
        drained(&mut server).await;
    });
    assert!(matches!(nonsense.await, Err(TalkError::NotAnEvent { text }) if text == "hello"));

    let odd = ask(question(), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        let delta =
            json!({ "type": "response.output_audio.delta", "response_id": "resp_1", "delta": "AAAA" });
        emit(&mut server, &[delta]).await;
        drained(&mut server).await;
    });
    assert!(matches!(odd.await, Err(TalkError::BadAudio { bytes: 3 })));
}

#[tokio::test]
async fn noise_that_is_not_answered_ends_the_turn() {
    let nothing = ask(question(), Duration::from_secs(20), async |mut server| {
        opened(&mut server).await;
        emit(&mut server, &utterance("item_1", " ")).await;
        drained(&mut server).await;
    });
    assert!(matches!(nothing.await, Err(TalkError::NothingToAnswer { transcript }) if transcript.is_empty()));
}

#[tokio::test]
async fn no_server_is_one_clear_line() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let url = format!("ws://{}/v1/realtime", listener.local_addr().expect("bound"));
    drop(listener);
    let refused = converse(&url, &question(), TalkRate::Named, Duration::from_secs(1))
        .await
        .expect_err("nobody listens");
    assert!(matches!(refused, TalkError::Connect { .. }));
    assert!(refused.to_string().starts_with(&url) && refused.to_string().lines().count() == 1, "{refused}");
}
