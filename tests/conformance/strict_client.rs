//! A client that forgives nothing: ids must be announced before use, events come in the order of the
//! reference, a response ends once and is silent afterwards.

use std::collections::{HashMap, HashSet};

use serde_json::Value;

/// What the client knows of the session.
#[derive(Debug, Default)]
pub(crate) struct StrictClient {
    event_ids: HashSet<String>,
    begun: bool,
    closed: bool,
    /// Items by id.
    items: HashMap<String, ItemState>,
    /// The running response.
    response: Option<ResponseState>,
    /// Responses that have ended.
    ended: HashSet<String>,
    /// `BumpGeneration` since the last response was created.
    bumped: bool,
    prompts: HashSet<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct ItemState {
    speech_started: bool,
    speech_stopped: bool,
    committed: bool,
    added: bool,
    done: bool,
    transcribed: bool,
}

#[derive(Debug)]
struct ResponseState {
    id: String,
    /// Id of its item, once announced.
    item: Option<String>,
    spoken: bool,
    text: String,
    audio: bool,
    stage: Stage,
}

/// How far a response has come; each may only be followed by a later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Created,
    ItemAdded,
    PartAdded,
    AudioDone,
    TextDone,
    PartDone,
    ItemDone,
}

impl StrictClient {
    /// Looks at an event; says what is wrong with it.
    pub(crate) fn event(&mut self, event: &Value) -> Result<(), String> {
        self.judge(event).map_err(|why| format!("strict client: {why}: {event}"))
    }

    /// Looks at a command.
    pub(crate) fn command(&mut self, command: &Value) -> Result<(), String> {
        if self.closed {
            return Err(format!("{command} after the close"));
        }
        if command.get("bump_generation").is_some() {
            self.bumped = true;
        }
        if let Some(prompt) = command.get("prompt") {
            let fresh = self.prompts.insert(prompt["response"].as_u64().ok_or("a prompt without response")?);
            if !fresh || self.response.is_none() {
                return Err(format!("{command} twice or without a response"));
            }
        }
        if command.get("close").is_some() {
            self.closed = true;
        }
        Ok(())
    }

    /// At the end of a session; `over`: it has been closed, so nothing may be open.
    pub(crate) fn at_end(&self, over: bool) -> Result<(), String> {
        match &self.response {
            Some(response) if over => Err(format!("{} never ended", response.id)),
            _ if over && !self.closed => Err("never closed".to_owned()),
            _ => Ok(()),
        }
    }

