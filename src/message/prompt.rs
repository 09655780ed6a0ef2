//! What the session asks of the language model. Not on the audio path: these items own heap memory.

use serde_json::Value;

use super::envelope::RingItem;
use super::ids::AnswerStamp;

/// One message of the conversation, as a chat model sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChatMessage {
    /// Instructions.
    System(String),
    /// What the user said, wrote or showed; at least one part.
    User(Vec<UserPart>),
    /// What the model said and which functions it called, in this order; one of them may be empty.
    Assistant {
        /// Its words.
        text: String,
        /// Its calls. Each is followed by exactly one [`ChatMessage::FunctionOutput`], before anything else.
        calls: Vec<FunctionCall>,
    },
    /// What came of a call.
    FunctionOutput {
        /// [`FunctionCall::call_id`].
        call_id: String,
        /// In the client's words.
        output: String,
    },
}

impl ChatMessage {
    /// A user's message of one text.
    #[must_use]
    pub fn user(text: impl Into<String>) -> Self {
        Self::User(vec![UserPart::Text(text.into())])
    }

    /// A model's message without calls.
    #[must_use]
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::Assistant { text: text.into(), calls: Vec::new() }
    }
}

/// One part of what the user said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UserPart {
    /// Text, spoken or written.
    Text(String),
    /// A picture.
    Image {
        /// A `data:` URL, or the address where the model server is to fetch it.
        url: String,
        /// How closely the model looks: `auto`, `low` or `high`.
        detail: &'static str,
    },
}

/// A call that the model has made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionCall {
    /// Our name for it, unique in the session.
    pub call_id: String,
    /// The function.
    pub name: String,
    /// JSON, as the model wrote it.
    pub arguments: String,
}

/// A function that the model may call.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionTool {
    /// Its name.
    pub name: String,
    /// When and how to call it.
    pub description: Option<String>,
    /// JSON schema of its arguments.
    pub parameters: Option<Value>,
}

/// Which functions the model calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes.
    #[default]
    Auto,
    /// None.
    None,
    /// At least one.
    Required,
    /// The one with this name.
    Function(String),
}

/// How much a model thinks before it answers, where it can be told.
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
    /// The word of the API.
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

/// One completion to make.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChatRequest {
    /// Instructions and history, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Functions that may be called.
    pub tools: Vec<FunctionTool>,
    /// Which of them are. [`ToolChoice::Auto`] if there are none.
    pub tool_choice: ToolChoice,
    /// Whether there may be more than one call; `None`: as the model server likes.
    pub parallel_tool_calls: Option<bool>,
    /// How much the model thinks; `None`: as the model server likes.
    pub reasoning: Option<ReasoningEffort>,
    /// Limit of the completion, calls included; `None`: the model server's own.
    pub tokens_max: Option<u32>,
    /// Whether the answer is spoken (audio) or only written (text).
    pub spoken: bool,
}

/// Ring `text_prompts`: session → language model.
#[derive(Debug)]
pub enum TextPrompt {
    /// Answer this.
    Generate(Box<ChatRequest>),
    /// Speak this as it stands; no model is asked.
    Speak(Box<str>),
}

impl RingItem for TextPrompt {
    type Stamp = AnswerStamp;
}
