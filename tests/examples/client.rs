//! A client of the server on one page: says a recording, prints both sides of the conversation, stores the answer.
//!
//! ```sh
//! cargo run --release --example client -- tests/golden/speech/austen-0880.wav answer.wav
//! ```
//!
//! The recording is a WAV file with one channel of 16-bit samples at 8, 16, 24 or 48 kHz; the answer has the same format.

use anyhow::{Context as _, bail, ensure};
use base64_simd::STANDARD as BASE64;
use futures_util::{SinkExt as _, StreamExt as _};
use serde_json::{Value, json};
use tokio_tungstenite::tungstenite::Message;

const URL: &str = "ws://127.0.0.1:8765/v1/realtime";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let paths: Vec<_> = std::env::args().skip(1).collect();
    let [question, answer] = paths.as_slice() else { bail!("usage: client question.wav answer.wav") };
    let mut recording = hound::WavReader::open(question).with_context(|| question.clone())?;
    let spec = recording.spec();
    ensure!(
        spec.channels == 1 && spec.bits_per_sample == 16,
        "found {spec:?}, expected one channel of 16 bits"
    );
    let mut samples = recording.samples::<i16>().collect::<Result<Vec<_>, _>>()?;
    // A second of silence, by which the server notices that the question is over.
    samples.resize(samples.len() + spec.sample_rate as usize, 0);

    let (socket, _) = tokio_tungstenite::connect_async(URL).await.with_context(|| URL)?;
    let (mut to_server, mut from_server) = socket.split();
    let format = json!({"type": "audio/pcm", "rate": spec.sample_rate});
    let audio = json!({"input": {"format": format}, "output": {"format": format}});
    let update = json!({"type": "session.update", "session": {"type": "realtime", "audio": audio}});
    to_server.send(Message::text(update.to_string())).await?;
    // A tenth of a second per message. A microphone would give them in time; the server does not mind to get them early.
    for chunk in samples.chunks(spec.sample_rate as usize / 10) {
        let bytes: Vec<_> = chunk.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        let append = json!({"type": "input_audio_buffer.append", "audio": BASE64.encode_to_string(bytes)});
        to_server.send(Message::text(append.to_string())).await?;
    }

    let mut sound = hound::WavWriter::create(answer, spec).with_context(|| answer.clone())?;
    while let Some(message) = from_server.next().await {
        let Message::Text(text) = message? else { continue };
        let event: Value = serde_json::from_str(&text)?;
        match event["type"].as_str().context("an event has a type")? {
            "conversation.item.input_audio_transcription.completed" => {
                println!("you: {}", event["transcript"])
            }
            "response.output_audio_transcript.done" => println!("server: {}", event["transcript"]),
            "response.output_audio.delta" => {
                let bytes = BASE64.decode_to_vec(event["delta"].as_str().context("a delta is base64")?)?;
                for sample in bytes.chunks_exact(2) {
                    sound.write_sample(i16::from_le_bytes([sample[0], sample[1]]))?;
                }
            }
            "error" => bail!("{}", event["error"]["message"]),
            "response.done" => break,
            _ => {}
        }
    }
    Ok(sound.finalize()?)
}
