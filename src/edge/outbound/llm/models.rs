//! A server's list of its models.

use serde_json::Value;

/// Largest context that is believed if a llama.cpp server names only `n_ctx_train`, tokens. That is the context of the
/// model's training, and not the one that its server has given it.
const TRAINED_CONTEXT_TRUSTED: u32 = 32_768;

/// Paths at which servers write the tokens that prompt and answer may have together.
///
/// # Source
/// vLLM `max_model_len`, OpenRouter `context_length`, llama.cpp `meta.n_ctx`, Groq `context_window`, Mistral
/// `max_context_length`.
const CONTEXT: [&str; 5] =
    ["/max_model_len", "/context_length", "/meta/n_ctx", "/context_window", "/max_context_length"];

/// Finds the context of `model` in the answer to `GET /v1/models`, tokens; that of the only model if none is named.
/// `None` if the answer does not name the context.
pub(super) fn context_tokens(answer: &Value, model: Option<&str>) -> Option<u32> {
    let models = answer["data"].as_array()?;
    let entry = match (model, models.as_slice()) {
        (Some(model), models) => models.iter().find(|entry| entry["id"] == model)?,
        (None, [entry]) => entry,
        (None, _) => return None,
    };
    let number = |path: &str| u32::try_from(entry.pointer(path)?.as_u64()?).ok().filter(|tokens| *tokens > 0);
    CONTEXT
        .into_iter()
        .find_map(number)
        .or_else(|| Some(number("/meta/n_ctx_train")?.min(TRAINED_CONTEXT_TRUSTED)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_servers_say() {
        let tokens = |entry: Value| context_tokens(&json!({"object": "list", "data": [entry]}), None);
        for (entry, expected) in [
            (json!({"id": "m", "max_model_len": 8192}), Some(8_192)),
            (json!({"id": "m", "context_length": 131072}), Some(131_072)),
            (json!({"id": "m", "meta": {"n_ctx": 4096, "n_ctx_train": 131072}}), Some(4_096)),
            (json!({"id": "m", "meta": {"n_ctx_train": 131072}}), Some(32_768)),
            (json!({"id": "m", "meta": {"n_ctx_train": 2048}}), Some(2_048)),
            (json!({"id": "m", "context_window": 0}), None),
            (json!({"id": "m", "max_model_len": "many"}), None),
            (json!({"id": "m"}), None),
        ] {
            assert_eq!(tokens(entry.clone()), expected, "{entry}");
        }
    }

    #[test]
    fn of_several_models_the_named_one_counts() {
        let answer =
            json!({"data": [{"id": "a", "max_model_len": 1000}, {"id": "b", "max_model_len": 2000}]});
        assert_eq!(context_tokens(&answer, Some("b")), Some(2_000));
        assert_eq!(context_tokens(&answer, Some("c")), None);
        assert_eq!(context_tokens(&answer, None), None);
        assert_eq!(context_tokens(&json!({"error": "no"}), None), None);
    }
}
