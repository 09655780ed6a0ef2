//! The port of a unit's language model task.

use super::ring::{Consumer, Producer};
use crate::message::{AnswerIn, Spent, TextPrompt};

/// The language model task's ends.
#[derive(Debug)]
pub struct LlmPort {
    /// Prompts, from the session.
    pub text_prompts: Consumer<TextPrompt>,
    /// The answer, to TTS.
    pub answer_in: Producer<AnswerIn>,
    /// Cost of the last answer.
    pub spent: triple_buffer::Input<Spent>,
}
