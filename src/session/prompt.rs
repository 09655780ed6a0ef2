//! The messages of a conversation for the language model.
//!
//! A chat model takes calls and their outputs only in pairs, with the outputs right behind the message that made the
//! calls. A conversation has no such order: the user may speak while the client runs a call, and an output may be late
//! or never come. This module puts each output behind its call, and gives a call without output [`NO_RESULT`]. So no
//! request is refused, and no call is made twice because its result was dropped.

use std::collections::HashMap;

use crate::message::{ChatMessage, FunctionCall, UserPart};
use crate::protocol::{Content, Item, ItemBody, ItemStatus, Speaker};

/// Output of a call whose real output has not come.
const NO_RESULT: &str = "(no result yet)";

/// Text of a turn in which the user was silent.
const SILENCE: &str = "[silence]";

/// Returns the messages of `items`, oldest first. An item without words makes none.
pub(super) fn messages<'a>(items: impl Iterator<Item = &'a Item> + Clone) -> Vec<ChatMessage> {
    let outputs = items.clone().filter_map(|item| match &item.body {
        ItemBody::Output { call_id, output } => Some((call_id.as_str(), output.as_str())),
        ItemBody::Message { .. } | ItemBody::Call(_) => None,
    });
    let mut prompt = Prompt { outputs: outputs.collect(), ..Prompt::default() };
    for item in items {
        prompt.add(item);
    }
    prompt.end_answer();
    prompt.messages
}

#[derive(Default)]
struct Prompt<'a> {
    messages: Vec<ChatMessage>,
    /// Outputs by the ids of their calls.
    outputs: HashMap<&'a str, &'a str>,
    /// Words and calls of the model that belong to one message.
    text: String,
    calls: Vec<FunctionCall>,
}

impl Prompt<'_> {
    fn add(&mut self, item: &Item) {
        match &item.body {
            ItemBody::Message { speaker: Speaker::Assistant, content } => {
                if self.calls.is_empty() {
                    self.end_answer();
                }
                let text = text_of(content);
                if !text.is_empty() && !self.text.is_empty() {
                    self.text.push('\n');
                }
                self.text.push_str(&text);
            }
            // A call that was broken off is not a call of the model.
            ItemBody::Call(call) => {
                if item.status == ItemStatus::Completed {
                    self.calls.push(call.clone());
                }
            }
            // The output stands behind its call; the model's next words are another message.
            ItemBody::Output { .. } => {
                if !self.calls.is_empty() {
                    self.end_answer();
                }
            }
            ItemBody::Message { speaker: Speaker::System, content } => {
                self.end_answer();
                let text = text_of(content);
                if !text.is_empty() {
                    self.messages.push(ChatMessage::System(text));
                }
            }
            ItemBody::Message { speaker: Speaker::User, content } => {
                self.end_answer();
                let parts = parts_of(content);
                if !parts.is_empty() {
                    self.messages.push(ChatMessage::User(parts));
                }
            }
        }
    }

    fn end_answer(&mut self) {
        let (text, calls) = (std::mem::take(&mut self.text), std::mem::take(&mut self.calls));
        if text.is_empty() && calls.is_empty() {
            return;
        }
        let outputs = calls.iter().map(|call| ChatMessage::FunctionOutput {
            call_id: call.call_id.clone(),
            output: self.outputs.get(call.call_id.as_str()).copied().unwrap_or(NO_RESULT).to_owned(),
        });
        let outputs: Vec<_> = outputs.collect();
        self.messages.push(ChatMessage::Assistant { text, calls });
        self.messages.extend(outputs);
    }
}

