//! The request of a `response.create`.

use serde_json::{Map, Value};

use crate::message::{FunctionTool, ReasoningEffort, ToolChoice};

use super::audio_format::NamedFormat;
use super::bound::{ELEMENTS_MAX, TEXT_BYTES_MAX};
use super::error::Fault;
use super::field::{Field, Fields, Patch};
use super::id::ItemId;
use super::item::ClientItem;
use super::output::{MaxTokens, Modality, refuse_stored_prompt, voice};
use super::tool::{reasoning, tool_choice, tools};

/// Metadata of a response: pairs, and bytes of a key and of a value.
/// Source: `realtime_response_create_params.py`, openai 3.57.0 (there in characters).
const METADATA_PAIRS_MAX: usize = 16;
const METADATA_KEY_BYTES_MAX: usize = 64;
const METADATA_VALUE_BYTES_MAX: usize = 512;

/// One element of `response.create`'s `input`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InputItem {
    /// An item of the request itself.
    Own(ClientItem),
    /// Id of an item of the conversation.
    Reference(String),
}

/// Fields of a `response.create`; `None`: the session's value applies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResponseRequest {
    /// Instructions instead of the session's.
    pub instructions: Option<String>,
    /// Modality instead of the session's.
    pub modality: Option<Modality>,
    /// Limit instead of the session's, tokens.
    pub tokens_max: Option<MaxTokens>,
    /// Functions instead of the session's; empty: none.
    pub tools: Option<Vec<FunctionTool>>,
    /// Choice among the functions instead of the session's.
    pub tool_choice: Option<ToolChoice>,
    /// True if the model may make more than one call, instead of the session's setting.
    pub parallel_tool_calls: Option<bool>,
    /// Reasoning effort instead of the session's.
    pub reasoning: Option<ReasoningEffort>,
    /// Output format instead of the session's.
    pub format: Option<NamedFormat>,
    /// Voice instead of the session's.
    pub voice: Option<String>,
    /// The client's own data, returned in the response object.
    pub metadata: Option<Map<String, Value>>,
    /// True for `conversation: "none"`: the answer does not become part of the conversation.
    pub out_of_band: bool,
    /// Context instead of the conversation; empty: no context at all.
    pub input: Option<Vec<InputItem>>,
}

impl InputItem {
    fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        let item = field.fields()?;
        let is_reference = item.optional("type", Field::text)? == Some("item_reference");
        if is_reference {
            return item.required("id", |id| id.owned_up_to(ItemId::BYTES_MAX)).map(Self::Reference);
        }
        let own = ClientItem::read(&item)?;
        if own.audio.is_some() {
            // Such audio must be recognised first, which only the conversation does.
            return Err(
                field.not_implemented("audio without a transcript here", "an item of the conversation")
            );
        }
        Ok(Self::Own(own))
    }
}

impl ResponseRequest {
    pub(super) fn read(field: &Field<'_, '_>) -> Result<Self, Fault> {
        let response = field.fields()?;
        refuse_stored_prompt(&response)?;
        let audio = response.optional("audio", Field::fields)?;
        let output = audio.map(|audio| audio.optional("output", Field::fields)).transpose()?.flatten();
        let of_output = |output: &Fields<'_, '_>| {
            Ok((output.optional("format", NamedFormat::read)?, output.optional("voice", voice)?))
        };
        let (format, voice) = output.as_ref().map(of_output).transpose()?.unwrap_or_default();
        let out_of_band = response.optional("conversation", |field| match field.text()? {
            "auto" => Ok(false),
            "none" => Ok(true),
            other => Err(field.wrong_word(other, "'auto' or 'none'")),
        })?;
        Ok(Self {
            instructions: response.optional("instructions", |field| field.owned_up_to(TEXT_BYTES_MAX))?,
            modality: response.optional("output_modalities", Modality::read)?,
            tokens_max: response.optional("max_output_tokens", MaxTokens::read)?,
            tools: response.optional("tools", tools)?,
            tool_choice: response.optional("tool_choice", tool_choice)?,
            parallel_tool_calls: response.optional("parallel_tool_calls", Field::boolean)?,
            reasoning: response.optional("reasoning", reasoning)?.and_then(Patch::set),
            format,
            voice,
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

fn metadata(field: &Field<'_, '_>) -> Result<Map<String, Value>, Fault> {
    let fields = field.fields()?;
    let mut map = Map::new();
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
