//! Scripted dialogues.
//!
//! One JSON object per line; empty lines and lines that begin with `//` are skipped. Inputs, each optionally
//! with `"at_ms"` (time since the beginning, timers fire on the way):
//!
//! | line | meaning |
//! |---|---|
//! | `{"config":{…}}` | only as the first line: `history_bytes_max`, `session_max_ms`, `instructions`, `images`,
//! `image_urls`, `default_rate`, `prologue` |
//! | `{">":{…}}`, `{">":"text"}` | a message of the client, as an object or as raw text |
//! | `{">binary":true}` | a binary message |
//! | `{"vad":{…}}`, `{"stt":{…}}`, `{"speech":{…}}` | an event of a stage, see [`stage_input`] |
//! | `{"wait":true}` | nothing but time |
//! | `{"shutdown":true}` | the server goes down |
//!
//! Expectations follow the input that causes them, complete and in order, events and commands together:
//! `{"<":{…}}` is an event to the client, `{"!":{…}}` a command. An object matches if every member that it
//! names matches; `"*"` matches anything, `"$name"` stands for the same text wherever it is named, and for
//! another one than every other name. `session.created` and the first settings are expected by themselves
//! unless `"prologue":true`.

use std::time::Duration;

use antiphon::door::audio::SampleRate;
use antiphon::door::language::Language;
use antiphon::door::message::{
    AnswerEvent, CallPiece, CommitId, FailureCode, FinishReason, RateLimit, RateLimits, ResponseKey,
    SttEvent, TextChunk, TokenUsage, UtteranceId, VadEvent, text_chunks,
};
use antiphon::door::session::{Input, SessionConfig};
use serde_json::{Map, Value};

use crate::bench::{Bench, Seen};
use crate::names::Names;
use crate::strict_client::StrictClient;

/// Plays a case; appends the events that were sent to `events`.
pub(crate) fn play(text: &str, events: &mut Vec<String>) -> Result<(), String> {
    let mut lines = text
        .lines()
        .enumerate()
        .filter(|(_, line)| !line.trim().is_empty() && !line.starts_with("//"))
        .peekable();
    let mut config = SessionConfig { instructions: "Be brief.".to_owned(), ..SessionConfig::default() };
    let mut show_prologue = false;
    if let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with(r#"{"config""#)) {
        let line: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
        show_prologue = configure(&mut config, &line["config"])?;
    }
    let mut player = Player {
        bench: Bench::new(&config),
        client: StrictClient::default(),
        names: Names::default(),
        at_ms: 0,
        events,
    };
    if !show_prologue {
        player.skip_prologue()?;
    }
    for (number, line) in lines {
        player.line(line).map_err(|error| format!("line {}: {error}", number + 1))?;
    }
    player.nothing_left()?;
    player.client.at_end(false)
}

struct Player<'a> {
    bench: Bench,
    client: StrictClient,
    names: Names,
    at_ms: u64,
    events: &'a mut Vec<String>,
}

impl Player<'_> {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let line: Map<String, Value> = serde_json::from_str(line).map_err(|error| error.to_string())?;
        if let Some(expected) = line.get("<") {
            return self.expect(&Seen::Event(expected.clone()));
        }
        if let Some(expected) = line.get("!") {
            return self.expect(&Seen::Command(expected.clone()));
        }
        self.nothing_left()?;
        if let Some(at_ms) = line.get("at_ms").and_then(Value::as_u64) {
            let by = at_ms.checked_sub(self.at_ms).ok_or("time goes backwards")?;
            self.bench.advance(Duration::from_millis(by));
            self.at_ms = at_ms;
        }
        self.input(&line)
    }

    fn input(&mut self, line: &Map<String, Value>) -> Result<(), String> {
        if let Some(message) = line.get(">") {
            let text =
                message.as_str().map_or_else(|| self.names.resolve(message).to_string(), ToOwned::to_owned);
            self.bench.message(&text);
        } else if line.contains_key(">binary") {
            self.bench.binary();
        } else if line.contains_key("shutdown") {
            self.bench.handle(Input::Shutdown);
        } else if let Some(audio) = line.get("speech").and_then(|speech| speech.get("audio")) {
            let samples =
                vec![1; usize::try_from(number(audio, "samples")?).map_err(|error| error.to_string())?];
            self.bench.audio(ResponseKey(number(audio, "response")?), &samples);
        } else if !line.contains_key("wait") {
            for input in stage_input(line)? {
                self.bench.handle(input);
            }
        }
        Ok(())
    }

    fn expect(&mut self, expected: &Seen) -> Result<(), String> {
        let found =
            self.bench.seen.pop_front().ok_or_else(|| format!("expected {expected:?}, found nothing"))?;
        self.look_at(&found)?;
        let matched = match (expected, &found) {
            (Seen::Event(expected), Seen::Event(found)) | (Seen::Command(expected), Seen::Command(found)) => {
                self.names.matches(expected, found, "")
            }
            _ => Err("another kind".to_owned()),
        };
        matched.map_err(|why| format!("{why}\n  expected {expected:?}\n  found    {found:?}"))
    }

    fn look_at(&mut self, seen: &Seen) -> Result<(), String> {
        match seen {
            Seen::Event(event) => {
                self.events.push(event.to_string());
                self.client.event(event)
            }
            Seen::Command(command) => self.client.command(command),
        }
    }

    fn skip_prologue(&mut self) -> Result<(), String> {
        for _ in 0..4 {
            let seen = self.bench.seen.pop_front().ok_or("the prologue is too short")?;
            self.look_at(&seen)?;
        }
        self.nothing_left()
    }

    fn nothing_left(&self) -> Result<(), String> {
        if self.bench.seen.is_empty() { Ok(()) } else { Err(format!("not expected: {:?}", self.bench.seen)) }
    }
}

