//! Responses of a session: their start, their prompt and their end.

use crate::audio::SampleRate;
use crate::language::Language;
use crate::message::{
    AnswerEvent, ChatRequest, FinishReason, ResponseKey, TokenUsage, ToolChoice, TtsSettings,
};
use crate::protocol::{
    ErrorObject, Fault, InputItem, Item, ItemBody, MaxTokens, Modality, ResponseRequest, ResponseStatus,
    ServerEvent, SessionKind, StatusDetails, Usage, quoted,
};

use super::conversation::Conversation;
use super::outbox::Outbox;
use super::response::{PendingPrompt, Response, Wait, failure};
use super::timer::Timer;
use super::{ASIDES_MAX, Command, Phase, Session, prompt, settings};
use crate::message::ChatMessage;

impl Session {
    /// Handles `response.create`.
    pub(super) fn create_response(&mut self, request: ResponseRequest) -> Result<(), Fault> {
        if self.phase != Phase::Open {
            return Err(Fault::ShuttingDown);
        }
        if self.settings.kind == SessionKind::Transcription {
            return Err(Fault::NoResponses);
        }
        let modality = request.modality.unwrap_or(self.settings.output_modality);
        let aside = request.out_of_band && modality == Modality::Text;
        match &self.response {
            Some(active) if !aside => return Err(Fault::ActiveResponse { active: active.id.to_string() }),
            _ if aside && self.asides.len() >= ASIDES_MAX => {
                return Err(Fault::TooManyResponses { running: self.asides.len() });
            }
            _ => {}
        }
        if self.fixed.voice
            && modality == Modality::Audio
            && let Some(asked) = request.voice.as_ref().filter(|asked| **asked != self.settings.voice)
        {
            let (current, param) = (self.settings.voice.clone(), "response.audio.output.voice");
            return Err(Fault::VoiceFixed { current, asked: quoted(asked), param });
        }
        self.check_input(request.input.as_deref().unwrap_or_default())?;
        self.start_response(request);
        Ok(())
    }

    /// Checks that the model accepts these items: they exist, it accepts their images, and outputs follow their calls.
    fn check_input(&self, input: &[InputItem]) -> Result<(), Fault> {
        let mut calls: Vec<&str> = Vec::new();
        for (at, item) in input.iter().enumerate() {
            let body = match item {
                InputItem::Own(item) => &item.body,
                InputItem::Reference(id) => {
                    let missing = |_| Fault::ItemNotFound {
                        code: "response_create_invalid_item_id",
                        param: format!("response.input[{at}].id"),
                        found: quoted(id),
                    };
                    &self.conversation.item(id).map_err(missing)?.body
                }
            };
            self.check_images(body, "response.input")?;
            match body {
                ItemBody::Message { .. } => {}
                ItemBody::Call(call) => calls.push(&call.call_id),
                ItemBody::Output { call_id, .. } => {
                    let Some(call) = calls.iter().position(|call| call == call_id) else {
                        let param = format!("response.input[{at}].call_id");
                        return Err(Fault::CallNotFound { param, found: quoted(call_id) });
                    };
                    calls.swap_remove(call);
                }
            }
        }
        Ok(())
    }

