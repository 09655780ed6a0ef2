//! The smoke run of `cargo test --benches`: each case for a moment, with checks of its metrics.

use crate::event::{Event, Samples};
use crate::report::Line;
use crate::track::Track;
use crate::{Case, Lines};

async fn last(command: &str) -> anyhow::Result<Line> {
    let mut lines = Lines::default();
    Case::parse(command).run(&mut lines).await?;
    Ok(lines.last().clone())
}

pub(crate) async fn run() -> anyhow::Result<()> {
    events_of_others_are_understood()?;
    speech_lies_on_the_grid()?;
    let line = last("talk --sessions 4 --seconds 3.2 --calibration-rounds 1").await?;
    // 3.2 s are one round: one onset and one end of each.
    assert_eq!((line.count("onset_lag"), line.count("end_lag")), (4, 4));
    assert_eq!(line.number("unheard") + line.number("unanswered_probes") + line.number("faults"), 0.0);
    assert_eq!(line.count("first_audio"), 4);
    assert!(line.count("probe") >= 12, "{} probes", line.count("probe"));
    let line = last("talk --sessions 1,2 --seconds 3.2 --calibration-rounds 1 --chunk-ms 100").await?;
    assert!(line.number("sessions_max") <= 2.0);

    let line = last("outbound --sessions 2 --answers 2 --dur 3").await?;
    assert_eq!((line.number("audio"), line.number("incomplete")), (12.0, 0.0));
    assert_eq!(line.count("first_delta"), 4);
    let line = last("outbound --sessions 2 --answers 1 --dur 1 --rt 1 --stamp").await?;
    // 50 frames of 20 ms per session, and each frame has a stamp.
    assert_eq!(line.count("stage_to_socket"), 100);

    let line = last("flood --audio-s 30").await?;
    assert!(line.number("audio_per_cpu") > 0.0);

    let line = last("claim --calls 10").await?;
    assert!(line.count("connect_to_created") >= 5);
    assert_eq!(last("claim --fill --units 3").await?.count("connect_to_created"), 3);
    let line = last("refuse --calls 10 --units 2").await?;
    assert_eq!((line.count("connect_to_refusal"), line.number("other_close")), (10, 0.0));
    for by in ["close", "fin", "rst", "fin-in-answer", "fin-in-burst"] {
        let line = last(&format!("release --leavings 3 --units 2 --watch-pool --by {by}")).await?;
        assert_eq!((line.count("leave_to_next_session"), line.count("leave_to_pool_idle")), (3, 3));
    }
    let line = last("churn --clients 2 --units 1 --seconds 0.3").await?;
    assert!(line.number("claims") > 0.0);

    for how in ["", " --rt 1", " --barge-in", " --barge-in --rt 1"] {
        let line = last(&format!("cancel --cancels 3{how}")).await?;
        assert_eq!((line.number("after_done"), line.number("wrong_tag")), (0.0, 0.0), "cancel{how}");
        assert_eq!(line.count("stop_to_done") as f64 + line.number("too_late"), 3.0, "cancel{how}");
        assert!(line.number("next_samples") > 0.0, "cancel{how}");
    }

    let line = last("leak --seconds 2").await?;
    assert!(line.number("samples") > 0.0 && line.number("transcripts") > 0.0);
    for name in ["foreign_samples", "foreign_transcripts", "unsolicited"] {
        assert_eq!(line.number(name), 0.0, "{name}");
    }
    // The control: all samples and transcripts are found to be foreign.
    let line = last("leak --seconds 2 --control").await?;
    assert!(line.number("samples") > 0.0 && line.number("transcripts") > 0.0);
    assert_eq!(line.number("foreign_samples"), line.number("samples"));
    assert_eq!(line.number("foreign_transcripts"), line.number("transcripts"));

    let line = last("idle --sessions 1,4 --seconds 0.5").await?;
    assert!(line.number("rss_per_unit").is_finite());
    Ok(())
}

/// Checks events of servers that name, order, escape and leave out in other ways.
fn events_of_others_are_understood() -> anyhow::Result<()> {
    let text = r#"{"content_index":0,"delta":"AQACAAMA","response_id":"r","type":"response.audio.delta"}"#;
    let event = Event::parse(text)?;
    let mut samples = Samples::default();
    event.decode(&mut samples)?;
    assert!(event.is_audio() && event.response_id() == "r" && event.samples() == 3);
    assert_eq!(samples.iter().collect::<Vec<_>>(), [1, 2, 3]);
    assert_eq!(samples.stamps(2).count(), 0, "no frame of two samples holds eight bytes");

    let text =
        r#"{"type": "response.done", "response": {"id": "r", "status": "cancelled", "output": [{"x": 1}]}}"#;
    let event = Event::parse(text)?;
    assert_eq!((event.kind(), event.response_id(), event.status()), ("response.done", "r", "cancelled"));

    let text = r#"{"type":"error","event_id":"e","error":{"type":"t","message":"a \"b\"","code":null}}"#;
    let fault = Event::parse(text)?.error.map(|fault| fault.to_string());
    assert_eq!(fault.as_deref(), Some(r#"t : a "b""#));
    assert!(Event::parse("[]").is_err() && Event::parse("{}").is_err());
    Ok(())
}

fn speech_lies_on_the_grid() -> anyhow::Result<()> {
    let track = Track::new(&[], 100, 16_000)?;
    let third = track.utterance(2);
    assert_eq!((third.onset_ms, third.end_ms), (2 * 3_200 + 800, 2 * 3_200 + 1_440));
    assert_eq!((third.onset_chunk, third.end_chunk), (72, 78));
    assert_eq!(
        [0, 799, 800, 3_999, 4_000].map(|ms| track.begun_by(ms)),
        [None, None, Some(0), Some(0), Some(1)]
    );
    let clip = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/speech/austen-0880.wav");
    let track = Track::new(&[clip.into(), clip.into()], 20, 24_000)?;
    let (first, second) = (track.utterance(0), track.utterance(1));
    assert_eq!((second.onset_ms - first.onset_ms) % 800, 0);
    assert_eq!(second.end_ms - second.onset_ms, first.end_ms - first.onset_ms);
    assert!(Track::new(&[], 30, 24_000).is_err());
    Ok(())
}
