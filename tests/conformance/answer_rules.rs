//! The rules of one response: its items come one after the other, each complete before the next.

use serde_json::Value;

use crate::strict_client::{item_object, text};

/// A response so far.
#[derive(Debug)]
pub(crate) struct ResponseState {
    /// Format of the response's audio; `None` if the response is written.
    pub(crate) spoken_in: Option<Value>,
    /// True if the response is out of band and written, so that it runs beside the spoken one.
    pub(crate) aside: bool,
    /// Items of the response in order; the last one may be open.
    items: Vec<OutputItem>,
}

#[derive(Debug)]
struct OutputItem {
    id: String,
    /// Name of the function; `None` if the item is no call.
    call: Option<String>,
    /// Text or arguments of the item's deltas so far.
    text: String,
    stage: Stage,
    status: String,
}

/// State of an item. Only a later state may follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Added,
    PartAdded,
    AudioDone,
    TextDone,
    PartDone,
    Done,
}

impl ResponseState {
    /// Creates the state from the object in `response.created`.
    pub(crate) fn new(response: &Value) -> Self {
        let spoken = response["output_modalities"][0] == "audio";
        let aside = !spoken && response["conversation_id"].is_null();
        let spoken_in = spoken.then(|| response["audio"]["output"]["format"].clone());
        Self { spoken_in, aside, items: Vec::new() }
    }

    /// Takes an event of the response other than `response.created` and `response.done`.
    pub(crate) fn event(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        if kind == "response.output_item.added" {
            return self.item_added(event);
        }
        let spoken = self.spoken_in.is_some();
        let index = self.items.len().checked_sub(1).ok_or("of no item")?;
        let item = &mut self.items[index];
        let whole = kind == "response.output_item.done";
        let id = text(if whole { &event["item"] } else { event }, if whole { "id" } else { "item_id" })?;
        if id != item.id || event["output_index"] != index {
            return Err("of an item that was not announced, or not the last one".to_owned());
        }
        if item.call.is_some() {
            item.call_event(kind, event)
        } else {
            item.message_event(kind, event, spoken)
        }
    }

    fn item_added(&mut self, event: &Value) -> Result<(), String> {
        let item = &event["item"];
        item_object(item)?;
        let open = self.items.last().is_some_and(|item| item.stage != Stage::Done);
        let known = self.items.iter().any(|known| item["id"] == known.id.as_str());
        if open || known || event["output_index"] != self.items.len() || item["status"] != "in_progress" {
            return Err("not the next item".to_owned());
        }
        let is_call = item["type"] == "function_call";
        let empty = if is_call { item["arguments"] == "" } else { item["content"] == serde_json::json!([]) };
        if !empty {
            return Err("it holds something already".to_owned());
        }
        self.items.push(OutputItem {
            id: text(item, "id")?.to_owned(),
            call: if is_call { Some(text(item, "call_id")?.to_owned()) } else { None },
            text: String::new(),
            stage: Stage::Added,
            status: String::new(),
        });
        Ok(())
    }

    /// Checks that the object in `response.done` agrees with the events before.
    pub(crate) fn is_whole(&self, response: &Value) -> Result<(), String> {
        let output = response["output"].as_array().ok_or("no output")?;
        let fits = output.len() == self.items.len()
            && output.iter().zip(&self.items).all(|(shown, seen)| {
                seen.stage == Stage::Done
                    && shown["id"] == seen.id.as_str()
                    && shown["status"] == seen.status.as_str()
            });
        output.iter().try_for_each(item_object)?;
        if fits { Ok(()) } else { Err(format!("output does not fit {self:?}")) }
    }
}

impl OutputItem {
    fn go(&mut self, from: Stage, to: Stage) -> Result<(), String> {
        if self.stage != from {
            return Err(format!("out of order: after {:?}", self.stage));
        }
        self.stage = to;
        Ok(())
    }

    fn end(&mut self, from: Stage, event: &Value) -> Result<(), String> {
        item_object(&event["item"])?;
        text(&event["item"], "status")?.clone_into(&mut self.status);
        self.go(from, Stage::Done)
    }

    fn message_event(&mut self, kind: &str, event: &Value, spoken: bool) -> Result<(), String> {
        if kind != "response.output_item.done" && event["content_index"] != 0 {
            return Err("content_index is not 0".to_owned());
        }
        let of_part = event["part"]["type"] == if spoken { "audio" } else { "text" };
        let before_text = if spoken { Stage::AudioDone } else { Stage::PartAdded };
        match (kind, spoken) {
            ("response.content_part.added", _) if of_part => self.go(Stage::Added, Stage::PartAdded),
            ("response.output_audio.delta", true) => {
                text(event, "delta")?;
                self.go(Stage::PartAdded, Stage::PartAdded)
            }
            ("response.output_audio_transcript.delta", true) | ("response.output_text.delta", false) => {
                self.text.push_str(text(event, "delta")?);
                self.go(Stage::PartAdded, Stage::PartAdded)
            }
            ("response.output_audio.done", true) => self.go(Stage::PartAdded, Stage::AudioDone),
            ("response.output_audio_transcript.done", true) if text(event, "transcript")? == self.text => {
                self.go(before_text, Stage::TextDone)
            }
            ("response.output_text.done", false) if text(event, "text")? == self.text => {
                self.go(before_text, Stage::TextDone)
            }
            ("response.content_part.done", _) if of_part => self.go(Stage::TextDone, Stage::PartDone),
            ("response.output_item.done", _) => self.end(Stage::PartDone, event),
            _ => Err("unknown event, or not what was said before".to_owned()),
        }
    }

    fn call_event(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        match kind {
            "response.output_item.done" if event["item"]["arguments"] != self.text.as_str() => {
                Err("not the arguments of the deltas".to_owned())
            }
            // Clients act on completed calls, so no other call may be reported as completed.
            "response.output_item.done" if event["item"]["status"] == "completed" => {
                self.end(Stage::TextDone, event)
            }
            "response.output_item.done" => self.end(Stage::Added, event),
            _ if event["call_id"].as_str() != self.call.as_deref() => Err("of another call".to_owned()),
            "response.function_call_arguments.delta" => {
                self.text.push_str(text(event, "delta")?);
                self.go(Stage::Added, Stage::Added)
            }
            "response.function_call_arguments.done" if text(event, "arguments")? == self.text => {
                text(event, "name")?;
                self.go(Stage::Added, Stage::TextDone)
            }
            _ => Err("unknown event, or not what was said before".to_owned()),
        }
    }
}
