//! `session.update`: what the client wants changed, each field absent, cleared or set.

use crate::limits::PREFIX_MS_MAX;

use super::client_event::{MaxTokens, Modality, NAME_BYTES_MAX, TEXT_BYTES_MAX};
use super::error::Fault;
use super::field::{Field, Fields};

/// A field of an update. `null` is not the same as absent: it puts the field back to what it is when nobody
/// sets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Patch<T> {
    /// Absent: as it was.
    #[default]
    Keep,
    /// `null`.
    Clear,
    /// A value.
    Set(T),
}

impl<T> Patch<T> {
    /// The value that was set.
    pub fn set(self) -> Option<T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Clear => None,
        }
    }

    /// Writes the change into `field`, where `cleared` is the value that `null` stands for.
    pub fn apply(self, field: &mut T, cleared: impl FnOnce() -> T) {
        match self {
            Self::Keep => {}
            Self::Clear => *field = cleared(),
            Self::Set(value) => *field = value,
        }
    }
}

/// How turns are detected: `server_vad`, all fields effective. `null` on the wire is `None` of this.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TurnDetection {
    /// Speech probability at which speech begins, `0.0..=1.0`.
    pub threshold: f32,
    /// Audio kept before the onset.
    pub prefix_ms: u32,
    /// Silence that ends the utterance.
    pub silence_ms: u32,
    /// Whether the end of a turn makes a response.
    pub create_response: bool,
    /// Whether speech cancels the running response.
    pub interrupt_response: bool,
}

impl Default for TurnDetection {
    /// # Source
    /// Descriptions in `realtime_audio_input_turn_detection.py`, openai 3.57.0.
    fn default() -> Self {
        Self {
            threshold: 0.5,
            prefix_ms: 300,
            silence_ms: 500,
            create_response: true,
            interrupt_response: true,
        }
    }
}

/// Changes to [`TurnDetection`].
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of TurnDetection")]
pub struct TurnDetectionUpdate {
    /// Whether the object named its type; it must when turn detection is off.
    pub typed: bool,
    pub threshold: Patch<f32>,
    pub prefix_ms: Patch<u32>,
    pub silence_ms: Patch<u32>,
    pub create_response: Patch<bool>,
    pub interrupt_response: Patch<bool>,
}

/// Changes to the transcription settings. The names are kept and shown; the server has one recogniser.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the wire")]
pub struct TranscriptionUpdate {
    pub model: Patch<String>,
    pub language: Patch<Option<String>>,
    pub prompt: Patch<Option<String>>,
}

/// The changes of one `session.update`, checked: every value is in its range, only what depends on the
/// session's present state is still open. Fields that this server does not know, and `model`, which is fixed,
/// are ignored.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of SessionObject")]
pub struct SessionUpdate {
    /// `audio.input`, or `audio`, is `null`: everything in it is as in a new session.
    pub reset_input: bool,
    /// The same for `audio.output`.
    pub reset_output: bool,
    pub instructions: Patch<String>,
    pub output_modality: Patch<Modality>,
    pub tokens_max: Patch<MaxTokens>,
    pub tools: Patch<serde_json::Value>,
    pub tool_choice: Patch<serde_json::Value>,
    pub noise_reduction: Patch<serde_json::Value>,
    pub transcription: Patch<TranscriptionUpdate>,
    pub turn_detection: Patch<TurnDetectionUpdate>,
    pub voice: Patch<String>,
    pub speed: Patch<f32>,
}

/// Longest silence that can be asked for. Ours, like the longest prefix: the reference names no bounds.
const SILENCE_MS_MAX: u32 = 10_000;

const FORMATS: &str = "'audio/pcm' at 24000 Hz";

