//! A session with the work that the edge does around it, without socket, rings and clock.

use std::collections::VecDeque;
use std::time::Duration;

use antiphon::door::audio::SampleRate;
use antiphon::door::language::Language;
use antiphon::door::limits::APPEND_BYTES_MAX;
use antiphon::door::message::{
    ChatMessage, ChatRequest, FunctionCall, Moment, ReasoningEffort, ResponseKey, TextChunk, ToolChoice,
    UserPart, VadMode,
};
use antiphon::door::protocol::{
    Append, Decoded, Decoder, EventIds, Fault, ProtocolError, encode_audio_delta,
};
use antiphon::door::session::{Command, Input, Output, Session, SessionConfig};
use serde_json::{Value, json};

/// One output of a session.
#[derive(Debug, PartialEq)]
pub(crate) enum Seen {
    /// An event to the client.
    Event(Value),
    /// A command.
    Command(Value),
}

/// A session, its decoder and its time.
pub(crate) struct Bench {
    session: Session,
    decoder: Decoder,
    event_ids: EventIds,
    now: Moment,
    /// Rate in the last settings of the voice.
    rate: SampleRate,
    /// The frame of an answer that the session may send now.
    samples: Option<Vec<i16>>,
    /// Outputs that have not been checked yet, in order.
    pub(crate) seen: VecDeque<Seen>,
}

impl Bench {
    pub(crate) fn new(config: &SessionConfig) -> Self {
        let now = Moment::from_nanos(1_000_000_000);
        let session = Session::new(config, None, now);
        let (decoder, event_ids) = (Decoder::new(), EventIds::new());
        let rate = SampleRate::HZ_24K;
        let mut bench = Self { session, decoder, event_ids, now, rate, samples: None, seen: VecDeque::new() };
        bench.drain();
        bench
    }

    /// Lets time pass; timers fire at their time.
    pub(crate) fn advance(&mut self, by: Duration) {
        let until = self.now + by;
        let mut rounds = 0;
        while let Some(due) = self.session.next_timeout().filter(|due| *due <= until) {
            self.now = self.now.max(due);
            self.handle(Input::Timeout);
            rounds += 1;
            assert!(rounds < 10_000, "a timer that is never satisfied");
        }
        self.now = until;
    }

    pub(crate) fn handle(&mut self, input: Input) {
        self.session.handle(input, self.now);
        self.drain();
    }

    /// Handles a text message of the client.
    pub(crate) fn message(&mut self, text: &str) {
        let input = match self.decoder.decode(text) {
            Ok(Decoded::Event(event)) => Input::Event(event),
            Ok(Decoded::Append(append)) => appended(&append),
            Err(error) => Input::Rejected(error),
        };
        self.session.handle(input, self.now);
        self.drain();
    }

    /// Handles a binary message of the client.
    pub(crate) fn binary(&mut self) {
        self.handle(Input::Rejected(Fault::BinaryMessage.into()));
    }

    /// Handles a frame of an answer; returns true if the session has sent the frame.
    pub(crate) fn audio(&mut self, response: ResponseKey, samples: &[i16]) -> bool {
        self.samples = Some(samples.to_vec());
        let (samples, rate) = (samples.len(), self.rate);
        self.handle(Input::Audio { response, samples, rate });
        self.samples.take().is_none()
    }

    fn drain(&mut self) {
        while let Some(output) = self.session.poll() {
            self.seen.push_back(match output {
                Output::Send(event) => {
                    let mut text = String::new();
                    event.encode(self.event_ids.fresh(), &mut text);
                    assert!(!text.contains('\n'), "one line: {text}");
                    Seen::Event(serde_json::from_str(&text).expect("an event is JSON"))
                }
                Output::Audio(delta) => {
                    let samples = self.samples.take().expect("audio is at hand, and goes out once");
                    let mut text = String::new();
                    encode_audio_delta(&delta, self.event_ids.fresh(), &samples, &mut text);
                    Seen::Event(serde_json::from_str(&text).expect("an event is JSON"))
                }
                Output::Command(command) => {
                    if let Command::TtsSettings(settings) = command {
                        self.rate = settings.rate;
                    }
                    Seen::Command(command_json(command))
                }
            });
        }
    }
}

