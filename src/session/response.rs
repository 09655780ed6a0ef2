//! One response from its creation to its only end, and the events that tell of it.

use crate::audio::{AudioFormat, SampleRate};
use crate::message::{
    ChatMessage, ChatRequest, CommitId, FailureCode, FinishReason, ResponseKey, SpeechOut, TokenUsage,
    ToolChoice, UtteranceId,
};
use crate::protocol::{
    AudioDelta, Content, ErrorObject, Fault, InputItem, Item, ItemId, ItemStatus, MaxTokens, Modality, Part,
    ResponseId, ResponseObject, ResponseRequest, ResponseStatus, ServerEvent, Speaker, StatusDetails, Usage,
    quoted,
};

use super::spoken::Spoken;
use super::{Command, Phase, Session};

/// The response that is running.
#[derive(Debug)]
pub(super) struct Response {
    key: ResponseKey,
    id: ResponseId,
    request: ResponseRequest,
    modality: Modality,
    tokens_max: MaxTokens,
    stage: Stage,
    /// Text whose deltas have been sent, and the audio beside it.
    spoken: Spoken,
    /// Its item; `None` until there is something to say.
    item: Option<ItemId>,
}

#[derive(Debug)]
enum Stage {
    /// What the user said before the response is not all transcribed; the model has not been asked.
    Waiting(Vec<Wait>),
    /// The model has been asked.
    Asked,
}

/// What a prompt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The detector's answer to a commit.
    Commit(CommitId),
    /// The transcript of an utterance.
    Transcript(UtteranceId),
}

impl Response {
    pub(super) const fn out_of_band(&self) -> bool {
        self.request.out_of_band
    }

    fn part(&self, item: &ItemId) -> Part {
        Part { response: self.id.clone(), item: item.clone() }
    }

    fn item_object(&self, id: &ItemId, status: ItemStatus) -> Item {
        let content = match (status, self.modality) {
            (ItemStatus::InProgress, _) => Content::Empty,
            (_, Modality::Audio) => Content::AssistantAudio(self.spoken.text().to_owned()),
            (_, Modality::Text) => Content::Text(vec![self.spoken.text().to_owned()]),
        };
        Item { id: id.clone(), status, speaker: Speaker::Assistant, content }
    }
}

impl Session {
    /// `response.create`.
    pub(super) fn create_response(&mut self, request: ResponseRequest) -> Result<(), Fault> {
        if self.phase != Phase::Open {
            return Err(Fault::ShuttingDown);
        }
        if let Some(active) = &self.response {
            return Err(Fault::ActiveResponse { active: active.id.to_string() });
        }
        for (at, item) in request.input.iter().flatten().enumerate() {
            if let InputItem::Reference(id) = item
                && !self.conversation.contains(id)
            {
                return Err(Fault::ItemNotFound {
                    param: format!("response.input[{at}].id"),
                    found: quoted(id),
                });
            }
        }
        self.start_response(request);
        Ok(())
    }

    pub(super) fn start_response(&mut self, request: ResponseRequest) {
        debug_assert!(self.response.is_none());
        let response = Response {
            key: ResponseKey(self.next_response),
            id: ResponseId::fresh(),
            modality: request.modality.unwrap_or(self.settings.output_modality),
            tokens_max: request.tokens_max.unwrap_or(self.settings.tokens_max),
            request,
            stage: Stage::Waiting(self.hearing.unsettled()),
            spoken: Spoken::default(),
            item: None,
        };
        self.next_response = self.next_response.wrapping_add(1);
        let object = self.response_object(&response, ResponseStatus::InProgress, None);
        self.send(ServerEvent::ResponseCreated(Box::new(object)));
        self.response = Some(response);
        self.ask_if_settled();
    }

    /// `response.cancel`.
    pub(super) fn cancel_response(&mut self, id: Option<&str>) -> Result<(), Fault> {
        let found = match (&self.response, id) {
            (Some(active), Some(id)) if active.id.as_str() != id => {
                format!("{} was asked for and {} is running", quoted(id), active.id)
            }
            (Some(_), _) => {
                // The client wants silence, also for what its cancelled response has kept waiting.
                self.owed = false;
                self.command(Command::BumpGeneration);
                self.stop_response(StatusDetails::ClientCancelled);
                return Ok(());
            }
            (None, _) => "none is running".to_owned(),
        };
        Err(Fault::NothingToCancel { found })
    }

    /// Something that the prompt may wait for has become something else, or is settled.
    pub(super) fn replace_wait(&mut self, from: Wait, to: Option<Wait>) {
        let Some(Response { stage: Stage::Waiting(waits), .. }) = &mut self.response else {
            return;
        };
        let Some(at) = waits.iter().position(|wait| *wait == from) else {
            return;
        };
        match to {
            Some(to) => waits[at] = to,
            None => {
                waits.swap_remove(at);
            }
        }
        self.ask_if_settled();
    }

