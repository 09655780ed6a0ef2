//! The port of a unit's connection.

use super::ring::{Consumer, Producer};
use crate::message::{AnswerOut, AudioIn, Spent, SttEvent, TextPrompt, TtsSettings, VadEvent};

/// The edge's ends. The lease borrows them as long as it lives; the drain borrows them afterwards.
#[derive(Debug)]
pub struct EdgePort {
    /// Audio of the client, to VAD.
    pub audio_in: Producer<AudioIn>,
    /// Prompts, to the language model.
    pub text_prompts: Producer<TextPrompt>,
    /// VAD's half of `text_events`.
    pub vad_events: Consumer<VadEvent>,
    /// STT's half of `text_events`.
    pub stt_events: Consumer<SttEvent>,
    /// The answer: audio and its events in order.
    pub answer_out: Consumer<AnswerOut>,
    /// Latest settings for TTS.
    pub tts_settings: triple_buffer::Input<TtsSettings>,
    /// Cost of the last answer.
    pub spent: triple_buffer::Output<Spent>,
}
