//! A client that accepts no deviation: ids must be announced before use, events come in the order of the
//! reference, a response ends once and is silent afterwards.

use std::collections::{HashMap, HashSet, VecDeque};

use serde_json::Value;

use crate::answer_rules::ResponseState;
use crate::spoken_rules::SpokenAnswer;

/// The client's view of the session.
#[derive(Debug, Default)]
pub(crate) struct StrictClient {
    event_ids: HashSet<String>,
    begun: bool,
    closed: bool,
    /// True if the client gets no commands, so that cancels at the stages cannot be checked.
    no_commands: bool,
    /// Items by id.
    items: HashMap<String, ItemState>,
    /// Spoken answers by item id, those out of band included.
    spoken: HashMap<String, SpokenAnswer>,
    /// Running responses by id.
    responses: HashMap<String, ResponseState>,
    /// Responses that have ended.
    ended: HashSet<String>,
    /// True if a `BumpGeneration` has come since the last response was created.
    bumped: bool,
    prompts: HashSet<u64>,
}

#[derive(Clone, Debug, Default)]
struct ItemState {
    /// Transcript of the item's deltas.
    transcript: String,
    speech_started: bool,
    speech_stopped: bool,
    committed: bool,
    added: bool,
    done: bool,
    transcribed: bool,
}

impl StrictClient {
    /// Creates a client at the other end of a socket.
    pub(crate) fn remote() -> Self {
        Self { no_commands: true, ..Self::default() }
    }

    /// Checks an event; returns the fault in it.
    pub(crate) fn event(&mut self, event: &Value) -> Result<(), String> {
        self.judge(event).map_err(|why| format!("strict client: {why}: {event}"))
    }

    /// Checks a command.
    pub(crate) fn command(&mut self, command: &Value) -> Result<(), String> {
        if self.closed {
            return Err(format!("{command} after the close"));
        }
        if command.get("bump_generation").is_some() {
            self.bumped = true;
        }
        if let Some(prompt) = command.get("prompt") {
            self.asked(command, prompt)?;
        }
        if let Some(aside) = command.get("aside") {
            self.asked(command, aside)?;
        }
        if command.get("close").is_some() {
            self.closed = true;
        }
        Ok(())
    }

    /// Checks that there is one request for each response, in which calls and outputs are pairs.
    fn asked(&mut self, command: &Value, prompt: &Value) -> Result<(), String> {
        let fresh = self.prompts.insert(prompt["response"].as_u64().ok_or("a prompt without response")?);
        if !fresh || self.responses.is_empty() {
            return Err(format!("{command} twice or without a response"));
        }
        let mut owed: VecDeque<String> = VecDeque::new();
        for message in prompt["messages"].as_array().ok_or("no messages")? {
            match owed.pop_front() {
                Some(call) if message[0] == "tool" && message[1] == call.as_str() => continue,
                Some(call) => return Err(format!("{command}: {message} where the output of {call} belongs")),
                None if message[0] == "tool" => return Err(format!("{command}: {message} of no call")),
                None => {}
            }
            let calls = message[2].as_array().into_iter().flatten();
            owed.extend(calls.filter_map(|call| call[0].as_str().map(ToOwned::to_owned)));
        }
        if owed.is_empty() { Ok(()) } else { Err(format!("{command}: calls without output: {owed:?}")) }
    }

    /// Checks the end of a session. `over`: the session has been closed, so no response may be open.
    pub(crate) fn at_end(&self, over: bool) -> Result<(), String> {
        match self.responses.keys().next() {
            Some(response) if over => Err(format!("{response} never ended")),
            _ if over && !self.closed => Err("never closed".to_owned()),
            _ => Ok(()),
        }
    }

