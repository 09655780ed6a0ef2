//! Doorbells: a push wakes the reader at once, for one atomic operation when the reader is awake.
//!
//! There are two kinds: workers of this process sleep on a [`StageBell`], tasks of the edge on the [`EdgeBell`].

use super::edge_bell::{EdgeBell, EdgeSignal};
use super::stage_bell::StageBell;
use crate::message::UnitId;

/// The doorbell of a stage, wherever its work is done.
#[derive(Clone, Copy, Debug)]
pub enum Bell {
    /// By workers of this process.
    Workers(&'static StageBell),
    /// By a server, which one task per unit asks.
    Task(&'static EdgeBell, EdgeSignal),
}

impl Bell {
    /// Rings for one unit.
    #[must_use]
    pub const fn ringer(self, unit: UnitId) -> Ringer {
        match self {
            Self::Workers(bell) => Ringer::Stage(bell, unit),
            Self::Task(bell, signal) => Ringer::Edge(bell, signal, unit),
        }
    }

    /// Something is there for `unit`.
    pub fn ring(self, unit: UnitId) {
        self.ringer(unit).ring();
    }

    /// The bell that workers of this process sleep on; `None`: there are none.
    #[must_use]
    pub const fn workers(self) -> Option<&'static StageBell> {
        match self {
            Self::Workers(bell) => Some(bell),
            Self::Task(..) => None,
        }
    }
}

impl From<&'static StageBell> for Bell {
    fn from(bell: &'static StageBell) -> Self {
        Self::Workers(bell)
    }
}

/// Whom to wake for a unit.
#[derive(Clone, Copy, Debug)]
pub enum Ringer {
    /// A stage's workers.
    Stage(&'static StageBell, UnitId),
    /// A task at the edge.
    Edge(&'static EdgeBell, EdgeSignal, UnitId),
}

impl Ringer {
    /// Wakes them. Never blocks; costs one atomic operation when they are awake already.
    pub fn ring(self) {
        match self {
            Self::Stage(bell, unit) => bell.ring(unit),
            Self::Edge(bell, signal, unit) => bell.ring(signal, unit),
        }
    }
}
