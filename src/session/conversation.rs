//! The default conversation: its items in order, and the prompt that is made of them.

use std::collections::VecDeque;

use super::spoken::Spoken;
use crate::audio::SampleRate;
use crate::message::ChatMessage;
use crate::protocol::{Content, ConversationId, Fault, Item, ItemId, ItemStatus, Speaker, quoted};

/// Most items that are kept, whatever they hold.
const ITEMS_MAX: usize = 1_000;

/// The items of a session, oldest first, bounded: when their text grows beyond the budget the oldest whole
/// turns are forgotten. A turn is what the user said and the answer to it.
#[derive(Debug)]
pub(super) struct Conversation {
    pub(super) id: ConversationId,
    items: VecDeque<Item>,
    /// What of the answers among `items` was spoken, and when. In their order; an answer that was not spoken has none.
    spoken: VecDeque<(ItemId, Spoken)>,
    bytes_max: usize,
}

impl Conversation {
    pub(super) fn new(bytes_max: usize) -> Self {
        Self { id: ConversationId::fresh(), items: VecDeque::new(), spoken: VecDeque::new(), bytes_max }
    }

    /// Adds an item at the end; returns the id of the item before it.
    pub(super) fn push(&mut self, item: Item) -> Option<ItemId> {
        let previous = self.last();
        self.items.push_back(item);
        self.forget_old_turns();
        previous
    }

