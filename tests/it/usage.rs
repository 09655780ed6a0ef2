//! What answers have cost: in `response.done`, and in the totals of `/v1/usage`, once each, whatever becomes of the answer.

use std::time::Duration;

use serde_json::{Value, json};

use crate::client::Client;
use crate::llm::{Script, ScriptedCall, ScriptedLlm};
use crate::server::Server;

/// A request is made well before this.
const REQUEST_LIMIT: Duration = Duration::from_secs(20);

/// What the scripted server says of each completion.
const COST: (u64, u64) = (7, 3);

/// Spoken as fast as one listens: the model is done long before.
const LONG: &str = "say dur=60 tag=9 rt=1";

async fn start(llm: &ScriptedLlm) -> Server {
    Server::fake_with(1, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await
}

/// Tokens of text in a `response.done`.
fn tokens(done: &Value) -> (u64, u64) {
    let usage = &done["response"]["usage"];
    let count = |details: &str| usage[details]["text_tokens"].as_u64().expect("a count");
    (count("input_token_details"), count("output_token_details"))
}

/// The totals of the server, in completions.
async fn completions(server: &Server) -> u64 {
    let usage = server.json("/v1/usage").await;
    let count = |name: &str| usage[name].as_u64().expect("a count");
    let (input, output) = (count("input_tokens"), count("output_tokens"));
    assert_eq!(output * COST.0, input * COST.1, "{usage}");
    assert_eq!(count("total_tokens"), input + output, "{usage}");
    input / COST.0
}

#[tokio::test]
async fn totals_are_the_sum_of_the_responses() {
    let llm = ScriptedLlm::start().await;
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    let tools = ["look", "book"].map(|name| json!({ "type": "function", "name": name }));
    client.update(json!({ "tools": tools, "output_modalities": ["text"] })).await;
    let mut conversations = Vec::new();
    for _ in 0..3 {
        client.ask("Hello.").await;
        let done = client.expect("response.done").await;
        assert_eq!(tokens(&done), COST, "{done}");
        conversations.push(done["response"]["conversation_id"].clone());
    }
    assert!(conversations.iter().all(|id| id.is_string() && *id == conversations[0]), "{conversations:?}");
    let calls =
        ["look", "book"].map(|name| ScriptedCall { name: name.to_owned(), arguments: "{}".to_owned() });
    llm.script([Script::Call { before: String::new(), calls: calls.to_vec() }]);
    client.ask("Both.").await;
    assert_eq!(tokens(&client.expect("response.done").await), COST);
    let aside = json!({ "conversation": "none", "output_modalities": ["text"] });
    client.send(&json!({ "type": "response.create", "response": aside })).await;
    assert_eq!(tokens(&client.expect("response.done").await), COST);
    assert_eq!(completions(&server).await, 5);
    let usage = server.json("/v1/usage").await;
    assert_eq!((&usage["tool_calls"], &usage["responses_completed"]), (&json!(2), &json!(5)), "{usage}");
}

#[tokio::test]
async fn an_answer_that_is_broken_off_has_cost_what_the_model_has_written() {
    let mut llm = ScriptedLlm::start().await;
    let server = start(&llm).await;
    let mut client = Client::open(server.addr()).await;
    for round in 1..=3 {
        llm.script([Script::Say(vec![LONG.to_owned()])]);
        client.ask("Talk.").await;
        client.expect("response.output_audio.delta").await;
        client.send(&json!({ "type": "response.cancel" })).await;
        let done = client.expect("response.done").await;
        assert_eq!(done["response"]["status"], "cancelled");
        assert_eq!(tokens(&done), COST, "{done}");
        assert_eq!(completions(&server).await, round);
    }
    // However much there is to say: the model is not held up by the voice.
    let sentences =
        format!("{LONG}\n\n{}", "So it goes on, and on, and on, until the end of it. ".repeat(60));
    llm.script([Script::Say(sentences.split_inclusive(' ').map(str::to_owned).collect())]);
    client.ask("Talk.").await;
    for _ in 0..20 {
        // Of the first minute; what comes after it waits for the voice.
        client.expect("response.output_audio.delta").await;
    }
    client.send(&json!({ "type": "response.cancel" })).await;
    let done = client.expect("response.done").await;
    assert_eq!((done["response"]["status"].as_str(), tokens(&done)), (Some("cancelled"), COST), "{done}");
    // The model has told nothing of what it was not allowed to finish, and the next answer costs only its own.
    llm.script([Script::StallAfter(vec!["Well, ".to_owned()])]);
    client.ask("Talk.").await;
    client.expect("response.output_audio_transcript.delta").await;
    client.send(&json!({ "type": "response.cancel" })).await;
    assert_eq!(tokens(&client.expect("response.done").await), (0, 0));
    llm.abandoned(1, REQUEST_LIMIT).await;
    client.ask("Hello.").await;
    assert_eq!(tokens(&client.expect("response.done").await), COST);
    assert_eq!(completions(&server).await, 5);

    for (round, goes) in [Client::cut as fn(Client), Client::reset].into_iter().enumerate() {
        llm.script([Script::Say(vec![LONG.to_owned()])]);
        client.ask("Talk.").await;
        client.expect("response.output_audio.delta").await;
        goes(client);
        server.all_units_free().await;
        assert_eq!(completions(&server).await, 6 + round as u64, "nobody was there to be told");
        client = Client::open(server.addr()).await;
    }
    // Nothing of the last session is in the next one's answers.
    llm.script([Script::StallAfter(vec!["Well, ".to_owned()])]);
    client.ask("Talk.").await;
    client.expect("response.output_audio_transcript.delta").await;
    client.send(&json!({ "type": "response.cancel" })).await;
    assert_eq!(tokens(&client.expect("response.done").await), (0, 0));
}
