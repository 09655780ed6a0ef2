//! `session.update`: the changes that a client asks for, each field absent, cleared or set.

use crate::language::Language;
use crate::limits::PREFIX_MS_MAX;
use crate::message::{FunctionTool, ReasoningEffort, ToolChoice};

use super::audio_format::NamedFormat;
use super::bound::{NAME_BYTES_MAX, TEXT_BYTES_MAX};
use super::error::Fault;
use super::field::{Field, Fields, Patch};
use super::output::{MaxTokens, Modality, refuse_stored_prompt, voice};
use super::tool::{reasoning, tool_choice, tools};

/// Type of a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SessionKind {
    /// `realtime`: a conversation.
    #[default]
    Realtime,
    /// `transcription`: the user's speech becomes text, and there are no answers.
    Transcription,
}

/// Settings of turn detection, all of them effective. `null` on the wire is `None` of this type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnDetection {
    /// Detector of the end of a turn.
    pub mode: TurnMode,
    /// True if the end of a turn creates a response.
    pub create_response: bool,
    /// True if speech cancels the running response.
    pub interrupt_response: bool,
}

/// Detector of the end of a turn, with its settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TurnMode {
    /// `server_vad`: silence.
    Server {
        /// Speech probability at which speech begins, `0.0..=1.0`.
        threshold: f32,
        /// Audio kept before the onset.
        prefix_ms: u32,
        /// Silence that ends the utterance.
        silence_ms: u32,
        /// Silence after an answer that becomes a turn; `None`: never.
        idle_timeout_ms: Option<u32>,
    },
    /// `semantic_vad`: speech that sounds complete.
    Semantic {
        /// Eagerness to end an utterance that does not sound complete.
        eagerness: Eagerness,
    },
}

/// Eagerness of `semantic_vad` to end an utterance that does not sound complete.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Eagerness {
    Low,
    Medium,
    High,
    #[default]
    Auto,
}

impl TurnMode {
    /// `server_vad` with its defaults.
    ///
    /// # Source
    /// Descriptions in `realtime_audio_input_turn_detection.py`, openai 3.57.0.
    pub const SERVER: Self =
        Self::Server { threshold: 0.5, prefix_ms: 300, silence_ms: 500, idle_timeout_ms: None };

    /// `semantic_vad` with its defaults.
    const SEMANTIC: Self = Self::Semantic { eagerness: Eagerness::Auto };
}

impl Default for TurnDetection {
    fn default() -> Self {
        Self { mode: TurnMode::SERVER, create_response: true, interrupt_response: true }
    }
}

/// Changes to [`TurnDetection`]. The fields of the other mode are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TurnDetectionUpdate {
    /// Mode with its defaults, which apply if the mode changes. Required when turn detection is off.
    pub mode: Option<TurnMode>,
    pub threshold: Patch<f32>,
    pub prefix_ms: Patch<u32>,
    pub silence_ms: Patch<u32>,
    pub idle_timeout_ms: Patch<Option<u32>>,
    pub eagerness: Patch<Eagerness>,
    pub create_response: Patch<bool>,
    pub interrupt_response: Patch<bool>,
}

/// Treatment of a conversation that outgrows the model's context.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Truncation {
    /// `auto`: the oldest turns are dropped.
    #[default]
    Auto,
    /// `disabled`: responses fail.
    Disabled,
    /// `retention_ratio`: the oldest turns of a conversation that is too large are dropped, until this share is left.
    Retain {
        /// The share, `0.0..=1.0`.
        ratio: f32,
        /// Tokens above which the conversation is too large; `None`: the model's context.
        tokens_max: Option<u32>,
    },
}

/// Changes to the transcription settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TranscriptionUpdate {
    pub model: Patch<String>,
    pub language: Patch<Option<String>>,
    pub prompt: Patch<Option<String>>,
}