    /// Adds an item of the client after the item `place` (`None`: at the end, `"root"`: at the beginning);
    /// returns the id of the item before it.
    pub(super) fn insert(&mut self, item: Item, place: Option<&str>) -> Result<Option<ItemId>, Fault> {
        if self.position(item.id.as_str()).is_some() {
            return Err(Fault::ItemExists { found: quoted(item.id.as_str()) });
        }
        if item.bytes() > self.bytes_max {
            let (found, allowed) = (item.bytes(), self.bytes_max);
            return Err(Fault::TooLong { param: "item.content".to_owned(), found, allowed });
        }
        let at = match place {
            None => self.items.len(),
            Some("root") => 0,
            Some(id) => match self.position(id) {
                Some(before) => before + 1,
                None => {
                    return Err(Fault::ItemNotFound {
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

    /// Fills an item; returns it and the id of the item before it. `None` if it has been forgotten.
    pub(super) fn finish(
        &mut self,
        id: &ItemId,
        status: ItemStatus,
        content: Content,
    ) -> Option<(Item, Option<ItemId>)> {
        let at = self.position(id.as_str())?;
        let previous = at.checked_sub(1).map(|before| self.items[before].id.clone());
        self.items[at].status = status;
        self.items[at].content = content;
        let item = self.items[at].clone();
        self.forget_old_turns();
        Some((item, previous))
    }

    /// Keeps what the answer `id` has spoken, for a client that says how much of it was heard. Of an answer that was broken
    /// off the model sees only what can have been heard: the text whose audio has begun.
    pub(super) fn keep_spoken(&mut self, id: &ItemId, mut spoken: Spoken) {
        let Some(at) = self.position(id.as_str()) else {
            return;
        };
        if self.items[at].status == ItemStatus::Incomplete {
            spoken.forget_unsaid();
            self.items[at].content = Content::AssistantAudio(spoken.text().to_owned());
        }
        self.spoken.push_back((id.clone(), spoken));
    }

    /// Cuts the answer `id`, which was spoken at `rate`, to its first `end_ms` milliseconds.
    ///
    /// # Errors
    /// When it is no answer that was spoken and has ended, or has less audio.
    pub(super) fn truncate(&mut self, id: &str, end_ms: u32, rate: SampleRate) -> Result<ItemId, Fault> {
        let not_spoken = |what| Fault::NotSpoken { found: quoted(id), what };
        let at = self.find(id)?;
        let item = &mut self.items[at];
        let Content::AssistantAudio(text) = &mut item.content else {
            let is_open = item.status == ItemStatus::InProgress && item.speaker == Speaker::Assistant;
            return Err(not_spoken(if is_open { "still in progress" } else { "not one" }));
        };
        let Some((_, spoken)) = self.spoken.iter_mut().find(|(spoken, _)| spoken.as_str() == id) else {
            return Err(not_spoken("not one"));
        };
        if rate.samples_in(end_ms) > spoken.samples() {
            return Err(Fault::NotSent { found_ms: end_ms, sent_ms: rate.millis_of(spoken.samples()) });
        }
        spoken.truncate(rate.samples_in(end_ms));
        spoken.text().clone_into(text);
        Ok(item.id.clone())
    }

    /// The item `id`.
    pub(super) fn item(&self, id: &str) -> Result<&Item, Fault> {
        Ok(&self.items[self.find(id)?])
    }

    /// Takes the item `id` out.
    pub(super) fn delete(&mut self, id: &str) -> Result<ItemId, Fault> {
        let at = self.find(id)?;
        let item = self.items.remove(at).expect("just found");
        self.spoken.retain(|(spoken, _)| *spoken != item.id);
        Ok(item.id)
    }

    fn find(&self, id: &str) -> Result<usize, Fault> {
        let missing = || Fault::ItemNotFound { param: "item_id".to_owned(), found: quoted(id) };
        self.position(id).ok_or_else(missing)
    }

    pub(super) fn last(&self) -> Option<ItemId> {
        self.items.back().map(|item| item.id.clone())
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.position(id).is_some()
    }

    /// The message that the model sees of one item, if there is one.
    pub(super) fn message(&self, id: &str) -> Option<ChatMessage> {
        self.items[self.position(id)?].message()
    }

    /// What the model sees of the conversation.
    pub(super) fn messages(&self) -> impl Iterator<Item = ChatMessage> + '_ {
        self.items.iter().filter_map(Item::message)
    }

    fn position(&self, id: &str) -> Option<usize> {
        // From the end: almost always one of the last items is asked for.
        self.items.iter().rposition(|item| item.id.as_str() == id)
    }

    fn forget_old_turns(&mut self) {
        while self.items.len() > ITEMS_MAX
            || self.items.iter().map(Item::bytes).sum::<usize>() > self.bytes_max
        {
            let oldest = self.oldest_turn();
            let open = self.items.iter().take(oldest).any(|item| item.status == ItemStatus::InProgress);
            if open || oldest == self.items.len() {
                return;
            }
            for item in self.items.drain(..oldest) {
                self.spoken.pop_front_if(|(spoken, _)| *spoken == item.id);
            }
        }
    }

    /// Number of items of the oldest turn; a single item where nothing has been answered yet.
    fn oldest_turn(&self) -> usize {
        let answered = |at: &usize| {
            self.items[at - 1].speaker == Speaker::Assistant && self.items[*at].speaker != Speaker::Assistant
        };
        (1..self.items.len()).find(answered).unwrap_or(1)
    }
}

impl Item {
    /// Bytes of text.
    fn bytes(&self) -> usize {
        match &self.content {
            Content::Empty | Content::UserAudio(None) => 0,
            Content::Text(parts) => parts.iter().map(String::len).sum(),
            Content::UserAudio(Some(text)) | Content::AssistantAudio(text) => text.len(),
        }
    }

    /// What the model sees of the item: nothing if it says nothing (yet). Parts are joined by line breaks.
    pub(super) fn message(&self) -> Option<ChatMessage> {
        let content = match &self.content {
            Content::Empty | Content::UserAudio(None) => return None,
            Content::Text(parts) => parts.join("\n"),
            Content::UserAudio(Some(text)) | Content::AssistantAudio(text) => text.clone(),
        };
        (!content.is_empty()).then(|| match self.speaker {
            Speaker::System => ChatMessage::System(content),
            Speaker::User => ChatMessage::user(content),
            Speaker::Assistant => ChatMessage::assistant(content),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::UserPart;

    fn item(speaker: Speaker, text: &str) -> Item {
        let content = Content::Text(vec![text.to_owned()]);
        Item { id: ItemId::fresh(), status: ItemStatus::Completed, speaker, content }
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
        conversation.messages().map(text).collect()
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
            Err(Some("item_not_found"))
        );
        assert_eq!(conversation.insert(second, None).map_err(code), Err(Some("item_already_exists")));
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
        let mut open = item(Speaker::User, "");
        open.status = ItemStatus::InProgress;
        open.content = Content::UserAudio(None);
        conversation.push(open.clone());
        conversation.push(item(Speaker::User, "1234"));
        conversation.push(item(Speaker::User, "5678"));
        assert_eq!(texts(&conversation), ["1234", "5678"]);
        let filled =
            conversation.finish(&open.id, ItemStatus::Completed, Content::UserAudio(Some("0".into())));
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
