//! Items of a conversation: their content, how a client writes them and how the server shows them.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Value, json};

use crate::message::FunctionCall;

use super::bound::{ELEMENTS_MAX, NAME_BYTES_MAX, TEXT_BYTES_MAX};
use super::error::{Fault, quoted};
use super::field::{Field, Fields};
use super::id::{ItemId, fresh_call_id};

/// Largest picture of a client, bytes of its `data:` URL.
const IMAGE_BYTES_MAX: usize = 6 * 1_024 * 1_024;

/// Types of pictures that vision models read. Source: `realtime_conversation_item_user_message.py`, openai 3.57.0, for
/// PNG and JPEG; the hosted models and vLLM read WebP and GIF too.
const IMAGE_TYPES: [&str; 4] = ["png", "jpeg", "webp", "gif"];

/// Author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Speaker {
    /// A system message in the conversation.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

impl Speaker {
    /// Returns the wire's `role`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// State of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ItemStatus {
    /// Still being filled.
    InProgress,
    /// Complete, nothing missing.
    Completed,
    /// Broken off.
    Incomplete,
}

/// One item of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Id of the item.
    pub id: ItemId,
    /// State of the item.
    pub status: ItemStatus,
    /// Content of the item.
    pub body: ItemBody,
}

/// Content of an item, by the type of the item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ItemBody {
    /// A message, `message`.
    Message {
        /// Author of the message.
        speaker: Speaker,
        /// Parts of the message.
        content: Vec<Content>,
    },
    /// A call, `function_call`: by the model, or by a client that brings a conversation along.
    Call(FunctionCall),
    /// The result of a call, `function_call_output`.
    Output {
        /// Id of the call.
        call_id: String,
        /// Result in the client's words.
        output: String,
    },
}

/// One part of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Written text of the user or the system, `input_text`.
    InputText(String),
    /// Speech of the user, `input_audio`: the transcript, `None` until there is one. Samples are not kept.
    InputAudio(Option<String>),
    /// Silence of the user that was a turn, `input_audio` without a word. The prompt mentions the silence.
    Silence,
    /// A picture, `input_image`.
    InputImage {
        /// A `data:` URL, or an address.
        url: String,
        /// Level of detail for the model: `auto`, `low` or `high`.
        detail: &'static str,
    },
    /// Written text of the model, `output_text`.
    OutputText(String),
    /// Speech of the model, `output_audio`, as text.
    OutputAudio(String),
}

/// An item made by a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientItem {
    /// Id that the client chose; `None`: the server makes one.
    pub id: Option<ItemId>,
    /// Content of the item.
    pub body: ItemBody,
    /// Base64 of the audio of the `input_audio` part without a transcript. An item has at most one such part.
    pub audio: Option<String>,
}

impl From<ClientItem> for Item {
    fn from(item: ClientItem) -> Self {
        Self { id: item.id.unwrap_or_else(ItemId::fresh), status: ItemStatus::Completed, body: item.body }
    }
}

impl ClientItem {
    pub(super) fn read(item: &Fields<'_, '_>) -> Result<Self, Fault> {
        let id = item.optional("id", |id| match id.text_up_to(ItemId::BYTES_MAX)? {
            "" | "root" => Err(id.wrong_word(id.text()?, "a name that is not empty and not 'root'")),
            name => Ok(ItemId::of_client(name)),
        })?;
        let mut audio = None;
        let body = item.required("type", |kind| match kind.text()? {
            "message" => Self::read_message(item, &mut audio),
            "function_call" => Self::read_call(item),
            "function_call_output" => Self::read_output(item),
            found @ ("mcp_approval_response" | "mcp_list_tools" | "mcp_call" | "mcp_approval_request") => {
                Err(kind.not_implemented(format!("an item of type '{found}'"), "functions of the client"))
            }
            other => Err(kind.wrong_word(other, "'message', 'function_call' or 'function_call_output'")),
        })?;
        Ok(Self { id, body, audio })
    }

    fn read_message(item: &Fields<'_, '_>, audio: &mut Option<String>) -> Result<ItemBody, Fault> {
        let speaker = item.required("role", |role| match role.text()? {
            "system" => Ok(Speaker::System),
            "user" => Ok(Speaker::User),
            "assistant" => Ok(Speaker::Assistant),
            other => Err(role.wrong_word(other, "'system', 'user' or 'assistant'")),
        })?;
        let content = item.required("content", |content| {
            let elements = content.elements()?;
            if elements.is_empty() || elements.len() > ELEMENTS_MAX {
                return Err(content.wrong_value(
                    format!("an array of {} parts", elements.len()),
                    format!("1 to {ELEMENTS_MAX} parts"),
                ));
            }
            elements.iter().map(|part| read_part(&part.fields()?, speaker, audio)).collect()
        })?;
        Ok(ItemBody::Message { speaker, content })
    }

    fn read_call(item: &Fields<'_, '_>) -> Result<ItemBody, Fault> {
        Ok(ItemBody::Call(FunctionCall {
            call_id: item.optional("call_id", call_id)?.unwrap_or_else(fresh_call_id),
            name: item.required("name", |name| name.owned_up_to(NAME_BYTES_MAX))?,
            arguments: item.required("arguments", |text| text.owned_up_to(TEXT_BYTES_MAX))?,
        }))
    }

    fn read_output(item: &Fields<'_, '_>) -> Result<ItemBody, Fault> {
        Ok(ItemBody::Output {
            call_id: item.required("call_id", call_id)?,
            output: item.required("output", |text| text.owned_up_to(TEXT_BYTES_MAX))?,
        })
    }
}

fn call_id(field: &Field<'_, '_>) -> Result<String, Fault> {
    match field.text_up_to(NAME_BYTES_MAX)? {
        "" => Err(field.wrong_word("", "a name that is not empty")),
        name => Ok(name.to_owned()),
    }
}

