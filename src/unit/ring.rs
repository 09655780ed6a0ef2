//! A single-producer, single-consumer ring of fixed size, with wake-ups and an end marker.
//!
//! [`ring()`] allocates the ring and returns its two ends, which may go to two threads. Nothing allocates or locks
//! afterwards. Every call returns at once:
//!
//! - [`Producer::push`] rings the reader. A full ring gives the item back.
//! - [`Producer::has_room_or_ring`] returns true if there is room. If not, the writer is rung as soon as there is.
//! - [`Consumer::pop`] and [`Consumer::next_live`] ring a writer that waits for room. An empty ring returns `None`,
//!   and the next push rings the reader.
//!
//! A writer that waits is rung when half of the ring is free, not at the first pop. Otherwise writer and reader of a
//! full ring would take turns for every item, and pay for a wake-up each time.
//!
//! One slot beyond the capacity is kept for [`Producer::push_end`], so that a full ring still takes the marker. As a
//! unit has one session at a time, there is never a second marker in a ring.
//!
//! A ring cannot wait, grow, or overwrite unread items. Neither end can be cloned. A thread that finds a ring full or
//! empty turns to other work, or sleeps on its own bell.
//!
//! ```
//! # use antiphon::door::message::{AudioIn, CommitId, Envelope, Epoch, UnitId};
//! # use antiphon::door::unit::{PushError, Ringer, StageBell, ring};
//! # let bell = || -> &'static StageBell { Box::leak(Box::new(StageBell::new(1, 1))) };
//! let (unit, epoch) = (UnitId::new(0), Epoch::new(1));
//! let (for_writer, for_reader) = (bell(), bell());
//! let ringers = [for_writer, for_reader].map(|bell| Ringer::Stage(bell, unit));
//! let (mut producer, mut consumer) = ring::<AudioIn>(2, ringers[0], ringers[1]);
//!
//! // A full ring gives the item back and still takes the end of the session.
//! producer.push(epoch, AudioIn::Commit(CommitId(0))).expect("room for two");
//! producer.push(epoch, AudioIn::Commit(CommitId(1))).expect("room for two");
//! let refused = producer.push(epoch, AudioIn::Clear(CommitId(2)));
//! assert!(matches!(refused, Err(PushError(AudioIn::Clear(_)))));
//! producer.push_end(epoch);
//!
//! // The reader was rung, and takes everything in order.
//! let (mut cursor, mut rung) = (0, [unit]);
//! assert_eq!(for_reader.take(&mut cursor, &mut rung), 1);
//! assert!(matches!(consumer.pop(), Some(Envelope::Item { item: AudioIn::Commit(CommitId(0)), .. })));
//! assert!(matches!(consumer.pop(), Some(Envelope::Item { item: AudioIn::Commit(CommitId(1)), .. })));
//! assert!(consumer.pop().is_some_and(|envelope| envelope.ends(epoch)));
//! assert!(consumer.pop().is_none());
//! ```

use std::sync::Arc;

use super::bell::Ringer;
use super::status::{Stamp, UnitCounters, UnitStatus};
use crate::message::{Envelope, Epoch, RingItem};
use crate::sync::{AtomicU32, Ordering, fence, rtrb};

/// Error of a push into a full ring; holds the item.
#[derive(Debug)]
pub struct PushError<T>(pub T);

/// The writing end of a ring.
#[derive(Debug)]
pub struct Producer<T: RingItem> {
    inner: rtrb::Producer<Envelope<T>>,
    /// Room for which this end waits; 0: it does not wait.
    wanted: Arc<AtomicU32>,
    /// Least room at which a waiting writer is rung.
    half: u32,
    reader: Ringer,
}

/// The reading end of a ring.
#[derive(Debug)]
pub struct Consumer<T: RingItem> {
    inner: rtrb::Consumer<Envelope<T>>,
    /// Room for which the producer waits; 0: it does not wait.
    wanted: Arc<AtomicU32>,
    /// Capacity of the ring, without the marker's slot.
    items: usize,
    writer: Ringer,
}

/// Makes a ring for `items` items and one marker. Allocates, so that it is called at the start only.
///
/// # Panics
/// Panics if `items` is 0 or does not fit 32 bits.
#[must_use]
pub fn ring<T: RingItem>(items: usize, writer: Ringer, reader: Ringer) -> (Producer<T>, Consumer<T>) {
    let (producer, consumer) = rtrb::RingBuffer::new(items + 1);
    let half = u32::try_from(items.div_ceil(2)).expect("a ring's size is a constant of limits.rs");
    assert!(half > 0, "a ring for no item");
    let wanted = Arc::new(AtomicU32::new(0));
    (
        Producer { inner: producer, wanted: Arc::clone(&wanted), half, reader },
        Consumer { inner: consumer, wanted, items, writer },
    )
}

impl<T: RingItem> Producer<T> {
    /// Returns how many items can be pushed now, without the marker's slot. Only the producer's own pushes reduce the
    /// number.
    #[must_use]
    pub fn room(&self) -> usize {
        self.inner.slots().saturating_sub(1)
    }