/// The changes of one `session.update`. Every value is in its range; only the checks that depend on the session's
/// present state are still open. Unknown fields are ignored, and so is `model`, which is fixed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionUpdate {
    pub kind: Option<SessionKind>,
    /// True if `audio.input` or `audio` is `null`: all its fields are as in a new session.
    pub reset_input: bool,
    /// True if `audio.output` or `audio` is `null`, likewise.
    pub reset_output: bool,
    pub instructions: Patch<String>,
    pub output_modality: Patch<Modality>,
    pub tokens_max: Patch<MaxTokens>,
    pub tools: Patch<Vec<FunctionTool>>,
    pub tool_choice: Patch<ToolChoice>,
    pub parallel_tool_calls: Patch<Option<bool>>,
    pub reasoning: Patch<Option<ReasoningEffort>>,
    pub truncation: Patch<Truncation>,
    pub tracing: Patch<serde_json::Value>,
    pub input_format: Patch<NamedFormat>,
    pub output_format: Patch<NamedFormat>,
    pub noise_reduction: Patch<serde_json::Value>,
    pub transcription: Patch<TranscriptionUpdate>,
    pub turn_detection: Patch<TurnDetectionUpdate>,
    pub voice: Patch<String>,
    pub speed: Patch<f32>,
}

/// Longest silence that a client can ask for, milliseconds. The bound is ours, like that of the prefix: the reference
/// names none.
const SILENCE_MS_MAX: u32 = 10_000;

/// Range of the idle time-out, milliseconds. Source: OpenAI API reference, `turn_detection.idle_timeout_ms`.
const IDLE_MS: std::ops::RangeInclusive<u32> = 5_000..=30_000;

impl SessionUpdate {
    /// Reads `session` of a `session.update`.
    pub(super) fn read(session: &Fields<'_, '_>) -> Result<Self, Fault> {
        let kind = session.optional("type", session_kind)?;
        let audio = session.patch("audio", Field::fields)?;
        let input = nested(&audio, "input", Field::fields)?;
        let output = nested(&audio, "output", Field::fields)?;
        refuse_not_implemented(session)?;
        Ok(Self {
            kind,
            reset_input: matches!(audio, Patch::Clear) || matches!(input, Patch::Clear),
            reset_output: matches!(audio, Patch::Clear) || matches!(output, Patch::Clear),
            instructions: session.patch("instructions", |field| field.owned_up_to(TEXT_BYTES_MAX))?,
            output_modality: session.patch("output_modalities", Modality::read)?,
            tokens_max: session.patch("max_output_tokens", MaxTokens::read)?,
            tools: session.patch("tools", tools)?,
            tool_choice: session.patch("tool_choice", tool_choice)?,
            parallel_tool_calls: session.patch("parallel_tool_calls", |field| field.boolean().map(Some))?,
            reasoning: match session.patch("reasoning", reasoning)? {
                Patch::Keep | Patch::Set(Patch::Keep) => Patch::Keep,
                Patch::Clear | Patch::Set(Patch::Clear) => Patch::Clear,
                Patch::Set(Patch::Set(effort)) => Patch::Set(Some(effort)),
            },
            truncation: session.patch("truncation", truncation)?,
            tracing: session.patch("tracing", tracing)?,
            input_format: nested(&input, "format", NamedFormat::read)?,
            output_format: nested(&output, "format", NamedFormat::read)?,
            noise_reduction: nested(&input, "noise_reduction", noise_reduction)?,
            transcription: nested(&input, "transcription", TranscriptionUpdate::read)?,
            turn_detection: nested(&input, "turn_detection", TurnDetectionUpdate::read)?,
            voice: nested(&output, "voice", voice)?,
            speed: nested(&output, "speed", |field| field.number(0.25..=1.5))?,
        })
    }
}

/// Reads `noise_reduction`, which is only shown: the server reduces no noise. Source of the words:
/// `noise_reduction_type.py`, openai 3.57.0.
fn noise_reduction(field: &Field<'_, '_>) -> Result<serde_json::Value, Fault> {
    let kind = field.fields()?.required("type", |kind| match kind.text()? {
        known @ ("near_field" | "far_field") => Ok(known.to_owned()),
        other => Err(kind.wrong_word(other, "'near_field' or 'far_field'")),
    })?;
    Ok(serde_json::json!({ "type": kind }))
}

impl TranscriptionUpdate {
    fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        let fields = field.fields()?;
        Ok(Self {
            model: fields.patch("model", |field| field.owned_up_to(NAME_BYTES_MAX))?,
            language: fields.patch("language", |field| language(field).map(Some))?,
            prompt: fields.patch("prompt", |field| field.owned_up_to(TEXT_BYTES_MAX).map(Some))?,
        })
    }
}

fn language(field: &Field<'_, '_>) -> Result<String, Fault> {
    let code = field.text()?;
    match Language::new(code) {
        Some(_) => Ok(code.to_owned()),
        None => Err(field.wrong_word(code, "a language code such as 'en' or 'de-AT'")),
    }
}