    pub(super) fn start_response(&mut self, request: ResponseRequest) {
        let ResponseRequest {
            instructions,
            modality,
            tokens_max,
            tools,
            tool_choice,
            parallel_tool_calls,
            reasoning,
            format,
            voice,
            metadata,
            out_of_band,
            input,
        } = request;
        let settings = &self.settings;
        let pending = PendingPrompt {
            waits: self.hearing.unsettled(),
            instructions,
            input,
            tools: tools.unwrap_or_else(|| settings.tools.clone()),
            tool_choice: tool_choice.unwrap_or_else(|| settings.tool_choice.clone()),
            parallel_tool_calls: parallel_tool_calls.or(settings.parallel_tool_calls),
            reasoning: reasoning.or(settings.reasoning),
        };
        let mut response = Response::new(ResponseKey(self.next_response), pending);
        self.next_response = self.next_response.wrapping_add(1);
        response.out_of_band = out_of_band;
        response.modality = modality.unwrap_or(settings.output_modality);
        response.tokens_max = tokens_max.unwrap_or(settings.tokens_max);
        let default_rate = self.defaults.output_format.rate();
        response.format = format.map_or(settings.output_format, |named| named.at(default_rate));
        response.voice = voice.unwrap_or_else(|| settings.voice.clone());
        response.metadata = metadata;
        let created = response.object(&self.conversation, ResponseStatus::InProgress, None);
        self.send(ServerEvent::ResponseCreated { response: created });
        let key = response.key;
        if response.is_aside() {
            self.asides.push(response);
        } else {
            debug_assert!(self.response.is_none());
            self.timers.stop(Timer::Idle);
            self.response = Some(response);
        }
        self.ask_if_settled(key);
    }

    /// Handles `response.cancel`.
    pub(super) fn cancel_response(&mut self, id: Option<&str>) -> Result<(), Fault> {
        if let Some(id) = id
            && let Some(aside) = self.asides.iter().find(|aside| aside.id.as_str() == id)
        {
            let key = aside.key;
            self.finish_response(key, ResponseStatus::Cancelled(StatusDetails::ClientCancelled), None);
            return Ok(());
        }
        let found = match (&self.response, id) {
            (Some(active), Some(id)) if active.id.as_str() != id => {
                format!("{} was asked for and {} is running", quoted(id), active.id)
            }
            (Some(_), _) => {
                // The client wants silence, also instead of an answer that waited for the cancelled response.
                self.unanswered.is_owed = false;
                self.command(Command::BumpGeneration);
                self.stop_response(StatusDetails::ClientCancelled);
                return Ok(());
            }
            (None, _) => "none is running".to_owned(),
        };
        Err(Fault::NothingToCancel { found })
    }

    /// Replaces a wait of the prompts, or removes it with `None`. A prompt without waits is sent.
    pub(super) fn replace_wait(&mut self, from: Wait, to: Option<Wait>) {
        let mut settled = Vec::new();
        for response in self.response.iter_mut().chain(&mut self.asides) {
            let Some(pending) = &mut response.pending else { continue };
            let Some(at) = pending.waits.iter().position(|wait| *wait == from) else { continue };
            match to {
                Some(to) => pending.waits[at] = to,
                None => {
                    pending.waits.swap_remove(at);
                    settled.push(response.key);
                }
            }
        }
        for key in settled {
            self.ask_if_settled(key);
        }
    }

    /// Asks the model once the prompt of the response waits for nothing.
    fn ask_if_settled(&mut self, key: ResponseKey) {
        let Some(response) = self.response.iter_mut().chain(&mut self.asides).find(|it| it.key == key) else {
            return;
        };
        let Some(pending) = response.pending.take_if(|pending| pending.waits.is_empty()) else {
            return;
        };
        if !response.out_of_band {
            // All speech is in the conversation now: this answer is the answer to it.
            response.heard_ms = std::mem::take(&mut self.unanswered).audio_ms;
        }
        let reads_conversation = pending.input.is_none();
        let tokens_max = match response.tokens_max {
            MaxTokens::Unlimited => None,
            MaxTokens::AtMost(tokens) => Some(tokens),
        };
        let (spoken, aside) = (response.modality == Modality::Audio, response.is_aside());
        let language = settings::set_language(&self.settings).or(self.user_language.last());
        let voice = TtsSettings { rate: response.format.rate(), speed: self.settings.speed, language };
        if reads_conversation && self.conversation.is_too_long() {
            let (kind, code) = ("invalid_request_error", "context_length_exceeded");
            let message = "the conversation is longer than the model can read, and truncation is disabled";
            let error = ErrorObject { kind, code, message: message.to_owned() };
            self.finish_response(key, ResponseStatus::Failed(error), None);
            return;
        }
        let PendingPrompt { instructions, input, tools, tool_choice, parallel_tool_calls, reasoning, .. } =
            *pending;
        let told = language.filter(|_| self.language_prompt && reads_conversation);
        let messages = self.messages(instructions, input, told);
        let tool_choice = if tools.is_empty() { ToolChoice::Auto } else { tool_choice };
        let request = Box::new(ChatRequest {
            messages,
            tools,
            tool_choice,
            parallel_tool_calls,
            reasoning,
            tokens_max,
            spoken,
        });
        if aside {
            self.command(Command::Aside { response: key, request });
            return;
        }
        if spoken && voice != self.voice {
            self.voice = voice;
            self.command(Command::TtsSettings(voice));
        }
        self.command(Command::Prompt { response: key, request });
    }

