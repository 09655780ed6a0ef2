//! Random dialogues with stages that keep their promises. No item and no response may be left open at the end.

use std::collections::VecDeque;

use antiphon::door::message::{
    AnswerEvent, CommitId, FailureCode, FinishReason, ResponseKey, SttEvent, TextChunk, TokenUsage,
    UtteranceId, VadEvent, text_chunks,
};
use antiphon::door::session::{Input, SessionConfig};
use proptest::prelude::*;
use serde_json::Value;

use crate::bench::{Bench, Seen};
use crate::strict_client::StrictClient;

/// One step of a dialogue, without effect if it does not apply.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// A message of the client.
    Client(&'static str),
    /// The user begins to speak, or ends the turn.
    Speech,
    /// The detector takes the next command out of the audio ring.
    Detector,
    /// The recogniser finishes one utterance: with words, without words, or with a failure.
    Recogniser(usize, Heard),
    /// A piece of the running answer comes, as text or audio.
    Voice(bool),
    /// The running answer is complete, or fails.
    AnswerEnds(bool),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Heard {
    Words,
    Noise,
    Failure,
}

const MESSAGES: &[&str] = &[
    r#"{"type":"input_audio_buffer.commit"}"#,
    r#"{"type":"input_audio_buffer.clear"}"#,
    r#"{"type":"response.create"}"#,
    r#"{"type":"response.create","response":{"conversation":"none"}}"#,
    r#"{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"interrupt_response":false}}}}}"#,
    r#"{"type":"session.update","session":{"audio":{"input":{"turn_detection":{"interrupt_response":true}}}}}"#,
    r#"{"type":"conversation.item.create","item":{"type":"message","role":"user","content":[{"type":"input_text","text":"typed"}]}}"#,
];

fn step() -> impl Strategy<Value = Step> {
    let heard = proptest::sample::select(&[Heard::Words, Heard::Words, Heard::Noise, Heard::Failure][..]);
    prop_oneof![
        2 => proptest::sample::select(MESSAGES).prop_map(Step::Client),
        4 => Just(Step::Speech),
        3 => Just(Step::Detector),
        4 => (any::<usize>(), heard).prop_map(|(which, heard)| Step::Recogniser(which, heard)),
        4 => any::<bool>().prop_map(Step::Voice),
        2 => proptest::bool::weighted(0.2).prop_map(Step::AnswerEnds),
    ]
}

/// The session, with stages that do what `message` promises.
struct World {
    bench: Bench,
    client: StrictClient,
    /// The utterance that is going on.
    open: Option<UtteranceId>,
    next_utterance: u32,
    /// Commits (`true`) and clears in the audio ring.
    audio_ring: VecDeque<(bool, CommitId)>,
    /// Utterances at the recogniser, each with true if the detector ended it.
    at_recogniser: Vec<(UtteranceId, bool)>,
    /// Prompts since the last bump.
    prompts: VecDeque<ResponseKey>,
    /// Words of the user in turns that are to be answered, and the prompts for the models.
    said: Vec<String>,
    asked: String,
}

impl World {
    fn new() -> Self {
        let config = SessionConfig { history_bytes_max: usize::MAX, ..SessionConfig::default() };
        let mut world = Self {
            bench: Bench::new(&config),
            client: StrictClient::default(),
            open: None,
            next_utterance: 0,
            audio_ring: VecDeque::new(),
            at_recogniser: Vec::new(),
            prompts: VecDeque::new(),
            said: Vec::new(),
            asked: String::new(),
        };
        world.look();
        world
    }

    fn step(&mut self, step: Step) {
        match step {
            Step::Client(message) => self.bench.message(message),
            Step::Speech => self.speech(),
            Step::Detector => self.detector(),
            Step::Recogniser(which, heard) => self.recogniser(which, heard),
            Step::Voice(audio) => self.voice(audio),
            Step::AnswerEnds(fails) => self.answer_ends(fails),
        }
        self.look();
    }

    /// Passes the outputs on: the client reads all of them, and the stages get their commands.
    fn look(&mut self) {
        for seen in self.bench.seen.drain(..) {
            match &seen {
                Seen::Event(event) => self.client.event(event).expect("the rules"),
                Seen::Command(command) => self.client.command(command).expect("the rules"),
            }
            let Seen::Command(command) = seen else {
                continue;
            };
            let id =
                |value: &Value| u32::try_from(value.as_u64().expect("a number")).expect("a small number");
            if let Some(commit) = command.get("commit") {
                self.audio_ring.push_back((true, CommitId(id(commit))));
            } else if let Some(clear) = command.get("clear") {
                self.audio_ring.push_back((false, CommitId(id(clear))));
            } else if command.get("bump_generation").is_some() {
                self.prompts.clear();
            } else if let Some(prompt) = command.get("prompt") {
                self.prompts.push_back(ResponseKey(id(&prompt["response"])));
                self.asked.push_str(&prompt["messages"].to_string());
            }
        }
    }

    fn speech(&mut self) {
        if let Some(utterance) = self.open.take() {
            self.bench.handle(Input::Vad(VadEvent::SpeechStopped { utterance, end_ms: 800 }));
            self.commit(utterance, None);
        } else {
            let utterance = UtteranceId(self.next_utterance);
            self.open = Some(utterance);
            self.next_utterance += 1;
            self.bench.handle(Input::Vad(VadEvent::SpeechStarted { utterance, start_ms: 0 }));
        }
    }

    fn commit(&mut self, utterance: UtteranceId, commit: Option<CommitId>) {
        let event = VadEvent::Committed { utterance, commit, audio_ms: 800 };
        self.bench.handle(Input::Vad(event));
        self.at_recogniser.push((utterance, commit.is_none()));
    }

    fn detector(&mut self) {
        match (self.audio_ring.pop_front(), self.open.take()) {
            (Some((true, commit)), Some(utterance)) => self.commit(utterance, Some(commit)),
            (Some((true, commit)), None) => {
                self.bench.handle(Input::Vad(VadEvent::CommitRefused { commit, audio_ms: 0 }));
            }
            (Some((false, commit)), utterance) => {
                self.bench.handle(Input::Vad(VadEvent::Cleared { commit, utterance }));
            }
            (None, open) => self.open = open,
        }
    }

    fn recogniser(&mut self, which: usize, heard: Heard) {
        if self.at_recogniser.is_empty() {
            return;
        }
        let (utterance, by_detector) = self.at_recogniser.remove(which % self.at_recogniser.len());
        if heard == Heard::Failure {
            self.bench.handle(Input::Stt(SttEvent::Failed { utterance, code: FailureCode::SttFailed }));
            return;
        }
        let words =
            if heard == Heard::Words { format!("utterance {};", utterance.0) } else { "[noise]".to_owned() };
        for (chunk, last) in text_chunks(&words) {
            let language = None;
            self.bench.handle(Input::Stt(SttEvent::Transcript { utterance, chunk, language, last }));
        }
        if by_detector && heard == Heard::Words {
            self.said.push(words);
        }
    }

    fn voice(&mut self, audio: bool) {
        let Some(&response) = self.prompts.front() else {
            return;
        };
        if audio {
            assert!(self.bench.audio(response, &[1; 480]), "a frame of the running answer was dropped");
        } else {
            let (chunk, _) = TextChunk::split("word ");
            self.bench.handle(Input::Answer(response, AnswerEvent::Text(chunk)));
        }
    }

    fn answer_ends(&mut self, fails: bool) {
        let Some(response) = self.prompts.pop_front() else {
            return;
        };
        let (finish, usage) = (FinishReason::Stop, TokenUsage::default());
        let (code, detail) = (FailureCode::LlmStalled, TextChunk::split("").0);
        let event = match fails {
            false => AnswerEvent::End { finish, usage },
            true => AnswerEvent::Failed { code, detail },
        };
        self.bench.handle(Input::Answer(response, event));
    }

    /// Lets the user and the stages finish all open work.
    fn come_to_rest(&mut self) {
        for _ in 0..1_000 {
            if self.open.is_some() {
                self.step(Step::Speech);
            } else if !self.audio_ring.is_empty() {
                self.step(Step::Detector);
            } else if !self.at_recogniser.is_empty() {
                self.step(Step::Recogniser(0, Heard::Words));
            } else if !self.prompts.is_empty() {
                self.step(Step::AnswerEnds(false));
            } else {
                return;
            }
        }
        panic!("it goes on for ever");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]
    #[test]
    fn nothing_is_left_hanging(steps in proptest::collection::vec(step(), 0..150)) {
        let mut world = World::new();
        for step in steps {
            world.step(step);
        }
        world.come_to_rest();
        prop_assert_eq!(world.client.unsettled(), Vec::<String>::new());
        for words in &world.said {
            prop_assert!(world.asked.contains(words), "{} was never answered", words);
        }
    }
}
