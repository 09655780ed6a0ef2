//! Events of the client, one variant per wire event, values checked.

use super::error::Fault;
use super::field::{Field, Fields};
use super::id::ItemId;
use super::session_update::{SessionUpdate, pcm_24k, voice};

/// Longest `event_id` of a client, bytes; it is kept until the event is answered.
pub(super) const EVENT_ID_BYTES_MAX: usize = 512;

/// Longest name of a model, voice or language, bytes.
pub(super) const NAME_BYTES_MAX: usize = 128;

/// Longest text of instructions or of one part of a message, bytes. The conversation has its own, smaller
/// budget.
pub(super) const TEXT_BYTES_MAX: usize = 256 * 1_024;

/// Most tokens of one response that can be asked for. Source: `realtime_response_create_params.py`, openai
/// 3.57.0.
const TOKENS_MAX: u32 = 4_096;

/// Most parts of one message, and most items of one `response.create`.
const ELEMENTS_MAX: usize = 128;

/// Metadata of a response: pairs, and bytes of a key and of a value.
/// Source: `realtime_response_create_params.py`, openai 3.57.0 (there in characters).
const METADATA_PAIRS_MAX: usize = 16;
const METADATA_KEY_BYTES_MAX: usize = 64;
const METADATA_VALUE_BYTES_MAX: usize = 512;

/// A client event that is well formed.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientEvent {
    /// The client's name for it, at most 512 bytes.
    pub event_id: Option<String>,
    /// What it is.
    pub kind: ClientEventKind,
}

/// What a client asks for. `input_audio_buffer.append` is not here: see [`super::Decoded::Append`].
#[derive(Clone, Debug, PartialEq)]
pub enum ClientEventKind {
    /// `session.update`.
    SessionUpdate(Box<SessionUpdate>),
    /// `input_audio_buffer.commit`.
    Commit,
    /// `input_audio_buffer.clear`.
    Clear,
    /// `conversation.item.create`.
    ItemCreate {
        /// `None`: at the end. `Some("root")`: at the beginning. Else after the item with this id.
        previous_item_id: Option<String>,
        /// The item.
        item: ClientItem,
    },
    /// `conversation.item.retrieve`.
    ItemRetrieve {
        /// The item.
        item_id: String,
    },
    /// `conversation.item.delete`.
    ItemDelete {
        /// The item.
        item_id: String,
    },
    /// `conversation.item.truncate`.
    ItemTruncate {
        /// The item, an answer that was spoken.
        item_id: String,
        /// What of its audio the user has heard, milliseconds.
        audio_end_ms: u32,
    },
    /// `response.create`.
    ResponseCreate(Box<ResponseRequest>),
    /// `response.cancel`.
    ResponseCancel {
        /// The response to cancel; `None`: the running one.
        response_id: Option<String>,
    },
}

/// Who a client lets speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaker {
    /// A system message in the conversation.
    System,
    /// The user.
    User,
    /// The model, in a conversation that is brought along.
    Assistant,
}

/// A text message made by the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientItem {
    /// The client's id for it.
    pub id: Option<ItemId>,
    /// Who says it.
    pub speaker: Speaker,
    /// Its parts, at least one.
    pub parts: Vec<String>,
}

/// One element of `response.create`'s `input`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputItem {
    /// A message.
    Message(ClientItem),
    /// An item of the conversation.
    Reference(String),
}

/// What the model answers with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modality {
    /// `["audio"]`: speech and its transcript.
    Audio,
    /// `["text"]`.
    Text,
}

/// `max_output_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokens {
    /// `"inf"`: what the model server allows.
    Unlimited,
    /// At most this many, `1..=4096`.
    AtMost(u32),
}

/// What `response.create` asks for; `None`: as the session has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseRequest {
    /// Instead of the session's instructions.
    pub instructions: Option<String>,
    /// Instead of the session's modality.
    pub modality: Option<Modality>,
    /// Instead of the session's limit.
    pub tokens_max: Option<MaxTokens>,
    /// Returned in the response object.
    pub metadata: Option<serde_json::Map<String, serde_json::Value>>,
    /// `conversation: "none"`: the answer does not become part of the conversation.
    pub out_of_band: bool,
    /// The context instead of the conversation; empty: none at all.
    pub input: Option<Vec<InputItem>>,
}

const NO_TOOLS: &str = "message items with text content";

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
        let item = event.required("item", |field| ClientItem::read(&field.fields()?))?;
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

impl ClientItem {
    fn read(item: &Fields<'_, '_>) -> Result<Self, Fault> {
        item.required("type", |kind| match kind.text()? {
            "message" => Ok(()),
            found @ ("function_call"
            | "function_call_output"
            | "mcp_approval_response"
            | "mcp_list_tools"
            | "mcp_call"
            | "mcp_approval_request") => {
                Err(kind.not_implemented(format!("an item of type '{found}'"), NO_TOOLS))
            }
            other => Err(kind.wrong_word(other, "'message'")),
        })?;
        let speaker = item.required("role", |role| match role.text()? {
            "system" => Ok(Speaker::System),
            "user" => Ok(Speaker::User),
            "assistant" => Ok(Speaker::Assistant),
            other => Err(role.wrong_word(other, "'system', 'user' or 'assistant'")),
        })?;
        let id = item.optional("id", |id| match id.text_up_to(ItemId::BYTES_MAX)? {
            "" | "root" => Err(id.wrong_word(id.text()?, "a name that is not empty and not 'root'")),
            name => Ok(ItemId::of_client(name)),
        })?;
        let parts = item.required("content", |content| Self::read_parts(content, speaker))?;
        Ok(Self { id, speaker, parts })
    }

