//! `antiphon talk`: plays a recording to a Realtime server at the pace of speech and stores the answer.
//!
//! The command uses only the public protocol, so it can measure any Realtime server, from a user's point of view.

mod recording;
mod turn;

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Error as SocketError;

use crate::audio::{SampleRate, pcm_rate};

pub use recording::{Recording, RecordingError, store};
pub use turn::{Answer, Question, TalkRate, Times, converse};

/// Arguments of `antiphon talk`.
#[derive(Clone, Debug, Args)]
pub struct TalkArgs {
    /// Address of the server
    #[arg(long, default_value = "ws://127.0.0.1:8765/v1/realtime")]
    pub url: String,
    /// Recording of the question: a WAV file of any rate, channel count and sample format
    #[arg(long, value_name = "question.wav", required_unless_present = "text")]
    pub input: Option<PathBuf>,
    /// Written question instead of a recording
    #[arg(long, conflicts_with = "input")]
    pub text: Option<String>,
    /// File for the answer, a mono WAV at the rate of the session; with --repeat, the last one
    #[arg(long, value_name = "answer.wav")]
    pub output: Option<PathBuf>,
    /// Sample rate, in and out, of a session that names no audio format: 8000, 16000, 24000 or 48000, the server's
    /// `--default-rate` [default: name PCM at 24000]
    #[arg(long, value_name = "HZ", value_parser = pcm_rate)]
    pub default_rate: Option<SampleRate>,
    /// Print one JSON object per turn
    #[arg(long)]
    pub json: bool,
    /// Number of times to ask, each in a new session; more than one also prints the medians
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub repeat: u32,
    /// Seconds to wait for the whole answer after the end of the recording
    #[arg(long, default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    answer_limit_s: u64,
}

/// Errors of `antiphon talk`. Each message is one line for the user.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TalkError {
    /// The recording cannot be read, or the answer cannot be stored.
    #[error(transparent)]
    Recording(#[from] RecordingError),
    /// There is no WebSocket at this address.
    #[error("{url}: no connection: {source}")]
    Connect {
        /// Address of the server.
        url: String,
        /// Error of the transport.
        source: Box<SocketError>,
    },
    /// All units are in use.
    #[error("the server has no free unit: {message}")]
    Refused {
        /// The server's own words.
        message: String,
    },
    /// The server sent an `error` event, or the transcription failed.
    #[error("the server reports {kind}: {message}")]
    Server {
        /// The error's type and code.
        kind: String,
        /// The server's own words.
        message: String,
    },
    /// The server takes a session without a format to be at another rate.
    #[error(
        "the server takes a session that names no audio format to be at {server_hz} Hz, and --default-rate says {hz} Hz; start it \
         with --default-rate {hz}, or leave the flag out here"
    )]
    OtherRate {
        /// Rate in `session.created`.
        server_hz: u64,
        /// Rate of `--default-rate`.
        hz: u32,
    },
    /// The response ended as `failed`.
    #[error("the answer failed: {message}")]
    Failed {
        /// The server's own words.
        message: String,
    },
    /// The server closed the connection before the answer was complete.
    #[error("the server closed the connection before the answer was complete: {reason}")]
    Closed {
        /// Code and reason of the close.
        reason: String,
    },
    /// The connection broke.
    #[error("the connection broke: {0}")]
    Socket(Box<SocketError>),
    /// No answer, or no step towards it, came in time.
    #[error("waited {seconds:.0} s for {waited_for} in vain")]
    Silent {
        /// The event or answer that was due.
        waited_for: &'static str,
        /// Time waited.
        seconds: f64,
    },
    /// The server heard noise only and sent no answer.
    #[error("the server found nothing to answer in the recording; its transcript is \"{transcript}\"")]
    NothingToAnswer {
        /// Transcript of the recording, as the server sent it.
        transcript: String,
    },
    /// The operating system grants no timer or socket.
    #[error("the runtime cannot start: {0}")]
    Runtime(std::io::Error),
    /// A message is not JSON.
    #[error("the server sent what is no event: {text}")]
    NotAnEvent {
        /// First characters of the message.
        text: String,
    },
    /// An audio delta is not base64 of whole samples.
    #[error("the server sent an audio delta of {bytes} bytes, expected base64 of whole 16-bit samples")]
    BadAudio {
        /// Length of the delta.
        bytes: usize,
    },
}

impl TalkError {
    fn socket(error: SocketError) -> Self {
        Self::Socket(Box::new(error))
    }
}

/// Asks `args.repeat` times and prints the answers. Blocks the calling thread, on which it runs a runtime of its own.
///
/// # Errors
/// Returns the [`TalkError`] of the first turn that failed.
pub fn run(args: TalkArgs) -> Result<(), TalkError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(TalkError::Runtime)?.block_on(talk(args))
}

async fn talk(args: TalkArgs) -> Result<(), TalkError> {
    let rate = args.default_rate.map_or(TalkRate::Named, TalkRate::Unnamed);
    let question = match (&args.input, &args.text) {
        (Some(path), _) => Question::Spoken(Recording::load(path, rate.get())?),
        (None, text) => Question::Written(text.clone().unwrap_or_default()),
    };
    let mut times = Vec::new();
    for _ in 0..args.repeat {
        let answer = converse(&args.url, &question, rate, Duration::from_secs(args.answer_limit_s)).await?;
        if let Some(path) = &args.output {
            store(path, &answer.samples, answer.rate)?;
        }
        if args.json {
            println!("{}", turn_json(&answer));
        } else {
            print!("{}", turn_text(&answer));
        }
        times.push(answer.times);
    }
    if args.repeat > 1 {
        let median = median_times(&times);
        if args.json {
            println!("{}", json!({ "turns": times.len(), "median": { "ms": times_json(&median) } }));
        } else {
            print!("median of {}:\n{}", times.len(), times_text(&median));
        }
    }
    Ok(())
}

