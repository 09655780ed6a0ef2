//! An SPSC ring with manners: a push wakes the reader, a pop wakes a writer that found it full, and one slot is kept
//! for the marker that ends a session. It can not wait: who finds it full or empty goes away and is rung for.
//!
//! A writer that found the ring full is rung when half of it is free again, not at the first pop: else writer and reader of
//! a full ring take turns for every item, and both pay a wake-up each time.

use std::sync::Arc;

use super::bell::Ringer;
use crate::sync::{AtomicU32, Ordering, fence, rtrb};

/// The ring was full; the item comes back.
#[derive(Debug)]
pub struct PushError<T>(pub T);

/// The writing end.
#[derive(Debug)]
pub struct Producer<T> {
    inner: rtrb::Producer<T>,
    wanted: Arc<AtomicU32>,
    /// Room at which a waiting writer is rung, at least.
    half: u32,
    reader: Ringer,
}

/// The reading end.
#[derive(Debug)]
pub struct Consumer<T> {
    inner: rtrb::Consumer<T>,
    /// Room that the producer waits to be rung about; 0: it does not wait.
    wanted: Arc<AtomicU32>,
    /// Items that the ring holds, the marker aside.
    items: usize,
    writer: Ringer,
}

/// A ring for `items` items and one marker. Allocates; only at start.
///
/// # Panics
/// With 0 items, or more than fit 32 bits.
#[must_use]
pub fn ring<T>(items: usize, writer: Ringer, reader: Ringer) -> (Producer<T>, Consumer<T>) {
    let (producer, consumer) = rtrb::RingBuffer::new(items + 1);
    let half = u32::try_from(items.div_ceil(2)).expect("a ring's size is a constant of limits.rs");
    assert!(half > 0, "a ring for no item");
    let wanted = Arc::new(AtomicU32::new(0));
    (
        Producer { inner: producer, wanted: Arc::clone(&wanted), half, reader },
        Consumer { inner: consumer, wanted, items, writer },
    )
}

impl<T> Producer<T> {
    /// Items that can be pushed now; the marker's slot is not counted. Never shrinks but by the producer's own pushes.
    #[must_use]
    pub fn room(&self) -> usize {
        self.inner.slots().saturating_sub(1)
    }

    /// Whether `items` can be pushed now; at most as many as the ring holds. If not, the writer's ringer rings as soon as
    /// they can, and half of the ring is free.
    #[must_use]
    pub fn has_room_or_ring(&self, items: usize) -> bool {
        if self.room() >= items {
            return true;
        }
        let wanted = u32::try_from(items).map_or(u32::MAX, |items| items.max(self.half));
        // ORDERING: the wish, a fence, then the look at the ring; `Consumer::pop` does the pop, a fence, then the look
        // at the wish. One of the two sees the other.
        self.wanted.store(wanted, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.room() >= items
    }

    /// Pushes and wakes the reader.
    ///
    /// # Errors
    /// The item, when only the marker's slot is left.
    pub fn push(&mut self, item: T) -> Result<(), PushError<T>> {
        if self.room() == 0 {
            return Err(PushError(item));
        }
        self.push_marker(item)
    }

    /// Pushes into the slot that is kept for a session's last item, and wakes the reader.
    ///
    /// # Errors
    /// The item, when a marker is in the ring already.
    pub fn push_marker(&mut self, item: T) -> Result<(), PushError<T>> {
        self.inner.push(item).map_err(|rtrb::PushError::Full(item)| PushError(item))?;
        self.reader.ring();
        Ok(())
    }

    /// Lets `fill` write up to `items` items in place, in two slices as the ring wraps, and publishes as many as it
    /// returns. `items` must not exceed [`Producer::room`].
    pub fn write_with<E>(
        &mut self,
        items: usize,
        fill: impl FnOnce(&mut [T], &mut [T]) -> Result<usize, E>,
    ) -> Result<usize, E>
    where
        T: Copy + Default,
    {
        let mut chunk = self.inner.write_chunk(items).expect("the caller asked for no more than room()");
        let (first, second) = chunk.as_mut_slices();
        let written = fill(first, second)?;
        chunk.commit(written);
        if written > 0 {
            self.reader.ring();
        }
        Ok(written)
    }
}

impl<T> Consumer<T> {
    /// Takes the oldest item out, and wakes a writer that waits for room.
    pub fn pop(&mut self) -> Option<T> {
        let item = self.inner.pop().ok()?;
        // ORDERING: see `Producer::has_room_or_ring`.
        fence(Ordering::SeqCst);
        let wanted = self.wanted.load(Ordering::Relaxed);
        if wanted != 0 && self.room() >= wanted as usize && self.wanted.swap(0, Ordering::Relaxed) != 0 {
            self.writer.ring();
        }
        Some(item)
    }

    /// Items that the producer can push, at least.
    fn room(&self) -> usize {
        self.items.saturating_sub(self.inner.slots())
    }

    /// The oldest item, left in place.
    #[must_use]
    pub fn peek(&self) -> Option<&T> {
        self.inner.peek().ok()
    }

    /// Whether nothing is there; may change at any moment, "not empty" can not be undone by the other side.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
}
