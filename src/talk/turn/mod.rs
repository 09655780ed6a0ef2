//! One question and its answer over the public protocol.

use std::collections::HashMap;
use std::time::Duration;

use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::connect_async_with_config;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{Error as SocketError, Message};

use super::TalkError;
use super::recording::Recording;
use crate::audio::SampleRate;
use crate::clock::now;
use crate::message::Moment;

/// Audio of one append, milliseconds.
const APPEND_MS: u32 = 20;

/// Audio of one append, as a duration.
const APPEND: Duration = Duration::from_millis(APPEND_MS as u64);

/// Longest wait for the connection, and for the confirmed settings of the session.
const OPENING_LIMIT: Duration = Duration::from_secs(10);

/// Longest wait for the server's answer to our close.
const CLOSING_LIMIT: Duration = Duration::from_secs(1);

/// The user's part of the turn.
#[derive(Clone, Debug)]
pub enum Question {
    /// A spoken question; the server finds the end of the turn by itself.
    Spoken(Recording),
    /// A written question; the answer is spoken all the same.
    Written(String),
}

/// Sample rate of a session's PCM, in and out, named to the server or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TalkRate {
    /// 24 kHz, named in a `session.update`.
    Named,
    /// The server's default rate, which no event names.
    Unnamed(SampleRate),
}

impl TalkRate {
    /// Returns the samples per second.
    #[must_use]
    pub const fn get(self) -> SampleRate {
        match self {
            Self::Named => SampleRate::HZ_24K,
            Self::Unnamed(rate) => rate,
        }
    }
}

/// Times at which events reached this client, counted from the end of the user's speech, or from the sending of a
/// written question. Negative while the user was still speaking.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Times {
    /// The server's report of the end of speech, milliseconds.
    pub endpoint_ms: Option<f64>,
    /// The final transcript, milliseconds.
    pub transcript_ms: Option<f64>,
    /// The first text of the answer, milliseconds.
    pub first_text_ms: Option<f64>,
    /// The first audio of the answer, milliseconds.
    pub first_audio_ms: Option<f64>,
    /// The end of the answer, milliseconds.
    pub done_ms: f64,
}

/// The server's answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Transcript of the question; `None` if the question was written.
    pub transcript: Option<String>,
    /// The answer's text.
    pub reply: String,
    /// The answer's audio, mono.
    pub samples: Vec<i16>,
    /// Samples per second of that audio.
    pub rate: SampleRate,
    /// Times at which the parts of the answer came.
    pub times: Times,
    /// Greatest lateness of an append against its intended time, milliseconds. Above some milliseconds, this machine
    /// was too busy to measure with.
    pub client_late_ms: f64,
}

/// Opens a session at `url`, asks, and waits for the whole answer. A recording must be at `rate`.
///
/// Audio goes out in 20 ms appends at absolute deadlines, each when its last sample would have been spoken. Silence
/// follows the recording, as from an open microphone. Thread: any, on a tokio runtime with time and network.
///
/// # Errors
/// Returns [`TalkError`] for no connection, no free unit, a server with another default rate, an `error` event, a
/// failed response, or no answer within `answer_limit` of the end of the recording.
pub async fn converse(
    url: &str,
    question: &Question,
    rate: TalkRate,
    answer_limit: Duration,
) -> Result<Answer, TalkError> {
    let connect = connect_async_with_config(url, Some(WebSocketConfig::default()), true);
    let (socket, _) = timeout(OPENING_LIMIT, connect)
        .await
        .map_err(|_| TalkError::Silent {
            waited_for: "the connection",
            seconds: OPENING_LIMIT.as_secs_f64(),
        })?
        .map_err(|source| TalkError::Connect { url: url.to_owned(), source: Box::new(source) })?;
    let (mut sink, mut events) = socket.split();

    let opening = open_session(&mut sink, &mut events, rate);
    timeout(OPENING_LIMIT, opening).await.map_err(|_| TalkError::Silent {
        waited_for: "the session",
        seconds: OPENING_LIMIT.as_secs_f64(),
    })??;

    let start = now();
    let mut latest = Duration::ZERO;
    let (turn, answered) = match question {
        Question::Spoken(recording) => {
            let lasts = |samples| duration_of(samples, recording.rate());
            let mut turn = TurnProgress::new(start + lasts(recording.speech_end()), true);
            let spoken_at = start + lasts(recording.samples().len());
            let answered = {
                let hear = hear(&mut events, &mut turn, spoken_at + APPEND, answer_limit);
                tokio::pin!(hear);
                tokio::select! {
                    biased;
                    heard = &mut hear => heard,
                    // A socket that takes no more has usually sent the reason, which the reader then returns.
                    Err(unsent) = speak(&mut sink, recording, start, &mut latest) => {
                        hear.await.and(Err(unsent))
                    }
                }
            };
            (turn, answered)
        }
        Question::Written(text) => {
            let mut turn = TurnProgress::new(start, false);
            for event in written(text) {
                send(&mut sink, &event).await?;
            }
            let answered = hear(&mut events, &mut turn, start, answer_limit).await;
            (turn, answered)
        }
    };
    // The answer is complete or lost; a close that fails changes neither.
    let _ = sink.send(Message::Close(None)).await;
    let _ = timeout(CLOSING_LIMIT, async { while let Some(Ok(_)) = events.next().await {} }).await;
    answered?;
    turn.into_answer(rate.get(), latest)
}