/// Does the edge's work on an append, up to the ring.
fn appended(append: &Append<'_>) -> Input {
    let fault = match base64_simd::STANDARD.decode_to_vec(append.audio.as_bytes()) {
        Err(_) => Fault::BadBase64,
        Ok(bytes) if bytes.len() > APPEND_BYTES_MAX => Fault::AppendTooLarge { found: bytes.len() },
        Ok(bytes) if bytes.len() % 2 != 0 => Fault::OddBytes { found: bytes.len() },
        Ok(bytes) => return Input::Appended { samples: bytes.len() / 2 },
    };
    Input::Rejected(ProtocolError::from(fault).with_event_id(append.event_id.as_deref()))
}

fn command_json(command: Command) -> Value {
    match command {
        Command::VadSettings(settings) => match settings.mode {
            VadMode::Off => json!({"vad_settings": "off"}),
            VadMode::Semantic { patience_ms } => json!({"vad_settings": {"patience_ms": patience_ms}}),
            VadMode::Server { threshold, prefix_ms, silence_ms } => {
                let threshold = f64::from((threshold * 1_000.0).round()) / 1_000.0;
                json!({"vad_settings": {"threshold": threshold, "prefix_ms": prefix_ms, "silence_ms": silence_ms}})
            }
        },
        Command::SpeechHints(hints) => json!({"speech_hints": {
            "language": hints.language.as_ref().map(Language::code),
            "recent": hints.recent.as_ref().map(Language::code),
            "prompt": hints.prompt.as_ref().map(TextChunk::as_str),
        }}),
        Command::TtsSettings(settings) => {
            let speed = f64::from((settings.speed * 1_000.0).round()) / 1_000.0;
            let language = settings.language.as_ref().map(Language::code);
            json!({"tts_settings": {"rate": settings.rate.hz(), "speed": speed, "language": language}})
        }
        Command::InputFormat(format) => {
            json!({"input_format": format.name(), "rate": format.rate().hz()})
        }
        Command::Commit(commit) => json!({"commit": commit.0}),
        Command::Hear { commit, audio } => json!({"hear": {"commit": commit.0, "audio": audio}}),
        Command::Clear(commit) => json!({"clear": commit.0}),
        Command::BumpGeneration => json!({"bump_generation": true}),
        Command::Prompt { response, request } => {
            let mut prompt = request_json(&request);
            prompt["response"] = response.0.into();
            json!({ "prompt": prompt })
        }
        Command::Aside { response, request } => {
            let mut prompt = request_json(&request);
            prompt["response"] = response.0.into();
            json!({ "aside": prompt })
        }
        Command::DropAside(response) => json!({ "drop_aside": response.0 }),
        Command::Close { code, reason } => json!({"close": {"code": code, "reason": reason}}),
    }
}

/// Converts a request. A message becomes `[role, text]`, with calls, outputs and pictures behind.
fn request_json(request: &ChatRequest) -> Value {
    let messages: Vec<_> = request
        .messages
        .iter()
        .map(|message| match message {
            ChatMessage::System(text) => json!(["system", text]),
            ChatMessage::User(parts) => match parts.as_slice() {
                [UserPart::Text(text)] => json!(["user", text]),
                parts => json!(["user", parts.iter().map(part_json).collect::<Vec<_>>()]),
            },
            ChatMessage::Assistant { text, calls } if calls.is_empty() => json!(["assistant", text]),
            ChatMessage::Assistant { text, calls } => {
                let call = |call: &FunctionCall| json!([call.call_id, call.name, call.arguments]);
                json!(["assistant", text, calls.iter().map(call).collect::<Vec<_>>()])
            }
            ChatMessage::FunctionOutput { call_id, output } => json!(["tool", call_id, output]),
        })
        .collect();
    json!({
        "spoken": request.spoken,
        "tokens_max": request.tokens_max,
        "messages": messages,
        "tools": request.tools.iter().map(|tool| &tool.name).collect::<Vec<_>>(),
        "tool_choice": match &request.tool_choice {
            ToolChoice::Auto => "auto",
            ToolChoice::None => "none",
            ToolChoice::Required => "required",
            ToolChoice::Function(name) => name,
        },
        "parallel_tool_calls": request.parallel_tool_calls,
        "reasoning": request.reasoning.map(ReasoningEffort::as_str),
    })
}

fn part_json(part: &UserPart) -> Value {
    match part {
        UserPart::Text(text) => json!({ "text": text }),
        UserPart::Image { url, detail } => json!({ "image": url, "detail": detail }),
    }
}
