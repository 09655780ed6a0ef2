//! The neighbours of a token. They separate a year from a count and a time from a ratio.

/// The neighbours of a token.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Around<'a> {
    /// The token before, without punctuation; empty at the start of the text or behind a stop.
    pub(super) before: &'a str,
    /// The token behind, without punctuation; empty at the end of the text or before a stop.
    pub(super) after: &'a str,
}