/// Sends `recording` and then silence without end, one append per deadline. Returns only with an error.
async fn speak<S>(
    sink: &mut S,
    recording: &Recording,
    start: Moment,
    latest: &mut Duration,
) -> Result<(), TalkError>
where
    S: Sink<Message, Error = SocketError> + Unpin,
{
    let per_append = usize::try_from(recording.rate().samples_in(APPEND_MS)).expect("an append is short");
    let silence = append_event(&vec![0; per_append]);
    let mut chunks = recording.samples().chunks(per_append);
    let mut due = start;
    loop {
        due = due + APPEND;
        let event = match chunks.next() {
            Some(chunk) if chunk.len() == per_append => append_event(chunk),
            Some(chunk) => append_event(&[chunk, &vec![0; per_append - chunk.len()]].concat()),
            None => silence.clone(),
        };
        sleep(due.since(now())).await;
        *latest = (*latest).max(now().since(due));
        sink.send(Message::Text(event.into())).await.map_err(TalkError::socket)?;
    }
}

/// Reads events until the turn is over.
async fn hear<S>(
    events: &mut S,
    turn: &mut TurnProgress,
    spoken_at: Moment,
    limit: Duration,
) -> Result<(), TalkError>
where
    S: Stream<Item = Result<Message, SocketError>> + Unpin,
{
    let deadline = spoken_at + limit;
    while !(turn.is_answered() && now() >= spoken_at) {
        // If the recording has pauses, another turn may follow an answer that is complete before the recording ends.
        let wake = if turn.is_answered() { spoken_at } else { deadline };
        match timeout(wake.since(now()), next_event(events)).await {
            Ok(event) => turn.take(&event?, now())?,
            Err(_) if wake == spoken_at => {}
            Err(_) => {
                return Err(TalkError::Silent { waited_for: turn.waits_for(), seconds: limit.as_secs_f64() });
            }
        }
    }
    Ok(())
}

async fn open_session<S, E>(sink: &mut S, events: &mut E, rate: TalkRate) -> Result<(), TalkError>
where
    S: Sink<Message, Error = SocketError> + Unpin,
    E: Stream<Item = Result<Message, SocketError>> + Unpin,
{
    let created = expect_event(events, "session.created").await?;
    let mut audio = json!({ "input": { "turn_detection": { "type": "server_vad" } } });
    match rate {
        TalkRate::Named => {
            let format = json!({ "type": "audio/pcm", "rate": rate.get().hz() });
            audio["input"]["format"] = format.clone();
            audio["output"] = json!({ "format": format });
        }
        TalkRate::Unnamed(rate) => check_rate(&created["session"]["audio"], rate.hz())?,
    }
    send(sink, &json!({ "type": "session.update", "session": { "type": "realtime", "audio": audio } }))
        .await?;
    expect_event(events, "session.updated").await.map(drop)
}

/// Checks that a session with this `audio` is at `hz`. Rates that the server does not name pass.
fn check_rate(audio: &Value, hz: u32) -> Result<(), TalkError> {
    let rates = ["input", "output"].iter().filter_map(|side| audio[side]["format"]["rate"].as_u64());
    match rates.into_iter().find(|server_hz| *server_hz != u64::from(hz)) {
        Some(server_hz) => Err(TalkError::OtherRate { server_hz, hz }),
        None => Ok(()),
    }
}

async fn expect_event<E>(events: &mut E, expected: &str) -> Result<Value, TalkError>
where
    E: Stream<Item = Result<Message, SocketError>> + Unpin,
{
    loop {
        let event = next_event(events).await?;
        match event["type"].as_str() {
            Some("error") => return Err(error_of(&event["error"])),
            Some(kind) if kind == expected => return Ok(event),
            _ => {}
        }
    }
}

