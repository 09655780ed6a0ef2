//! One response from its creation to its end: its items, and their events.

use std::time::Duration;

use serde_json::{Map, Value};

use crate::audio::AudioFormat;
use crate::message::{
    CallPiece, CommitId, FailureCode, FunctionCall, FunctionTool, Moment, ReasoningEffort, ResponseKey,
    TokenUsage, ToolChoice, UtteranceId,
};
use crate::protocol::{
    AudioDelta, Content, ContentPart, ErrorObject, InputItem, Item, ItemBody, ItemId, ItemPlace, ItemStatus,
    MaxTokens, Modality, OnlyPart, ResponseId, ResponseObject, ResponseStatus, ServerEvent, Usage,
    fresh_call_id,
};

use super::conversation::Conversation;
use super::outbox::Outbox;
use super::spoken::Spoken;

/// A response that is running.
#[derive(Debug)]
pub(super) struct Response {
    pub(super) key: ResponseKey,
    pub(super) id: ResponseId,
    /// True if the answer does not become part of the conversation.
    pub(super) out_of_band: bool,
    pub(super) modality: Modality,
    pub(super) tokens_max: MaxTokens,
    pub(super) format: AudioFormat,
    pub(super) voice: String,
    pub(super) metadata: Option<Map<String, Value>>,
    /// The prompt, until it is sent; `None`: the model has been asked.
    pub(super) pending: Option<Box<PendingPrompt>>,
    /// Finished items.
    done: Vec<Item>,
    open: Option<Open>,
    /// White space before a message; dropped unless a word follows.
    blank: String,
    /// Audio of the user that this response is the first to answer, milliseconds.
    pub(super) heard_ms: u32,
    /// Cost of the response, as the model server has sent it so far.
    pub(super) spent: TokenUsage,
    /// Audio of the finished items, milliseconds.
    spoken_ms: u32,
    /// End of the audio at a client that plays it as it comes; `None`: no audio yet.
    pub(super) played_until: Option<Moment>,
}

/// Parts of the prompt of a response, until the model is asked.
#[derive(Debug)]
pub(super) struct PendingPrompt {
    /// Earlier speech of the user that has no complete transcript yet.
    pub(super) waits: Vec<Wait>,
    pub(super) instructions: Option<String>,
    pub(super) input: Option<Vec<InputItem>>,
    pub(super) tools: Vec<FunctionTool>,
    pub(super) tool_choice: ToolChoice,
    pub(super) parallel_tool_calls: Option<bool>,
    pub(super) reasoning: Option<ReasoningEffort>,
}

/// An event that a prompt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// The detector's reply to a commit.
    Commit(CommitId),
    /// The transcript of an utterance.
    Transcript(UtteranceId),
}

/// The item that is being filled.
#[derive(Debug)]
enum Open {
    Message { id: ItemId, spoken: Spoken },
    Call { id: ItemId, call: FunctionCall },
}

impl Response {
    /// Creates a response to `pending` that has not been announced to the client.
    pub(super) fn new(key: ResponseKey, pending: PendingPrompt) -> Self {
        Self {
            key,
            id: ResponseId::fresh(),
            out_of_band: false,
            modality: Modality::Audio,
            tokens_max: MaxTokens::Unlimited,
            format: AudioFormat::DEFAULT,
            voice: String::new(),
            metadata: None,
            pending: Some(Box::new(pending)),
            done: Vec::new(),
            open: None,
            blank: String::new(),
            heard_ms: 0,
            spent: TokenUsage::default(),
            spoken_ms: 0,
            played_until: None,
        }
    }

    /// Returns true if the response is an aside: it needs neither the unit's voice nor a place in the conversation, of
    /// which a session has one each.
    pub(super) fn is_aside(&self) -> bool {
        self.out_of_band && self.modality == Modality::Text
    }

    /// Adds a piece of the model's text.
    pub(super) fn text(&mut self, delta: &str, outbox: &mut Outbox, conversation: &mut Conversation) {
        if !matches!(self.open, Some(Open::Message { .. })) && delta.trim_start().is_empty() {
            self.blank.push_str(delta);
            return;
        }
        let delta = std::mem::take(&mut self.blank) + delta;
        if delta.is_empty() {
            return;
        }
        let place = self.open_message(outbox, conversation);
        if let Some(Open::Message { spoken, .. }) = &mut self.open {
            spoken.push(&delta);
        }
        let content_index = OnlyPart;
        outbox.send(match self.modality {
            Modality::Audio => ServerEvent::TranscriptDelta { place, content_index, delta },
            Modality::Text => ServerEvent::TextDelta { place, content_index, delta },
        });
    }

