//! A whole conversation in which one server has no speech or language models of its own: it asks another one for them, by
//! the endpoints that this serves.

use std::path::Path;

use antiphon::door::audio::SampleRate;
use antiphon::door::talk::Recording;

use crate::client::Client;
use crate::server::Server;
use crate::signal::silence;

#[tokio::test]
async fn one_server_hears_thinks_and_speaks_for_another() {
    let behind = Server::real_with(2, &["--serve-endpoints"]).await;
    let url = format!("http://{}/v1", behind.addr());
    let args = ["--stt-url", &url, "--stt-format", "verbose_json", "--tts-url", &url, "--llm-url", &url];
    let server = behind.real_beside(1, &args).await;
    let clip = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/speech/austen-0880.wav");
    let recording = Recording::load(&clip, SampleRate::HZ_24K).expect("a clip of the repository");
    let mut client = Client::open(server.addr()).await;
    for turn in 1..=2 {
        client.stream(&[recording.samples(), &silence(1_000)].concat()).await;
        let heard = client.expect("conversation.item.input_audio_transcription.completed").await;
        let transcript = heard["transcript"].as_str().expect("a transcript").to_lowercase();
        assert!(transcript.contains("young man"), "turn {turn}: {transcript}");
        let answer = client.answer().await;
        assert_eq!(answer.status, "completed", "turn {turn}: {:?}", answer.details);
        assert!(!answer.text.trim().is_empty(), "turn {turn}");
        // An English sentence has some 15 letters a second.
        let seconds = answer.samples.len() as f64 / 24_000.0;
        assert!(seconds > answer.text.len() as f64 / 40.0, "{seconds} s of speech for {:?}", answer.text);
        let loud = answer.samples.iter().filter(|sample| sample.unsigned_abs() > 300).count();
        assert!(loud > answer.samples.len() / 10, "{loud} of {} samples are loud", answer.samples.len());
    }
    client.cut();
    server.all_units_free().await;
    behind.all_units_free().await;
}
