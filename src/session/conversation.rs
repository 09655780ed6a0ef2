//! The default conversation: its items in order, bounded.

use std::collections::VecDeque;

use super::spoken::Spoken;
use crate::message::ChatMessage;
use crate::protocol::{
    Content, ConversationId, Fault, Item, ItemBody, ItemId, ItemStatus, Speaker, Truncation, quoted,
};

/// Most items that are kept, of any size.
const ITEMS_MAX: usize = 1_000;

/// Most bytes of pictures that are kept.
const IMAGES_BYTES_MAX: usize = 16 * 1_024 * 1_024;

/// Weight of a picture, bytes of text: about 1,000 tokens. Source: OpenAI API guide "Images and vision": 765 tokens for
/// 1024 × 1024 pixels, other models more.
const IMAGE_WEIGHT: usize = 4 * 1_024;

/// Bytes of text that a token of a client's limit stands for.
const TOKEN_BYTES: usize = 4;

/// Factor of the budget up to which items are kept if the client has forbidden truncation. Nothing may grow for ever.
const DISABLED_FACTOR: usize = 4;

/// The items of a session, oldest first, bounded. When their text grows beyond the budget, the oldest whole turns are
/// forgotten. A turn is the user's words and all words and actions that answer them, calls and their outputs included.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: ConversationId,
    items: VecDeque<Item>,
    /// Spoken parts of the answers among `items`, in their order. An answer without audio has none, nor has one that is
    /// being made.
    spoken: VecDeque<(ItemId, Spoken)>,
    bytes_max: usize,
    pub(super) truncation: Truncation,
}

