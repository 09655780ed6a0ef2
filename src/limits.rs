//! The capacities of the engine: rings, buffers of a unit, threads, and the times that bound a session. A sum has a
//! comment per term. None of the capacities grows after start. A bound of one parser or one HTTP call stands beside
//! that parser or call.

use crate::audio::{ONSET_WINDOWS, SampleRate};
use crate::message::{
    AnswerIn, AnswerOut, AudioIn, Envelope, FRAME_SAMPLES, SPEECH_FRAME_SAMPLES, SpeechItem, SttEvent,
    VadEvent,
};

/// Most units of one server. `UnitId` is 16 bits wide, and each wake-up walks a bit set per stage.
pub const UNITS_MAX: u16 = 16_384;

/// Most worker threads of one stage: one bit each in a word of its doorbell.
pub const WORKERS_MAX: u16 = 64;

/// Most slots of the built-in language model. Source: `LLAMA_MAX_SEQ` of llama.cpp's `llama-cparams.h` is 256; one sequence
/// holds the instructions.
pub const LLM_SLOTS_MAX: u16 = 255;

/// Longest clause of text that goes to TTS at once, bytes. The clause splitter cuts before it.
pub const CLAUSE_BYTES_MAX: usize = 400;

/// Longest audio of one clause: 400 bytes are about 70 words, 30 s at a slow voice's pace.
pub const CLAUSE_SECONDS_MAX: usize = 40;

/// Room for the text of a clause, and for its phonemes. Phonemes that do not fit grow the buffer once, inside the model
/// call.
pub const CLAUSE_TEXT_BYTES: usize = 1_024;

/// Numbers that the voice makes of a clause before they are sound: 58 s of latent frames of a voice that is cut into
/// pieces, or 40 s of samples at 24 kHz of another one.
pub const MADE_MAX: usize = CLAUSE_SECONDS_MAX * 24_000;

/// Most samples of one piece of a clause: 48 frames of a Piper voice, half a second.
pub const PIECE_SAMPLES_MAX: usize = 48 * 256;

/// Longest utterance that is kept in one piece; a longer one is transcribed in pieces.
const UTTERANCE_SECONDS_MAX: usize = 30;

/// Samples of one utterance at 16 kHz.
pub const UTTERANCE_SAMPLES_MAX: usize = UTTERANCE_SECONDS_MAX * 16_000;

/// Largest audio of one append, bytes decoded. Source: OpenAI Realtime reference, `input_audio_buffer.append`.
pub const APPEND_BYTES_MAX: usize = 15 * 1_024 * 1_024;

/// Largest WebSocket message. The largest append is 20 MiB of base64. A larger append up to this size gets an error
/// event and the session continues; beyond this size the socket is closed with 1009.
pub const MESSAGE_BYTES_MAX: usize = 32 * 1_024 * 1_024;

/// Longest audio that is kept before an onset.
pub const PREFIX_MS_MAX: u32 = 2_000;

/// Shortest audio that a client may commit. Source: OpenAI Realtime API, error of `input_audio_buffer.commit`.
pub const COMMIT_MS_MIN: u32 = 100;

/// Detector windows that the VAD stage keeps for a look back.
pub const HISTORY_WINDOWS: usize = (PREFIX_MS_MAX as usize * 16).div_ceil(SPEECH_FRAME_SAMPLES) // prefix padding
    + ONSET_WINDOWS                                                                            // onset not yet confirmed
    + 1; // the window that the prefix begins in

/// Capacity of `audio_in`, in frames of up to [`FRAME_SAMPLES`]; times at 24 kHz. An append that finds no room waits at
/// the edge.
pub const AUDIO_IN_ITEMS: usize = 25 // half a second that a client sends in one piece
    + 25                             // VAD workers are late by this much
    + 2; // a commit and a clear beside it

/// Capacity of `speech`, in windows of 32 ms.
pub const SPEECH_ITEMS: usize = HISTORY_WINDOWS // everything before the onset goes out at once
    + 8_000 / 32                                // STT workers are with other units for up to 8 s
    + SPEECH_BURST; // items of one window

/// Items that one window may add to `speech` besides the look-back: end and start of a cut utterance, a frame.
pub const SPEECH_BURST: usize = 4;

/// 16 kHz samples that wait in VAD for their window.
pub const PENDING_SAMPLES_MAX: usize = SPEECH_FRAME_SAMPLES - 1 // not quite a window
    + 2 * FRAME_SAMPLES // a frame at the lowest rate, 8 kHz
    + 256; // the resampler's tail at a change of rate, 49 at most

