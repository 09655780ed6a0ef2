//! The form of every slot of a ring: an item with its stamp, or the marker that ends a session.

use std::fmt::Debug;

use super::ids::Epoch;

/// Payload of a ring. The type fixes the stamp of its ring, and with the stamp the rule by which items go stale.
pub trait RingItem: Debug {
    /// Stamp of the items: a session ([`Epoch`]) on the user's arm, one response ([`AnswerStamp`](super::AnswerStamp))
    /// on the answer's arm.
    type Stamp: Copy + Debug;
}

/// One slot of a ring.
#[derive(Clone, Copy, Debug)]
pub enum Envelope<T: RingItem> {
    /// An item.
    Item {
        /// Set when the session or its client makes an item. A stage passes the stamp on to everything that it derives
        /// from the item.
        stamp: T::Stamp,
        /// The payload.
        item: T,
    },
    /// The marker that ends a session: nothing of this epoch follows. The marker goes down both arms, behind all items.
    SessionEnd(Epoch),
}

impl<T: RingItem> Envelope<T> {
    /// Returns the payload, or `None` for the marker.
    pub fn into_item(self) -> Option<T> {
        match self {
            Self::Item { item, .. } => Some(item),
            Self::SessionEnd(_) => None,
        }
    }

    /// Returns true for the marker that ends `epoch`.
    pub fn ends(&self, epoch: Epoch) -> bool {
        matches!(self, Self::SessionEnd(ended) if *ended == epoch)
    }
}

/// The content of a slot that a writer has reserved and not filled yet. No reader sees this content.
impl<T: RingItem> Default for Envelope<T> {
    fn default() -> Self {
        Self::SessionEnd(Epoch::default())
    }
}

/// Fails to compile if a slot for `T` has more than `bytes_max` bytes, or if dropping one could free memory.
pub(super) const fn assert_fits<T: RingItem>(bytes_max: usize) {
    assert!(size_of::<Envelope<T>>() <= bytes_max && !std::mem::needs_drop::<T>());
}