    fn ask_if_settled(&mut self) {
        let Some(response) = &mut self.response else {
            return;
        };
        if !matches!(&response.stage, Stage::Waiting(waits) if waits.is_empty()) {
            return;
        }
        response.stage = Stage::Asked;
        // Everything that has been said is in the conversation now: this answer is the answer to it.
        self.owed &= response.out_of_band();
        let key = response.key;
        let tokens_max = match response.tokens_max {
            MaxTokens::Unlimited => None,
            MaxTokens::AtMost(tokens) => Some(tokens),
        };
        let spoken = response.modality == Modality::Audio;
        let messages = self.prompt();
        let request = Box::new(ChatRequest {
            messages,
            tools: Vec::new(),
            tool_choice: ToolChoice::Auto,
            tokens_max,
            spoken,
        });
        self.command(Command::Prompt { response: key, request });
    }

    /// What the model is to see: instructions, then the conversation or what the client gave instead of it.
    fn prompt(&mut self) -> Vec<ChatMessage> {
        let mut messages = Vec::new();
        let request = self.response.as_mut().map(|response| &mut response.request);
        let (instructions, input) =
            request.map_or((None, None), |request| (request.instructions.take(), request.input.take()));
        let instructions = instructions.unwrap_or_else(|| self.settings.instructions.clone());
        if !instructions.is_empty() {
            messages.push(ChatMessage::System(instructions));
        }
        match input {
            None => messages.extend(self.conversation.messages()),
            Some(input) => messages.extend(input.into_iter().filter_map(|item| match item {
                InputItem::Message(item) => Item::from(item).message(),
                InputItem::Reference(id) => self.conversation.message(&id),
            })),
        }
        messages
    }

    /// What TTS made, frames of audio excepted.
    pub(super) fn speech(&mut self, item: SpeechOut) {
        let running = |response: ResponseKey| {
            self.response
                .as_ref()
                .is_some_and(|active| active.key == response && matches!(active.stage, Stage::Asked))
        };
        match item {
            SpeechOut::Text { response, chunk, .. } if running(response) => self.text(chunk.as_str()),
            SpeechOut::End { response, finish, usage, .. } if running(response) => {
                let status = match finish {
                    FinishReason::Stop => ResponseStatus::Completed,
                    FinishReason::Length => ResponseStatus::Incomplete(StatusDetails::MaxOutputTokens),
                    FinishReason::ContentFilter => ResponseStatus::Incomplete(StatusDetails::ContentFilter),
                };
                self.finish_response(status, usage);
            }
            SpeechOut::Failed { response, code, detail, .. } if running(response) => {
                // What is still being made of it is for nobody.
                self.command(Command::BumpGeneration);
                self.finish_response(
                    ResponseStatus::Failed(failure(code, detail.as_str())),
                    TokenUsage::default(),
                );
            }
            SpeechOut::Audio { .. } => unreachable!("frames of audio go through Session::audio"),
            // Of a response that has ended: its client has been told, nothing follows.
            SpeechOut::Text { .. }
            | SpeechOut::Call { .. }
            | SpeechOut::RateLimits { .. }
            | SpeechOut::End { .. }
            | SpeechOut::Failed { .. }
            | SpeechOut::SessionEnd { .. } => {}
        }
    }

