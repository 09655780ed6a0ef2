//! Identifiers as they stand on the wire.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};
use uuid::Uuid;

macro_rules! wire_id {
    ($(#[$doc:meta])+ $name:ident, $prefix:literal) => {
        $(#[$doc])+
        #[derive(Clone, PartialEq, Eq, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            #[doc = concat!("A new id: `", $prefix, "` and 122 random bits in hexadecimal.")]
            #[must_use]
            pub fn fresh() -> Self {
                Self(format!(concat!($prefix, "{}"), Uuid::new_v4().simple()).into())
            }

            /// Returns the id as the wire carries it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }
    };
}

wire_id!(
    /// Id of one session, `sess_…`.
    SessionId, "sess_"
);
wire_id!(
    /// Id of the default conversation of a session, `conv_…`.
    ConversationId, "conv_"
);
wire_id!(
    /// Id of one response, `resp_…`.
    ResponseId, "resp_"
);
wire_id!(
    /// Id of one item of the conversation: `item_…`, or the client's own name for an item that it created.
    ItemId, "item_"
);

impl ItemId {
    /// Longest id that a client may choose, bytes.
    pub const BYTES_MAX: usize = 64;

    /// Wraps the id that a client chose. The caller must have checked the length against [`Self::BYTES_MAX`].
    pub(crate) fn of_client(id: &str) -> Self {
        debug_assert!(!id.is_empty() && id.len() <= Self::BYTES_MAX);
        Self(id.into())
    }
}

/// Longest name that the server gives a function call, bytes: the limit of OpenAI's API. LiveKit's agents answer a call
/// with a longer name under another name.
const CALL_ID_BYTES_MAX: usize = 32;

/// Makes a new name for a function call: `call_…` and 102 random bits in hexadecimal. The names of the model server are
/// not used, since some servers repeat theirs.
#[must_use]
pub fn fresh_call_id() -> String {
    let mut id = format!("call_{}", Uuid::new_v4().simple());
    id.truncate(CALL_ID_BYTES_MAX);
    id
}

/// Makes a new name for a segment of a transcript, `seg_…`.
#[must_use]
pub fn fresh_segment_id() -> String {
    format!("seg_{}", Uuid::new_v4().simple())
}

/// `event_id` of one server event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventId(u128);

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "event_{:032x}", self.0)
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Source of the ids of one connection's server events: 80 bits drawn once, then a counter of 48 bits.
#[derive(Clone, Debug)]
pub struct EventIds {
    next: u128,
}

impl EventIds {
    /// Bits of the counter, which lasts nine years at a million events per second.
    const COUNTER_BITS: u32 = 48;

    /// Begins a new sequence. This draws the random bits from the system; [`Self::fresh`] only counts.
    #[must_use]
    pub fn new() -> Self {
        Self { next: Uuid::new_v4().as_u128() >> Self::COUNTER_BITS << Self::COUNTER_BITS }
    }

    /// Returns the next id.
    #[must_use]
    pub const fn fresh(&mut self) -> EventId {
        let id = EventId(self.next);
        self.next = self.next.wrapping_add(1);
        id
    }
}

impl Default for EventIds {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_have_their_prefix_and_differ() {
        for (id, prefix) in [
            (SessionId::fresh().to_string(), "sess_"),
            (ConversationId::fresh().to_string(), "conv_"),
            (ResponseId::fresh().to_string(), "resp_"),
            (ItemId::fresh().to_string(), "item_"),
        ] {
            let tail = id.strip_prefix(prefix).expect("prefix");
            assert!(tail.len() == 32 && tail.bytes().all(|byte| byte.is_ascii_hexdigit()), "{id}");
        }
        assert_ne!(ItemId::fresh(), ItemId::fresh());
    }

    #[test]
    fn event_ids_count_up_from_a_random_start() {
        let (mut one, mut other) = (EventIds::new(), EventIds::new());
        let first = one.fresh();
        assert_eq!(EventId(first.0 + 1), one.fresh());
        assert_eq!(first.0 & 0xffff_ffff_ffff, 0);
        assert_ne!(first, other.fresh());
        assert_eq!(first.to_string().len(), "event_".len() + 32);
    }
}
