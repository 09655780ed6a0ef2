//! Functions that a client offers to the model, the choice among them, and the reasoning effort.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;

use crate::message::{FunctionTool, ReasoningEffort, ToolChoice};

use super::bound::{ELEMENTS_MAX, TEXT_BYTES_MAX};
use super::error::Fault;
use super::field::{Field, Patch};

/// Longest name of a function, bytes. Source: OpenAI API reference, `tools.function.name`.
const FUNCTION_NAME_BYTES_MAX: usize = 64;

const FUNCTIONS: &str = "tools of type 'function'";

/// Reads `tools`.
pub(super) fn tools(field: &Field<'_, '_>) -> Result<Vec<FunctionTool>, Fault> {
    let elements = field.elements()?;
    if elements.len() > ELEMENTS_MAX {
        return Err(field.wrong_value(
            format!("an array of {} tools", elements.len()),
            format!("at most {ELEMENTS_MAX} tools"),
        ));
    }
    elements.iter().map(tool).collect()
}

fn tool(field: &Field<'_, '_>) -> Result<FunctionTool, Fault> {
    let tool = field.fields()?;
    tool.required("type", |kind| match kind.text()? {
        "function" => Ok(()),
        found @ "mcp" => Err(kind.not_implemented(format!("a tool of type '{found}'"), FUNCTIONS)),
        other => Err(kind.wrong_word(other, "'function'")),
    })?;
    Ok(FunctionTool {
        name: tool.required("name", function_name)?,
        description: tool.optional("description", |text| text.owned_up_to(TEXT_BYTES_MAX))?,
        parameters: tool.optional("parameters", |schema| {
            schema.fields()?;
            Ok(schema.json())
        })?,
    })
}

fn function_name(field: &Field<'_, '_>) -> Result<String, Fault> {
    let name = field.text_up_to(FUNCTION_NAME_BYTES_MAX)?;
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if name.is_empty() || !name.bytes().all(fits) {
        return Err(field.wrong_word(name, "letters, digits, '_', '-' and '.'"));
    }
    Ok(name.to_owned())
}

/// Reads `tool_choice`.
pub(super) fn tool_choice(field: &Field<'_, '_>) -> Result<ToolChoice, Fault> {
    if field.is_string() {
        return match field.text()? {
            "auto" => Ok(ToolChoice::Auto),
            "none" => Ok(ToolChoice::None),
            "required" => Ok(ToolChoice::Required),
            other => Err(field.wrong_word(other, "'auto', 'none', 'required' or a function")),
        };
    }
    let choice = field.fields()?;
    choice.required("type", |kind| match kind.text()? {
        "function" => choice.required("name", function_name).map(ToolChoice::Function),
        found @ "mcp" => Err(kind.not_implemented(format!("a tool of type '{found}'"), FUNCTIONS)),
        other => Err(kind.wrong_word(other, "'function'")),
    })
}

/// Reads `reasoning`; an object without `effort` changes nothing.
pub(super) fn reasoning(field: &Field<'_, '_>) -> Result<Patch<ReasoningEffort>, Fault> {
    field.fields()?.patch("effort", |effort| match effort.text()? {
        "minimal" => Ok(ReasoningEffort::Minimal),
        "low" => Ok(ReasoningEffort::Low),
        "medium" => Ok(ReasoningEffort::Medium),
        "high" => Ok(ReasoningEffort::High),
        "xhigh" => Ok(ReasoningEffort::Xhigh),
        other => Err(effort.wrong_word(other, "'minimal', 'low', 'medium', 'high' or 'xhigh'")),
    })
}

/// A function as the wire shows it.
pub(super) struct ShownTool<'a>(pub(super) &'a FunctionTool);

impl Serialize for ShownTool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let FunctionTool { name, description, parameters } = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("name", name)?;
        if let Some(description) = description {
            map.serialize_entry("description", description)?;
        }
        if let Some(parameters) = parameters {
            map.serialize_entry("parameters", parameters)?;
        }
        map.end()
    }
}

/// A choice as the wire shows it.
pub(super) struct ShownChoice<'a>(pub(super) &'a ToolChoice);

impl Serialize for ShownChoice<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            ToolChoice::Auto => serializer.serialize_str("auto"),
            ToolChoice::None => serializer.serialize_str("none"),
            ToolChoice::Required => serializer.serialize_str("required"),
            ToolChoice::Function(name) => json!({"type": "function", "name": name}).serialize(serializer),
        }
    }
}