fn configure(config: &mut SessionConfig, with: &Value) -> Result<bool, String> {
    let mut show_prologue = false;
    for (key, value) in with.as_object().ok_or("config is not an object")? {
        let number = value.as_u64().unwrap_or_default();
        match key.as_str() {
            "default_rate" => {
                let rate = u32::try_from(number).ok().and_then(SampleRate::new);
                config.default_rate = rate.ok_or("not a rate")?;
            }
            "images" => config.images = value.as_bool().ok_or("not a boolean")?,
            "image_urls" => config.image_urls = value.as_bool().ok_or("not a boolean")?,
            "history_bytes_max" => {
                config.history_bytes_max = usize::try_from(number).map_err(|e| e.to_string())?
            }
            "session_max_ms" => config.session_max = Some(Duration::from_millis(number)),
            "instructions" => config.instructions = value.as_str().ok_or("not a string")?.to_owned(),
            "prologue" => show_prologue = value.as_bool().ok_or("not a boolean")?,
            other => return Err(format!("unknown config {other}")),
        }
    }
    Ok(show_prologue)
}

/// Parses events of the stages by the names of their variants:
/// `{"vad":{"speech_started":{"utterance":0,"start_ms":40}}}`. A transcript's `text` is cut into chunks as by STT.
fn stage_input(line: &Map<String, Value>) -> Result<Vec<Input>, String> {
    let stage = line.keys().find(|key| *key != "at_ms").ok_or("an empty line")?;
    let (event, of) =
        line[stage].as_object().and_then(|event| event.iter().next()).ok_or("not a stage event")?;
    let utterance = || number(of, "utterance").map(UtteranceId);
    let commit = || number(of, "commit").map(CommitId);
    let text = |key: &str| of[key].as_str().unwrap_or_default();
    Ok(vec![match (stage.as_str(), event.as_str()) {
        ("vad", "speech_started") => {
            let start_ms = number(of, "start_ms")?;
            Input::Vad(VadEvent::SpeechStarted { utterance: utterance()?, start_ms })
        }
        ("vad", "speech_stopped") => {
            Input::Vad(VadEvent::SpeechStopped { utterance: utterance()?, end_ms: number(of, "end_ms")? })
        }
        ("vad", "committed") => {
            let (commit, audio_ms) = (commit().ok(), number(of, "audio_ms")?);
            Input::Vad(VadEvent::Committed { utterance: utterance()?, commit, audio_ms })
        }
        ("vad", "commit_refused") => {
            Input::Vad(VadEvent::CommitRefused { commit: commit()?, audio_ms: number(of, "audio_ms")? })
        }
        ("vad", "cleared") => {
            Input::Vad(VadEvent::Cleared { commit: commit()?, utterance: utterance().ok() })
        }
        ("stt", "transcript") => {
            let utterance = utterance()?;
            let language = of["language"].as_str().and_then(Language::new);
            let pieces = text_chunks(text("text"));
            return Ok(pieces
                .map(|(chunk, last)| Input::Stt(SttEvent::Transcript { utterance, chunk, language, last }))
                .collect());
        }
        ("stt", "failed") => {
            Input::Stt(SttEvent::Failed { utterance: utterance()?, code: FailureCode::SttFailed })
        }
        ("speech", _) => Input::Answer(ResponseKey(number(of, "response")?), answer_event(event, of)?),
        _ => return Err(format!("unknown line {line:?}")),
    }])
}

/// Parses a step of an answer by the name of its variant.
fn answer_event(event: &str, of: &Value) -> Result<AnswerEvent, String> {
    let text = |key: &str| of[key].as_str().unwrap_or_default();
    Ok(match event {
        "text" => {
            let (chunk, _) = TextChunk::split(text("text"));
            AnswerEvent::Text(chunk)
        }
        "call" => {
            let piece = match (of["name"].as_str(), of["arguments"].as_str()) {
                (Some(name), _) => CallPiece::Name(TextChunk::split(name).0),
                (None, Some(json)) => CallPiece::Arguments(TextChunk::split(json).0),
                (None, None) => CallPiece::End,
            };
            AnswerEvent::Call(piece)
        }
        "rate_limits" => {
            let limit = RateLimit { limit: number(of, "limit")?, remaining: 1, reset_ms: 1_500 };
            let limits = RateLimits { requests: Some(limit), tokens: None };
            AnswerEvent::RateLimits(limits)
        }
        "end" => {
            let finish = match text("finish") {
                "length" => FinishReason::Length,
                "content_filter" => FinishReason::ContentFilter,
                _ => FinishReason::Stop,
            };
            let usage = TokenUsage { input: 20, input_cached: 8, output: 5 };
            AnswerEvent::End { finish, usage }
        }
        "failed" => {
            let (detail, _) = TextChunk::split(text("detail"));
            let code = match text("code") {
                "tts_failed" => FailureCode::TtsFailed,
                _ => FailureCode::LlmStatus(500),
            };
            AnswerEvent::Failed { code, detail }
        }
        _ => return Err(format!("unknown event {event}")),
    })
}

fn number(of: &Value, key: &str) -> Result<u32, String> {
    let number = of[key].as_u64().and_then(|number| u32::try_from(number).ok());
    number.ok_or_else(|| format!("{key} is {}", of[key]))
}
