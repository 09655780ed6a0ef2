//! The built-in server among several sessions: whose turn it is.

use antiphon::edge::outbound::llm::ChatStream;
use antiphon::message::TokenUsage;
use tokio::task::JoinSet;

use crate::builtin::{client, read, request, spoken, start};

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