impl SessionUpdate {
    /// Reads `session` of a `session.update`.
    pub(super) fn read(session: &Fields<'_, '_>) -> Result<Self, Fault> {
        session.optional("type", session_type)?;
        let audio = session.patch("audio", Field::fields)?;
        let input = nested(&audio, "input", Field::fields)?;
        let output = nested(&audio, "output", Field::fields)?;
        nested(&input, "format", pcm_24k)?;
        nested(&output, "format", pcm_24k)?;
        Ok(Self {
            reset_input: matches!(audio, Patch::Clear) || matches!(input, Patch::Clear),
            reset_output: matches!(audio, Patch::Clear) || matches!(output, Patch::Clear),
            instructions: session.patch("instructions", |field| field.owned_up_to(TEXT_BYTES_MAX))?,
            output_modality: session.patch("output_modalities", Modality::read)?,
            tokens_max: session.patch("max_output_tokens", MaxTokens::read)?,
            tools: session.patch("tools", tools)?,
            tool_choice: session.patch("tool_choice", tool_choice)?,
            noise_reduction: nested(&input, "noise_reduction", noise_reduction)?,
            transcription: nested(&input, "transcription", TranscriptionUpdate::read)?,
            turn_detection: nested(&input, "turn_detection", TurnDetectionUpdate::read)?,
            voice: nested(&output, "voice", voice)?,
            speed: nested(&output, "speed", |field| field.number(0.25..=1.5))?,
        })
    }
}

/// Shown, and nothing else: the server reduces no noise. Source of the words: `noise_reduction_type.py`, openai 3.57.0.
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
            language: fields.patch("language", |field| field.owned_up_to(NAME_BYTES_MAX).map(Some))?,
            prompt: fields.patch("prompt", |field| field.owned_up_to(TEXT_BYTES_MAX).map(Some))?,
        })
    }
}

impl TurnDetectionUpdate {
    fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        let fields = field.fields()?;
        let typed = fields.optional("type", |kind| match kind.text()? {
            "server_vad" => Ok(()),
            "semantic_vad" => Err(kind.not_implemented("'semantic_vad'", "'server_vad', or null for none")),
            other => Err(kind.wrong_word(other, "'server_vad', or null instead of the object for none")),
        })?;
        fields.optional("idle_timeout_ms", |field| {
            field.integer(0..=u32::MAX)?;
            Err::<(), _>(field.not_implemented("an idle time-out", "null"))
        })?;
        Ok(Self {
            typed: typed.is_some(),
            threshold: fields.patch("threshold", |field| field.number(0.0..=1.0))?,
            prefix_ms: fields.patch("prefix_padding_ms", |field| field.integer(0..=PREFIX_MS_MAX))?,
            silence_ms: fields.patch("silence_duration_ms", |field| field.integer(0..=SILENCE_MS_MAX))?,
            create_response: fields.patch("create_response", Field::boolean)?,
            interrupt_response: fields.patch("interrupt_response", Field::boolean)?,
        })
    }
}

/// A member of an object that itself may be absent or `null`; nothing is in it then.
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

fn session_type(field: &Field<'_, '_>) -> Result<(), Fault> {
    match field.text()? {
        "realtime" => Ok(()),
        "transcription" => Err(field.not_implemented("a transcription session", "'realtime'")),
        other => Err(field.wrong_word(other, "'realtime'")),
    }
}

/// The only audio format of this version.
///
/// # Source
/// `realtime_audio_formats.py`, openai 3.57.0: `audio/pcm` has the rate 24000 only.
pub(super) fn pcm_24k(field: &Field<'_, '_>) -> Result<(), Fault> {
    let fields = field.fields()?;
    fields.optional("type", |kind| match kind.text()? {
        "audio/pcm" => Ok(()),
        found @ ("audio/pcmu" | "audio/pcma") => Err(kind.not_implemented(format!("'{found}'"), FORMATS)),
        other => Err(kind.wrong_word(other, FORMATS)),
    })?;
    fields.optional("rate", |rate| match rate.integer(0..=u32::MAX)? {
        24_000 => Ok(()),
        other => Err(rate.wrong_value(other.to_string(), "24000")),
    })?;
    Ok(())
}

/// A voice by name, or `{"id": name}`.
pub(super) fn voice(field: &Field<'_, '_>) -> Result<String, Fault> {
    if field.is_string() {
        return field.owned_up_to(NAME_BYTES_MAX);
    }
    field.fields()?.required("id", |id| id.owned_up_to(NAME_BYTES_MAX))
}

fn tools(field: &Field<'_, '_>) -> Result<serde_json::Value, Fault> {
    for tool in field.elements()? {
        tool.fields()?;
    }
    Ok(field.json())
}

fn tool_choice(field: &Field<'_, '_>) -> Result<serde_json::Value, Fault> {
    if !field.is_string() {
        field.fields()?;
        return Ok(field.json());
    }
    match field.text()? {
        "auto" | "none" | "required" => Ok(field.json()),
        other => Err(field.wrong_word(other, "'auto', 'none', 'required' or an object")),
    }
}
