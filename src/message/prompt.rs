//! Requests of the session to the language model. They are not on the audio path: these items own heap memory.

use serde_json::Value;

use super::envelope::RingItem;
use super::ids::AnswerStamp;

/// One message of the conversation, as a chat model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatMessage {
    /// Instructions to the model.
    System(String),
    /// Words and pictures of the user; at least one part.
    User(Vec<UserPart>),
    /// Words and calls of the model, in this order. One of them may be empty.
    Assistant {
        /// The model's words.
        text: String,
        /// The model's calls. Exactly one [`ChatMessage::FunctionOutput`] follows for each, before any other message.
        calls: Vec<FunctionCall>,
    },
    /// Output of a function call.
    FunctionOutput {
        /// [`FunctionCall::call_id`] of the call.
        call_id: String,
        /// Output in the client's words.
        output: String,
    },
}

impl ChatMessage {
    /// Creates a user's message of one text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![UserPart::Text(text.into())])
    }

    /// Creates a model's message without calls.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant { text: text.into(), calls: Vec::new() }
    }
}

/// One part of a user's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserPart {
    /// Text, spoken or written.
    Text(String),
    /// A picture.
    Image {
        /// A `data:` URL, or the address from which the model server fetches the picture.
        url: String,
        /// Resolution at which the model looks: `auto`, `low` or `high`.
        detail: &'static str,
    },
}

/// A call that the model has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// Id of the call, unique in the session.
    pub call_id: String,
    /// Name of the function.
    pub name: String,
    /// Arguments in JSON, as the model wrote them.
    pub arguments: String,
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionTool {
    /// Name of the function.
    pub name: String,
    /// Instructions to the model about the use of the function.
    pub description: Option<String>,
    /// JSON schema of the arguments.
    pub parameters: Option<Value>,
}

/// Functions that the model may or must call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides.
    #[default]
    Auto,
    /// The model calls no function.
    None,
    /// The model calls at least one function.
    Required,
    /// The model calls the function with this name.
    Function(String),
}

/// Amount of thought before the answer, for models that can be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "the words of the API")]
pub enum ReasoningEffort {
    Minimal,
    Low,
    Medium,
    High,
    Xhigh,
}

impl ReasoningEffort {
    /// Returns the word of the API.
    ///
    /// # Source
    /// `realtime_reasoning_effort.py`, openai 3.57.0.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Minimal => "minimal",
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
            Self::Xhigh => "xhigh",
        }
    }
}

/// Request of one completion.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// Instructions and history, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Functions that the model may call.
    pub tools: Vec<FunctionTool>,
    /// Rule for the calls; [`ToolChoice::Auto`] if there are no tools.
    pub tool_choice: ToolChoice,
    /// True if the answer may hold more than one call; `None`: the model server's default.
    pub parallel_tool_calls: Option<bool>,
    /// Amount of thought; `None`: the model server's default.
    pub reasoning: Option<ReasoningEffort>,
    /// Most tokens of the completion, calls included; `None`: the model server's own limit.
    pub tokens_max: Option<u32>,
    /// True if the answer is spoken (audio), false if it is written (text).
    pub spoken: bool,
}

/// Ring `text_prompts`: session → language model.
#[derive(Debug)]
pub enum TextPrompt {
    /// A request to the model.
    Generate(Box<ChatRequest>),
    /// Text to speak as it stands. No model is asked.
    Speak(Box<str>),
}

impl RingItem for TextPrompt {
    type Stamp = AnswerStamp;
}