    /// Where `samples` samples at `rate` of `response` belong, and counts them as sent.
    ///
    /// The rule that keeps the order on the wire: there is an answer only when [`Session::poll`] has nothing
    /// left. On `None`, poll until it is empty; if that gave anything, ask again; if not, the frame is stale:
    /// drop it. So the first frame of a response, which opens its item, takes two calls, every other one.
    pub fn audio(
        &mut self,
        response: ResponseKey,
        samples: usize,
        rate: SampleRate,
    ) -> Option<AudioDelta<'_>> {
        debug_assert_eq!(rate, SampleRate::HZ_24K, "the only output rate of this version");
        let active = self.response.as_ref()?;
        if active.key != response
            || active.modality != Modality::Audio
            || !matches!(active.stage, Stage::Asked)
        {
            return None;
        }
        if active.item.is_none() {
            self.open_item();
        }
        if !self.outbox.is_empty() {
            return None;
        }
        self.has_spoken = true;
        let active = self.response.as_mut()?;
        active.spoken.send(samples as u64);
        Some(AudioDelta {
            response: &active.id,
            item: active.item.as_ref()?,
            output_index: 0,
            format: AudioFormat::DEFAULT,
        })
    }

    fn text(&mut self, delta: &str) {
        if delta.is_empty() {
            return;
        }
        self.open_item();
        let Some(response) = &mut self.response else {
            return;
        };
        response.spoken.push(delta);
        if let Some(item) = &response.item {
            let event = ServerEvent::TextDelta {
                part: response.part(item),
                kind: response.modality,
                delta: delta.to_owned(),
            };
            self.send(event);
        }
    }

    /// Announces the item of the running response, the first time.
    fn open_item(&mut self) {
        let Some(response) = self.response.as_mut().filter(|response| response.item.is_none()) else {
            return;
        };
        let id = response.item.insert(ItemId::fresh()).clone();
        let item = response.item_object(&id, ItemStatus::InProgress);
        let (part, kind, out_of_band) = (response.part(&id), response.modality, response.out_of_band());
        self.send(ServerEvent::OutputItemAdded {
            response: part.response.clone(),
            item: Box::new(item.clone()),
        });
        if !out_of_band {
            let previous = self.conversation.push(item.clone());
            self.send(ServerEvent::ItemAdded { item: Box::new(item), previous });
        }
        self.send(ServerEvent::ContentPartAdded { part, kind });
    }

    pub(super) fn stop_response(&mut self, reason: StatusDetails) {
        self.finish_response(ResponseStatus::Cancelled(reason), TokenUsage::default());
    }

    pub(super) fn fail_response(&mut self, kind: &'static str, code: &'static str, message: String) {
        self.finish_response(
            ResponseStatus::Failed(ErrorObject { kind, code, message }),
            TokenUsage::default(),
        );
    }

    /// The only end of a response: closes its item and says `response.done`. Usage is zero where it is not
    /// known.
    fn finish_response(&mut self, status: ResponseStatus, usage: TokenUsage) {
        let Some(response) = self.response.take() else {
            return;
        };
        let item = response.item.as_ref().map(|id| response.item_object(id, status.item_status()));
        if let Some(item) = &item {
            let (part, kind) = (response.part(&item.id), response.modality);
            if kind == Modality::Audio {
                self.send(ServerEvent::AudioDone { part: part.clone() });
            }
            let text = response.spoken.text().to_owned();
            self.send(ServerEvent::TextDone { part: part.clone(), kind, text: text.clone() });
            self.send(ServerEvent::ContentPartDone { part, kind, text });
            self.send(ServerEvent::OutputItemDone {
                response: response.id.clone(),
                item: Box::new(item.clone()),
            });
            // An item out of band is not in the conversation.
            if let Some((item, previous)) =
                self.conversation.finish(&item.id, item.status, item.content.clone())
            {
                if kind == Modality::Audio {
                    self.conversation.keep_spoken(&item.id, response.spoken.clone());
                }
                self.send(ServerEvent::ItemDone { item: Box::new(item), previous });
            }
        }
        let usage = Usage { input: usage.input, input_cached: usage.input_cached, output: usage.output };
        let object = self.response_object(&response, status, Some((item, usage)));
        self.send(ServerEvent::ResponseDone(Box::new(object)));
        match self.phase {
            Phase::Open => self.answer_if_owed(),
            Phase::Closing => self.end(Fault::ShuttingDown),
            Phase::Closed => {}
        }
    }

    fn response_object(
        &self,
        response: &Response,
        status: ResponseStatus,
        end: Option<(Option<Item>, Usage)>,
    ) -> ResponseObject {
        let (output, usage) = end.map_or((None, None), |(item, usage)| (item, Some(usage)));
        ResponseObject {
            id: response.id.clone(),
            conversation: (!response.out_of_band()).then(|| self.conversation.id.clone()),
            status,
            output: output.into_iter().collect(),
            modality: response.modality,
            tokens_max: response.tokens_max,
            voice: self.settings.voice.clone(),
            metadata: response.request.metadata.clone(),
            usage,
        }
    }
}

/// A failure in the client's words: what failed, and the beginning of what the model server said of it.
pub(super) fn failure(code: FailureCode, detail: &str) -> ErrorObject {
    let (code, what) = match code {
        FailureCode::SttFailed => ("stt_failed", "speech recognition failed".to_owned()),
        FailureCode::TtsFailed => ("tts_failed", "speech synthesis failed".to_owned()),
        FailureCode::StagePanicked => {
            ("internal_error", "the server made a mistake on this; it goes on".to_owned())
        }
        FailureCode::LlmUnreachable => ("llm_unreachable", "the language model cannot be reached".to_owned()),
        FailureCode::LlmStatus(status) => {
            ("llm_status", format!("the language model answered with HTTP status {status}"))
        }
        FailureCode::LlmFirstTokenTimeout => {
            ("llm_timeout", "the language model did not begin in time".to_owned())
        }
        FailureCode::LlmStalled => ("llm_stalled", "the language model stopped in the middle".to_owned()),
        FailureCode::LlmBrokenStream => (
            "llm_broken_stream",
            "the language model's answer broke off or is not what its API says".to_owned(),
        ),
    };
    let message = if detail.is_empty() { what } else { format!("{what}: {detail}") };
    ErrorObject { kind: "server_error", code, message }
}
