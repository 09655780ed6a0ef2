//! The door for the project's own tests and benches: the parts of the library that they reach.
//!
//! All other modules are private, so the compiler finds code that nothing calls. An item that stands here stays alive
//! without a caller in `src`; `tests/tidy` finds items here that no test and no bench uses either.
#![allow(missing_docs, reason = "modules that mirror those of the crate")]

pub mod audio {
    pub use crate::audio::{AudioFormat, Law, Resampler, SampleRate, pcm};
}
pub mod clock {
    pub use crate::clock::now;
}
pub mod config {
    pub use crate::config::{DEFAULT_INSTRUCTIONS, LlmApi};
}
pub mod edge {
    pub mod inbound {
        pub mod downlink {
            pub use crate::edge::inbound::downlink::{Downlink, Pulled};
        }
        pub mod uplink {
            pub use crate::edge::inbound::uplink::Uplink;
        }
    }
    pub mod outbound {
        pub mod http {
            pub use crate::edge::outbound::http::CallError;
        }
        pub mod llm {
            pub use crate::edge::outbound::llm::{
                ChatClient, ChatDelta, ChatEndpoint, ChatStream, ChatTimeouts, failure_code, failure_detail,
            };
        }
        pub mod llm_process {
            pub use crate::edge::outbound::llm_process::{LlmProcess, LlmProcessError, LlmProcessSettings};
        }
    }
}
pub mod language {
    pub use crate::language::Language;
}
pub mod limits {
    pub use crate::limits::{
        APPEND_BYTES_MAX, AUDIO_IN_ITEMS, CLAUSE_TEXT_BYTES, COMMIT_MS_MIN, DELTA_MS_MAX, MADE_MAX,
        PENDING_SAMPLES_MAX, PIECE_SAMPLES_MAX, READY_SAMPLES_MAX,
    };
}
pub mod message {
    pub use crate::message::{
        AnswerEvent, AnswerIn, AnswerOut, AnswerStamp, AudioFrame, AudioIn, CallPiece, Caller, ChatMessage,
        ChatRequest, CommitId, Envelope, Epoch, FRAME_SAMPLES, FailureCode, FinishReason, FunctionCall,
        FunctionTool, Generation, Moment, Rank, RateLimit, RateLimits, ReasoningEffort, ResponseKey,
        SPEECH_FRAME_SAMPLES, SpeechFrame, SpeechItem, SttEvent, TextChunk, TokenUsage, ToolChoice,
        TtsSettings, UnitId, UserPart, UtteranceId, VadEvent, VadMode, VadSettings, text_chunks,
    };
}
pub mod model {
    pub use crate::model::{
        DETECTOR_WINDOW, DetectorStream, ModelError, Speech, SpeechSource, SttModel, TtsModel, TurnModel,
        VadModel,
    };
    pub mod espeak {
        pub use crate::model::espeak::Espeak;
    }
    pub mod fake {
        pub use crate::model::fake::{EnergyVad, FakeStt};
    }
    #[cfg(feature = "builtin-llm")]
    pub mod llama {
        pub use crate::model::llama::{
            Completion, CompletionSink, CompletionUsage, End, Engine, EngineSettings, Limit, Sampling,
            Weights,
        };
    }
    pub mod moonshine {
        pub use crate::model::moonshine::{Moonshine, MoonshinePaths};
    }
    pub mod ort {
        pub use crate::model::ort::{Graph, GraphOptions, Library, Provider, Terminate};
    }
    pub mod piper {
        pub use crate::model::piper::Piper;
    }
    pub mod silero_vad {
        pub use crate::model::silero_vad::SileroVad;
    }
    pub mod smart_turn {
        pub use crate::model::smart_turn::SmartTurn;
    }
}
pub mod protocol {
    pub use crate::protocol::{
        Append, AudioDelta, Content, ConversationId, Decoded, Decoder, EventIds, Fault, Item, ItemId,
        ItemPlace, ItemStatus, MaxTokens, Modality, OnlyPart, ProtocolError, ResponseId, ResponseObject,
        ResponseStatus, ServerEvent, Usage, encode_audio_delta,
    };
}
pub mod rt {
    pub mod alloc {
        pub use crate::rt::alloc::{AllocPhase, HeapCalls, PhaseAllocator, foreign};
    }
    pub mod thread {
        pub use crate::rt::thread::ThreadSpec;
    }
}
pub mod session {
    pub use crate::session::{Command, Input, Output, Session, SessionConfig};
}
pub mod stage {
    pub use crate::stage::{
        Deadlines, Stage, SttStage, TtsStage, Urgency, VadStage, WorkerSpec, spawn_worker,
    };
}
pub mod store {
    pub use crate::store::{Artefact, Cache, ModelSet, WhenMissing, for_stderr};
}
pub mod talk {
    pub use crate::talk::{Question, Recording, TalkRate, Times, converse, store};
}
pub mod text {
    pub use crate::text::{DictionaryPhonemizer, Phonemize, WordErrors, normalise, word_errors};
}
pub mod unit {
    pub use crate::unit::{
        Bell, Bells, Drain, EdgeBell, GenerationCounter, PushError, Ringer, SlotState, StageBell, Stamp,
        UnitLease, UnitSlab, ring,
    };
}
