//! The session as the server shows it.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use crate::audio::AudioFormat;
use crate::message::{FunctionTool, ReasoningEffort, ToolChoice};

use super::audio_format::ShownFormat;
use super::id::SessionId;
use super::output::{MaxTokens, Modality};
use super::session_update::{SessionKind, Truncation, TurnDetection, TurnMode};
use super::tool::{ShownChoice, ShownTool};
use super::wire::decimal;

/// The effective configuration of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct SessionObject {
    /// Type of the session.
    pub kind: SessionKind,
    /// Id of the session.
    pub id: SessionId,
    /// Name of the model, which is only shown.
    pub model: String,
    /// Instructions to the model.
    pub instructions: String,
    /// Form of the answers.
    pub output_modality: Modality,
    /// Limit of one response, tokens.
    pub tokens_max: MaxTokens,
    /// Functions that the model may call.
    pub tools: Vec<FunctionTool>,
    /// Choice among the functions.
    pub tool_choice: ToolChoice,
    /// True if the model may make more than one call; `None`: the model server's default.
    pub parallel_tool_calls: Option<bool>,
    /// Reasoning effort of the model; `None`: the model server's default.
    pub reasoning: Option<ReasoningEffort>,
    /// Treatment of a conversation that outgrows the model's context.
    pub truncation: Truncation,
    /// Tracing settings, which are kept and shown; the server sends no traces.
    pub tracing: Option<Value>,
    /// Format of the client's audio.
    pub input_format: AudioFormat,
    /// Format of the answers' audio.
    pub output_format: AudioFormat,
    /// Noise reduction, which is kept and shown; the server reduces no noise.
    pub noise_reduction: Option<Value>,
    /// Transcription of the user's speech; `None`: the client gets no transcripts.
    pub transcription: Option<Transcription>,
    /// Turn detection; `None`: the client commits.
    pub turn_detection: Option<TurnDetection>,
    /// Name of the voice, which is kept and shown; it does not choose the voice that speaks.
    pub voice: String,
    /// Speed of speech, `0.25..=1.5`.
    pub speed: f32,
}

/// Settings of the transcription of the user's speech.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Transcription {
    /// Name of the recogniser, which is kept and shown.
    pub model: String,
    /// Language hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// Vocabulary hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

impl Serialize for TurnDetection {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        match self.mode {
            TurnMode::Server { threshold, prefix_ms, silence_ms, idle_timeout_ms } => {
                map.serialize_entry("type", "server_vad")?;
                map.serialize_entry("threshold", &decimal(threshold))?;
                map.serialize_entry("prefix_padding_ms", &prefix_ms)?;
                map.serialize_entry("silence_duration_ms", &silence_ms)?;
                map.serialize_entry("idle_timeout_ms", &idle_timeout_ms)?;
            }
            TurnMode::Semantic { eagerness } => {
                map.serialize_entry("type", "semantic_vad")?;
                map.serialize_entry("eagerness", &eagerness)?;
            }
        }
        map.serialize_entry("create_response", &self.create_response)?;
        map.serialize_entry("interrupt_response", &self.interrupt_response)?;
        map.end()
    }
}

impl Truncation {
    fn on_wire(self) -> serde_json::Value {
        match self {
            Self::Auto => "auto".into(),
            Self::Disabled => "disabled".into(),
            Self::Retain { ratio, tokens_max: None } => {
                json!({"type": "retention_ratio", "retention_ratio": decimal(ratio)})
            }
            Self::Retain { ratio, tokens_max: Some(tokens) } => json!({
                "type": "retention_ratio",
                "retention_ratio": decimal(ratio),
                "token_limits": {"post_instructions": tokens},
            }),
        }
    }
}

impl SessionKind {
    /// Returns the wire's `type`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Realtime => "realtime",
            Self::Transcription => "transcription",
        }
    }
}

impl Serialize for SessionObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(12))?;
        map.serialize_entry("type", self.kind.as_str())?;
        let input = json!({
            "format": ShownFormat(self.input_format),
            "transcription": self.transcription,
            "noise_reduction": self.noise_reduction,
            "turn_detection": self.turn_detection,
        });
        if self.kind == SessionKind::Transcription {
            map.serialize_entry("object", "realtime.transcription_session")?;
            map.serialize_entry("id", &self.id)?;
            map.serialize_entry("audio", &json!({"input": input}))?;
            return map.end();
        }
        map.serialize_entry("object", "realtime.session")?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("output_modalities", &self.output_modality.on_wire())?;
        map.serialize_entry("instructions", &self.instructions)?;
        map.serialize_entry("tools", &self.tools.iter().map(ShownTool).collect::<Vec<_>>())?;
        map.serialize_entry("tool_choice", &ShownChoice(&self.tool_choice))?;
        map.serialize_entry("parallel_tool_calls", &self.parallel_tool_calls)?;
        let reasoning = self.reasoning.map(|effort| json!({"effort": effort.as_str()}));
        map.serialize_entry("reasoning", &reasoning)?;
        map.serialize_entry("max_output_tokens", &self.tokens_max)?;
        map.serialize_entry("truncation", &self.truncation.on_wire())?;
        map.serialize_entry("tracing", &self.tracing)?;
        let output = json!({
            "format": ShownFormat(self.output_format),
            "voice": self.voice,
            "speed": decimal(self.speed),
        });
        map.serialize_entry("audio", &json!({"input": input, "output": output}))?;
        map.end()
    }
}