    /// Returns the messages of a prompt: instructions with the user's `language`, then the conversation or the client's
    /// `input` instead of it.
    fn messages(
        &self,
        instructions: Option<String>,
        input: Option<Vec<InputItem>>,
        language: Option<Language>,
    ) -> Vec<ChatMessage> {
        let mut messages = Vec::new();
        let mut instructions = instructions.unwrap_or_else(|| self.settings.instructions.clone());
        if let Some(language) = language.and_then(|language| language.name()) {
            let gap = if instructions.is_empty() { "" } else { "\n\n" };
            instructions += &format!("{gap}The user speaks {language}. Answer in {language}.");
        }
        if !instructions.is_empty() {
            messages.push(ChatMessage::System(instructions));
        }
        match input {
            None => messages.extend(self.conversation.messages()),
            Some(input) => {
                let items = input.into_iter().filter_map(|item| match item {
                    InputItem::Own(item) => Some(Item::from(item)),
                    // The item may have been deleted while the response waited.
                    InputItem::Reference(id) => self.conversation.item(&id).ok().cloned(),
                });
                let items: Vec<_> = items.collect();
                messages.extend(prompt::messages(items.iter()));
            }
        }
        messages
    }

    /// Handles the next event of the answer to `response`. Events of a response that has ended are dropped.
    pub(super) fn answer_event(&mut self, response: ResponseKey, event: AnswerEvent) {
        match event {
            AnswerEvent::Text(chunk) => self.with(response, |response, outbox, conversation| {
                response.text(chunk.as_str(), outbox, conversation);
            }),
            AnswerEvent::Call(piece) => self.with(response, |response, outbox, conversation| {
                response.call(&piece, outbox, conversation);
            }),
            AnswerEvent::RateLimits(limits) => {
                self.with(response, |_, outbox, _| {
                    outbox.send(ServerEvent::RateLimitsUpdated { rate_limits: limits })
                });
            }
            AnswerEvent::End { finish, usage } if self.is_asked(response) => {
                let status = match finish {
                    FinishReason::Stop => ResponseStatus::Completed,
                    FinishReason::Length => ResponseStatus::Incomplete(StatusDetails::MaxOutputTokens),
                    FinishReason::ContentFilter => ResponseStatus::Incomplete(StatusDetails::ContentFilter),
                };
                self.finish_response(response, status, Some(usage));
            }
            AnswerEvent::Failed { code, detail } if self.is_asked(response) => {
                if self.response.as_ref().is_some_and(|active| active.key == response) {
                    // The rest of the answer is of no use.
                    self.command(Command::BumpGeneration);
                }
                let status = ResponseStatus::Failed(failure(code, detail.as_str()));
                self.finish_response(response, status, None);
            }
            AnswerEvent::End { .. } | AnswerEvent::Failed { .. } => {}
        }
    }

    fn is_asked(&self, key: ResponseKey) -> bool {
        self.response.iter().chain(&self.asides).any(|it| it.key == key && it.pending.is_none())
    }

