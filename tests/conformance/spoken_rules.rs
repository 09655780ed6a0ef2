//! The rules of a spoken answer. The answer holds the text of its deltas until the client cuts it. From then on it
//! holds no more text than was heard, and never more again.

use serde_json::Value;

use crate::strict_client::text;

/// A spoken answer so far.
#[derive(Clone, Debug)]
pub(crate) struct SpokenAnswer {
    /// Bytes of one millisecond of the answer's audio.
    bytes_per_ms: u64,
    /// Bytes of audio that have come.
    bytes: u64,
    /// Transcript of the answer's deltas.
    written: String,
    /// The last cut, milliseconds; `None` if there was none.
    cut_ms: Option<u64>,
    /// The longest text that the answer may hold since that cut.
    left: String,
}

impl SpokenAnswer {
    /// Creates an answer in the `format` of its response, of which nothing has come.
    pub(crate) fn new(format: &Value) -> Self {
        let bytes_per_ms = match format["rate"].as_u64() {
            Some(rate) => rate * 2 / 1_000,
            None => 8,
        };
        Self { bytes_per_ms, bytes: 0, written: String::new(), cut_ms: None, left: String::new() }
    }

    /// Takes an event of the answer's response.
    pub(crate) fn event(&mut self, kind: &str, event: &Value) -> Result<(), String> {
        match kind {
            "response.output_audio.delta" => {
                let delta = text(event, "delta")?;
                let padding = delta.bytes().rev().take_while(|byte| *byte == b'=').count();
                self.bytes += (delta.len() / 4 * 3 - padding) as u64;
            }
            "response.output_audio_transcript.delta" => self.written.push_str(text(event, "delta")?),
            _ => {}
        }
        Ok(())
    }

    /// Takes a cut to `end_ms`.
    pub(crate) fn cut(&mut self, end_ms: u64) -> Result<(), String> {
        let longest = self.cut_ms.unwrap_or_else(|| self.bytes.div_ceil(self.bytes_per_ms));
        if end_ms > longest {
            return Err(format!("cut beyond the {longest} ms that there are"));
        }
        if self.cut_ms.is_none() {
            self.left.clone_from(&self.written);
        }
        self.cut_ms = Some(end_ms);
        Ok(())
    }

    /// Checks the answer in an event of the server. A `done` answer must be complete.
    pub(crate) fn shown(&mut self, item: &Value, done: bool) -> Result<(), String> {
        let Some(shown) = item["content"][0]["transcript"].as_str() else {
            return if done { Err("no transcript".to_owned()) } else { Ok(()) };
        };
        let fits = match self.cut_ms {
            None if done => shown == self.written,
            None => self.written.starts_with(shown),
            Some(0) => shown.is_empty(),
            Some(_) => self.left.starts_with(shown),
        };
        if self.cut_ms.is_some() {
            shown.clone_into(&mut self.left);
        }
        if fits { Ok(()) } else { Err(format!("its transcript does not fit {self:?}")) }
    }
}
