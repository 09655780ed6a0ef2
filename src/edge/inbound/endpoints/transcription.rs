//! `POST /v1/audio/transcriptions`: a recording goes through a unit's VAD, which detects no turns, to its STT.

use std::sync::Arc;

use axum::Json;
use axum::extract::multipart::{Field, MultipartError, MultipartRejection};
use axum::extract::{Multipart, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::json;

use super::RECORDING_BYTES_MAX;
use super::claim::Claim;
use super::error::ApiError;
use crate::audio::wav::WavHeader;
use crate::audio::{Resampler, SampleRate, pcm};
use crate::edge::inbound::shared::Shared;
use crate::language::Language;
use crate::message::{
    AudioFrame, AudioIn, CommitId, Envelope, FRAME_SAMPLES, SpeechHints, SttEvent, TextChunk, VadEvent,
    VadMode, VadSettings,
};

/// Accepted recordings, for error messages.
const EXPECTED: &str =
    "expected a WAV file: PCM of 8, 16, 24 or 32 bits or 32-bit float, 1 to 8 channels, 8000 to 48000 Hz";

/// Form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum TranscriptFormat {
    #[default]
    Json,
    VerboseJson,
    Text,
}

/// Fields of the request. Those that change nothing here (`model`, `temperature`) are ignored.
#[derive(Debug, Default)]
struct TranscriptionRequest {
    file: Option<Bytes>,
    hints: SpeechHints,
    format: TranscriptFormat,
}

/// Handles `POST /v1/audio/transcriptions`.
pub(super) async fn transcribe(
    State(shared): State<Arc<Shared>>,
    form: Result<Multipart, MultipartRejection>,
) -> Result<Response, ApiError> {
    let form = form.map_err(|error| ApiError::request(error.status(), error.body_text()))?;
    let TranscriptionRequest { file, hints, format } = TranscriptionRequest::read(form).await?;
    let file =
        file.ok_or_else(|| ApiError::field("file", "missing", format_args!("found none, {EXPECTED}")))?;
    let recording = RecordingFrames::new(file)?;
    let seconds = recording.seconds();
    // Claimed after the upload, so that a slow upload holds no unit.
    let mut claim = Claim::new(&shared).await?;
    let (text, language) = hear(&mut claim, recording, hints).await?;
    Ok(match format {
        TranscriptFormat::Json => {
            Json(json!({"text": text, "usage": {"type": "duration", "seconds": seconds}})).into_response()
        }
        TranscriptFormat::VerboseJson => {
            let language = language.or(hints.language).and_then(|language| language.name());
            let language = language.unwrap_or("unknown").to_ascii_lowercase();
            Json(json!({"task": "transcribe", "language": language, "duration": seconds, "text": text}))
                .into_response()
        }
        TranscriptFormat::Text => {
            ([(CONTENT_TYPE, "text/plain; charset=utf-8")], format!("{text}\n")).into_response()
        }
    })
}

impl TranscriptionRequest {
    async fn read(mut form: Multipart) -> Result<Self, ApiError> {
        let mut request = Self::default();
        while let Some(field) = form.next_field().await.map_err(|error| bad_form(&error))? {
            request.take(field).await?;
        }
        Ok(request)
    }

    async fn take(&mut self, field: Field<'_>) -> Result<(), ApiError> {
        let name = field.name().unwrap_or_default().to_owned();
        if name == "file" {
            let file = field.bytes().await.map_err(|error| bad_form(&error))?;
            if file.len() > RECORDING_BYTES_MAX {
                return Err(too_large());
            }
            self.file = Some(file);
            return Ok(());
        }
        let text = field.text().await.map_err(|error| bad_form(&error))?;
        match name.as_str() {
            "language" if !text.is_empty() => {
                let language = Language::new(&text).ok_or_else(|| {
                    ApiError::field(
                        "language",
                        "invalid",
                        format_args!("found {text:?}, expected a code like en"),
                    )
                })?;
                self.hints.language = Some(language);
            }
            "prompt" => self.hints.prompt = (!text.is_empty()).then(|| TextChunk::split(&text).0),
            "response_format" => {
                self.format = match text.as_str() {
                    "json" => TranscriptFormat::Json,
                    "verbose_json" => TranscriptFormat::VerboseJson,
                    "text" => TranscriptFormat::Text,
                    _ => {
                        let problem = format_args!("found {text:?}, expected json, verbose_json or text");
                        return Err(ApiError::field("response_format", "unsupported", problem));
                    }
                }
            }
            "stream" if text == "true" => {
                return Err(ApiError::field("stream", "unsupported", "found true, expected false"));
            }
            _ => {}
        }
        Ok(())
    }
}

