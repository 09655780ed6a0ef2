//! Random dialogues: any sequence of client events, stage events and time.

use std::time::Duration;

use antiphon::door::language::Language;
use antiphon::door::message::{
    AnswerEvent, CallPiece, CommitId, FailureCode, FinishReason, ResponseKey, SttEvent, TextChunk,
    TokenUsage, UtteranceId, VadEvent,
};
use antiphon::door::session::{Input, SessionConfig};
use proptest::prelude::*;
use proptest::sample::select;

use crate::bench::{Bench, Seen};
use crate::strict_client::StrictClient;

/// One thing that happens to a session.
#[derive(Clone, Debug)]
enum Happening {
    Message(String),
    Binary,
    Vad(VadEvent),
    Stt(SttEvent),
    Answer(ResponseKey, AnswerEvent),
    Audio(u32, usize),
    /// The client cuts one of the answers, the last one first, to so many milliseconds.
    Cut(usize, u32),
    Time(u64),
    Shutdown,
}

/// Messages of clients, sensible or not.
const MESSAGES: &[&str] = &[
    r#"{"type":"input_audio_buffer.append","audio":"AAAAAA=="}"#,
    r#"{"type":"input_audio_buffer.append","audio":"A"}"#,
    r#"{"type":"input_audio_buffer.commit","event_id":"c"}"#,
    r#"{"type":"input_audio_buffer.clear"}"#,
    r#"{"type":"response.create","event_id":"r"}"#,
    r#"{"type":"response.create","response":{"output_modalities":["text"],"metadata":{"a":"b"}}}"#,
    r#"{"type":"response.create","response":{"conversation":"none","input":[]}}"#,
    r#"{"type":"response.create","response":{"input":[{"type":"item_reference","id":"mine"}]}}"#,
    r#"{"type":"response.cancel"}"#,
    r#"{"type":"response.cancel","response_id":"resp_x"}"#,
    r#"{"type":"conversation.item.create","item":{"id":"mine","type":"message","role":"user","content":[{"type":"input_text","text":"hello there"}]}}"#,
    r#"{"type":"conversation.item.create","previous_item_id":"root","item":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"once upon a time"}]}}"#,
    r#"{"type":"conversation.item.delete","item_id":"mine"}"#,
    r#"{"type":"conversation.item.retrieve","item_id":"mine"}"#,
    r#"{"type":"conversation.item.truncate","item_id":"mine","content_index":0,"audio_end_ms":10}"#,
    r#"{"type":"output_audio_buffer.clear"}"#,
    r#"{"type":"session.update","session":{"audio":{"input":{"turn_detection":null}}}}"#,
    r#"{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"server_vad","interrupt_response":false}}}}}"#,
    r#"{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"create_response":false}}}}}"#,
    r#"{"type":"session.update","session":{"audio":null}}"#,
    r#"{"type":"session.update","session":{"audio":{"output":{"voice":"other"},"input":{"transcription":null}}}}"#,
    r#"{"type":"session.update","session":{"output_modalities":["text"],"max_output_tokens":7}}"#,
    r#"{"type":"response.create","response":{"conversation":"none","output_modalities":["text"],"input":[]}}"#,
    r#"{"type":"response.create","response":{"audio":{"output":{"format":{"type":"audio/pcmu"}}}}}"#,
    r#"{"type":"conversation.item.create","item":{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}}"#,
    r#"{"type":"conversation.item.create","item":{"type":"function_call_output","call_id":"c","output":"1"}}"#,
    r#"{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_audio","transcript":"hm"}]}}"#,
    r#"{"type":"session.update","session":{"tools":[{"type":"function","name":"f"}],"truncation":"disabled"}}"#,
    r#"{"type":"session.update","session":{"truncation":{"type":"retention_ratio","retention_ratio":0.4}}}"#,
    r#"{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"type":"server_vad","idle_timeout_ms":5000},"format":{"type":"audio/pcma"}}}}}"#,
    r#"{"type":"session.update","session":{"type":"transcription"}}"#,
    r#"{"type":"session.update","session":{"type":"realtime","audio":{"input":{"turn_detection":{"type":"semantic_vad"}}}}}"#,
    r#"{"type":"nonsense"}"#,
    r#"{"type""#,
];

fn truncate(item: &str, end_ms: u32) -> String {
    format!(
        r#"{{"type":"conversation.item.truncate","item_id":"{item}","content_index":0,"audio_end_ms":{end_ms}}}"#
    )
}

fn client_message() -> impl Strategy<Value = String> {
    proptest::sample::select(MESSAGES).prop_map(ToOwned::to_owned)
}