impl Conversation {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self {
            id: ConversationId::fresh(),
            items: VecDeque::new(),
            spoken: VecDeque::new(),
            bytes_max,
            truncation: Truncation::Auto,
        }
    }

    /// Adds an item at the end. Returns the id of the item before it.
    pub(super) fn push(&mut self, item: Item) -> Option<ItemId> {
        let previous = self.last();
        self.items.push_back(item);
        self.forget_old_turns();
        previous
    }

    /// Adds an item of the client after the item `place` (`None`: at the end, `"root"`: at the beginning). Returns the
    /// id of the item before it.
    pub(super) fn insert(&mut self, item: Item, place: Option<&str>) -> Result<Option<ItemId>, Fault> {
        if self.position(item.id.as_str()).is_some() {
            return Err(Fault::ItemExists { found: quoted(item.id.as_str()) });
        }
        if weight(&item) > self.bytes_max {
            let (found, allowed) = (weight(&item), self.bytes_max);
            return Err(Fault::TooLong { param: "item.content".to_owned(), found, allowed });
        }
        self.check_pairs(&item)?;
        let at = match place {
            None => self.items.len(),
            Some("root") => 0,
            Some(id) => match self.position(id) {
                Some(before) => before + 1,
                None => {
                    return Err(Fault::ItemNotFound {
                        code: "item_create_invalid_previous_item_id",
                        param: "previous_item_id".to_owned(),
                        found: quoted(id),
                    });
                }
            },
        };
        let previous = at.checked_sub(1).map(|before| self.items[before].id.clone());
        self.items.insert(at, item);
        self.forget_old_turns();
        Ok(previous)
    }

    /// Checks that each call has one name and at most one output, and each output a call.
    fn check_pairs(&self, item: &Item) -> Result<(), Fault> {
        let call_of = |name: &str| {
            self.items.iter().find(|item| matches!(&item.body, ItemBody::Call(call) if call.call_id == name))
        };
        let has_output = |name: &str| {
            let is_output =
                |item: &Item| matches!(&item.body, ItemBody::Output { call_id, .. } if call_id == name);
            self.items.iter().any(is_output)
        };
        match &item.body {
            ItemBody::Message { .. } => Ok(()),
            ItemBody::Call(call) if call_of(&call.call_id).is_some() => {
                Err(Fault::CallTaken { found: quoted(&call.call_id), what: "an item" })
            }
            ItemBody::Call(_) => Ok(()),
            // A call that was broken off takes no output.
            ItemBody::Output { call_id, .. }
                if call_of(call_id).is_none_or(|call| call.status != ItemStatus::Completed) =>
            {
                Err(Fault::CallNotFound { param: "item.call_id".to_owned(), found: quoted(call_id) })
            }
            ItemBody::Output { call_id, .. } if has_output(call_id) => {
                Err(Fault::CallTaken { found: quoted(call_id), what: "an output" })
            }
            ItemBody::Output { .. } => Ok(()),
        }
    }

    /// Replaces an item by its finished form. Returns it and the id of the item before it, or `None` if it has been
    /// forgotten.
    pub(super) fn finish(&mut self, item: Item) -> Option<(Item, Option<ItemId>)> {
        let at = self.position(item.id.as_str())?;
        let previous = at.checked_sub(1).map(|before| self.items[before].id.clone());
        self.items[at] = item.clone();
        self.forget_old_turns();
        Some((item, previous))
    }

    /// Ends an item that was heard, with its words. Returns it and the id of the item before it, or `None` if it has
    /// been forgotten or deleted.
    pub(super) fn hear(
        &mut self,
        id: &ItemId,
        status: ItemStatus,
        words: Option<&str>,
    ) -> Option<(Item, Option<ItemId>)> {
        let mut item = self.items[self.position(id.as_str())?].clone();
        item.status = status;
        if let ItemBody::Message { content, .. } = &mut item.body
            && let Some(part) = content.iter_mut().find(|part| matches!(part, Content::InputAudio(None)))
        {
            *part = Content::InputAudio(words.map(ToOwned::to_owned));
        }
        self.finish(item)
    }

    /// Keeps the spoken part of the answer `id`, for a later truncation by the client. Of an answer that was broken off
    /// the model sees only the text that can have been heard: the text whose audio has begun.
    pub(super) fn keep_spoken(&mut self, id: &ItemId, mut spoken: Spoken) {
        let Some(at) = self.position(id.as_str()) else {
            return;
        };
        if self.items[at].status == ItemStatus::Incomplete {
            spoken.break_off();
            tell_heard(&mut self.items[at], &spoken);
        }
        self.spoken.push_back((id.clone(), spoken));
    }

    /// Cuts the answer `id` to its first `end_ms` milliseconds and returns the item. `open` is the spoken part of the
    /// answer, if the answer is still being made; its later text is cut as well.
    ///
    /// # Errors
    /// Returns a fault if the item is no spoken answer, or if less of it has been sent or was left by the last cut.
    pub(super) fn truncate(
        &mut self,
        id: &str,
        end_ms: u32,
        open: Option<&mut Spoken>,
    ) -> Result<&Item, Fault> {
        let at = self.find(id, "item_truncate_invalid_item_id")?;
        let kept = self.spoken.iter_mut().find(|(spoken, _)| spoken.as_str() == id).map(|(_, spoken)| spoken);
        let spoken = open.or(kept).ok_or_else(|| Fault::NotSpoken { found: quoted(id) })?;
        spoken.truncate(end_ms).map_err(|sent_ms| Fault::NotSent { found_ms: end_ms, sent_ms })?;
        tell_heard(&mut self.items[at], spoken);
        Ok(&self.items[at])
    }

    /// Returns the item `id`.
    pub(super) fn item(&self, id: &str) -> Result<&Item, Fault> {
        Ok(&self.items[self.find(id, "item_retrieve_invalid_item_id")?])
    }

    /// Removes the item `id`.
    pub(super) fn delete(&mut self, id: &str) -> Result<ItemId, Fault> {
        let at = self.find(id, "item_delete_invalid_item_id")?;
        let item = self.items.remove(at).expect("just found");
        self.spoken.retain(|(spoken, _)| *spoken != item.id);
        Ok(item.id)
    }

    fn find(&self, id: &str, code: &'static str) -> Result<usize, Fault> {
        let missing = || Fault::ItemNotFound { code, param: "item_id".to_owned(), found: quoted(id) };
        self.position(id).ok_or_else(missing)
    }

    pub(super) fn last(&self) -> Option<ItemId> {
        self.items.back().map(|item| item.id.clone())
    }

    /// Iterates over the items, oldest first.
    pub(super) fn items(&self) -> impl Iterator<Item = &Item> + Clone {
        self.items.iter()
    }

    /// Returns the messages that the model sees of the conversation.
    pub(super) fn messages(&self) -> Vec<ChatMessage> {
        super::prompt::messages(self.items())
    }

    /// Returns true if the conversation is longer than the model can read; only without truncation.
    pub(super) fn is_too_long(&self) -> bool {
        self.truncation == Truncation::Disabled && self.weight() > self.bytes_max
    }

    fn position(&self, id: &str) -> Option<usize> {
        // From the end: almost always one of the last items is asked for.
        self.items.iter().rposition(|item| item.id.as_str() == id)
    }

    fn weight(&self) -> usize {
        self.items.iter().map(weight).sum()
    }

    fn forget_old_turns(&mut self) {
        let (most, keep) = match self.truncation {
            Truncation::Auto => (self.bytes_max, self.bytes_max),
            Truncation::Disabled => {
                let most = self.bytes_max.saturating_mul(DISABLED_FACTOR);
                (most, most)
            }
            Truncation::Retain { ratio, tokens_max } => {
                let asked = tokens_max.map_or(usize::MAX, |tokens| tokens as usize * TOKEN_BYTES);
                let most = self.bytes_max.min(asked);
                #[expect(
                    clippy::cast_precision_loss,
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "a share of a number of bytes; a byte more or less does not matter"
                )]
                let keep = (most as f64 * f64::from(ratio)) as usize;
                (most, keep)
            }
        };
        if self.weight() > most {
            while self.weight() > keep && self.forget_oldest_turn() {}
        }
        let image_bytes = |item: &Item| item.images().map(str::len).sum::<usize>();
        while (self.items.len() > ITEMS_MAX
            || self.items.iter().map(image_bytes).sum::<usize>() > IMAGES_BYTES_MAX)
            && self.forget_oldest_turn()
        {}
    }

    /// Forgets the oldest turn. Returns false if it is the last one, or not over.
    fn forget_oldest_turn(&mut self) -> bool {
        let oldest = self.oldest_turn();
        let open = self.items.iter().take(oldest).any(|item| item.status == ItemStatus::InProgress);
        if open || oldest >= self.items.len() {
            return false;
        }
        for item in self.items.drain(..oldest) {
            self.spoken.pop_front_if(|(spoken, _)| *spoken == item.id);
        }
        true
    }

    /// Returns the number of items of the oldest turn: 1 if there is only one turn, or nothing has been answered yet.
    fn oldest_turn(&self) -> usize {
        let is_said_to_model = |item: &Item| matches!(&item.body, ItemBody::Message { speaker, .. } if *speaker != Speaker::Assistant);
        let begins_turn =
            |at: &usize| is_said_to_model(&self.items[*at]) && !is_said_to_model(&self.items[at - 1]);
        (1..self.items.len()).find(begins_turn).unwrap_or(1)
    }
}

