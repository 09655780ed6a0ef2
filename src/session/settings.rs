//! The effective configuration of a session, and its change by an update.

use std::mem::discriminant;
use std::time::Duration;

use crate::audio::{AudioFormat, SampleRate};
use crate::language::Language;
use crate::message::{SpeechHints, TextChunk, ToolChoice, VadMode, VadSettings};
use crate::protocol::{
    Eagerness, Fault, MaxTokens, Modality, Patch, SessionId, SessionKind, SessionObject, SessionUpdate,
    Transcription, TranscriptionUpdate, Truncation, TurnDetection, TurnDetectionUpdate, TurnMode, quoted,
};

/// Name of the model in the session object.
const MODEL: &str = "antiphon";

/// Name of the recogniser and of the voice in the session object, until the client names others.
const DEFAULT: &str = "default";

/// Settings that a new session starts from; the same for all sessions of a server.
#[derive(Clone, Debug)]
pub struct SessionConfig {
    /// Rate of PCM, in and out, if the client names none. Default 24 kHz.
    pub default_rate: SampleRate,
    /// Instructions until the client sets its own. Default: none.
    pub instructions: String,
    /// Text of the conversation that is kept and put into prompts, bytes, instructions not counted. Beyond this limit
    /// the oldest whole turns are forgotten. Default 16 KiB, about 4,000 tokens of English. A limit above the model's
    /// context makes every later response fail.
    pub history_bytes_max: usize,
    /// True if the prompt names the user's language, set or guessed. Default false.
    pub language_prompt: bool,
    /// True if the model accepts images. Default false.
    pub images: bool,
    /// True if addresses of images are passed on to the model server, which fetches them. Default false.
    pub image_urls: bool,
    /// Longest session; `None`: no limit. Default none.
    pub session_max: Option<Duration>,
}

impl Default for SessionConfig {
    fn default() -> Self {
        Self {
            default_rate: SampleRate::HZ_24K,
            instructions: String::new(),
            history_bytes_max: 16 * 1_024,
            language_prompt: false,
            images: false,
            image_urls: false,
            session_max: None,
        }
    }
}

impl SessionConfig {
    /// Returns the configuration of a session in which the client has changed nothing.
    pub(super) fn session_object(&self, kind: SessionKind) -> SessionObject {
        SessionObject {
            kind,
            id: SessionId::fresh(),
            model: MODEL.to_owned(),
            instructions: self.instructions.clone(),
            output_modality: Modality::Audio,
            tokens_max: MaxTokens::Unlimited,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            parallel_tool_calls: None,
            reasoning: None,
            truncation: Truncation::Auto,
            tracing: None,
            input_format: AudioFormat::Pcm(self.default_rate),
            output_format: AudioFormat::Pcm(self.default_rate),
            noise_reduction: None,
            transcription: Some(Transcription { model: DEFAULT.to_owned(), language: None, prompt: None }),
            turn_detection: Some(TurnDetection::default()),
            voice: DEFAULT.to_owned(),
            speed: 1.0,
        }
    }
}

