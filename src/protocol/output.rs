//! Fields that `session.update` and `response.create` share: modality, limit and voice, and the stored prompt that both
//! refuse.

use serde::ser::{Serialize, Serializer};

use super::bound::NAME_BYTES_MAX;
use super::error::Fault;
use super::field::{Field, Fields};

/// Largest limit on the tokens of one response that a client can set. Source: `realtime_response_create_params.py`,
/// openai 3.57.0.
const TOKENS_MAX: u32 = 4_096;

/// Form of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Modality {
    /// `["audio"]`: speech and its transcript.
    Audio,
    /// `["text"]`: text only.
    Text,
}

/// The limit `max_output_tokens`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MaxTokens {
    /// `"inf"`: as many as the model server allows.
    Unlimited,
    /// At most this many tokens, `1..=4096`.
    AtMost(u32),
}

impl Modality {
    /// Reads `output_modalities`.
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

    /// Returns the wire's `output_modalities`.
    pub(super) const fn on_wire(self) -> [&'static str; 1] {
        match self {
            Self::Audio => ["audio"],
            Self::Text => ["text"],
        }
    }
}

impl MaxTokens {
    /// Reads `max_output_tokens`.
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

impl Serialize for MaxTokens {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Unlimited => serializer.serialize_str("inf"),
            Self::AtMost(tokens) => serializer.serialize_u32(*tokens),
        }
    }
}

/// Reads a `voice`: a name, or `{"id": name}`.
pub(super) fn voice(field: &Field<'_, '_>) -> Result<String, Fault> {
    if field.is_string() {
        return field.owned_up_to(NAME_BYTES_MAX);
    }
    field.fields()?.required("id", |id| id.owned_up_to(NAME_BYTES_MAX))
}

/// Refuses a stored `prompt`, which this server does not have.
pub(super) fn refuse_stored_prompt(fields: &Fields<'_, '_>) -> Result<(), Fault> {
    let refused = fields.optional("prompt", |prompt| {
        Err::<(), _>(prompt.not_implemented("a stored prompt", "'instructions'"))
    });
    refused.map(|_| ())
}