/// Returns the weight of an item, bytes: its text and its pictures.
fn weight(item: &Item) -> usize {
    match &item.body {
        ItemBody::Message { content, .. } => content
            .iter()
            .map(|part| match part {
                Content::InputText(text)
                | Content::InputAudio(Some(text))
                | Content::OutputText(text)
                | Content::OutputAudio(text) => text.len(),
                Content::InputAudio(None) | Content::Silence => 0,
                Content::InputImage { .. } => IMAGE_WEIGHT,
            })
            .sum(),
        ItemBody::Call(call) => call.name.len() + call.arguments.len(),
        ItemBody::Output { output, .. } => output.len(),
    }
}

/// Replaces the content of the answer by the text that was heard of it.
fn tell_heard(answer: &mut Item, spoken: &Spoken) {
    if let ItemBody::Message { content, .. } = &mut answer.body {
        *content = vec![Content::OutputAudio(spoken.heard().to_owned())];
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::UserPart;

    fn item(speaker: Speaker, text: &str) -> Item {
        let content = vec![Content::InputText(text.to_owned())];
        let body = ItemBody::Message { speaker, content };
        Item { id: ItemId::fresh(), status: ItemStatus::Completed, body }
    }

    fn texts(conversation: &Conversation) -> Vec<String> {
        let text = |message| match message {
            ChatMessage::System(text) | ChatMessage::Assistant { text, .. } => text,
            ChatMessage::User(parts) => match parts.as_slice() {
                [UserPart::Text(text)] => text.clone(),
                other => panic!("{other:?}"),
            },
            other => panic!("{other:?}"),
        };
        conversation.messages().into_iter().map(text).collect()
    }

    #[test]
    fn items_go_where_the_client_wants_them() {
        let mut conversation = Conversation::new(100);
        let first = item(Speaker::User, "1");
        assert_eq!(conversation.insert(first.clone(), None), Ok(None));
        assert_eq!(conversation.insert(item(Speaker::User, "3"), None), Ok(Some(first.id.clone())));
        let second = item(Speaker::User, "2");
        assert_eq!(conversation.insert(second.clone(), Some(first.id.as_str())), Ok(Some(first.id.clone())));
        assert_eq!(conversation.insert(item(Speaker::System, "0"), Some("root")), Ok(None));
        assert_eq!(texts(&conversation), ["0", "1", "2", "3"]);
        let code = |fault: Fault| fault.code();
        assert_eq!(
            conversation.insert(item(Speaker::User, "x"), Some("nowhere")).map_err(code),
            Err(Some("item_create_invalid_previous_item_id"))
        );
        assert_eq!(
            conversation.insert(second, None).map_err(code),
            Err(Some("item_create_duplicate_item_id"))
        );
        let long = item(Speaker::User, &"x".repeat(101));
        assert_eq!(conversation.insert(long, None).map_err(code), Err(Some("string_above_max_length")));
        assert_eq!(texts(&conversation), ["0", "1", "2", "3"]);
    }

    #[test]
    fn the_oldest_turns_are_forgotten_as_a_whole() {
        let mut conversation = Conversation::new(10);
        for turn in 0..4 {
            conversation.push(item(Speaker::User, &format!("q{turn}")));
            conversation.push(item(Speaker::Assistant, &format!("a{turn}")));
        }
        assert_eq!(texts(&conversation), ["q2", "a2", "q3", "a3"]);
    }

    #[test]
    fn an_open_item_and_the_last_one_are_not_forgotten() {
        let mut conversation = Conversation::new(4);
        let open = Item::heard(ItemId::fresh(), ItemStatus::InProgress, Content::InputAudio(None));
        conversation.push(open.clone());
        conversation.push(item(Speaker::User, "1234"));
        conversation.push(item(Speaker::User, "5678"));
        assert_eq!(texts(&conversation), ["1234", "5678"]);
        let filled = conversation.finish(Item::heard(
            open.id,
            ItemStatus::Completed,
            Content::InputAudio(Some("0".into())),
        ));
        assert!(
            filled.is_some_and(|(item, previous)| previous.is_none() && item.status == ItemStatus::Completed)
        );
        assert_eq!(texts(&conversation), ["5678"]);
        conversation.push(item(Speaker::Assistant, "longer than the budget"));
        assert_eq!(texts(&conversation), ["longer than the budget"]);
    }

    #[test]
    fn many_empty_items_are_bounded_too() {
        let mut conversation = Conversation::new(4);
        for _ in 0..ITEMS_MAX + 5 {
            conversation.push(item(Speaker::User, ""));
        }
        assert_eq!(conversation.items.len(), ITEMS_MAX);
        assert_eq!(texts(&conversation), [""; 0]);
    }
}