    /// Counts `samples` samples that are sent now, and returns their place. The message must be open.
    pub(super) fn audio(&mut self, samples: usize, now: Moment) -> Option<AudioDelta> {
        let output_index = self.output_index();
        let Some(Open::Message { id, spoken }) = &mut self.open else {
            return None;
        };
        spoken.send(samples as u64);
        let begins = self.played_until.map_or(now, |until| until.max(now));
        let lasts = Duration::from_secs(samples as u64) / self.format.rate().hz();
        self.played_until = Some(begins + lasts);
        let (response, item) = (self.id.clone(), id.clone());
        Some(AudioDelta { response, item, output_index, format: self.format })
    }

    /// Adds a piece of a function call.
    pub(super) fn call(&mut self, piece: &CallPiece, outbox: &mut Outbox, conversation: &mut Conversation) {
        match piece {
            CallPiece::Name(name) => {
                self.close(ItemStatus::Completed, outbox, conversation);
                self.blank.clear();
                let call = FunctionCall {
                    call_id: fresh_call_id(),
                    name: name.as_str().to_owned(),
                    arguments: String::new(),
                };
                let id = ItemId::fresh();
                let item = Item {
                    id: id.clone(),
                    status: ItemStatus::InProgress,
                    body: ItemBody::Call(call.clone()),
                };
                self.announce(item, outbox, conversation);
                self.open = Some(Open::Call { id, call });
            }
            CallPiece::Arguments(chunk) => {
                let place = self.place();
                if let (Some(place), Some(Open::Call { call, .. })) = (place, &mut self.open) {
                    call.arguments.push_str(chunk.as_str());
                    let (call_id, delta) = (call.call_id.clone(), chunk.as_str().to_owned());
                    outbox.send(ServerEvent::ArgumentsDelta { place, call_id, delta });
                }
            }
            CallPiece::End => {
                if matches!(self.open, Some(Open::Call { .. })) {
                    self.close(ItemStatus::Completed, outbox, conversation);
                }
            }
        }
    }

    /// Returns the place of the open message. Opens and announces one if there is none.
    pub(super) fn open_message(&mut self, outbox: &mut Outbox, conversation: &mut Conversation) -> ItemPlace {
        if let (Some(place), Some(Open::Message { .. })) = (self.place(), &self.open) {
            return place;
        }
        // A model that calls a function ends the call before its next words.
        self.close(ItemStatus::Incomplete, outbox, conversation);
        let id = ItemId::fresh();
        let item = Item::answer(id.clone(), ItemStatus::InProgress, Vec::new());
        self.announce(item, outbox, conversation);
        let place = self.place_of(id.clone());
        self.open = Some(Open::Message { id, spoken: Spoken::new(self.format.rate()) });
        let part = ContentPart::new(self.modality, String::new());
        outbox.send(ServerEvent::ContentPartAdded { place: place.clone(), content_index: OnlyPart, part });
        place
    }

    fn announce(&self, item: Item, outbox: &mut Outbox, conversation: &mut Conversation) {
        outbox.send(ServerEvent::OutputItemAdded {
            response_id: self.id.clone(),
            output_index: self.output_index(),
            item: Box::new(item.clone()),
        });
        if !self.out_of_band {
            let previous_item_id = conversation.push(item.clone());
            outbox.send(ServerEvent::ItemAdded { previous_item_id, item: Box::new(item) });
        }
    }

