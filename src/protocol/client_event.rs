//! Events of the client, one variant per wire event, values checked.

use super::bound::NAME_BYTES_MAX;
use super::error::Fault;
use super::field::Fields;
use super::id::ItemId;
use super::item::ClientItem;
use super::response_request::ResponseRequest;
use super::session_update::SessionUpdate;

/// A client event that is well formed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientEvent {
    /// The client's name for the event, at most 512 bytes.
    pub event_id: Option<String>,
    /// Type of the event, with its members.
    pub kind: ClientEventKind,
}

/// Type of a client event, with its members. `input_audio_buffer.append` is not here: see [`super::Decoded::Append`].
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEventKind {
    /// The event `session.update`.
    SessionUpdate(Box<SessionUpdate>),
    /// The event `input_audio_buffer.commit`.
    Commit,
    /// The event `input_audio_buffer.clear`.
    Clear,
    /// The event `conversation.item.create`.
    ItemCreate {
        /// `None`: at the end. `Some("root")`: at the beginning. Else after the item with this id.
        previous_item_id: Option<String>,
        /// The new item.
        item: Box<ClientItem>,
    },
    /// The event `conversation.item.retrieve`.
    ItemRetrieve {
        /// Id of the item.
        item_id: String,
    },
    /// The event `conversation.item.delete`.
    ItemDelete {
        /// Id of the item.
        item_id: String,
    },
    /// The event `conversation.item.truncate`.
    ItemTruncate {
        /// Id of the item, an answer that was spoken.
        item_id: String,
        /// Audio of the item that the user has heard, milliseconds.
        audio_end_ms: u32,
    },
    /// The event `response.create`.
    ResponseCreate(Box<ResponseRequest>),
    /// The event `response.cancel`.
    ResponseCancel {
        /// Id of the response to cancel; `None`: the running one.
        response_id: Option<String>,
    },
}

impl ClientEventKind {
    /// Reads the members of an event of type `kind`; `None` if the reference has no such event.
    pub(super) fn read(kind: &str, event: &Fields<'_, '_>) -> Option<Result<Self, Fault>> {
        Some(match kind {
            "session.update" => event
                .required("session", |field| SessionUpdate::read(&field.fields()?))
                .map(|update| Self::SessionUpdate(Box::new(update))),
            "input_audio_buffer.commit" => Ok(Self::Commit),
            "input_audio_buffer.clear" => Ok(Self::Clear),
            "conversation.item.create" => Self::read_item_create(event),
            "response.create" => {
                let request = event.optional("response", ResponseRequest::read);
                request.map(|request| Self::ResponseCreate(Box::new(request.unwrap_or_default())))
            }
            "response.cancel" => event
                .optional("response_id", |field| field.owned_up_to(NAME_BYTES_MAX))
                .map(|response_id| Self::ResponseCancel { response_id }),
            "conversation.item.retrieve" => item_id(event).map(|item_id| Self::ItemRetrieve { item_id }),
            "conversation.item.delete" => item_id(event).map(|item_id| Self::ItemDelete { item_id }),
            "conversation.item.truncate" => Self::read_item_truncate(event),
            "output_audio_buffer.clear" => Err(Fault::NotOnWebSocket),
            _ => return None,
        })
    }

    fn read_item_create(event: &Fields<'_, '_>) -> Result<Self, Fault> {
        let previous_item_id =
            event.optional("previous_item_id", |field| field.owned_up_to(ItemId::BYTES_MAX))?;
        let item = event.required("item", |field| ClientItem::read(&field.fields()?).map(Box::new))?;
        Ok(Self::ItemCreate { previous_item_id, item })
    }

    fn read_item_truncate(event: &Fields<'_, '_>) -> Result<Self, Fault> {
        let item_id = item_id(event)?;
        // An answer has one part.
        event.required("content_index", |field| field.integer(0..=0))?;
        let audio_end_ms = event.required("audio_end_ms", |field| field.integer(0..=u32::MAX))?;
        Ok(Self::ItemTruncate { item_id, audio_end_ms })
    }
}

fn item_id(event: &Fields<'_, '_>) -> Result<String, Fault> {
    event.required("item_id", |field| field.owned_up_to(ItemId::BYTES_MAX))
}

/// The events that this version takes, for error messages.
pub(super) const SUPPORTED: &str = "'session.update', 'input_audio_buffer.append', 'input_audio_buffer.commit', \
     'input_audio_buffer.clear', 'conversation.item.create', 'conversation.item.retrieve', 'conversation.item.delete', \
     'conversation.item.truncate', 'response.create', 'response.cancel'";