    /// What has begun and not ended: committed items without transcript, a response without `response.done`.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let items = self.items.iter().filter(|(_, item)| item.committed && !(item.done && item.transcribed));
        items.map(|(id, _)| id).chain(self.response.iter().map(|response| &response.id)).cloned().collect()
    }

    fn judge(&mut self, event: &Value) -> Result<(), String> {
        let kind = text(event, "type")?;
        if self.closed {
            return Err("after the close".to_owned());
        }
        if !self.event_ids.insert(text(event, "event_id")?.to_owned()) {
            return Err("an event_id twice".to_owned());
        }
        if self.begun == (kind == "session.created") {
            return Err("session.created is the first event, once".to_owned());
        }
        self.begun = true;
        match kind {
            "session.created" | "session.updated" => match event["session"]["type"].as_str() {
                Some("realtime") => Ok(()),
                _ => Err("not a realtime session".to_owned()),
            },
            "error" => self.error(&event["error"]),
            "input_audio_buffer.cleared" => Ok(()),
            "response.created" => self.created(&event["response"]),
            "response.done" => self.done(&event["response"]),
            _ if kind.starts_with("input_audio_buffer.") => self.buffer(kind, event),
            _ if kind.starts_with("conversation.item.") => self.conversation(kind, event),
            _ if kind.starts_with("response.") => self.response(kind, event),
            _ => Err("unknown event".to_owned()),
        }
    }

    fn error(&self, error: &Value) -> Result<(), String> {
        text(error, "type")?;
        text(error, "message")?;
        for key in ["code", "param", "event_id"] {
            let value = error.get(key).ok_or_else(|| format!("no {key}"))?;
            if !value.is_null() && !value.is_string() {
                return Err(format!("{key} is neither text nor null"));
            }
        }
        Ok(())
    }

    fn buffer(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let id = text(event, "item_id")?.to_owned();
        if kind.ends_with("committed") {
            self.previous(event)?;
        }
        let item = self.items.entry(id).or_default();
        let (fits, flag) = match kind {
            "input_audio_buffer.speech_started" => {
                (!item.committed && event["audio_start_ms"].is_u64(), &mut item.speech_started)
            }
            "input_audio_buffer.speech_stopped" => (
                item.speech_started && !item.committed && event["audio_end_ms"].is_u64(),
                &mut item.speech_stopped,
            ),
            "input_audio_buffer.committed" => (!item.added, &mut item.committed),
            _ => return Err("unknown event".to_owned()),
        };
        once(fits, flag)
    }

    fn conversation(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        match kind {
            "conversation.item.retrieved" => return item_object(&event["item"]),
            "conversation.item.deleted" => {
                let deleted = self.items.get_mut(text(event, "item_id")?).filter(|item| item.added);
                // It is nobody's predecessor any more; what is still to be said of it may come.
                deleted.ok_or("an item that was never added")?.added = false;
                return Ok(());
            }
            "conversation.item.truncated" => {
                let known = self.items.get(text(event, "item_id")?).is_some_and(|item| item.done);
                let fits = known && event["content_index"] == 0 && event["audio_end_ms"].is_u64();
                return if fits { Ok(()) } else { Err("not of an item that is done".to_owned()) };
            }
            _ => {}
        }
        let whole = matches!(kind, "conversation.item.added" | "conversation.item.done");
        let id = text(if whole { &event["item"] } else { event }, if whole { "id" } else { "item_id" })?;
        if whole {
            item_object(&event["item"])?;
            self.previous(event)?;
        }
        let item = self.items.entry(id.to_owned()).or_default();
        if kind == "conversation.item.added" && item.done && !id.starts_with("item_") {
            // The client's own name, for a second item; the server has forgotten the first.
            *item = ItemState::default();
        }
        let (fits, flag) = match kind {
            "conversation.item.added" => (!item.done, &mut item.added),
            "conversation.item.done" => (item.added, &mut item.done),
            "conversation.item.input_audio_transcription.completed" => {
                let fits = item.committed
                    && event["transcript"].is_string()
                    && event["usage"]["seconds"].is_number();
                (fits, &mut item.transcribed)
            }
            "conversation.item.input_audio_transcription.failed" => {
                (item.committed && event["error"]["message"].is_string(), &mut item.transcribed)
            }
            _ => return Err("unknown event".to_owned()),
        };
        once(fits, flag)
    }

    /// `previous_item_id` is there, and is `null` or an item of the conversation.
    fn previous(&self, event: &Value) -> Result<(), String> {
        match event.get("previous_item_id") {
            Some(Value::Null) => Ok(()),
            Some(Value::String(id)) if self.items.get(id).is_some_and(|item| item.added) => Ok(()),
            _ => Err("previous_item_id is not there or not known".to_owned()),
        }
    }

    fn created(&mut self, response: &Value) -> Result<(), String> {
        let id = text(response, "id")?.to_owned();
        if self.response.is_some() || self.ended.contains(&id) || response["status"] != "in_progress" {
            return Err("a response while another one runs, or not a new one".to_owned());
        }
        let spoken = response["output_modalities"][0] == "audio";
        self.bumped = false;
        self.response = Some(ResponseState {
            id,
            item: None,
            spoken,
            text: String::new(),
            audio: false,
            stage: Stage::Created,
        });
        Ok(())
    }

    fn response(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let running = self.response.as_mut().filter(|running| event["response_id"] == running.id.as_str());
        let running = running.ok_or("of a response that is not running")?;
        if event["output_index"] != 0 {
            return Err("output_index is not 0".to_owned());
        }
        let whole = kind.starts_with("response.output_item.");
        let id = text(if whole { &event["item"] } else { event }, if whole { "id" } else { "item_id" })?;
        if whole {
            item_object(&event["item"])?;
        } else if event["content_index"] != 0 {
            return Err("content_index is not 0".to_owned());
        }
        if kind == "response.output_item.added" {
            running.item = Some(id.to_owned());
        }
        if running.item.as_deref() != Some(id) {
            return Err("of an item that was not announced".to_owned());
        }
        let (from, to) = running.step(kind, event)?;
        if running.stage != from {
            return Err(format!("out of order: after {:?}", running.stage));
        }
        running.stage = to;
        Ok(())
    }

    fn done(&mut self, response: &Value) -> Result<(), String> {
        let running = self.response.take().filter(|running| response["id"] == running.id.as_str());
        let running = running.ok_or("not of the running response")?;
        let output = response["output"].as_array().ok_or("no output")?;
        match (running.stage, output.as_slice()) {
            (Stage::Created, []) => {}
            (Stage::ItemDone, [item]) if item["id"].as_str() == running.item.as_deref() => item_object(item)?,
            _ => return Err(format!("output does not fit {running:?}")),
        }
        let (status, details) = (text(response, "status")?, &response["status_details"]);
        let fits = match status {
            "completed" => details.is_null() && response["usage"]["total_tokens"].is_u64(),
            "cancelled" => {
                let reason = details["reason"].as_str();
                self.bumped && matches!(reason, Some("turn_detected" | "client_cancelled"))
            }
            "incomplete" => {
                matches!(details["reason"].as_str(), Some("max_output_tokens" | "content_filter"))
            }
            "failed" => details["error"]["message"].is_string(),
            _ => false,
        };
        self.ended.insert(running.id);
        if fits {
            Ok(())
        } else {
            Err("status and details do not fit, or no bump before the cancel".to_owned())
        }
    }
}