fn read_part(part: &Fields<'_, '_>, speaker: Speaker, audio: &mut Option<String>) -> Result<Content, Fault> {
    let text = || part.required("text", |text| text.owned_up_to(TEXT_BYTES_MAX));
    let transcript = || part.optional("transcript", |text| text.owned_up_to(TEXT_BYTES_MAX));
    part.required("type", |kind| match (speaker, kind.text()?) {
        (Speaker::System | Speaker::User, "input_text") => text().map(Content::InputText),
        (Speaker::User, "input_audio") => {
            if let Some(transcript) = transcript()? {
                return Ok(Content::InputAudio(Some(transcript)));
            }
            let samples = part.required("audio", |audio| {
                let text = audio.text()?;
                let valid = base64_simd::STANDARD.check(text.as_bytes()).is_ok();
                if valid {
                    Ok(text.to_owned())
                } else {
                    Err(audio.wrong_value("not base64", "base64 with padding"))
                }
            })?;
            if audio.replace(samples).is_some() {
                return Err(kind.wrong_value("a second part with audio", "one that has no transcript"));
            }
            Ok(Content::InputAudio(None))
        }
        (Speaker::User, "input_image") => read_image(part),
        (Speaker::Assistant, "output_text") => text().map(Content::OutputText),
        // Only the words of the model's speech are kept.
        (Speaker::Assistant, "output_audio") => {
            part.required("transcript", |text| text.owned_up_to(TEXT_BYTES_MAX)).map(Content::OutputAudio)
        }
        (Speaker::System, other) => Err(kind.wrong_word(other, "'input_text'")),
        (Speaker::User, other) => Err(kind.wrong_word(other, "'input_text', 'input_audio' or 'input_image'")),
        (Speaker::Assistant, other) => Err(kind.wrong_word(other, "'output_text' or 'output_audio'")),
    })
}

fn read_image(part: &Fields<'_, '_>) -> Result<Content, Fault> {
    let url = part.required("image_url", |url| {
        let text = url.text_up_to(IMAGE_BYTES_MAX)?;
        if is_image(text) || text.starts_with("https://") || text.starts_with("http://") {
            return Ok(text.to_owned());
        }
        Err(url.wrong_value(quoted(text), "'data:image/png;base64,…' with a PNG, JPEG, WebP or GIF"))
    })?;
    let detail = part.optional("detail", |detail| match detail.text()? {
        "auto" => Ok("auto"),
        "low" => Ok("low"),
        "high" => Ok("high"),
        other => Err(detail.wrong_word(other, "'auto', 'low' or 'high'")),
    })?;
    Ok(Content::InputImage { url, detail: detail.unwrap_or("auto") })
}

fn is_image(url: &str) -> bool {
    let Some((kind, data)) = url.strip_prefix("data:image/").and_then(|rest| rest.split_once(";base64,"))
    else {
        return false;
    };
    IMAGE_TYPES.contains(&kind) && !data.is_empty() && base64_simd::STANDARD.check(data.as_bytes()).is_ok()
}

impl Item {
    /// Makes a message of the model.
    #[must_use]
    pub const fn answer(id: ItemId, status: ItemStatus, content: Vec<Content>) -> Self {
        Self { id, status, body: ItemBody::Message { speaker: Speaker::Assistant, content } }
    }

    /// Makes a message of the user from speech.
    #[must_use]
    pub fn heard(id: ItemId, status: ItemStatus, content: Content) -> Self {
        Self { id, status, body: ItemBody::Message { speaker: Speaker::User, content: vec![content] } }
    }

    /// Iterates over the addresses of the item's images.
    pub fn images(&self) -> impl Iterator<Item = &str> {
        let content = match &self.body {
            ItemBody::Message { content, .. } => content.as_slice(),
            ItemBody::Call(_) | ItemBody::Output { .. } => &[],
        };
        content.iter().filter_map(|part| match part {
            Content::InputImage { url, .. } => Some(url.as_str()),
            Content::InputText(_)
            | Content::InputAudio(_)
            | Content::Silence
            | Content::OutputText(_)
            | Content::OutputAudio(_) => None,
        })
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("object", "realtime.item")?;
        match &self.body {
            ItemBody::Message { speaker, content } => {
                map.serialize_entry("type", "message")?;
                map.serialize_entry("status", &self.status)?;
                map.serialize_entry("role", speaker.as_str())?;
                map.serialize_entry("content", content)?;
            }
            ItemBody::Call(call) => {
                map.serialize_entry("type", "function_call")?;
                map.serialize_entry("status", &self.status)?;
                map.serialize_entry("call_id", &call.call_id)?;
                map.serialize_entry("name", &call.name)?;
                map.serialize_entry("arguments", &call.arguments)?;
            }
            ItemBody::Output { call_id, output } => {
                map.serialize_entry("type", "function_call_output")?;
                map.serialize_entry("status", &self.status)?;
                map.serialize_entry("call_id", call_id)?;
                map.serialize_entry("output", output)?;
            }
        }
        map.end()
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value: Value = match self {
            Self::InputText(text) => json!({"type": "input_text", "text": text}),
            Self::InputAudio(transcript) => json!({"type": "input_audio", "transcript": transcript}),
            Self::Silence => json!({"type": "input_audio", "transcript": ""}),
            Self::InputImage { url, detail } => {
                json!({"type": "input_image", "image_url": url, "detail": detail})
            }
            Self::OutputText(text) => json!({"type": "output_text", "text": text}),
            Self::OutputAudio(transcript) => json!({"type": "output_audio", "transcript": transcript}),
        };
        value.serialize(serializer)
    }
}