/// Model samples that TTS puts into its resampler at once.
pub const RESAMPLE_SAMPLES: usize = 96;

/// Samples at the session's rate that wait in TTS for room.
pub const READY_SAMPLES_MAX: usize = FRAME_SAMPLES - 1 // not quite a frame
    + 6 * PIECE_SAMPLES_MAX // from the lowest rate of a voice, 8 kHz, to 48 kHz
    + 256; // the resampler's tail, 145 at most

/// Capacity of VAD's half of `text_events`.
pub const VAD_EVENT_ITEMS: usize = 24 // turns that end while the edge task is late
    + VAD_EVENT_BURST; // events of one window

/// Events that one window or marker may cause: stopped, committed, started.
pub const VAD_EVENT_BURST: usize = 4;

/// Capacity of STT's half of `text_events`, in chunks of up to 240 bytes.
pub const STT_EVENT_ITEMS: usize = 2 * TRANSCRIPT_ITEMS;

/// Chunks of the longest transcript of one piece: 30 s at 6.5 tokens a second and 7 bytes a token, and the failure.
pub const TRANSCRIPT_ITEMS: usize = (30 * 65 / 10 * 7usize).div_ceil(crate::message::TEXT_CHUNK_BYTES) + 1;

/// Bytes of the longest transcript of one piece.
pub const TRANSCRIPT_BYTES_MAX: usize = (TRANSCRIPT_ITEMS - 1) * crate::message::TEXT_CHUNK_BYTES;

/// Capacity of `text_prompts`: one response at a time, and one that was just cancelled.
pub const TEXT_PROMPT_ITEMS: usize = 4;

/// Capacity of `answer_in`: pieces of text between the model server's answer and the voice.
pub const ANSWER_IN_ITEMS: usize = 96;

/// Capacity of `answer_out`, in frames of up to [`FRAME_SAMPLES`] and events between them; times at 24 kHz. The voice
/// is ahead of the socket by this much.
pub const ANSWER_OUT_ITEMS: usize = 350 // 7 s of audio, 3.5 s at 48 kHz: longer than a worker's calls for others
    + 16; // text and end events

/// Longest audio of one `response.output_audio.delta`.
pub const DELTA_MS_MAX: u32 = 100;

/// Samples of one delta at the highest rate, 48 kHz.
pub const DELTA_SAMPLES_MAX: usize = DELTA_MS_MAX as usize * 48;

/// Longest drain. A unit whose drain takes longer goes into quarantine.
pub const DRAIN_MS_MAX: u64 = 10_000;

/// Longest wait of a new client for a draining unit, when no other is free. The unit's markers may stand behind a model
/// call of another unit, a sentence at the voice at most.
pub const CLAIM_WAIT_MS: u64 = 1_000;

/// Longest time for which a client may leave sent data unread. After that the client is disconnected.
pub const SLOW_READER_MS_MAX: u64 = 15_000;

/// Interval of the server's pings, by which middle boxes and dead peers are noticed.
pub const PING_MS: u64 = 20_000;

/// Longest time for which a stopping server waits for running answers.
pub const SHUTDOWN_MS_MAX: u64 = 10_000;

const _: () = {
    assert!(PIECE_SAMPLES_MAX > FRAME_SAMPLES);
    assert!(
        FRAME_SAMPLES as u64 <= SampleRate::HZ_8K.samples_in(DELTA_MS_MAX),
        "a delta holds a frame at every rate"
    );
    assert!(AUDIO_IN_ITEMS > 3 && SPEECH_ITEMS > HISTORY_WINDOWS + SPEECH_BURST);
};

/// Returns the reserved memory of one unit, bytes. Pages that have not been written cost nothing.
#[must_use]
pub const fn bytes_per_unit() -> usize {
    AUDIO_IN_ITEMS * size_of::<Envelope<AudioIn>>()
        + SPEECH_ITEMS * size_of::<Envelope<SpeechItem>>()
        + VAD_EVENT_ITEMS * size_of::<Envelope<VadEvent>>()
        + STT_EVENT_ITEMS * size_of::<Envelope<SttEvent>>()
        + ANSWER_IN_ITEMS * size_of::<Envelope<AnswerIn>>()
        + ANSWER_OUT_ITEMS * size_of::<Envelope<AnswerOut>>()
        + HISTORY_WINDOWS * SPEECH_FRAME_SAMPLES * size_of::<i16>() // VAD's look-back
        + UTTERANCE_SAMPLES_MAX * size_of::<i16>()                  // STT's utterance
        + MADE_MAX * size_of::<f32>()                               // TTS's clause
        + READY_SAMPLES_MAX * size_of::<i16>() // TTS's samples
}