fn too_large() -> ApiError {
    let message = format!("file: found more than {RECORDING_BYTES_MAX} bytes");
    ApiError::request(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn bad_form(error: &MultipartError) -> ApiError {
    match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => too_large(),
        status => ApiError::request(status, error.body_text()),
    }
}

/// The frames of a file, 30 ms each.
struct RecordingFrames {
    file: Bytes,
    header: WavHeader,
    /// Bytes of the file that have been read.
    at: usize,
    /// Resampler from the file's rate to 16 kHz.
    resampler: Resampler,
    /// Samples at 16 kHz that fill no frame yet.
    ready: Vec<i16>,
    is_finished: bool,
}

impl RecordingFrames {
    fn new(mut file: Bytes) -> Result<Self, ApiError> {
        let header = WavHeader::parse(&file);
        let bad = |problem: &dyn std::fmt::Display| {
            ApiError::field("file", "unsupported_format", format_args!("{problem}; {EXPECTED}"))
        };
        let header =
            header.map_err(|error| bad(&error))?.ok_or_else(|| bad(&"found no end of its header"))?;
        let resampler =
            Resampler::new(header.format.rate, SampleRate::HZ_16K).map_err(|error| bad(&error))?;
        let end = header.len.map_or(file.len(), |len| file.len().min(header.start.saturating_add(len)));
        file.truncate(end);
        Ok(Self { file, header, at: header.start, resampler, ready: Vec::new(), is_finished: false })
    }

    fn seconds(&self) -> f64 {
        let format = self.header.format;
        let samples = (self.file.len() - self.header.start) / format.frame_bytes();
        samples as f64 / f64::from(format.rate.hz())
    }
}

impl Iterator for RecordingFrames {
    type Item = AudioFrame;

    fn next(&mut self) -> Option<AudioFrame> {
        let Self { file, header, at, resampler, ready, is_finished } = self;
        while ready.len() < FRAME_SAMPLES && !*is_finished {
            let mut append = |samples: &[f32]| pcm::append_i16(ready, samples);
            let end = file.len().min(*at + FRAME_SAMPLES * header.format.frame_bytes());
            let samples: Vec<f32> = header.format.mono(&file[*at..end]).collect();
            if samples.is_empty() {
                resampler.finish(&mut append);
                *is_finished = true;
            } else {
                resampler.push(&samples, &mut append);
            }
            *at = end;
        }
        if ready.is_empty() {
            return None;
        }
        Some(AudioFrame::cut(ready, SampleRate::HZ_16K))
    }
}

/// Sends the recording through the unit as one utterance and waits for its transcript, with the language if the
/// recogniser names one.
async fn hear(
    claim: &mut Claim,
    recording: RecordingFrames,
    hints: SpeechHints,
) -> Result<(String, Option<Language>), ApiError> {
    let (unit, epoch) = (claim.lease.status(), claim.lease.epoch());
    let settings = VadSettings { mode: VadMode::Off };
    let begin = [AudioIn::Settings(settings), AudioIn::Hints(hints)];
    let end = AudioIn::Commit(CommitId(0));
    let audio = recording.map(AudioIn::Audio);
    let mut items = begin.into_iter().chain(audio).chain([end]).fuse();
    let (mut transcript, mut heard) = (String::new(), None);
    loop {
        let port = claim.lease.port();
        while port.audio_in.has_room_or_ring(1) {
            let Some(item) = items.next() else { break };
            port.audio_in.push(epoch, item).expect("there is room");
        }
        while let Some(Envelope::Item { item, .. }) = port.vad_events.next_live(unit) {
            if let VadEvent::CommitRefused { audio_ms, .. } = item {
                let problem = format_args!("found {audio_ms} ms of audio, expected 100 ms or more");
                return Err(ApiError::field("file", "audio_too_short", problem));
            }
        }
        while let Some(Envelope::Item { item, .. }) = port.stt_events.next_live(unit) {
            match item {
                SttEvent::Transcript { chunk, language, last, .. } => {
                    transcript.push_str(chunk.as_str());
                    heard = heard.or(language);
                    if last {
                        return Ok((transcript.trim().to_owned(), heard));
                    }
                }
                SttEvent::Failed { .. } => {
                    return Err(ApiError::failed("stt_failed", "speech recognition failed"));
                }
            }
        }
        claim.woken().notified().await;
    }
}
