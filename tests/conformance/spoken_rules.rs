//! The rules of a spoken answer: it holds what its deltas say, until its client cuts it; from then on it holds no more than
//! was heard, and never more again.

use serde_json::Value;

use crate::strict_client::text;

/// What has been seen of a spoken answer.
#[derive(Clone, Debug)]
pub(crate) struct SpokenAnswer {
    /// Bytes of a millisecond of its audio.
    bytes_per_ms: u64,
    /// Bytes of audio that have come.
    bytes: u64,
    /// What its deltas make.
    written: String,
    /// The last cut, milliseconds.
    cut_ms: Option<u64>,
    /// The most that it may hold since that cut.
    left: String,
}

impl SpokenAnswer {
    /// Makes an answer in the `format` of its response, of which nothing has come.
    pub(crate) fn new(format: &Value) -> Self {
        let bytes_per_ms = match format["rate"].as_u64() {
            Some(rate) => rate * 2 / 1_000,
            None => 8,
        };
        Self { bytes_per_ms, bytes: 0, written: String::new(), cut_ms: None, left: String::new() }
    }

    /// Takes an event of its response.
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

    /// Takes the answer as the server shows it; if it is `done`, nothing may lack.
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
