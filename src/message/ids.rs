//! Plain newtypes for everything that is counted.

use serde::{Deserialize, Serialize};

/// Index of a unit in the slab.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct UnitId(u16);

impl UnitId {
    /// The unit at `index` of the slab.
    #[must_use]
    pub const fn new(index: u16) -> Self {
        Self(index)
    }

    /// Position in the slab, as a number.
    #[must_use]
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Position in the slab.
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

/// Number of the current claim of a slot; grows by one with every claim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
#[repr(transparent)]
pub struct Epoch(pub(crate) u64);

impl Epoch {
    /// The epoch with this number (62 bits are kept in the slot word).
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// Cancel counter of a unit; bumped by barge-in, cancel and release, never reset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct Generation(pub(crate) u64);

impl Generation {
    /// The generation with this number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// One endpointed stretch of user speech; counted from 0 within a claim by the VAD stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UtteranceId(pub u32);

/// One response of a session; counted from 0 within a claim by the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResponseKey(pub u32);

/// One `input_audio_buffer.commit` or `.clear` of the client; counted from 0 within a claim by the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CommitId(pub u32);

/// Stamp of everything on the answer's arm: the answer that it belongs to. (On the user's arm, where a cancel changes
/// nothing, the [`Epoch`] alone is the stamp.)
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AnswerStamp {
    /// The claim.
    pub epoch: Epoch,
    /// The unit's generation when the prompt was made. The answer is stale once the unit's generation is higher.
    pub generation: Generation,
    /// The response that the answer fills.
    pub response: ResponseKey,
}