/// Returns the words of a message; parts are joined by line breaks.
fn text_of(content: &[Content]) -> String {
    let texts: Vec<_> = content.iter().filter_map(text).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// Returns the parts of a message; adjacent words are one part.
fn parts_of(content: &[Content]) -> Vec<UserPart> {
    let mut parts: Vec<UserPart> = Vec::new();
    for part in content {
        if let Content::InputImage { url, detail } = part {
            parts.push(UserPart::Image { url: url.clone(), detail });
            continue;
        }
        match (text(part).filter(|text| !text.is_empty()), parts.last_mut()) {
            (None, _) => {}
            (Some(text), Some(UserPart::Text(before))) => {
                before.push('\n');
                before.push_str(text);
            }
            (Some(text), _) => parts.push(UserPart::Text(text.to_owned())),
        }
    }
    parts
}

fn text(part: &Content) -> Option<&str> {
    match part {
        Content::InputText(text)
        | Content::InputAudio(Some(text))
        | Content::OutputText(text)
        | Content::OutputAudio(text) => Some(text),
        Content::Silence => Some(SILENCE),
        Content::InputAudio(None) | Content::InputImage { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::ItemId;

    fn item(body: ItemBody) -> Item {
        Item { id: ItemId::fresh(), status: ItemStatus::Completed, body }
    }

    fn says(speaker: Speaker, text: &str) -> Item {
        item(ItemBody::Message { speaker, content: vec![Content::InputText(text.to_owned())] })
    }

    fn call(name: &str) -> FunctionCall {
        FunctionCall { call_id: name.to_owned(), name: name.to_owned(), arguments: "{}".to_owned() }
    }

    fn output(call_id: &str, output: &str) -> Item {
        item(ItemBody::Output { call_id: call_id.to_owned(), output: output.to_owned() })
    }

    fn answered(call_id: &str, output: &str) -> ChatMessage {
        ChatMessage::FunctionOutput { call_id: call_id.to_owned(), output: output.to_owned() }
    }

    #[test]
    fn calls_and_their_outputs_stand_together() {
        let items = [
            says(Speaker::User, "Both, please."),
            says(Speaker::Assistant, "One moment."),
            item(ItemBody::Call(call("a"))),
            item(ItemBody::Call(call("b"))),
            output("b", "2"),
            output("a", "1"),
            says(Speaker::Assistant, "One and two."),
        ];
        let calls = vec![call("a"), call("b")];
        assert_eq!(
            messages(items.iter()),
            [
                ChatMessage::user("Both, please."),
                ChatMessage::Assistant { text: "One moment.".to_owned(), calls },
                answered("a", "1"),
                answered("b", "2"),
                ChatMessage::assistant("One and two."),
            ]
        );
    }

    #[test]
    fn a_late_output_stands_at_its_call_and_a_missing_one_is_named() {
        let items = [
            item(ItemBody::Call(call("late"))),
            item(ItemBody::Call(call("never"))),
            says(Speaker::User, "Stop."),
            output("late", "42"),
            output("forgotten", "of a call that is not here any more"),
        ];
        assert_eq!(
            messages(items.iter()),
            [
                ChatMessage::Assistant { text: String::new(), calls: vec![call("late"), call("never")] },
                answered("late", "42"),
                answered("never", NO_RESULT),
                ChatMessage::user("Stop."),
            ]
        );
    }

    #[test]
    fn what_says_nothing_is_not_there() {
        let mut broken_off = item(ItemBody::Call(call("half")));
        broken_off.status = ItemStatus::Incomplete;
        let heard = |content| Item::heard(ItemId::fresh(), ItemStatus::Completed, content);
        let items = [
            heard(Content::InputAudio(None)),
            heard(Content::InputAudio(Some(String::new()))),
            says(Speaker::System, ""),
            broken_off,
            Item::answer(ItemId::fresh(), ItemStatus::InProgress, Vec::new()),
            heard(Content::Silence),
        ];
        assert_eq!(messages(items.iter()), [ChatMessage::user(SILENCE)]);
    }

    #[test]
    fn words_around_a_picture_keep_their_place() {
        let text = |text: &str| Content::InputText(text.to_owned());
        let image = Content::InputImage { url: "data:".to_owned(), detail: "low" };
        let content = vec![text("Look:"), text("this"), image, text("What is it?")];
        let items = [item(ItemBody::Message { speaker: Speaker::User, content })];
        let parts = vec![
            UserPart::Text("Look:\nthis".to_owned()),
            UserPart::Image { url: "data:".to_owned(), detail: "low" },
            UserPart::Text("What is it?".to_owned()),
        ];
        assert_eq!(messages(items.iter()), [ChatMessage::User(parts)]);
    }
}
