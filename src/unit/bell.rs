//! Doorbells. A push wakes the reader at once, and costs one atomic operation if the reader is awake.
//!
//! There are two kinds: workers of this process sleep on a [`StageBell`], tasks of the edge on the [`EdgeBell`].

use super::edge_bell::{EdgeBell, EdgeSignal};
use super::stage_bell::StageBell;
use crate::message::UnitId;

/// The doorbell of a stage in this process or on a server.
#[derive(Clone, Copy, Debug)]
pub enum Bell {
    /// The stage's work is done by workers of this process.
    Workers(&'static StageBell),
    /// The stage's work is done by a server, to which one task per unit sends its requests.
    Task(&'static EdgeBell, EdgeSignal),
}

impl Bell {
    /// Returns the ringer for `unit`.
    #[must_use]
    pub const fn ringer(self, unit: UnitId) -> Ringer {
        match self {
            Self::Workers(bell) => Ringer::Stage(bell, unit),
            Self::Task(bell, signal) => Ringer::Edge(bell, signal, unit),
        }
    }

    /// Rings for `unit`.
    pub fn ring(self, unit: UnitId) {
        self.ringer(unit).ring();
    }

    /// Returns the bell that workers of this process sleep on, or `None` if a server does the work.
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

/// The sleepers to wake for a unit.
#[derive(Clone, Copy, Debug)]
pub enum Ringer {
    /// A stage's workers.
    Stage(&'static StageBell, UnitId),
    /// A task at the edge.
    Edge(&'static EdgeBell, EdgeSignal, UnitId),
}

impl Ringer {
    /// Wakes the sleepers. Never blocks; costs one atomic operation if they are awake already.
    pub fn ring(self) {
        match self {
            Self::Stage(bell, unit) => bell.ring(unit),
            Self::Edge(bell, signal, unit) => bell.ring(signal, unit),
        }
    }
}
