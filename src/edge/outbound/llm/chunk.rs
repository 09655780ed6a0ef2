//! Content of one event of a stream, of either API.

use crate::message::{FinishReason, TokenUsage};

/// Content of one event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Chunk {
    /// Parts of the answer, in order; none of them is empty.
    pub(super) pieces: Vec<ChunkPart>,
    /// End of the answer; `None`: not in this event.
    pub(super) finish: Option<FinishReason>,
    /// Usage of the answer; `None`: not in this event.
    pub(super) usage: Option<TokenUsage>,
    /// True if nothing of use follows.
    pub(super) is_last: bool,
}

/// A part of the answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChunkPart {
    /// Text, perhaps with reasoning between tags.
    Text(String),
    /// Bytes of reasoning that came in a field of its own.
    Reasoning(usize),
    /// A part of a function call.
    Call(CallFragment),
}

impl Chunk {
    /// Adds text, if there is any.
    pub(super) fn text(&mut self, text: Option<String>) {
        self.pieces.extend(text.filter(|text| !text.is_empty()).map(ChunkPart::Text));
    }

    /// Adds reasoning, if there is any.
    pub(super) fn reasoning(&mut self, thought: Option<&str>) {
        let thought = thought.filter(|thought| !thought.is_empty());
        self.pieces.extend(thought.map(|thought| ChunkPart::Reasoning(thought.len())));
    }
}

/// A part of a function call, as the server cuts it.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CallFragment {
    /// The call's number in the answer.
    pub(super) index: Option<u32>,
    /// The server's name for the call.
    pub(super) id: Option<String>,
    /// The function, or a part of its name.
    pub(super) name: Option<String>,
    /// JSON, or a part of it.
    pub(super) arguments: String,
    /// True if the call is complete, and `arguments` are all its arguments.
    pub(super) is_whole: bool,
}
