//! The effective configuration of a session and how an update changes it.

use std::time::Duration;

use crate::audio::SampleRate;
use crate::message::{TtsSettings, VadMode, VadSettings};
use crate::protocol::{
    Fault, MaxTokens, Modality, Patch, SessionId, SessionObject, SessionUpdate, Transcription,
    TranscriptionUpdate, TurnDetection, TurnDetectionUpdate, quoted,
};

/// What a new session starts from; the same for all sessions of a server.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Name of the model in the session object. Default `"antiphon"`.
    pub model: String,
    /// Name of the recogniser in the session object. Default `"default"`.
    pub transcription_model: String,
    /// Name of the voice in the session object. Default `"default"`.
    pub voice: String,
    /// Instructions until the client sets its own. Default: to answer as one speaks.
    pub instructions: String,
    /// Text of the conversation that is kept and put into prompts, bytes, instructions not counted. Beyond it
    /// the oldest whole turns are forgotten. Default 16 KiB, about 4,000 tokens of English. More than the
    /// model's context holds makes every later response fail.
    pub history_bytes_max: usize,
    /// Longest session; `None`: no limit. Default none.
    pub session_max: Option<Duration>,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            model: "antiphon".to_owned(),
            transcription_model: "default".to_owned(),
            voice: "default".to_owned(),
            instructions:
                "You are a helpful voice assistant. Answer in short spoken sentences, without lists, \
                           headings or other markup."
                    .to_owned(),
            history_bytes_max: 16 * 1_024,
            session_max: None,
        }
    }
}

impl SessionConfig {
    /// The configuration of a session in which the client has changed nothing.
    pub(super) fn session_object(&self) -> SessionObject {
        SessionObject {
            id: SessionId::fresh(),
            model: self.model.clone(),
            instructions: self.instructions.clone(),
            output_modality: Modality::Audio,
            tokens_max: MaxTokens::Unlimited,
            tools: serde_json::Value::Array(Vec::new()),
            tool_choice: "auto".into(),
            noise_reduction: None,
            transcription: Some(Transcription {
                model: self.transcription_model.clone(),
                language: None,
                prompt: None,
            }),
            turn_detection: Some(TurnDetection::default()),
            voice: self.voice.clone(),
            speed: 1.0,
        }
    }
}

/// `settings` after `update`, or what is wrong with it; all or nothing. `null` means off where something can
/// be off, empty for instructions and tools, and the value of `defaults` elsewhere: a `null` object puts all
/// its fields back. With `has_spoken` the voice is fixed.
pub(super) fn updated(
    settings: &SessionObject,
    defaults: &SessionObject,
    update: SessionUpdate,
    has_spoken: bool,
) -> Result<SessionObject, Fault> {
    let mut next = settings.clone();
    if update.reset_input {
        next.noise_reduction.clone_from(&defaults.noise_reduction);
        next.transcription.clone_from(&defaults.transcription);
        next.turn_detection = defaults.turn_detection;
    }
    if update.reset_output {
        next.voice.clone_from(&defaults.voice);
        next.speed = defaults.speed;
    }
    update.instructions.apply(&mut next.instructions, String::new);
    update.output_modality.apply(&mut next.output_modality, || defaults.output_modality);
    update.tokens_max.apply(&mut next.tokens_max, || defaults.tokens_max);
    update.tools.apply(&mut next.tools, || defaults.tools.clone());
    update.tool_choice.apply(&mut next.tool_choice, || defaults.tool_choice.clone());
    update.voice.apply(&mut next.voice, || defaults.voice.clone());
    update.speed.apply(&mut next.speed, || defaults.speed);
    match update.noise_reduction {
        Patch::Keep => {}
        Patch::Clear => next.noise_reduction = None,
        Patch::Set(value) => next.noise_reduction = Some(value),
    }
    match update.transcription {
        Patch::Keep => {}
        Patch::Clear => next.transcription = None,
        Patch::Set(change) => next.transcription = Some(transcription(next.transcription, change, defaults)),
    }
    match update.turn_detection {
        Patch::Keep => {}
        Patch::Clear => next.turn_detection = None,
        Patch::Set(change) => next.turn_detection = Some(turn_detection(next.turn_detection, change)?),
    }
    if has_spoken && next.voice != settings.voice {
        return Err(Fault::VoiceFixed { current: settings.voice.clone(), asked: quoted(&next.voice) });
    }
    Ok(next)
}

/// What the detector must know.
pub(super) fn vad_settings(settings: &SessionObject) -> VadSettings {
    let mode = settings.turn_detection.map_or(VadMode::Off, |detection| VadMode::Server {
        threshold: detection.threshold,
        prefix_ms: detection.prefix_ms,
        silence_ms: detection.silence_ms,
    });
    VadSettings { mode }
}

/// What the voice must know.
pub(super) const fn tts_settings(settings: &SessionObject) -> TtsSettings {
    TtsSettings { rate: SampleRate::HZ_24K, speed: settings.speed }
}

fn turn_detection(
    present: Option<TurnDetection>,
    change: TurnDetectionUpdate,
) -> Result<TurnDetection, Fault> {
    if present.is_none() && !change.typed {
        return Err(Fault::Missing { param: "session.audio.input.turn_detection.type".to_owned() });
    }
    let defaults = TurnDetection::default();
    let mut next = present.unwrap_or(defaults);
    change.threshold.apply(&mut next.threshold, || defaults.threshold);
    change.prefix_ms.apply(&mut next.prefix_ms, || defaults.prefix_ms);
    change.silence_ms.apply(&mut next.silence_ms, || defaults.silence_ms);
    change.create_response.apply(&mut next.create_response, || defaults.create_response);
    change.interrupt_response.apply(&mut next.interrupt_response, || defaults.interrupt_response);
    Ok(next)
}

fn transcription(
    present: Option<Transcription>,
    change: TranscriptionUpdate,
    defaults: &SessionObject,
) -> Transcription {
    let server = defaults.transcription.as_ref().map_or_else(String::new, |server| server.model.clone());
    let mut next =
        present.unwrap_or_else(|| Transcription { model: server.clone(), language: None, prompt: None });
    change.model.apply(&mut next.model, || server);
    change.language.apply(&mut next.language, || None);
    change.prompt.apply(&mut next.prompt, || None);
    next
}
