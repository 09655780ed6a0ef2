//! Several people talk at once, on the real models: each is understood and answered for what it said itself.

use std::time::Instant;

use antiphon::door::text::word_errors;
use tokio::task::JoinSet;

use crate::llm::ScriptedLlm;
use crate::server::Server;
use crate::speech::{Clip, clips};
use crate::talk::{json_of, talk};

/// Units of the server.
const UNITS: usize = 8;

/// A clip is understood when at most this part of its words is wrong; another clip's words would be nearly all wrong.
const OWN_ERRORS_MAX: f64 = 0.34;

/// The model repeats what it is told, so everybody's answer is known.
#[tokio::test]
async fn two_four_and_eight_talkers_are_each_answered() {
    let llm = ScriptedLlm::start().await;
    let server = Server::real_with(UNITS, &["--llm-url", &llm.url(), "--llm-model", "scripted"]).await;
    let clips = clips();
    for talkers in [2, 4, 8] {
        let begin = Instant::now();
        let turns = talk_at_once(&server, &clips[..talkers]).await;
        for (clip, turn) in &turns {
            is_own(clip, turn, &clips);
            assert_eq!(turn["reply"], turn["transcript"], "somebody else's answer");
        }
        let mut first_audio: Vec<_> =
            turns.iter().filter_map(|(_, turn)| turn["ms"]["to_first_audio"].as_f64()).collect();
        first_audio.sort_by(f64::total_cmp);
        println!(
            "{talkers} talkers: first audio after {first_audio:?} ms, all done in {:?}",
            begin.elapsed()
        );
        server.all_units_free().await;
    }
}

/// The model that comes with the server says what it likes, but it answers everybody.
#[cfg(feature = "builtin-llm")]
#[tokio::test]
async fn eight_talkers_are_answered_by_the_built_in_model() {
    let server = Server::real_with(UNITS, &[]).await;
    let clips = clips();
    for (clip, turn) in talk_at_once(&server, &clips[2..]).await {
        is_own(&clip, &turn, &clips);
        println!("{} -> {}", turn["transcript"], turn["reply"]);
    }
    server.all_units_free().await;
}

async fn talk_at_once(server: &Server, clips: &[Clip]) -> Vec<(Clip, serde_json::Value)> {
    let mut talkers = JoinSet::new();
    for clip in clips.iter().cloned() {
        let url = server.url();
        talkers.spawn(async move {
            let output = talk(&url, &["--input", clip.path.to_str().expect("UTF-8"), "--json"]).await;
            let printed = json_of(&output);
            (clip, printed)
        });
    }
    talkers.join_all().await
}

/// The transcript is that of the clip and of no other, and there is an answer.
fn is_own(clip: &Clip, turn: &serde_json::Value, clips: &[Clip]) {
    let heard = turn["transcript"].as_str().unwrap_or_else(|| panic!("no transcript in {turn}"));
    let own = word_errors(&clip.text, heard).rate();
    assert!(own <= OWN_ERRORS_MAX, "{}: heard {heard:?}, said was {:?}", clip.path.display(), clip.text);
    let others = clips.iter().filter(|other| other.path != clip.path);
    let closest = others
        .min_by(|a, b| word_errors(&a.text, heard).rate().total_cmp(&word_errors(&b.text, heard).rate()));
    let closest = closest.expect("there are other clips");
    let other = word_errors(&closest.text, heard).rate();
    assert!(
        own < other,
        "{}: heard {heard:?}, which is more like {}",
        clip.path.display(),
        closest.path.display()
    );
    assert!(turn["audio_s"].as_f64().is_some_and(|seconds| seconds > 0.1), "no answer: {turn}");
    assert!(turn["reply"].as_str().is_some_and(|reply| !reply.is_empty()), "no answer: {turn}");
}