/// Returns `settings` after `update`; all or nothing. `null` means off for a setting that can be off, empty for
/// instructions and tools, and the value of `defaults` elsewhere. A `null` object resets all its fields.
/// `is_voice_fixed` forbids a change of the voice.
pub(super) fn updated(
    settings: &SessionObject,
    defaults: &SessionObject,
    update: SessionUpdate,
    is_voice_fixed: bool,
) -> Result<SessionObject, Fault> {
    let mut next = settings.clone();
    if update.reset_input {
        next.input_format = defaults.input_format;
        next.noise_reduction.clone_from(&defaults.noise_reduction);
        next.transcription.clone_from(&defaults.transcription);
        next.turn_detection = defaults.turn_detection;
    }
    if update.reset_output {
        next.output_format = defaults.output_format;
        next.voice.clone_from(&defaults.voice);
        next.speed = defaults.speed;
    }
    update.instructions.apply(&mut next.instructions, String::new);
    update.output_modality.apply(&mut next.output_modality, || defaults.output_modality);
    update.tokens_max.apply(&mut next.tokens_max, || defaults.tokens_max);
    update.tools.apply(&mut next.tools, || defaults.tools.clone());
    update.tool_choice.apply(&mut next.tool_choice, || defaults.tool_choice.clone());
    update.parallel_tool_calls.apply(&mut next.parallel_tool_calls, || defaults.parallel_tool_calls);
    update.reasoning.apply(&mut next.reasoning, || defaults.reasoning);
    update.truncation.apply(&mut next.truncation, || defaults.truncation);
    let input_format = update.input_format.map(|named| named.at(defaults.input_format.rate()));
    input_format.apply(&mut next.input_format, || defaults.input_format);
    let output_format = update.output_format.map(|named| named.at(defaults.output_format.rate()));
    output_format.apply(&mut next.output_format, || defaults.output_format);
    update.voice.apply(&mut next.voice, || defaults.voice.clone());
    update.speed.apply(&mut next.speed, || defaults.speed);
    for (change, field) in
        [(update.noise_reduction, &mut next.noise_reduction), (update.tracing, &mut next.tracing)]
    {
        match change {
            Patch::Keep => {}
            Patch::Clear => *field = None,
            Patch::Set(value) => *field = Some(value),
        }
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
    if is_voice_fixed && next.voice != settings.voice {
        let param = "session.audio.output.voice";
        return Err(Fault::VoiceFixed { current: settings.voice.clone(), asked: quoted(&next.voice), param });
    }
    Ok(next)
}

/// Returns the settings of the detector.
pub(super) fn vad_settings(settings: &SessionObject) -> VadSettings {
    let mode = settings.turn_detection.map_or(VadMode::Off, |detection| match detection.mode {
        TurnMode::Server { threshold, prefix_ms, silence_ms, .. } => {
            VadMode::Server { threshold, prefix_ms, silence_ms }
        }
        TurnMode::Semantic { eagerness } => VadMode::Semantic { patience_ms: patience_ms(eagerness) },
    });
    VadSettings { mode }
}

/// Returns the hints of the recogniser, for a user who spoke `recent` before.
pub(super) fn speech_hints(settings: &SessionObject, recent: Option<Language>) -> SpeechHints {
    let prompt = settings.transcription.as_ref().and_then(|transcription| transcription.prompt.as_ref());
    let prompt = prompt.map(|prompt| TextChunk::split(prompt).0);
    let language = code(settings);
    // Of no use beside a language that is set.
    let recent = if language.is_none() { recent } else { None };
    SpeechHints { language, recent, prompt }
}

/// Returns the language that the client has set, or `None` if its code is unknown.
pub(super) fn set_language(settings: &SessionObject) -> Option<Language> {
    code(settings).filter(|language| language.name().is_some())
}

/// Returns the client's code of the language, known or unknown: a recogniser may support more languages than this
/// server.
fn code(settings: &SessionObject) -> Option<Language> {
    Language::new(settings.transcription.as_ref()?.language.as_ref()?)
}

/// Returns the silence that ends an utterance that does not sound complete.
///
/// # Source
/// Description of `eagerness` in `realtime_audio_input_turn_detection.py`, openai 3.57.0: at most 8 s, 4 s and 2 s.
pub(super) const fn patience_ms(eagerness: Eagerness) -> u32 {
    match eagerness {
        Eagerness::Low => 8_000,
        Eagerness::Medium | Eagerness::Auto => 4_000,
        Eagerness::High => 2_000,
    }
}

/// Returns the silence after an answer that makes a turn of its own; `None`: silence makes none.
pub(super) fn idle_timeout(settings: &SessionObject) -> Option<Duration> {
    match settings.turn_detection?.mode {
        TurnMode::Server { idle_timeout_ms, .. } => Some(Duration::from_millis(idle_timeout_ms?.into())),
        TurnMode::Semantic { .. } => None,
    }
}

fn turn_detection(
    present: Option<TurnDetection>,
    change: TurnDetectionUpdate,
) -> Result<TurnDetection, Fault> {
    let defaults = TurnDetection::default();
    let mut next = match (present, change.mode) {
        (None, None) => {
            return Err(Fault::Missing { param: "session.audio.input.turn_detection.type".to_owned() });
        }
        (None, Some(mode)) => TurnDetection { mode, ..defaults },
        // A change of the mode resets the settings of the mode.
        (Some(present), Some(mode)) if discriminant(&mode) != discriminant(&present.mode) => {
            TurnDetection { mode, ..present }
        }
        (Some(present), _) => present,
    };
    match &mut next.mode {
        TurnMode::Server { threshold, prefix_ms, silence_ms, idle_timeout_ms } => {
            let TurnMode::Server { threshold: level, prefix_ms: prefix, silence_ms: silence, .. } =
                TurnMode::SERVER
            else {
                unreachable!("it is the server mode");
            };
            change.threshold.apply(threshold, || level);
            change.prefix_ms.apply(prefix_ms, || prefix);
            change.silence_ms.apply(silence_ms, || silence);
            change.idle_timeout_ms.apply(idle_timeout_ms, || None);
        }
        TurnMode::Semantic { eagerness } => change.eagerness.apply(eagerness, || Eagerness::Auto),
    }
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
