//! `response.cancel`: nothing of the old answer after its end, and the next one is whole (RC-010, RC-011, RC-018).

use serde_json::json;

use crate::client::{Answer, Client};
use crate::rng::Rng;
use crate::server::Server;

async fn cancel(client: &mut Client) {
    client.send(&json!({ "type": "response.cancel" })).await;
}

/// Reads to the end of a response whose cancel has been sent; `true` if the cancel came too late.
async fn rest_of_cancelled(client: &mut Client, answer: &mut Answer) -> bool {
    let mut is_over = false;
    loop {
        let event = client.event().await;
        if event["type"] == "error" {
            assert_eq!(event["error"]["code"], "response_cancel_not_active", "{event}");
            assert!(is_over, "{}: nothing to cancel, yet it is not done: {event}", answer.id);
            return true;
        }
        is_over = answer.take(&event);
        if is_over && answer.status == "cancelled" {
            return false;
        }
    }
}

#[tokio::test]
async fn a_cancelled_answer_ends_at_once_and_the_next_is_bit_exact() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let seed = Rng::seed_of_run();
    let mut rng = Rng::new(seed);
    for round in 0..200_i16 {
        // Paced and unpaced, cancelled before, in and long after the first audio.
        let pace = 50 * rng.below(2);
        let events = rng.below(25);
        client.ask(&format!("say dur=60 tag={} rt={pace}", 1_000 + round)).await;
        let created = client.expect("response.created").await;
        let id = created["response"]["id"].as_str().expect("an id").to_owned();
        let mut old = Answer { id, ..Answer::default() };
        let mut is_over = false;
        for _ in 0..events {
            is_over = is_over || old.take(&client.event().await);
            if is_over {
                break;
            }
        }
        if !is_over {
            cancel(&mut client).await;
            let refused = rest_of_cancelled(&mut client, &mut old).await;
            // An unpaced answer may be complete before the server reads the cancel; then there was nothing to cancel.
            let expected = if refused { "completed" } else { "cancelled" };
            assert_eq!(old.status, expected, "round {round}, ANTIPHON_SEED={seed}");
            let is_why = refused || old.details["reason"] == "client_cancelled";
            assert!(is_why, "round {round}, ANTIPHON_SEED={seed}: {:?}", old.details);
        }
        assert!(
            old.samples.iter().all(|&sample| sample == 1_000 + round),
            "round {round}, ANTIPHON_SEED={seed}"
        );
        // `answer` fails on anything of the old response.
        client.ask(&format!("say dur=0.3 tag={}", 20_000 + round)).await;
        client.answer().await.assert_is(20_000 + round, 0.3);
    }
}

#[tokio::test]
async fn cancel_and_create_in_one_breath_give_one_end_and_one_whole_answer() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    for round in 0..100_i16 {
        client.ask("say dur=30 tag=1 rt=1").await;
        let created = client.expect("response.created").await;
        cancel(&mut client).await;
        client.ask(&format!("say dur=0.2 tag={}", 500 + round)).await;
        let old = client.rest_of_answer(&created).await;
        assert_eq!(old.status, "cancelled", "round {round}");
        client.answer().await.assert_is(500 + round, 0.2);
    }
}

#[tokio::test]
async fn cancelling_nothing_is_an_error_and_harmless() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    let refused = async |client: &mut Client, event: serde_json::Value| {
        client.send(&event).await;
        loop {
            let answer = client.event().await;
            if answer["type"] == "error" {
                assert_eq!(answer["error"]["event_id"], event["event_id"], "{answer}");
                assert_eq!(answer["error"]["code"], "response_cancel_not_active", "{answer}");
                break;
            }
        }
    };
    refused(&mut client, json!({ "type": "response.cancel", "event_id": "c1" })).await;
    client.ask("say dur=0.2 tag=44").await;
    let first = client.answer().await;
    first.assert_is(44, 0.2);
    refused(&mut client, json!({ "type": "response.cancel", "event_id": "c2", "response_id": first.id }))
        .await;
    client.ask("say dur=1 tag=45 rt=1").await;
    let created = client.expect("response.created").await;
    // The name of an older answer does not stop the one that runs.
    client.send(&json!({ "type": "response.cancel", "event_id": "c3", "response_id": first.id })).await;
    let mut second =
        Answer { id: created["response"]["id"].as_str().expect("an id").to_owned(), ..Answer::default() };
    let mut errors = 0;
    loop {
        let event = client.event().await;
        if event["type"] == "error" {
            assert_eq!(event["error"]["event_id"], "c3", "{event}");
            errors += 1;
        } else if second.take(&event) {
            break;
        }
    }
    assert_eq!(errors, 1);
    second.assert_is(45, 1.0);
}

#[tokio::test]
async fn a_second_create_while_one_runs_is_refused_and_the_first_goes_on() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    client.ask("say dur=1 tag=46 rt=1").await;
    let created = client.expect("response.created").await;
    client.send(&json!({ "type": "response.create", "event_id": "twice" })).await;
    let mut first =
        Answer { id: created["response"]["id"].as_str().expect("an id").to_owned(), ..Answer::default() };
    let mut refused = 0;
    loop {
        let event = client.event().await;
        if event["type"] == "error" {
            assert_eq!(event["error"]["event_id"], "twice", "{event}");
            assert_eq!(event["error"]["code"], "conversation_already_has_active_response", "{event}");
            refused += 1;
        } else if first.take(&event) {
            break;
        }
    }
    assert_eq!(refused, 1);
    first.assert_is(46, 1.0);
}

#[tokio::test]
async fn many_answers_asked_for_and_cancelled_at_once_cost_nothing() {
    let server = Server::fake(1).await;
    let mut client = Client::open(server.addr()).await;
    for _ in 0..50 {
        client.ask("say dur=60 tag=9 rt=1").await;
        cancel(&mut client).await;
    }
    for _ in 0..50 {
        assert_eq!(client.expect("response.done").await["response"]["status"], "cancelled");
    }
    client.ask("say dur=1 tag=10 rt=0").await;
    client.answer().await.assert_is(10, 1.0);
}