    /// Keeps the cost of a response as soon as it is known: the answer is written, and may not be spoken yet.
    pub fn spent(&mut self, response: ResponseKey, usage: TokenUsage) {
        self.with(response, |response, _, _| response.spent = usage);
    }

    /// Returns the known cost of the response that has the unit. The cost of an aside comes with its end.
    #[must_use]
    pub fn cost_so_far(&self) -> TokenUsage {
        self.response.as_ref().map_or_else(TokenUsage::default, |response| response.spent)
    }

    /// Calls `act` with a running response whose prompt has been sent.
    fn with(&mut self, key: ResponseKey, act: impl FnOnce(&mut Response, &mut Outbox, &mut Conversation)) {
        let Self { response, asides, outbox, conversation, .. } = self;
        let mut running = response.iter_mut().chain(asides);
        if let Some(response) = running.find(|it| it.key == key && it.pending.is_none()) {
            act(response, outbox, conversation);
        }
    }

    /// Outputs the place of `samples` samples of `response` at `rate`, behind the events that open their message.
    /// Outputs nothing if the response has ended.
    pub(super) fn answer_audio(&mut self, response: ResponseKey, samples: usize, rate: SampleRate) {
        let Self { response: active, outbox, conversation, fixed, now, .. } = self;
        let is_wanted = |active: &&mut Response| {
            active.key == response
                && active.modality == Modality::Audio
                && active.pending.is_none()
                && active.format.rate() == rate
        };
        let Some(active) = active.as_mut().filter(is_wanted) else { return };
        active.open_message(outbox, conversation);
        if let Some(delta) = active.audio(samples, *now) {
            fixed.voice = true;
            outbox.audio(delta);
        }
    }

    /// Cancels the response that has the unit.
    pub(super) fn stop_response(&mut self, reason: StatusDetails) {
        if let Some(key) = self.response.as_ref().map(|active| active.key) {
            self.finish_response(key, ResponseStatus::Cancelled(reason), None);
        }
    }

    /// Ends every response with a failure.
    pub(super) fn fail_responses(&mut self, error: &ErrorObject) {
        let running: Vec<_> = self.response.iter().chain(&self.asides).map(|it| it.key).collect();
        for key in running {
            self.finish_response(key, ResponseStatus::Failed(error.clone()), None);
        }
    }

    /// Ends a response: closes its item and sends `response.done`. No other function ends one. Tokens are zero if they
    /// are unknown: the model server sends them after the whole answer.
    fn finish_response(&mut self, key: ResponseKey, status: ResponseStatus, usage: Option<TokenUsage>) {
        let aside = self.asides.iter().position(|aside| aside.key == key);
        let taken = match aside {
            Some(at) => Some(self.asides.remove(at)),
            None => self.response.take_if(|active| active.key == key),
        };
        let Some(mut response) = taken else {
            return;
        };
        if aside.is_some() && usage.is_none() && response.pending.is_none() {
            self.command(Command::DropAside(key));
        }
        response.close(status.item_status(), &mut self.outbox, &mut self.conversation);
        let usage = Usage { tokens: usage.unwrap_or(response.spent), ..Usage::default() };
        let broken_off = !matches!(status, ResponseStatus::Completed | ResponseStatus::Incomplete(_));
        let done = response.object(&self.conversation, status, Some(usage));
        self.send(ServerEvent::ResponseDone { response: done });
        match self.phase {
            Phase::Open if aside.is_some() => {}
            Phase::Open => {
                if !broken_off && let Some(idle) = settings::idle_timeout(&self.settings) {
                    let played = response.played_until.map_or(self.now, |until| until.max(self.now));
                    self.hearing.begin_idle();
                    self.timers.set(Timer::Idle, played + idle);
                }
                self.answer_if_owed();
            }
            Phase::Closing if !self.is_responding() => self.end(Fault::ShuttingDown),
            Phase::Closing | Phase::Closed => {}
        }
    }
}