impl TurnDetectionUpdate {
    fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        let fields = field.fields()?;
        let mode = fields.optional("type", |kind| match kind.text()? {
            "server_vad" => Ok(TurnMode::SERVER),
            "semantic_vad" => Ok(TurnMode::SEMANTIC),
            other => Err(kind
                .wrong_word(other, "'server_vad' or 'semantic_vad', or null instead of the object for none")),
        })?;
        Ok(Self {
            mode,
            threshold: fields.patch("threshold", |field| field.number(0.0..=1.0))?,
            prefix_ms: fields.patch("prefix_padding_ms", |field| field.integer(0..=PREFIX_MS_MAX))?,
            silence_ms: fields.patch("silence_duration_ms", |field| field.integer(0..=SILENCE_MS_MAX))?,
            idle_timeout_ms: fields.patch("idle_timeout_ms", |field| field.integer(IDLE_MS).map(Some))?,
            eagerness: fields.patch("eagerness", eagerness)?,
            create_response: fields.patch("create_response", Field::boolean)?,
            interrupt_response: fields.patch("interrupt_response", Field::boolean)?,
        })
    }
}

fn eagerness(field: &Field<'_, '_>) -> Result<Eagerness, Fault> {
    match field.text()? {
        "low" => Ok(Eagerness::Low),
        "medium" => Ok(Eagerness::Medium),
        "high" => Ok(Eagerness::High),
        "auto" => Ok(Eagerness::Auto),
        other => Err(field.wrong_word(other, "'low', 'medium', 'high' or 'auto'")),
    }
}

fn truncation(field: &Field<'_, '_>) -> Result<Truncation, Fault> {
    const ACCEPTED: &str = "'auto', 'disabled' or an object of type 'retention_ratio'";
    if field.is_string() {
        return match field.text()? {
            "auto" => Ok(Truncation::Auto),
            "disabled" => Ok(Truncation::Disabled),
            other => Err(field.wrong_word(other, ACCEPTED)),
        };
    }
    let fields = field.fields()?;
    fields.required("type", |kind| match kind.text()? {
        "retention_ratio" => Ok(()),
        other => Err(kind.wrong_word(other, "'retention_ratio'")),
    })?;
    let limits = fields.optional("token_limits", Field::fields)?;
    let tokens_max =
        limits.map(|limits| limits.optional("post_instructions", |field| field.integer(0..=u32::MAX)));
    Ok(Truncation::Retain {
        ratio: fields.required("retention_ratio", |field| field.number(0.0..=1.0))?,
        tokens_max: tokens_max.transpose()?.flatten(),
    })
}

/// Reads `tracing`, which is kept and shown; the server sends no traces.
fn tracing(field: &Field<'_, '_>) -> Result<serde_json::Value, Fault> {
    if !field.is_string() {
        field.fields()?;
        return Ok(field.json());
    }
    match field.text()? {
        "auto" => Ok(field.json()),
        other => Err(field.wrong_word(other, "'auto', an object or null")),
    }
}

/// Refuses the fields that the server would otherwise ignore silently.
fn refuse_not_implemented(session: &Fields<'_, '_>) -> Result<(), Fault> {
    refuse_stored_prompt(session)?;
    session.optional("include", |include| match include.elements()?.first() {
        None => Ok(()),
        Some(first) => match first.text()? {
            "item.input_audio_transcription.logprobs" => {
                Err(first.not_implemented("log probabilities of transcripts", "an empty array"))
            }
            other => Err(first.wrong_word(other, "'item.input_audio_transcription.logprobs'")),
        },
    })?;
    Ok(())
}

/// Reads a member of an object that may itself be absent or `null`; such an object has no members.
fn nested<'t, 'i, T>(
    parent: &Patch<Fields<'t, 'i>>,
    name: &str,
    read: impl FnOnce(&Field<'t, 'i>) -> Result<T, Fault>,
) -> Result<Patch<T>, Fault> {
    match parent {
        Patch::Keep | Patch::Clear => Ok(Patch::Keep),
        Patch::Set(fields) => fields.patch(name, read),
    }
}

fn session_kind(field: &Field<'_, '_>) -> Result<SessionKind, Fault> {
    match field.text()? {
        "realtime" => Ok(SessionKind::Realtime),
        "transcription" => Ok(SessionKind::Transcription),
        other => Err(field.wrong_word(other, "'realtime' or 'transcription'")),
    }
}
