//! What the session asks of the language model. Not on the audio path: these items own heap memory.

use super::ids::{Epoch, ResponseKey, Stamp};

/// Who said a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Instructions.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// The name on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// One message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who.
    pub role: Role,
    /// What.
    pub content: String,
}

/// One completion to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChatRequest {
    /// Instructions and history, oldest first.
    pub messages: Vec<ChatMessage>,
    /// Limit of the completion; `None`: the model server's own.
    pub tokens_max: Option<u32>,
    /// Whether the answer is spoken (audio) or only written (text).
    pub spoken: bool,
}

/// `text_prompts`: session → language model.
#[derive(Debug)]
pub enum TextPrompt {
    /// Answer this.
    Generate {
        /// When it was made; everything made of it inherits this.
        stamp: Stamp,
        /// The response that the answer belongs to.
        response: ResponseKey,
        /// What to answer.
        request: Box<ChatRequest>,
    },
    /// Nothing of this epoch follows.
    SessionEnd {
        /// The epoch that ends.
        epoch: Epoch,
    },
}
