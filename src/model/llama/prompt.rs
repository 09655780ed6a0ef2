//! Weights, and prompts in their vocabulary.

use std::io::Read;
use std::path::Path;

use llama_cpp_2::llama_backend::LlamaBackend;
use llama_cpp_2::model::params::LlamaModelParams;
use llama_cpp_2::model::{LlamaChatMessage, LlamaChatTemplate, LlamaModel};
use llama_cpp_2::token::LlamaToken;
use llama_cpp_2::{LogOptions, send_logs_to_tracing};

use crate::model::ModelError;

/// A GGUF file in memory, with its vocabulary and its chat template. Shared by all threads.
#[derive(Debug)]
pub struct Weights {
    pub(super) backend: LlamaBackend,
    pub(super) model: LlamaModel,
    template: LlamaChatTemplate,
    /// Texts of the tokens that structure a prompt; they are removed from the content of messages.
    control_texts: Vec<String>,
    name: String,
}

impl Weights {
    /// Loads the weights. The file is mapped: its pages are shared, and the file must stay.
    ///
    /// # Errors
    /// [`ModelError::Missing`] if there is no such file, [`ModelError::Wrong`] if the file is no GGUF that
    /// llama.cpp can load, [`ModelError::Runtime`] if llama.cpp does not start.
    pub fn load(path: &Path) -> Result<Self, ModelError> {
        check_magic(path)?;
        send_logs_to_tracing(LogOptions::default());
        let backend = LlamaBackend::init()
            .map_err(|error| ModelError::Runtime { context: "llama.cpp", message: error.to_string() })?;
        let model =
            LlamaModel::load_from_file(&backend, path, &LlamaModelParams::default()).map_err(|error| {
                ModelError::Wrong {
                    path: path.to_owned(),
                    found: format!("a GGUF file that llama.cpp cannot load ({error})"),
                    expected: "a language model".to_owned(),
                }
            })?;
        let template = model
            .chat_template(None)
            .ok()
            .filter(|template| is_supported(&model, template))
            .unwrap_or_else(|| LlamaChatTemplate::new(CHATML).expect("no NUL in a constant"));
        let vocabulary = model.vocab();
        let control_texts = vocabulary
            .tokens()
            .filter(|&token| vocabulary.is_control(token))
            .map(|token| String::from_utf8_lossy(&vocabulary.token_to_piece(token, true, None)).into_owned())
            .filter(|text| !text.is_empty())
            .collect();
        let name = model
            .meta_val_str("general.name")
            .ok()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        Ok(Self { backend, model, template, control_texts, name })
    }

    /// Returns the name of the model from the file's metadata, or else the name of the file.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Tokenizes the conversation in the format of the model's training, up to the beginning of its answer.
    /// `messages` are pairs of role (`system`, `user`, `assistant`) and content. Content cannot imitate the
    /// structure of the prompt.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if llama.cpp refuses the template.
    pub fn prompt<'a>(
        &self,
        messages: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Vec<LlamaToken>, ModelError> {
        let messages = messages
            .into_iter()
            .map(|(role, content)| chat_message(role, self.plain(content)))
            .collect::<Vec<_>>();
        let text = self
            .model
            .apply_chat_template(&self.template, &messages, true)
            .map_err(|error| ModelError::Runtime { context: "chat template", message: error.to_string() })?;
        let vocabulary = self.model.vocab();
        // Templates write the first token themselves if the model has one.
        let has_bos = vocabulary.should_add_bos()
            && !text.as_bytes().starts_with(&vocabulary.token_to_piece(vocabulary.bos(), true, None));
        Ok(vocabulary.tokenize(text.as_bytes(), has_bos, true))
    }

    /// Tokenizes the beginning that all prompts with these `instructions` have in common.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if llama.cpp refuses the template.
    pub fn shared_beginning(&self, instructions: &str) -> Result<Vec<LlamaToken>, ModelError> {
        let prompt = |question| self.prompt([("system", instructions), ("user", question)]);
        let (one, another) = (prompt("Hello.")?, prompt("What?")?);
        let shared = one.iter().zip(&another).take_while(|(one, another)| one == another);
        Ok(shared.map(|(token, _)| *token).collect())
    }

    /// Returns `content` without the text that the tokenizer would read as structure.
    fn plain(&self, content: &str) -> String {
        let mut plain = content.replace('\0', "");
        // The removal of one text can join the halves of another.
        while let Some(text) = self.control_texts.iter().find(|text| plain.contains(text.as_str())) {
            plain = plain.replace(text.as_str(), "");
        }
        plain
    }
}

fn check_magic(path: &Path) -> Result<(), ModelError> {
    let expected = "a language model in GGUF format".to_owned();
    let mut magic = [0; 4];
    match std::fs::File::open(path).and_then(|mut file| file.read_exact(&mut magic)) {
        Ok(()) if &magic == b"GGUF" => Ok(()),
        Ok(()) => {
            let found = format!("a file that begins with {:?}", String::from_utf8_lossy(&magic));
            Err(ModelError::Wrong { path: path.to_owned(), found, expected })
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(ModelError::Missing { path: path.to_owned(), expected })
        }
        Err(error) => Err(ModelError::Wrong { path: path.to_owned(), found: error.to_string(), expected }),
    }
}

/// Returns true if llama.cpp supports the template. llama.cpp recognises templates by their text and interprets
/// none.
fn is_supported(model: &LlamaModel, template: &LlamaChatTemplate) -> bool {
    let probe = [chat_message("user", "probe".to_owned())];
    model.apply_chat_template(template, &probe, true).is_ok_and(|text| text.contains("probe"))
}

fn chat_message(role: &str, content: String) -> LlamaChatMessage {
    LlamaChatMessage::new(role.to_owned(), content)
        .expect("no NUL: roles are constants, contents are stripped of it")
}

/// llama.cpp's name of the template that most instruct models without a supported one understand.
const CHATML: &str = "chatml";
