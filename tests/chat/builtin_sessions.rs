//! The built-in server among several sessions: whose turn it is, and what it remembers for whom.

use antiphon::door::edge::outbound::llm::{ChatDelta, ChatStream};
use antiphon::door::message::{Caller, ChatMessage, ChatRequest, Rank, TokenUsage};
use serde_json::json;
use tokio::task::JoinSet;

use crate::builtin::{client, endpoint, post, read, request, spoken, start};

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
    drop(started);
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

#[tokio::test]
async fn what_a_session_has_said_is_known_to_nobody_else() {
    let child = start(2).await;
    let client = client(&child);
    let secret = request(&["The code of the safe is seven, four, one, one, nine, three. What is it?"], 4);
    let guess = |caller| usage(client.stream(&secret, caller));
    let first = guess(spoken(0, 1)).await;
    let instructions = first.input_cached;
    assert!(instructions > 10 && first.input > instructions + 20, "{first:?}");
    for (who, caller) in [
        ("a neighbour", spoken(1, 1)),
        ("a neighbour's aside", aside(2, 1)),
        ("no session", None),
        ("another that is no session", None),
        ("the next session of the unit", spoken(0, 2)),
        ("a session that is over", spoken(0, 1)),
    ] {
        assert_eq!(guess(caller).await.input_cached, instructions, "{who}");
    }
    let body = json!({"messages": [{"role": "user", "content": "x"}], "id_slot": 0, "max_tokens": 1});
    assert_eq!(post(&endpoint(&child), &body).await.1["usage"]["prompt_tokens_details"]["cached_tokens"], 0);
    // Of one's own all is known, beside the conversation too; what was said beside it is not kept.
    let own = guess(spoken(1, 1)).await;
    assert_eq!(own.input_cached, own.input - 1);
    assert_eq!(guess(aside(1, 1)).await.input_cached, own.input - 1);
    let other = request(&["Something else, of which nobody has heard before, and which is long enough."], 4);
    for _ in 0..2 {
        assert_eq!(usage(client.stream(&other, aside(1, 1))).await.input_cached, instructions);
    }
    assert_eq!(guess(spoken(1, 1)).await.input_cached, own.input - 1);
    child.shutdown().await;
}
