//! `POST /v1/audio/speech`: text goes through a unit's clause splitter to its TTS, and out as it is spoken.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::BytesRejection;
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use serde::Deserialize;
use tokio::sync::mpsc;
use tokio::time::timeout;

use super::claim::Claim;
use super::error::ApiError;
use crate::audio::SampleRate;
use crate::audio::wav;
use crate::edge::inbound::downlink::{Downlink, Pulled};
use crate::edge::inbound::shared::Shared;
use crate::limits::SLOW_READER_MS_MAX;
use crate::message::{AnswerEvent, ResponseKey, TextPrompt, TtsSettings};

/// Longest text, characters. Source: OpenAI API reference, "Create speech".
const INPUT_CHARS_MAX: usize = 4_096;

/// Range of the speed. Source: OpenAI API reference, "Create speech".
const SPEEDS: std::ops::RangeInclusive<f32> = 0.25..=4.0;

/// Most pieces of up to 100 ms that wait for the socket beside those in `answer_out`.
const PIECES_MAX: usize = 4;

/// Format of the audio: mono, signed 16 bit, little-endian, 24 kHz.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SpeechFormat {
    Pcm,
    Wav,
}

/// Body of the request. Fields that change nothing here (`model`, `voice`, `instructions`) are ignored.
#[derive(Debug, Deserialize)]
struct SpeechRequest {
    input: String,
    response_format: Option<String>,
    speed: Option<f32>,
    stream_format: Option<String>,
}

impl SpeechRequest {
    fn format(&self) -> Result<SpeechFormat, ApiError> {
        match self.response_format.as_deref() {
            Some("pcm") => Ok(SpeechFormat::Pcm),
            // The API's own default is MP3, which this server does not encode.
            Some("wav") | None => Ok(SpeechFormat::Wav),
            Some(other) => {
                let problem = format_args!("found {other:?}, expected pcm or wav");
                Err(ApiError::field("response_format", "unsupported", problem))
            }
        }
    }

    fn check(&self) -> Result<(), ApiError> {
        let chars = self.input.chars().count();
        if !(1..=INPUT_CHARS_MAX).contains(&chars) {
            let problem = format_args!("found {chars} characters, expected 1 to {INPUT_CHARS_MAX}");
            return Err(ApiError::field("input", "invalid", problem));
        }
        if let Some(speed) = self.speed.filter(|speed| !SPEEDS.contains(speed)) {
            let problem = format_args!("found {speed}, expected {} to {}", SPEEDS.start(), SPEEDS.end());
            return Err(ApiError::field("speed", "invalid", problem));
        }
        match self.stream_format.as_deref() {
            None | Some("audio") => Ok(()),
            Some(other) => {
                let problem = format_args!("found {other:?}, expected audio");
                Err(ApiError::field("stream_format", "unsupported", problem))
            }
        }
    }
}

/// Handles `POST /v1/audio/speech`.
pub(super) async fn speak(
    State(shared): State<Arc<Shared>>,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, ApiError> {
    let body = body.map_err(|error| ApiError::request(error.status(), error.body_text()))?;
    let request: SpeechRequest = serde_json::from_slice(&body)
        .map_err(|error| ApiError::request(StatusCode::BAD_REQUEST, format!("JSON: {error}")))?;
    request.check()?;
    let format = request.format()?;
    let mut speech = SpeechStream::begin(Claim::new(&shared).await?, &request);
    // A failure before the first piece is answered with its status.
    let first = speech.next().await?;
    let (sender, receiver) = mpsc::channel(PIECES_MAX);
    tokio::spawn(send_on(speech, sender));
    let (content_type, header) = match format {
        SpeechFormat::Pcm => ("audio/pcm", None),
        SpeechFormat::Wav => ("audio/wav", Some(Bytes::from(wav::header(SampleRate::HZ_24K, None).to_vec()))),
    };
    let begin = stream::iter(header.into_iter().chain(first).map(Ok));
    let rest = stream::unfold(receiver, |mut pieces: mpsc::Receiver<_>| async move {
        Some((pieces.recv().await?, pieces))
    });
    Ok(([(CONTENT_TYPE, content_type)], Body::from_stream(begin.chain(rest))).into_response())
}

/// Speech that is being made.
struct SpeechStream {
    claim: Claim,
    downlink: Downlink,
    is_over: bool,
}

impl SpeechStream {
    fn begin(mut claim: Claim, request: &SpeechRequest) -> Self {
        let settings =
            TtsSettings { rate: SampleRate::HZ_24K, speed: request.speed.unwrap_or(1.0), language: None };
        let stamp = claim.lease.stamp(ResponseKey(0));
        let prompt = TextPrompt::Speak(request.input.as_str().into());
        let port = claim.lease.port();
        port.tts_settings.write(settings);
        port.text_prompts.push(stamp, prompt).expect("a fresh unit's rings are empty");
        Self { claim, downlink: Downlink::new(), is_over: false }
    }

    /// Waits for the next piece; `None` at the end. Cancel safe.
    async fn next(&mut self) -> Result<Option<Bytes>, ApiError> {
        while !self.is_over {
            let unit = self.claim.lease.status();
            match self.downlink.pull(unit, self.claim.lease.port()) {
                Pulled::Audio(..) => {
                    let samples = self.downlink.samples().iter();
                    return Ok(Some(samples.flat_map(|sample| sample.to_le_bytes()).collect()));
                }
                Pulled::Event(_, AnswerEvent::End { .. }) => self.is_over = true,
                Pulled::Event(_, AnswerEvent::Failed { detail, .. }) => {
                    self.is_over = true;
                    let message = format!("speech synthesis failed {}", detail.as_str());
                    return Err(ApiError::failed("tts_failed", message.trim_end()));
                }
                Pulled::Event(..) => {}
                Pulled::Nothing => self.claim.woken().notified().await,
            }
        }
        Ok(None)
    }
}

/// Passes the speech on until it ends, or until its client stops reading. A failure breaks the body off, so that no
/// client takes a part for the whole.
async fn send_on(mut speech: SpeechStream, pieces: mpsc::Sender<Result<Bytes, std::io::Error>>) {
    loop {
        let piece = tokio::select! {
            () = pieces.closed() => return,
            piece = speech.next() => piece.map_err(|error| std::io::Error::other(format!("{error:?}"))).transpose(),
        };
        let Some(piece) = piece else { return };
        let sent = timeout(Duration::from_millis(SLOW_READER_MS_MAX), pieces.send(piece)).await;
        if !matches!(sent, Ok(Ok(()))) {
            return;
        }
    }
}
