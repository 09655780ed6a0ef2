//! Stage threads take nothing from the heap: over a whole conversation on fake stages, counted by the server's own
//! allocator. (`it/speech` holds the same for the real models.)
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "a test starts threads and processes"
)]

#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "it/client.rs"]
mod client;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "it/server.rs"]
mod server;
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "it/signal.rs"]
mod signal;

use std::alloc::System;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};

use antiphon::door::rt::alloc::{AllocPhase, HeapCalls, PhaseAllocator, foreign};
use serde_json::{Value, json};

use client::Client;
use server::Server;
use signal::utterance;

#[global_allocator]
static ALLOCATOR: PhaseAllocator<System> = PhaseAllocator(System);

/// Runs `work` on a thread that has become static; its own and its foreign heap calls.
fn heap_calls(work: impl FnOnce() + Send) -> (u64, u64) {
    let calls: &'static HeapCalls = Box::leak(Box::new(HeapCalls::new("test".to_owned())));
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            AllocPhase::transition_from_init_to_static(calls);
            work();
            (calls.own(), calls.foreign())
        });
        thread.join().expect("the work does not panic")
    })
}

#[test]
fn the_counter_sees_each_heap_call_and_whose_it_is() {
    assert_eq!(
        heap_calls(|| {
            black_box([7; 1_000]);
        }),
        (0, 0)
    );
    assert_eq!(heap_calls(|| drop(black_box(Box::new(7)))), (2, 0), "alloc, dealloc");
    assert_eq!(heap_calls(|| drop(black_box(vec![0_u8; 1_000]))), (2, 0), "alloc_zeroed, dealloc");
    let grown = || {
        let mut text = black_box(String::with_capacity(1));
        text.push_str("more than one");
        drop(black_box(text));
    };
    assert_eq!(heap_calls(grown), (3, 0), "alloc, realloc, dealloc");
    let apart = || {
        let made = foreign(|| foreign(|| black_box(Box::new(7))));
        drop(made);
    };
    assert_eq!(heap_calls(apart), (1, 1), "made by the model, dropped by the engine");
    let after_a_panic = || {
        let model = || foreign(|| std::panic::resume_unwind(Box::new(())));
        drop(catch_unwind(AssertUnwindSafe(model)));
        let before = black_box(Box::new(7));
        drop(before);
    };
    let (own, _) = heap_calls(after_a_panic);
    assert!(own >= 2, "the phase is static again after a panic");
}

/// Reads until the end of the response that is running.
async fn done(client: &mut Client) -> Value {
    client.expect("response.done").await
}

/// Text, speech, barge-in, cancel, commit, clear, changes of the session and its formats; then the client leaves in the
/// middle of an answer.
async fn converse(server: &Server) {
    let mut client = Client::open(server.addr()).await;
    client.ask("say dur=2 tag=5 rt=0").await;
    assert_eq!(done(&mut client).await["response"]["status"], "completed");
    client.ask("Text becomes a tone.").await;
    assert_eq!(done(&mut client).await["response"]["status"], "completed");

    client.stream(&utterance(3_000)).await;
    assert_eq!(done(&mut client).await["response"]["status"], "completed");

    client.ask("say dur=60 tag=6 rt=1").await;
    client.expect("response.output_audio.delta").await;
    client.stream(&utterance(4_000)).await;
    assert_eq!(done(&mut client).await["response"]["status"], "cancelled");
    assert_eq!(done(&mut client).await["response"]["status"], "completed");

    client.ask("say dur=60 tag=7 rt=10").await;
    client.expect("response.output_audio.delta").await;
    client.send(&json!({ "type": "response.cancel" })).await;
    assert_eq!(done(&mut client).await["response"]["status"], "cancelled");

    client.update(json!({ "audio": { "input": { "turn_detection": null } } })).await;
    client.stream(&utterance(5_000)).await;
    client.send(&json!({ "type": "input_audio_buffer.commit" })).await;
    client.expect("conversation.item.input_audio_transcription.completed").await;
    client.stream(&utterance(5_000)).await;
    client.send(&json!({ "type": "input_audio_buffer.clear" })).await;
    client.expect("input_audio_buffer.cleared").await;

    for format in [json!({ "type": "audio/pcmu" }), json!({ "type": "audio/pcm", "rate": 48_000 })] {
        let (input, output) =
            (json!({ "format": format, "turn_detection": null }), json!({ "format": format }));
        client.update(json!({ "audio": { "input": input, "output": output } })).await;
        client.stream(&utterance(5_000)).await;
        client.send(&json!({ "type": "input_audio_buffer.commit" })).await;
        client.expect("conversation.item.input_audio_transcription.completed").await;
        client.ask("Text becomes a tone.").await;
        assert_eq!(done(&mut client).await["response"]["status"], "completed");
    }

    client.ask("say dur=60 tag=8 rt=1").await;
    client.expect("response.output_audio.delta").await;
    client.cut();
    server.all_units_free().await;
}

#[tokio::test]
async fn a_whole_conversation_takes_nothing_from_the_heap() {
    let server = Server::fake(2).await;
    for _ in 0..3 {
        converse(&server).await;
    }
    let calls = server.engine_heap_calls().await;
    for stage in ["vad", "stt", "tts"] {
        assert!(calls.keys().any(|thread| thread.starts_with(stage)), "no {stage} thread in {calls:?}");
    }
    assert!(calls.values().all(|&calls| calls == 0), "heap calls of stage threads: {calls:?}");
}