    /// Ends the item that is being filled, if there is one.
    pub(super) fn close(&mut self, status: ItemStatus, outbox: &mut Outbox, conversation: &mut Conversation) {
        let (Some(place), Some(open)) = (self.place(), self.open.take()) else {
            return;
        };
        let (response_id, output_index) = (place.response_id.clone(), place.output_index);
        let (item, spoken) = match open {
            Open::Message { id, spoken } => {
                let (text, content_index) = (spoken.text().to_owned(), OnlyPart);
                let content = match self.modality {
                    Modality::Audio => {
                        outbox.send(ServerEvent::AudioDone { place: place.clone(), content_index });
                        let (place, transcript) = (place.clone(), text.clone());
                        outbox.send(ServerEvent::TranscriptDone { place, content_index, transcript });
                        Content::OutputAudio(spoken.heard().to_owned())
                    }
                    Modality::Text => {
                        let place = place.clone();
                        outbox.send(ServerEvent::TextDone { place, content_index, text: text.clone() });
                        Content::OutputText(text.clone())
                    }
                };
                let part = ContentPart::new(self.modality, text);
                outbox.send(ServerEvent::ContentPartDone { place, content_index, part });
                self.spoken_ms = self.spoken_ms.saturating_add(spoken.millis());
                (Item::answer(id, status, vec![content]), Some(spoken))
            }
            Open::Call { id, call } => {
                // Clients act on this event, so that a call that was broken off has none.
                if status == ItemStatus::Completed {
                    let FunctionCall { call_id, name, arguments } = call.clone();
                    outbox.send(ServerEvent::ArgumentsDone { place, call_id, name, arguments });
                }
                (Item { id, status, body: ItemBody::Call(call) }, None)
            }
        };
        outbox.send(ServerEvent::OutputItemDone { response_id, output_index, item: Box::new(item.clone()) });
        self.done.push(item.clone());
        // An item out of band is not in the conversation.
        if let Some((item, previous_item_id)) = conversation.finish(item) {
            if let Some(spoken) = spoken.filter(|_| self.modality == Modality::Audio) {
                conversation.keep_spoken(&item.id, spoken);
            }
            outbox.send(ServerEvent::ItemDone { previous_item_id, item: Box::new(item) });
        }
    }

    /// Returns the spoken part of the message `id`, if it is being spoken.
    pub(super) fn spoken_so_far(&mut self, id: &str) -> Option<&mut Spoken> {
        match &mut self.open {
            Some(Open::Message { id: open, spoken })
                if self.modality == Modality::Audio && open.as_str() == id =>
            {
                Some(spoken)
            }
            _ => None,
        }
    }

    /// Replaces a finished item by `item`, which is the same one after a cut.
    pub(super) fn show_cut(&mut self, item: &Item) {
        if let Some(done) = self.done.iter_mut().find(|done| done.id == item.id) {
            done.clone_from(item);
        }
    }

    /// Returns the response as it is now. `usage` is set at its end.
    pub(super) fn object(
        &self,
        conversation: &Conversation,
        status: ResponseStatus,
        usage: Option<Usage>,
    ) -> Box<ResponseObject> {
        let usage =
            usage.map(|usage| Usage { audio_in_ms: self.heard_ms, audio_out_ms: self.spoken_ms, ..usage });
        Box::new(ResponseObject {
            id: self.id.clone(),
            conversation: (!self.out_of_band).then(|| conversation.id.clone()),
            status,
            output: self.done.clone(),
            modality: self.modality,
            tokens_max: self.tokens_max,
            format: self.format,
            voice: self.voice.clone(),
            metadata: self.metadata.clone(),
            usage,
        })
    }

    /// Returns the place of the item that is being filled.
    fn place(&self) -> Option<ItemPlace> {
        let (Open::Message { id, .. } | Open::Call { id, .. }) = self.open.as_ref()?;
        Some(self.place_of(id.clone()))
    }

    /// Returns the place of an item with this id, if it is the next one.
    fn place_of(&self, item_id: ItemId) -> ItemPlace {
        ItemPlace { response_id: self.id.clone(), item_id, output_index: self.output_index() }
    }

    /// Returns the index of the item that is being filled, or of the next one.
    fn output_index(&self) -> u32 {
        u32::try_from(self.done.len()).unwrap_or(u32::MAX)
    }
}

/// Makes the client's message of a failure: the failure, and the beginning of the model server's own message.
pub(super) fn failure(code: FailureCode, detail: &str) -> ErrorObject {
    let (code, what) = match code {
        FailureCode::SttFailed => ("stt_failed", "speech recognition failed".to_owned()),
        FailureCode::TtsFailed => ("tts_failed", "speech synthesis failed".to_owned()),
        FailureCode::StagePanicked => {
            ("internal_error", "the server made a mistake on this; it goes on".to_owned())
        }
        FailureCode::LlmUnreachable => ("llm_unreachable", "the language model cannot be reached".to_owned()),
        FailureCode::LlmStatus(429) => (
            "rate_limit_exceeded",
            "the language model has had too many requests (HTTP status 429)".to_owned(),
        ),
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
