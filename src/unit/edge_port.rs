//! The port of a unit's connection.

use super::ring::{Consumer, Producer};
use crate::message::{AnswerOut, AudioIn, Spent, SttEvent, TextPrompt, TtsSettings, VadEvent};

/// The edge's ends. Borrowed by the lease for as long as it lives, then by the drainer.
#[derive(Debug)]
pub struct EdgePort {
    /// Audio of the client, to VAD.
    pub audio_in: Producer<AudioIn>,
    /// Prompts, to the language model.
    pub text_prompts: Producer<TextPrompt>,
    /// `text_events`, VAD's half.
    pub vad_events: Consumer<VadEvent>,
    /// `text_events`, STT's half.
    pub stt_events: Consumer<SttEvent>,
    /// The answer: audio and its events in order.
    pub answer_out: Consumer<AnswerOut>,
    /// Latest settings for TTS.
    pub tts_settings: triple_buffer::Input<TtsSettings>,
    /// Cost of the last answer.
    pub spent: triple_buffer::Output<Spent>,
}
