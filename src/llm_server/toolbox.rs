//! The functions of a request: their description in the instructions, and the text of calls and outputs in the prompt.
//!
//! # Source
//! OpenAI API reference, "Chat Completions", `tools` and `tool_choice`. The tags are those of Hermes 2 Pro's function
//! calling format, which SmolLM2, Qwen 2.5 and others were trained on.

use serde::Deserialize;
use serde_json::{Value, json};

use super::call_grammar::call_grammar;
use super::call_parser::{CLOSING, CallParser, OPENING};
use super::error::RequestError;

/// One of a request's `tools`.
#[derive(Debug, Deserialize)]
pub(super) struct ToolBody {
    #[serde(rename = "type")]
    kind: String,
    function: Option<Function>,
}

#[derive(Clone, Debug, Deserialize, PartialEq)]
struct Function {
    name: String,
    description: Option<String>,
    parameters: Option<Value>,
}

/// A call in a request's history.
#[derive(Debug, Deserialize)]
pub(super) struct CallBody {
    function: CalledFunction,
}

#[derive(Debug, Deserialize)]
struct CalledFunction {
    name: String,
    arguments: String,
}

/// The functions that the model may call now.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Toolbox {
    functions: Vec<Function>,
    /// True if the model must call a function.
    must_call: bool,
    /// True if the model may make more than one call.
    may_repeat: bool,
}

impl Toolbox {
    /// Parses `tools` and `tool_choice`; `may_repeat` is `parallel_tool_calls`. The choice `none` leaves no functions,
    /// and the choice of one function leaves that one.
    pub(super) fn parse(
        tools: Option<Vec<ToolBody>>,
        choice: Option<&Value>,
        may_repeat: bool,
    ) -> Result<Self, RequestError> {
        let functions = tools.unwrap_or_default().into_iter().map(|tool| match tool.function {
            Some(function) if tool.kind == "function" => Ok(function),
            _ => Err(RequestError::invalid(format!("tools: found type {:?}, expected function", tool.kind))),
        });
        let mut functions = functions.collect::<Result<Vec<_>, _>>()?;
        let choice = choice.unwrap_or(&Value::Null);
        let must_call = match (choice.as_str(), choice["function"]["name"].as_str()) {
            (Some("auto"), _) => false,
            (None, None) if choice.is_null() => false,
            (Some("none"), _) => {
                functions.clear();
                false
            }
            (Some("required"), _) => true,
            (None, Some(name)) => {
                functions.retain(|function| function.name == name);
                true
            }
            _ => {
                let problem =
                    format!("tool_choice: found {choice}, expected auto, none, required or a function");
                return Err(RequestError::invalid(problem));
            }
        };
        if must_call && functions.is_empty() {
            let problem = format!("tool_choice: found {choice}, expected a function among the tools");
            return Err(RequestError::invalid(problem));
        }
        Ok(Self { functions, must_call, may_repeat })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Returns the names of the functions.
    pub(super) fn names(&self) -> Vec<String> {
        self.functions.iter().map(|function| function.name.clone()).collect()
    }

    /// Returns the parser that takes the calls out of the answer.
    pub(super) fn parser(&self) -> CallParser {
        CallParser::new(self.names(), if self.may_repeat { usize::MAX } else { 1 })
    }

    /// Returns the grammar of the answer, if the answer must be a call.
    pub(super) fn grammar(&self) -> Option<String> {
        let functions = self.functions.iter();
        self.must_call.then(|| call_grammar(functions.map(|it| (it.name.as_str(), it.parameters.as_ref()))))
    }

    /// Returns the instructions about the functions; not empty if there are any.
    pub(super) fn instructions(&self) -> String {
        if self.is_empty() {
            return String::new();
        }
        let mut text = "You can call these functions:\n<tools>\n".to_owned();
        for function in &self.functions {
            let mut line = json!({"name": function.name});
            if let Some(description) = &function.description {
                line["description"] = description.as_str().into();
            }
            if let Some(parameters) = &function.parameters {
                line["parameters"] = parameters.clone();
            }
            text.push_str(&line.to_string());
            text.push('\n');
        }
        text.push_str(
            "</tools>\nTo call a function, answer with its name and its arguments and with nothing else:\n",
        );
        text.push_str(&call_text("name", "{\"argument\": \"value\"}"));
        text
    }
}

/// Returns the text of an assistant's message in the history, calls included.
pub(super) fn said(mut text: String, calls: Vec<CallBody>) -> String {
    for call in calls {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&call_text(&call.function.name, &call.function.arguments));
    }
    text
}

/// Returns the output of a call as a message of the user, because many templates have no role `tool`.
pub(super) fn output(text: &str) -> String {
    format!("<tool_response>\n{text}\n</tool_response>")
}

fn call_text(name: &str, arguments: &str) -> String {
    format!("{OPENING}\n{{\"name\": {}, \"arguments\": {arguments}}}\n{CLOSING}", Value::from(name))
}