/// Returns the median of each time over `turns`. A time that a turn lacks is left out of its median.
#[must_use]
fn median_times(turns: &[Times]) -> Times {
    let of = |time: fn(&Times) -> Option<f64>| median(turns.iter().filter_map(time).collect());
    Times {
        endpoint_ms: of(|t| t.endpoint_ms),
        transcript_ms: of(|t| t.transcript_ms),
        first_text_ms: of(|t| t.first_text_ms),
        first_audio_ms: of(|t| t.first_audio_ms),
        done_ms: of(|t| Some(t.done_ms)).unwrap_or(0.0),
    }
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = *values.get(values.len() / 2)?;
    let lower = values[(values.len() - 1) / 2];
    Some(f64::midpoint(lower, upper))
}

/// Returns the JSON object that `antiphon talk --json` prints for one turn.
#[must_use]
fn turn_json(answer: &Answer) -> Value {
    json!({
        "transcript": answer.transcript,
        "reply": answer.reply,
        "audio_s": rounded(seconds(answer), 1_000.0),
        "ms": times_json(&answer.times),
        "client_late_ms": rounded(answer.client_late_ms, 10.0),
    })
}

/// Returns the times, all counted from the end of speech.
fn times_json(times: &Times) -> Value {
    let ms = |time: Option<f64>| time.map(|ms| rounded(ms, 10.0));
    json!({
        "speech_end_to_endpoint": ms(times.endpoint_ms),
        "speech_end_to_transcript": ms(times.transcript_ms),
        "to_first_text": ms(times.first_text_ms),
        "to_first_audio": ms(times.first_audio_ms),
        "to_done": ms(Some(times.done_ms)),
    })
}

fn turn_text(answer: &Answer) -> String {
    let mut text = String::new();
    if let Some(transcript) = &answer.transcript {
        text += &format!("you      {transcript}\n");
    }
    text += &format!("answer   {}\n", answer.reply);
    text += &format!("audio    {:.2} s\n", seconds(answer));
    text += &times_text(&answer.times);
    if answer.client_late_ms > f64::from(LATE_CLIENT_MS) {
        text +=
            &format!("this client was up to {:.0} ms late: do not trust the times\n", answer.client_late_ms);
    }
    text
}

/// Lateness of the client above which its measurements are no longer those of the server, milliseconds.
const LATE_CLIENT_MS: u32 = 10;

/// Returns the steps from the end of speech to the last sample, one a line.
fn times_text(times: &Times) -> String {
    let steps = [
        ("end of turn reported", times.endpoint_ms),
        ("transcript", times.transcript_ms),
        ("first text", times.first_text_ms),
        ("first audio", times.first_audio_ms),
        ("answer complete", Some(times.done_ms)),
    ];
    let mut text = String::from("after the end of speech:\n");
    let mut before = 0.0;
    for (name, ms) in steps {
        let Some(ms) = ms else { continue };
        text += &format!("  {name:<22}{ms:>8.0} ms  ({:+.0})\n", ms - before);
        before = ms;
    }
    text
}

fn seconds(answer: &Answer) -> f64 {
    answer.samples.len() as f64 / f64::from(answer.rate.hz())
}

fn rounded(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn times(first_audio_ms: f64, done_ms: f64) -> Times {
        Times { first_audio_ms: Some(first_audio_ms), done_ms, ..Times::default() }
    }

    #[test]
    fn medians_take_the_middle_and_leave_out_what_is_missing() {
        let median = median_times(&[times(9.0, 1.0), times(1.0, 3.0), times(2.0, 2.0), Times::default()]);
        assert_eq!(median, Times { first_audio_ms: Some(2.0), done_ms: 1.5, ..Times::default() });
        assert_eq!(median_times(&[]), Times::default());
    }

    #[test]
    fn json_has_the_documented_keys() {
        let answer = Answer {
            transcript: Some("ten of clubs".to_owned()),
            reply: "Well.".to_owned(),
            samples: vec![0; 12_000],
            rate: SampleRate::HZ_24K,
            times: Times { transcript_ms: Some(310.04), ..times(452.06, 900.0) },
            client_late_ms: 0.2,
        };
        let printed = turn_json(&answer);
        assert_eq!(printed["transcript"], "ten of clubs");
        assert_eq!(printed["reply"], "Well.");
        assert_eq!(printed["audio_s"], 0.5);
        let ms = json!({ "speech_end_to_endpoint": null, "speech_end_to_transcript": 310.0, "to_first_text": null,
                         "to_first_audio": 452.1, "to_done": 900.0 });
        assert_eq!(printed["ms"], ms);
    }

    #[test]
    fn the_steps_are_printed_with_their_parts() {
        let text = times_text(&Times {
            endpoint_ms: Some(300.0),
            transcript_ms: Some(340.0),
            ..times(500.0, 1_500.0)
        });
        let parts: Vec<_> =
            text.lines().skip(1).filter_map(|line| line.split_once('(')).map(|(_, part)| part).collect();
        assert_eq!(parts, ["+300)", "+40)", "+160)", "+1000)"]);
    }
}
