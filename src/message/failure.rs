//! Failures, as they travel in rings.

/// The reason of a failure, in a form that fits a ring. The session makes the message to the client from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureCode {
    /// Speech recognition failed.
    SttFailed,
    /// Speech synthesis failed.
    TtsFailed,
    /// A stage panicked while it worked on this item; the unit continues.
    StagePanicked,
    /// The language model server refused the connection or could not be reached.
    LlmUnreachable,
    /// The language model server answered with an HTTP error status.
    LlmStatus(u16),
    /// The language model sent nothing within the first-token time-out.
    LlmFirstTokenTimeout,
    /// The language model stopped sending between tokens for longer than the time-out.
    LlmStalled,
    /// The language model's stream ended early or broke the API's format.
    LlmBrokenStream,
}