    fn read_parts(content: &Field<'_, '_>, speaker: Speaker) -> Result<Vec<String>, Fault> {
        let elements = content.elements()?;
        if elements.is_empty() || elements.len() > ELEMENTS_MAX {
            return Err(content.wrong_value(
                format!("an array of {} parts", elements.len()),
                format!("1 to {ELEMENTS_MAX} parts"),
            ));
        }
        elements.iter().map(|part| Self::read_part(&part.fields()?, speaker)).collect()
    }

    fn read_part(part: &Fields<'_, '_>, speaker: Speaker) -> Result<String, Fault> {
        let wanted = match speaker {
            Speaker::System | Speaker::User => "input_text",
            Speaker::Assistant => "output_text",
        };
        part.required("type", |kind| match kind.text()? {
            found if found == wanted => Ok(()),
            found @ ("input_audio" | "input_image" | "output_audio") => {
                Err(kind.not_implemented(format!("content of type '{found}'"), NO_TOOLS))
            }
            other => Err(kind.wrong_word(other, format!("'{wanted}'"))),
        })?;
        part.required("text", |text| text.owned_up_to(TEXT_BYTES_MAX))
    }
}

impl InputItem {
    fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        let item = field.fields()?;
        let is_reference = item.optional("type", Field::text)? == Some("item_reference");
        if is_reference {
            return item.required("id", |id| id.owned_up_to(ItemId::BYTES_MAX)).map(Self::Reference);
        }
        ClientItem::read(&item).map(Self::Message)
    }
}

impl Modality {
    pub(super) fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        const ACCEPTED: &str = "[\"audio\"] or [\"text\"]";
        let elements = field.elements()?;
        let [only] = elements.as_slice() else {
            return Err(field.wrong_value(format!("an array of {} modalities", elements.len()), ACCEPTED));
        };
        match only.text()? {
            "audio" => Ok(Self::Audio),
            "text" => Ok(Self::Text),
            other => Err(only.wrong_word(other, ACCEPTED)),
        }
    }
}

impl MaxTokens {
    pub(super) fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        if !field.is_string() {
            return field.integer(1..=TOKENS_MAX).map(Self::AtMost);
        }
        match field.text()? {
            "inf" => Ok(Self::Unlimited),
            other => Err(field.wrong_word(other, format!("1 to {TOKENS_MAX}, or 'inf'"))),
        }
    }
}

impl ResponseRequest {
    fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        let response = field.fields()?;
        if let Some(audio) = response.optional("audio", Field::fields)?
            && let Some(output) = audio.optional("output", Field::fields)?
        {
            // The server has one voice and one format: both are checked, nothing is to be kept.
            output.optional("format", pcm_24k)?;
            output.optional("voice", voice)?;
        }
        let out_of_band = response.optional("conversation", |field| match field.text()? {
            "auto" => Ok(false),
            "none" => Ok(true),
            other => Err(field.wrong_word(other, "'auto' or 'none'")),
        })?;
        Ok(Self {
            instructions: response.optional("instructions", |field| field.owned_up_to(TEXT_BYTES_MAX))?,
            modality: response.optional("output_modalities", Modality::read)?,
            tokens_max: response.optional("max_output_tokens", MaxTokens::read)?,
            metadata: response.optional("metadata", metadata)?,
            out_of_band: out_of_band.unwrap_or(false),
            input: response.optional("input", input)?,
        })
    }
}

fn input(field: &Field<'_, '_>) -> Result<Vec<InputItem>, Fault> {
    let elements = field.elements()?;
    if elements.len() > ELEMENTS_MAX {
        return Err(field.wrong_value(
            format!("an array of {} items", elements.len()),
            format!("at most {ELEMENTS_MAX} items"),
        ));
    }
    elements.iter().map(InputItem::read).collect()
}

fn metadata(field: &Field<'_, '_>) -> Result<serde_json::Map<String, serde_json::Value>, Fault> {
    let fields = field.fields()?;
    let mut map = serde_json::Map::new();
    for (key, value) in fields.members() {
        if key.len() > METADATA_KEY_BYTES_MAX {
            let (param, found) = (field.path().to_owned(), key.len());
            return Err(Fault::TooLong { param, found, allowed: METADATA_KEY_BYTES_MAX });
        }
        map.insert(key.to_owned(), value.owned_up_to(METADATA_VALUE_BYTES_MAX)?.into());
        if map.len() > METADATA_PAIRS_MAX {
            return Err(field.wrong_value("too many pairs", format!("at most {METADATA_PAIRS_MAX} pairs")));
        }
    }
    Ok(map)
}
