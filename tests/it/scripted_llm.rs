//! The scripted model server itself: what the other tests rely on.

use antiphon::door::config::LlmApi;
use antiphon::door::edge::outbound::llm::{ChatClient, ChatDelta, ChatEndpoint, ChatTimeouts};
use antiphon::door::message::{ChatMessage, ChatRequest, FunctionCall, FunctionTool, ToolChoice};
use clap::ValueEnum;

use crate::llm::{Api, Script, ScriptedCall, ScriptedLlm};

fn request(messages: Vec<ChatMessage>, tools: &[&str]) -> ChatRequest {
    let tool = |name: &&str| FunctionTool { name: (*name).to_owned(), description: None, parameters: None };
    ChatRequest { messages, tools: tools.iter().map(tool).collect(), ..ChatRequest::default() }
}

/// A call with its output, as the history of a conversation has them.
fn called(id: &str) -> FunctionCall {
    FunctionCall { call_id: id.to_owned(), name: "clock".to_owned(), arguments: "{}".to_owned() }
}

fn output(id: &str, text: &str) -> ChatMessage {
    ChatMessage::FunctionOutput { call_id: id.to_owned(), output: text.to_owned() }
}

/// The answer in one line: text, calls as `name(arguments)`; the status if it was refused.
async fn ask(llm: &ScriptedLlm, request: &ChatRequest) -> String {
    let api = LlmApi::from_str(llm.api(), false).expect("an API");
    let endpoint = ChatEndpoint::new(&llm.url(), Some(api), None, None).expect("valid");
    let client = ChatClient::new(endpoint, ChatTimeouts::default()).expect("an HTTP client");
    let mut stream = client.stream(request, None);
    let mut line = String::new();
    loop {
        match stream.next().await {
            Ok(ChatDelta::Text(text) | ChatDelta::Arguments(text)) => line.push_str(&text),
            Ok(ChatDelta::Call { name }) => line.push_str(&format!("{name}(")),
            Ok(ChatDelta::CallEnd) => line.push(')'),
            Ok(ChatDelta::Done { .. }) => return line,
            Ok(ChatDelta::Reasoning | ChatDelta::RateLimits(_)) => {}
            Err(error) => return error.to_string(),
        }
    }
}

#[tokio::test]
async fn functions_are_called_when_the_user_says_so() {
    for api in Api::ALL {
        function_calls(api).await;
    }
}

async fn function_calls(api: Api) {
    let llm = ScriptedLlm::start_as(api).await;
    let user = |text: &str| vec![ChatMessage::user(text)];
    assert_eq!(ask(&llm, &request(user("Please call clock."), &["clo", "clock"])).await, "clock({})");
    assert_eq!(ask(&llm, &request(user("Please call clock."), &[])).await, "Please call clock.");
    let none = ChatRequest { tool_choice: ToolChoice::None, ..request(user("Call clock"), &["clock"]) };
    assert_eq!(ask(&llm, &none).await, "Call clock");
    let calls =
        ["x", "y"].map(|name| ScriptedCall { name: name.to_owned(), arguments: format!("{{\"{name}\":1}}") });
    llm.script([Script::Call { before: "Let me see.".to_owned(), calls: calls.to_vec() }]);
    assert_eq!(ask(&llm, &request(user("Hello"), &["x", "y"])).await, r#"Let me see.x({"x":1})y({"y":1})"#);
    let answered = vec![
        ChatMessage::user("Call clock"),
        ChatMessage::Assistant { text: String::new(), calls: vec![called("1"), called("2")] },
        output("2", "noon"),
        output("1", "It is noon."),
    ];
    assert_eq!(ask(&llm, &request(answered, &["clock"])).await, "It is noon.");
}

#[tokio::test]
async fn calls_without_their_output_are_refused_and_remembered() {
    for api in Api::ALL {
        refusals(api).await;
    }
}

async fn refusals(api: Api) {
    let llm = ScriptedLlm::start_as(api).await;
    let call = || ChatMessage::Assistant { text: String::new(), calls: vec![called("1")] };
    let (user, output) = (|| ChatMessage::user("Hello"), || output("1", "noon"));
    for messages in [
        vec![user(), call()],
        vec![user(), call(), user()],
        vec![user(), call(), user(), output()],
        vec![user(), output()],
        vec![user(), call(), output(), output()],
    ] {
        assert!(ask(&llm, &request(messages.clone(), &["clock"])).await.contains("400"), "{messages:?}");
        assert_eq!(llm.take_violations().len(), 1, "{messages:?}");
    }
}
