//! Bounds on the values that a client sends; longer values are refused.

/// Longest `event_id` of a client, bytes; the id is kept until the event is answered.
pub(super) const EVENT_ID_BYTES_MAX: usize = 512;

/// Longest name of a model, voice or language, bytes.
pub(super) const NAME_BYTES_MAX: usize = 128;

/// Longest text of instructions or of one part of a message, bytes. The conversation has its own, smaller
/// budget.
pub(super) const TEXT_BYTES_MAX: usize = 256 * 1_024;

/// Most elements of an array: parts of a message, items of a `response.create`, tools.
pub(super) const ELEMENTS_MAX: usize = 128;