    /// Returns true if `items` items can be pushed now; `items` is at most the capacity. If false, the writer's ringer
    /// rings as soon as they can be pushed and half of the ring is free.
    ///
    /// ```
    /// # use antiphon::door::message::{AudioIn, CommitId, Epoch, UnitId};
    /// # use antiphon::door::unit::{Ringer, StageBell, ring};
    /// # let bell = || -> &'static StageBell { Box::leak(Box::new(StageBell::new(1, 1))) };
    /// # let (unit, epoch) = (UnitId::new(0), Epoch::new(1));
    /// # let for_writer = bell();
    /// # let (mut cursor, mut rung) = (0, [unit]);
    /// # let ringer = Ringer::Stage(for_writer, unit);
    /// let (mut producer, mut consumer) = ring::<AudioIn>(1, ringer, Ringer::Stage(bell(), unit));
    /// while producer.has_room_or_ring(1) {
    ///     producer.push(epoch, AudioIn::Commit(CommitId(0))).expect("there is room");
    /// }
    /// assert_eq!(for_writer.take(&mut cursor, &mut rung), 0, "nobody has rung");
    ///
    /// consumer.pop();
    /// assert_eq!(for_writer.take(&mut cursor, &mut rung), 1, "there is room again");
    /// ```
    #[must_use]
    pub fn has_room_or_ring(&self, items: usize) -> bool {
        if self.room() >= items {
            return true;
        }
        let wanted = u32::try_from(items).map_or(u32::MAX, |items| items.max(self.half));
        // ORDERING: this side stores `wanted`, then a fence, then reads the ring. `Consumer::pop` pops, then a fence,
        // then reads `wanted`. One of the two sees the other's write.
        self.wanted.store(wanted, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.room() >= items
    }

    /// Pushes `item` and wakes the reader.
    ///
    /// # Errors
    /// Gives the item back if only the marker's slot is left.
    pub fn push(&mut self, stamp: T::Stamp, item: T) -> Result<(), PushError<T>> {
        if self.room() == 0 {
            return Err(PushError(item));
        }
        self.put(Envelope::Item { stamp, item });
        Ok(())
    }

    /// Pushes the end of `epoch` into the slot that is kept for it, and wakes the reader.
    pub fn push_end(&mut self, epoch: Epoch) {
        self.put(Envelope::SessionEnd(epoch));
    }

    fn put(&mut self, envelope: Envelope<T>) {
        let pushed = self.inner.push(envelope);
        debug_assert!(pushed.is_ok(), "items leave a slot for the marker, and a session ends once");
        self.reader.ring();
    }

    /// Lets `fill` write up to `items` envelopes in place, in two slices as the ring wraps, and publishes as many as
    /// `fill` returns. `items` must not exceed [`Producer::room`].
    ///
    /// # Errors
    /// Returns the error of `fill`; nothing is published then.
    #[inline]
    pub fn write_with<E>(
        &mut self,
        items: usize,
        fill: impl FnOnce(&mut [Envelope<T>], &mut [Envelope<T>]) -> Result<usize, E>,
    ) -> Result<usize, E>
    where
        Envelope<T>: Copy,
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

impl<T: RingItem> Consumer<T> {
    /// Takes the oldest envelope out, and wakes a writer that waits for room.
    pub fn pop(&mut self) -> Option<Envelope<T>> {
        let envelope = self.inner.pop().ok()?;
        // ORDERING: see `Producer::has_room_or_ring`.
        fence(Ordering::SeqCst);
        let wanted = self.wanted.load(Ordering::Relaxed);
        if wanted != 0 && self.room() >= wanted as usize && self.wanted.swap(0, Ordering::Relaxed) != 0 {
            self.writer.ring();
        }
        Some(envelope)
    }

    /// Returns the least number of items that the producer can push.
    fn room(&self) -> usize {
        self.items.saturating_sub(self.inner.slots())
    }

    /// Returns the oldest envelope and leaves it in place.
    #[must_use]
    pub fn peek(&self) -> Option<&Envelope<T>> {
        self.inner.peek().ok()
    }

    /// Returns true if the ring is empty. An empty ring may fill at any moment; a ring that is not empty stays so until
    /// a pop.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inner.is_empty()
    }
}

impl<T: RingItem<Stamp: Stamp>> Consumer<T> {
    /// Drops and counts stale items, then returns the oldest envelope and leaves it in place. Markers are never stale.
    pub fn peek_live(&mut self, unit: &UnitStatus) -> Option<&Envelope<T>> {
        while let Envelope::Item { stamp, .. } = self.peek()?
            && stamp.is_stale(unit)
        {
            self.pop();
            UnitCounters::count(&unit.counters.stale_items);
        }
        // The envelope that was checked: only this end takes envelopes out.
        self.peek()
    }

    /// Drops and counts stale items, then takes the oldest envelope out.
    pub fn next_live(&mut self, unit: &UnitStatus) -> Option<Envelope<T>> {
        self.peek_live(unit)?;
        self.pop()
    }
}
