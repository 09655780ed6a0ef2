//! The built-in server's function calls, by the real model.

use antiphon::door::edge::outbound::llm::ChatEndpoint;
use antiphon::door::message::{ChatMessage, ChatRequest, FunctionCall, FunctionTool, ToolChoice};
use serde_json::{Value, json};

use crate::answer::Answer;
use crate::builtin::{client, post, spoken, start};

fn weather() -> FunctionTool {
    let parameters = json!({
        "type": "object",
        "properties": {
            "city": {"type": "string"},
            "scale": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "integer"},
            "places": {"type": "array", "items": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
        },
        "required": ["city", "scale", "places"],
    });
    FunctionTool {
        name: "weather".to_owned(),
        description: Some("Weather of a city.".to_owned()),
        parameters: Some(parameters),
    }
}

fn clock() -> FunctionTool {
    FunctionTool {
        name: "clock".to_owned(),
        description: Some("Tells the time.".to_owned()),
        parameters: None,
    }
}

/// A function that needs no argument and may have several.
fn lamp() -> FunctionTool {
    let parameters = json!({
        "type": "object",
        "properties": {"on": {"type": "boolean"}, "level": {"type": "number"}, "colour": {"anyOf": [{"const": "red"}, {"type": "null"}]}},
    });
    FunctionTool { name: "lamp".to_owned(), description: None, parameters: Some(parameters) }
}

fn request(tool_choice: ToolChoice, tokens_max: u32) -> ChatRequest {
    ChatRequest {
        messages: vec![
            ChatMessage::System("Be brief.".to_owned()),
            ChatMessage::user("What is the weather in Paris?"),
        ],
        tools: vec![clock(), weather(), lamp()],
        tool_choice,
        tokens_max: Some(tokens_max),
        spoken: true,
        ..ChatRequest::default()
    }
}

fn is_lamp(arguments: &str) -> bool {
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { return false };
    arguments.iter().all(|(name, value)| match name.as_str() {
        "on" => value.is_boolean(),
        "level" => value.is_number(),
        "colour" => value.is_null() || *value == "red",
        _ => false,
    })
}

/// Whether these are arguments that the schema of [`weather`] allows.
fn is_weather(arguments: &str) -> bool {
    let Ok(Value::Object(arguments)) = serde_json::from_str(arguments) else { return false };
    let is_place =
        |place: &Value| place["x"].is_number() && place.as_object().is_some_and(|place| place.len() == 1);
    arguments.keys().all(|name| ["city", "scale", "days", "places"].contains(&name.as_str()))
        && arguments["city"].is_string()
        && ["celsius", "fahrenheit"].iter().any(|scale| arguments["scale"] == *scale)
        && arguments.get("days").is_none_or(Value::is_i64)
        && arguments["places"].as_array().is_some_and(|places| places.iter().all(is_place))
}

#[tokio::test]
async fn who_must_call_calls_with_arguments_that_the_schema_allows() {
    let child = start(1).await;
    let client = client(&child);
    let ask = |choice| Answer::read(client.stream(&request(choice, 400), spoken(0, 1)));
    for _ in 0..2 {
        let named = ask(ToolChoice::Function("weather".to_owned())).await;
        assert_eq!(named.text, "", "{named:?}");
        let [call] = named.calls.as_slice() else { panic!("{named:?}") };
        assert!(call.name == "weather" && call.has_ended && is_weather(&call.arguments), "{named:?}");
        named.end.expect("complete");
        let required = ask(ToolChoice::Required).await;
        let [call] = required.calls.as_slice() else { panic!("{required:?}") };
        let is_valid = match call.name.as_str() {
            "clock" => call.arguments == "{}",
            "weather" => is_weather(&call.arguments),
            "lamp" => is_lamp(&call.arguments),
            _ => false,
        };
        assert!(is_valid && call.has_ended && required.text.is_empty(), "{required:?}");
        let optional = ask(ToolChoice::Function("lamp".to_owned())).await;
        let [call] = optional.calls.as_slice() else { panic!("{optional:?}") };
        assert!(call.name == "lamp" && call.has_ended && is_lamp(&call.arguments), "{optional:?}");
    }
    // Whether it calls is the model's choice; that nothing of a call is text is not.
    let ask = |choice| Answer::read(client.stream(&request(choice, 40), spoken(0, 1)));
    let free = ask(ToolChoice::Auto).await;
    assert!(!free.text.contains("tool_call") && !free.text.contains("\"arguments\""), "{free:?}");
    assert!(
        free.calls.iter().all(|call| ["clock", "weather", "lamp"].contains(&call.name.as_str())),
        "{free:?}"
    );
    let none = ask(ToolChoice::None).await;
    assert!(none.calls.is_empty() && !none.text.is_empty(), "{none:?}");
    child.shutdown().await;
}

#[tokio::test]
async fn a_call_and_its_output_are_history() {
    let child = start(1).await;
    let client = client(&child);
    let call = FunctionCall {
        call_id: "c1".to_owned(),
        name: "weather".to_owned(),
        arguments: "{\"city\":\"Paris\"}".to_owned(),
    };
    let mut request = request(ToolChoice::Auto, 40);
    request.messages.push(ChatMessage::Assistant { text: String::new(), calls: vec![call] });
    let output = "It is sunny.".to_owned();
    request.messages.push(ChatMessage::FunctionOutput { call_id: "c1".to_owned(), output });
    let answer = Answer::read(client.stream(&request, None)).await;
    let (_, usage) = answer.end.as_ref().expect("complete");
    assert!(usage.input > 150, "functions, call and output are in the prompt: {answer:?}");
    child.shutdown().await;
}

#[tokio::test]
async fn a_whole_answer_shows_its_call_as_the_api_says() {
    let child = start(1).await;
    let endpoint: ChatEndpoint = child.endpoint().borrow().clone().expect("it is ready");
    let tool = json!({"type": "function", "function": {"name": "clock"}});
    let hello = json!([{"role": "user", "content": "What time is it?"}]);
    let body = json!({"messages": hello, "tools": [tool], "tool_choice": "required"});
    let (status, answer) = post(&endpoint, &body).await;
    let choice = &answer["choices"][0];
    assert_eq!((status, &choice["finish_reason"]), (200, &json!("tool_calls")), "{answer}");
    let message = &choice["message"];
    assert_eq!(
        (&message["content"], &message["tool_calls"][0]["type"]),
        (&Value::Null, &json!("function")),
        "{answer}"
    );
    assert_eq!(message["tool_calls"][0]["function"], json!({"name": "clock", "arguments": "{}"}), "{answer}");
    assert!(message["tool_calls"][0]["id"].as_str().is_some_and(|id| id.starts_with("call_")), "{answer}");
    child.shutdown().await;
}