    /// Returns the ids that have begun and not ended: committed items without transcript, responses without
    /// `response.done`.
    pub(crate) fn unsettled(&self) -> Vec<String> {
        let items = self.items.iter().filter(|(_, item)| item.committed && !(item.done && item.transcribed));
        items.map(|(id, _)| id).chain(self.responses.keys()).cloned().collect()
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
                Some("realtime" | "transcription") => Ok(()),
                _ => Err("a session of no type".to_owned()),
            },
            "error" => self.error(&event["error"]),
            "input_audio_buffer.cleared" => Ok(()),
            "response.created" => self.created(&event["response"]),
            "response.done" => self.done(&event["response"]),
            "rate_limits.updated" if event["rate_limits"].is_array() => Ok(()),
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
            "input_audio_buffer.timeout_triggered" => {
                let times = (event["audio_start_ms"].as_u64(), event["audio_end_ms"].as_u64());
                let fits = matches!(times, (Some(start), Some(end)) if start <= end);
                return if fits && !item.committed {
                    Ok(())
                } else {
                    Err("no stretch of silence".to_owned())
                };
            }
            "input_audio_buffer.committed" => (!item.added, &mut item.committed),
            _ => return Err("unknown event".to_owned()),
        };
        once(fits, flag)
    }

    fn conversation(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        match kind {
            "conversation.item.retrieved" => {
                item_object(&event["item"])?;
                return self.shown(&event["item"], false);
            }
            "conversation.item.deleted" => {
                let deleted = self.items.get_mut(text(event, "item_id")?).filter(|item| item.added);
                // The item precedes no other item any more; further events of it may come.
                deleted.ok_or("an item that was never added")?.added = false;
                return Ok(());
            }
            "conversation.item.truncated" => return self.truncated(event),
            _ => {}
        }
        let whole = matches!(kind, "conversation.item.added" | "conversation.item.done");
        let id = text(if whole { &event["item"] } else { event }, if whole { "id" } else { "item_id" })?;
        if whole {
            item_object(&event["item"])?;
            self.previous(event)?;
        }
        if kind == "conversation.item.done" {
            self.shown(&event["item"], true)?;
        }
        let item = self.items.entry(id.to_owned()).or_default();
        if kind == "conversation.item.added" && item.done && !id.starts_with("item_") {
            // The client has given its own id a second time; the server no longer has the first item.
            *item = ItemState::default();
        }
        if kind == "conversation.item.added"
            && event["item"]["status"] == "in_progress"
            && event["item"]["role"] == "user"
        {
            // Audio of the client's own item is recognised like committed audio.
            item.committed = true;
        }
        let (fits, flag) = match kind {
            "conversation.item.added" => (!item.done, &mut item.added),
            "conversation.item.done" => (item.added, &mut item.done),
            "conversation.item.input_audio_transcription.delta" => {
                let fits = item.committed && !item.transcribed && !text(event, "delta")?.is_empty();
                item.transcript.push_str(text(event, "delta")?);
                return if fits { Ok(()) } else { Err("out of order".to_owned()) };
            }
            "conversation.item.input_audio_transcription.segment" => {
                let fits = item.committed && !item.transcribed && text(event, "text")? == item.transcript;
                return if fits { Ok(()) } else { Err("out of order".to_owned()) };
            }
            "conversation.item.input_audio_transcription.completed" => {
                if event["transcript"] != item.transcript.as_str() {
                    return Err(format!("the deltas made {:?}", item.transcript));
                }
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

    fn truncated(&mut self, event: &Value) -> Result<(), String> {
        let id = text(event, "item_id")?;
        let spoken = self.spoken.get_mut(id).filter(|_| self.items.get(id).is_some_and(|item| item.added));
        let spoken = spoken.ok_or("not of a spoken answer in the conversation")?;
        if event["content_index"] != 0 {
            return Err("content_index is not 0".to_owned());
        }
        spoken.cut(event["audio_end_ms"].as_u64().ok_or("no audio_end_ms")?)
    }

    /// Checks that `previous_item_id` is there, and is `null` or an item of the conversation.
    fn previous(&self, event: &Value) -> Result<(), String> {
        match event.get("previous_item_id") {
            Some(Value::Null) => Ok(()),
            Some(Value::String(id)) if self.items.get(id).is_some_and(|item| item.added) => Ok(()),
            _ => Err("previous_item_id is not there or not known".to_owned()),
        }
    }

    fn created(&mut self, response: &Value) -> Result<(), String> {
        let id = text(response, "id")?.to_owned();
        let state = ResponseState::new(response);
        let taken = !state.aside && self.responses.values().any(|running| !running.aside);
        if taken || self.ended.contains(&id) || response["status"] != "in_progress" {
            return Err("a response while another one runs, or not a new one".to_owned());
        }
        if !state.aside {
            self.bumped = false;
        }
        self.responses.insert(id, state);
        Ok(())
    }

    fn response(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        let running = self.responses.get_mut(text(event, "response_id")?);
        let running = running.ok_or("of a response that is not running")?;
        running.event(kind, event)?;
        let item = &event["item"];
        match (kind, &running.spoken_in) {
            ("response.output_item.added", Some(format)) if item["type"] == "message" => {
                self.spoken.insert(text(item, "id")?.to_owned(), SpokenAnswer::new(format));
                Ok(())
            }
            ("response.output_item.done", _) => self.shown(item, true),
            _ => {
                let spoken = event["item_id"].as_str().and_then(|id| self.spoken.get_mut(id));
                spoken.map_or(Ok(()), |spoken| spoken.event(kind, event))
            }
        }
    }

    /// Checks an item in an event of the server. A `done` item must be complete.
    fn shown(&mut self, item: &Value, done: bool) -> Result<(), String> {
        match self.spoken.get_mut(text(item, "id")?) {
            Some(spoken) => spoken.shown(item, done),
            None => Ok(()),
        }
    }

    fn done(&mut self, response: &Value) -> Result<(), String> {
        let id = text(response, "id")?;
        let running = self.responses.remove(id).ok_or("not of a running response")?;
        self.ended.insert(id.to_owned());
        running.is_whole(response)?;
        response["output"].as_array().into_iter().flatten().try_for_each(|item| self.shown(item, true))?;
        let (status, details) = (text(response, "status")?, &response["status_details"]);
        let fits = match status {
            "completed" => details.is_null() && response["usage"]["total_tokens"].is_u64(),
            "cancelled" => {
                let reason = details["reason"].as_str();
                (self.bumped || running.aside || self.no_commands)
                    && matches!(reason, Some("turn_detected" | "client_cancelled"))
            }
            "incomplete" => {
                matches!(details["reason"].as_str(), Some("max_output_tokens" | "content_filter"))
            }
            "failed" => details["error"]["message"].is_string(),
            _ => false,
        };
        if fits {
            Ok(())
        } else {
            Err("status and details do not fit, or no bump before the cancel".to_owned())
        }
    }
}

fn once(fits: bool, flag: &mut bool) -> Result<(), String> {
    if !fits || std::mem::replace(flag, true) {
        return Err("twice, incomplete, or not in this order".to_owned());
    }
    Ok(())
}

pub(crate) fn item_object(item: &Value) -> Result<(), String> {
    text(item, "id")?;
    let known = match item["type"].as_str() {
        Some("message") => {
            matches!(item["role"].as_str(), Some("user" | "assistant" | "system"))
                && item["content"].is_array()
        }
        Some("function_call") => ["call_id", "name", "arguments"].iter().all(|key| item[key].is_string()),
        Some("function_call_output") => ["call_id", "output"].iter().all(|key| item[key].is_string()),
        _ => false,
    };
    let status = matches!(item["status"].as_str(), Some("in_progress" | "completed" | "incomplete"));
    if known && status && item["object"] == "realtime.item" { Ok(()) } else { Err("not an item".to_owned()) }
}

pub(crate) fn text<'a>(of: &'a Value, key: &str) -> Result<&'a str, String> {
    of[key].as_str().ok_or_else(|| format!("no {key}"))
}
