//! The session that asks the language model, and the urgency of its request.

use serde::{Deserialize, Serialize};

use super::ids::{Epoch, UnitId};

/// Urgency of a completion, the most urgent first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Rank {
    /// A spoken answer of the conversation: the user waits for its audio.
    Spoken,
    /// An answer of the conversation in text.
    Written,
    /// An answer out of band and in text, or one for a caller without a session.
    Aside,
}

/// The session that asks for a completion, as the request to the built-in model names it. Requests to other servers do
/// not name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Caller {
    /// The session's unit.
    pub unit: UnitId,
    /// The session's claim of the unit. A unit in another epoch belongs to another session.
    pub epoch: Epoch,
    /// Urgency of the request.
    pub rank: Rank,
}

impl Caller {
    /// Returns the session without the urgency of its request.
    #[must_use]
    pub const fn session(self) -> (UnitId, Epoch) {
        (self.unit, self.epoch)
    }
}