/// Returns events of the stages, sensible or not. Their numbers are small, so equal ones are frequent.
fn stage_event() -> impl Strategy<Value = Happening> {
    let utterance = || (0..4_u32).prop_map(UtteranceId);
    let commit = || (0..4_u32).prop_map(CommitId);
    let response = || (0..6_u32).prop_map(ResponseKey);
    let words = proptest::sample::select(&["", "hi ", "[noise]", "é🚀"][..])
        .prop_map(|text| TextChunk::split(text).0);
    let finish = proptest::sample::select(
        &[FinishReason::Stop, FinishReason::Length, FinishReason::ContentFilter][..],
    );
    prop_oneof![
        (utterance(), 0..5_000_u32).prop_map(move |(utterance, start_ms)| {
            Happening::Vad(VadEvent::SpeechStarted { utterance, start_ms })
        }),
        (utterance(), any::<u32>()).prop_map(move |(utterance, end_ms)| {
            Happening::Vad(VadEvent::SpeechStopped { utterance, end_ms })
        }),
        (utterance(), proptest::option::of(commit()), any::<u32>()).prop_map(
            move |(utterance, commit, audio_ms)| {
                Happening::Vad(VadEvent::Committed { utterance, commit, audio_ms })
            }
        ),
        commit().prop_map(move |commit| Happening::Vad(VadEvent::CommitRefused { commit, audio_ms: 3 })),
        (commit(), proptest::option::of(utterance()))
            .prop_map(move |(commit, utterance)| { Happening::Vad(VadEvent::Cleared { commit, utterance }) }),
        (utterance(), words.clone(), select(vec!["", "en", "fr-FR", "xx"]), any::<bool>()).prop_map(
            move |(utterance, chunk, code, last)| {
                let language = Language::new(code);
                Happening::Stt(SttEvent::Transcript { utterance, chunk, language, last })
            }
        ),
        utterance().prop_map(move |utterance| {
            Happening::Stt(SttEvent::Failed { utterance, code: FailureCode::SttFailed })
        }),
        (response(), words.clone())
            .prop_map(move |(response, chunk)| { Happening::Answer(response, AnswerEvent::Text(chunk)) }),
        (response(), 0..4_u8).prop_map(move |(response, piece)| {
            let chunk = TextChunk::split("{}").0;
            let piece = match piece {
                0 => CallPiece::Name(TextChunk::split("f").0),
                1 | 2 => CallPiece::Arguments(chunk),
                _ => CallPiece::End,
            };
            Happening::Answer(response, AnswerEvent::Call(piece))
        }),
        (response(), 0..500_usize).prop_map(|(response, samples)| Happening::Audio(response.0, samples)),
        (response(), finish).prop_map(move |(response, finish)| {
            Happening::Answer(response, AnswerEvent::End { finish, usage: TokenUsage::default() })
        }),
        (response(), words).prop_map(move |(response, detail)| {
            Happening::Answer(response, AnswerEvent::Failed { code: FailureCode::LlmStalled, detail })
        }),
    ]
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        12 => client_message().prop_map(Happening::Message),
        1 => Just(Happening::Binary),
        24 => stage_event(),
        3 => (0..3_usize, 0..60_u32).prop_map(|(back, end_ms)| Happening::Cut(back, end_ms)),
        3 => (0..4_000_u64).prop_map(Happening::Time),
        1 => Just(Happening::Shutdown),
    ]
}

/// Passes the outputs to the client; adds the ids of new answers to `answers`.
fn look(
    bench: &mut Bench,
    client: &mut StrictClient,
    answers: &mut Vec<String>,
) -> Result<(), TestCaseError> {
    for seen in bench.seen.drain(..) {
        if let Seen::Event(event) = &seen
            && event["type"] == "response.output_item.added"
        {
            answers.extend(event["item"]["id"].as_str().map(ToOwned::to_owned));
        }
        let judged = match &seen {
            Seen::Event(event) => client.event(event),
            Seen::Command(command) => client.command(command),
        };
        judged.map_err(TestCaseError::fail)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn no_dialogue_breaks_the_rules(
        happenings in proptest::collection::vec(happening(), 0..120),
        session_max in proptest::option::weighted(0.2, 1_u64..60_000),
        history_bytes_max in 0_usize..60,
    ) {
        let session_max = session_max.map(Duration::from_millis);
        let config = SessionConfig { session_max, history_bytes_max, ..SessionConfig::default() };
        let (mut bench, mut client) = (Bench::new(&config), StrictClient::default());
        let mut answers = Vec::new();
        look(&mut bench, &mut client, &mut answers)?;
        for happening in happenings {
            match happening {
                Happening::Message(text) => bench.message(&text),
                Happening::Binary => bench.binary(),
                Happening::Vad(event) => bench.handle(Input::Vad(event)),
                Happening::Stt(event) => bench.handle(Input::Stt(event)),
                Happening::Answer(response, event) => bench.handle(Input::Answer(response, event)),
                Happening::Audio(response, samples) => {
                    bench.audio(ResponseKey(response), &vec![7; samples]);
                }
                Happening::Cut(back, end_ms) => {
                    if let Some(answer) = answers.iter().rev().nth(back) {
                        bench.message(&truncate(answer, end_ms));
                    }
                }
                Happening::Time(ms) => bench.advance(Duration::from_millis(ms)),
                Happening::Shutdown => bench.handle(Input::Shutdown),
            }
            look(&mut bench, &mut client, &mut answers)?;
        }
        bench.handle(Input::Shutdown);
        bench.handle(Input::Shutdown);
        look(&mut bench, &mut client, &mut answers)?;
        client.at_end(true).map_err(TestCaseError::fail)?;
    }
}
