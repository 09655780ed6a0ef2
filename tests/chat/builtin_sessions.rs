//! The built-in server among several sessions: whose turn it is.

use antiphon::edge::outbound::llm::{ChatDelta, ChatStream};
use antiphon::message::{Caller, ChatMessage, ChatRequest, Rank, TokenUsage};
use tokio::task::JoinSet;

use crate::builtin::{client, read, request, spoken, start};

fn aside(unit: u16, epoch: u64) -> Option<Caller> {
    spoken(unit, epoch).map(|caller| Caller { rank: Rank::Aside, ..caller })
}

async fn usage(stream: ChatStream) -> TokenUsage {
    read(stream).await.expect("an answer").2
}

#[tokio::test]
async fn more_sessions_than_slots_are_all_answered_and_remembered() {
    let child = start(2).await;
    let client = client(&child);
    let mut sessions = JoinSet::new();
    for unit in 0..4 {
        let client = client.clone();
        sessions.spawn(async move {
            let question = format!("Tell me something about the number {unit}, please.");
            let (answer, _, first) =
                read(client.stream(&request(&[&question], 80), spoken(unit, 1))).await.expect("an answer");
            let turns = [&question, &answer, "And of the next number?"];
            (first, usage(client.stream(&request(&turns, 4), spoken(unit, 1))).await)
        });
    }
    while let Some(session) = sessions.join_next().await {
        let (first, second) = session.expect("no panic");
        assert!(second.input_cached >= first.input, "{first:?} then {second:?}");
    }
    child.shutdown().await;
}

#[tokio::test]
async fn a_spoken_answer_does_not_wait_for_asides_nor_one_session_for_anothers() {
    let child = start(2).await;
    let client = client(&child);
    // Without instructions that ask for short answers.
    let story = ChatRequest {
        messages: vec![ChatMessage::user("Write a very long story with many chapters.")],
        tokens_max: Some(900),
        ..ChatRequest::default()
    };
    let mut asides = JoinSet::new();
    let (started, mut begun) = tokio::sync::mpsc::channel(8);
    for _ in 0..8 {
        let (mut stream, started) = (client.stream(&story, aside(0, 1)), started.clone());
        asides.spawn(async move {
            let first = stream.next().await;
            assert!(matches!(first, Ok(ChatDelta::Text(_))), "{first:?}");
            started.send(()).await.expect("somebody counts");
            read(stream).await
        });
    }
    for _ in 0..2 {
        begun.recv().await.expect("the slots are taken");
    }
    let question = request(&["Hello, who are you?"], 12);
    for (unit, caller) in [(1, spoken(1, 1)), (0, spoken(0, 1)), (2, aside(2, 1))] {
        usage(client.stream(&question, caller)).await;
        assert!(asides.try_join_next().is_none(), "the answer of session {unit} waited for a story's end");
    }
    // All eight have a token before the first is done: none waits for the end of another.
    for _ in 2..8 {
        begun.recv().await.expect("it begins");
    }
    assert!(asides.try_join_next().is_none());
    asides.shutdown().await;
    child.shutdown().await;
}
