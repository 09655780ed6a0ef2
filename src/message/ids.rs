//! Plain newtypes for all numbers that identify something.

use serde::{Deserialize, Serialize};

/// Index of a unit in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct UnitId(u16);

impl UnitId {
    /// Creates the id of the unit at `index` of the slab.
    #[must_use]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// Returns the position in the slab, as a 16-bit number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Returns the position in the slab, as an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

impl std::fmt::Display for UnitId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "u{:02}", self.0)
    }
}

/// Number of the current claim of a slot. Each claim raises the number by one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Epoch(pub(crate) u64);

impl Epoch {
    /// Creates the epoch with this number (62 bits are kept in the slot word).
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Number of cancels of a unit. A barge-in, a cancel or a release raises the number; nothing resets it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Generation(pub(crate) u64);

impl Generation {
    /// Creates the generation with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Returns the number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Number of an utterance. VAD counts from 0 within a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UtteranceId(pub u32);

/// Number of a response. The session counts from 0 within a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponseKey(pub u32);

/// Number of an `input_audio_buffer.commit` or `.clear` of the client. The session counts from 0 within a claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(pub u32);

/// Stamp of all items on the answer's arm: the answer that they belong to. (On the user's arm a cancel changes nothing,
/// so that the [`Epoch`] alone is the stamp.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AnswerStamp {
    /// The claim.
    pub epoch: Epoch,
    /// The unit's generation when the prompt was made. The answer is stale once the unit's generation is higher.
    pub generation: Generation,
    /// The response that the answer fills.
    pub response: ResponseKey,
}