/// Waits for the next event; skips pings, pongs and binary messages.
async fn next_event<E>(events: &mut E) -> Result<Value, TalkError>
where
    E: Stream<Item = Result<Message, SocketError>> + Unpin,
{
    loop {
        match events.next().await {
            Some(Ok(Message::Text(text))) => {
                return serde_json::from_str(&text)
                    .map_err(|_| TalkError::NotAnEvent { text: shortened(&text) });
            }
            Some(Ok(Message::Close(frame))) => {
                let reason = frame.map_or_else(String::new, |f| format!("code {}, \"{}\"", f.code, f.reason));
                return Err(TalkError::Closed { reason });
            }
            Some(Ok(Message::Binary(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Err(error)) => return Err(TalkError::socket(error)),
            None => return Err(TalkError::Closed { reason: "no reason given".to_owned() }),
        }
    }
}

async fn send<S>(sink: &mut S, event: &Value) -> Result<(), TalkError>
where
    S: Sink<Message, Error = SocketError> + Unpin,
{
    sink.send(Message::Text(event.to_string().into())).await.map_err(TalkError::socket)
}

fn written(text: &str) -> [Value; 2] {
    let content = json!([{ "type": "input_text", "text": text }]);
    let item = json!({ "type": "message", "role": "user", "content": content });
    [json!({ "type": "conversation.item.create", "item": item }), json!({ "type": "response.create" })]
}

fn append_event(samples: &[i16]) -> String {
    let audio = base64_simd::STANDARD.encode_to_string(bytemuck::cast_slice::<i16, u8>(samples));
    format!(r#"{{"type":"input_audio_buffer.append","audio":"{audio}"}}"#)
}

fn duration_of(samples: usize, rate: SampleRate) -> Duration {
    Duration::from_secs_f64(samples as f64 / f64::from(rate.hz()))
}

fn shortened(text: &str) -> String {
    text.chars().take(120).collect()
}

/// Converts an `error` object of the protocol to our error.
fn error_of(error: &Value) -> TalkError {
    let field = |name: &str| error[name].as_str().unwrap_or_default().to_owned();
    match error["type"].as_str() {
        Some("session_limit_reached") => TalkError::Refused { message: field("message") },
        _ => TalkError::Server {
            kind: [field("type"), field("code")]
                .into_iter()
                .filter(|s| !s.is_empty())
                .collect::<Vec<_>>()
                .join("/"),
            message: field("message"),
        },
    }
}

/// A response that is coming in.
#[derive(Debug, Default)]
struct Incoming {
    /// Utterances that had begun when the response did. The response answers the last of them.
    utterances: usize,
    text: String,
    samples: Vec<i16>,
    first_text: Option<Moment>,
    first_audio: Option<Moment>,
    done: Option<Moment>,
}

/// The turn so far. Pure: events and their times come in; there is no socket and no clock.
///
/// A recording with pauses may make several turns, and an answer to the first may be cut off by the second. The turn
/// is answered when all utterances are transcribed, no response is open, and the last utterance has its answer.
#[derive(Debug)]
struct TurnProgress {
    speech_end: Moment,
    is_spoken: bool,
    /// Item ids of the utterances in their order, each with its transcript once it has come.
    utterances: Vec<(String, Option<String>)>,
    /// True while the latest utterance or request has no response.
    wants_answer: bool,
    open: HashMap<String, Incoming>,
    answers: Vec<Incoming>,
    endpoint: Option<Moment>,
    transcribed: Option<Moment>,
}

impl TurnProgress {
    fn new(speech_end: Moment, is_spoken: bool) -> Self {
        Self {
            speech_end,
            is_spoken,
            utterances: Vec::new(),
            wants_answer: true,
            open: HashMap::new(),
            answers: Vec::new(),
            endpoint: None,
            transcribed: None,
        }
    }

    fn take(&mut self, event: &Value, at: Moment) -> Result<(), TalkError> {
        let text_of = |name: &str| event[name].as_str().unwrap_or_default();
        match text_of("type") {
            "input_audio_buffer.speech_started" => {
                self.utterances.push((text_of("item_id").to_owned(), None));
                self.wants_answer = true;
            }
            "input_audio_buffer.speech_stopped" => self.endpoint = Some(at),
            "conversation.item.input_audio_transcription.completed" => {
                self.transcribed = Some(at);
                let text = text_of("transcript").trim().to_owned();
                // Only noise was heard: the server rightly sends no answer.
                if text.is_empty()
                    && self.utterances.last().is_some_and(|(item, _)| item == text_of("item_id"))
                {
                    self.wants_answer = false;
                }
                match self.utterances.iter_mut().find(|(item, _)| item == text_of("item_id")) {
                    Some((_, transcript)) => *transcript = Some(text),
                    None => self.utterances.push((text_of("item_id").to_owned(), Some(text))),
                }
            }
            "conversation.item.input_audio_transcription.failed" => return Err(error_of(&event["error"])),
            "response.created" => {
                self.incoming(event["response"]["id"].as_str().unwrap_or_default());
            }
            "response.output_audio_transcript.delta" | "response.output_text.delta" => {
                let response = self.incoming(text_of("response_id"));
                response.first_text.get_or_insert(at);
                response.text.push_str(text_of("delta"));
            }
            "response.output_audio.delta" => {
                let samples = decoded(text_of("delta"))?;
                let response = self.incoming(text_of("response_id"));
                response.first_audio.get_or_insert(at);
                response.samples.extend(samples);
            }
            "response.done" => self.finish(&event["response"], at)?,
            "error" => return Err(error_of(&event["error"])),
            _ => {}
        }
        Ok(())
    }

    fn incoming(&mut self, response_id: &str) -> &mut Incoming {
        let utterances = self.utterances.len();
        let begun = || Incoming { utterances, ..Incoming::default() };
        self.open.entry(response_id.to_owned()).or_insert_with(begun)
    }

    fn finish(&mut self, response: &Value, at: Moment) -> Result<(), TalkError> {
        let mut incoming = self.open.remove(response["id"].as_str().unwrap_or_default()).unwrap_or_default();
        match response["status"].as_str() {
            // The user went on, so the text until then is not the answer.
            Some("cancelled") => {}
            Some("failed") => {
                return Err(TalkError::Failed { message: failure_of(&response["status_details"]) });
            }
            _ => {
                incoming.done = Some(at);
                self.wants_answer &= incoming.utterances < self.utterances.len();
                self.answers.push(incoming);
            }
        }
        Ok(())
    }

    fn is_answered(&self) -> bool {
        let is_heard = !self.is_spoken || !self.utterances.is_empty();
        is_heard
            && !self.wants_answer
            && self.open.is_empty()
            && self.utterances.iter().all(|(_, text)| text.is_some())
    }

    fn waits_for(&self) -> &'static str {
        if self.is_spoken && self.utterances.is_empty() {
            "the server to hear speech"
        } else if self.utterances.iter().any(|(_, text)| text.is_none()) {
            "the transcript"
        } else {
            "the answer"
        }
    }

    fn into_answer(self, rate: SampleRate, latest: Duration) -> Result<Answer, TalkError> {
        let millis = |from: Moment, to: Moment| to.since(from).as_secs_f64() * 1_000.0;
        let since_end = |at: Moment| millis(self.speech_end, at) - millis(at, self.speech_end);
        let transcripts: Vec<_> = self.utterances.iter().filter_map(|(_, text)| text.as_deref()).collect();
        let transcript = self.is_spoken.then(|| transcripts.join(" ").trim().to_owned());
        // Times are those of the last response, which answers the end of the recording.
        let last = self.answers.last().ok_or_else(|| TalkError::NothingToAnswer {
            transcript: transcript.clone().unwrap_or_default(),
        })?;
        let times = Times {
            endpoint_ms: self.endpoint.map(since_end),
            transcript_ms: self.transcribed.map(since_end),
            first_text_ms: last.first_text.map(since_end),
            first_audio_ms: last.first_audio.map(since_end),
            done_ms: last.done.map_or(0.0, since_end),
        };
        let replies: Vec<_> = self.answers.iter().map(|answer| answer.text.trim()).collect();
        Ok(Answer {
            transcript,
            reply: replies.join(" "),
            samples: self.answers.iter().flat_map(|answer| &answer.samples).copied().collect(),
            rate,
            times,
            client_late_ms: latest.as_secs_f64() * 1_000.0,
        })
    }
}

fn failure_of(details: &Value) -> String {
    let error = &details["error"];
    ["message", "code", "type"]
        .iter()
        .find_map(|name| error[name].as_str())
        .unwrap_or("the server gave no reason")
        .to_owned()
}

fn decoded(delta: &str) -> Result<Vec<i16>, TalkError> {
    let bytes =
        base64_simd::STANDARD.decode_to_vec(delta).map_err(|_| TalkError::BadAudio { bytes: delta.len() })?;
    if bytes.len() % 2 != 0 {
        return Err(TalkError::BadAudio { bytes: bytes.len() });
    }
    Ok(bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect())
}

#[cfg(test)]
mod tests;