impl ResponseState {
    /// From which stage to which an event leads.
    fn step(&mut self, kind: &str, event: &Value) -> Result<(Stage, Stage), String> {
        let kind_of_part = if self.spoken { "audio" } else { "text" };
        let before_text = if self.spoken { Stage::AudioDone } else { Stage::PartAdded };
        Ok(match (kind, self.spoken) {
            ("response.output_item.added", _) => (Stage::Created, Stage::ItemAdded),
            ("response.content_part.added", _) if event["part"]["type"] == kind_of_part => {
                (Stage::ItemAdded, Stage::PartAdded)
            }
            ("response.output_audio.delta", true) => {
                self.audio |= !text(event, "delta")?.is_empty();
                (Stage::PartAdded, Stage::PartAdded)
            }
            ("response.output_audio_transcript.delta", true) | ("response.output_text.delta", false) => {
                self.text.push_str(text(event, "delta")?);
                (Stage::PartAdded, Stage::PartAdded)
            }
            ("response.output_audio.done", true) => (Stage::PartAdded, Stage::AudioDone),
            ("response.output_audio_transcript.done", true) if text(event, "transcript")? == self.text => {
                (before_text, Stage::TextDone)
            }
            ("response.output_text.done", false) if text(event, "text")? == self.text => {
                (before_text, Stage::TextDone)
            }
            ("response.content_part.done", _) if event["part"]["type"] == kind_of_part => {
                (Stage::TextDone, Stage::PartDone)
            }
            ("response.output_item.done", _) => (Stage::PartDone, Stage::ItemDone),
            _ => return Err("unknown event, or not what was said before".to_owned()),
        })
    }
}

fn once(fits: bool, flag: &mut bool) -> Result<(), String> {
    if !fits || std::mem::replace(flag, true) {
        return Err("twice, incomplete, or not in this order".to_owned());
    }
    Ok(())
}

fn item_object(item: &Value) -> Result<(), String> {
    text(item, "id")?;
    let known = item["type"] == "message"
        && item["object"] == "realtime.item"
        && matches!(item["role"].as_str(), Some("user" | "assistant" | "system"))
        && matches!(item["status"].as_str(), Some("in_progress" | "completed" | "incomplete"))
        && item["content"].is_array();
    if known { Ok(()) } else { Err("not an item".to_owned()) }
}

fn text<'a>(of: &'a Value, key: &str) -> Result<&'a str, String> {
    of[key].as_str().ok_or_else(|| format!("no {key}"))
}
