//! The engine's `sync.rs` for the model checker: the same names, made of loom's atomics and threads.
//!
//! Ring and cell stand in for rtrb and atomic_refcell, which loom cannot see into: their words are loom's atomics with
//! the crates' own orderings. What the words guard is held in a way that loom does not know and that is never contended:
//! that nobody races for a ring's slots is what rtrb's own tests prove.

pub use loom::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex};

use atomic_refcell::{AtomicRefCell, AtomicRefMut};
use sync_wrapper::SyncWrapper;

/// Parked threads.
pub mod thread {
    pub use loom::thread::{Thread, current, park};

    /// Loom has no clock: nobody but a ring ends this sleep.
    pub fn park_timeout(_: std::time::Duration) {
        park();
    }
}

/// Wakes one sleeper; in place of the pipe.
#[derive(Debug)]
pub struct Alarm(Arc<loom::sync::Notify>);

/// What the sleeper waits on.
#[derive(Debug)]
pub struct AlarmReader(Arc<loom::sync::Notify>);

impl Alarm {
    pub fn new() -> std::io::Result<(Self, AlarmReader)> {
        let notify = Arc::new(loom::sync::Notify::new());
        Ok((Self(Arc::clone(&notify)), AlarmReader(notify)))
    }

    pub fn sound(&self) {
        self.0.notify();
    }
}

impl AlarmReader {
    /// Waits for the alarm.
    pub fn wait(&self) {
        self.0.wait();
    }
}

/// Borrowing is one compare-and-swap with Acquire, giving back one store with Release, as in atomic_refcell 0.1.14.
#[derive(Debug)]
pub struct PortCell<T> {
    borrowed: AtomicBool,
    port: AtomicRefCell<SyncWrapper<T>>,
}

/// A borrowed port.
#[derive(Debug)]
pub struct PortGuard<'a, T> {
    borrowed: &'a AtomicBool,
    /// `None` only while dropping.
    port: Option<AtomicRefMut<'a, T>>,
}

impl<T> PortCell<T> {
    pub fn new(port: T) -> Self {
        Self { borrowed: AtomicBool::new(false), port: AtomicRefCell::new(SyncWrapper::new(port)) }
    }

    pub fn borrow(&self) -> PortGuard<'_, T> {
        let free = self.borrowed.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        assert!(free.is_ok(), "a port was borrowed twice");
        let port = AtomicRefMut::map(self.port.borrow_mut(), SyncWrapper::get_mut);
        PortGuard { borrowed: &self.borrowed, port: Some(port) }
    }
}

impl<T> Deref for PortGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.port.as_ref().expect("taken only by drop")
    }
}

impl<T> DerefMut for PortGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        self.port.as_mut().expect("taken only by drop")
    }
}

impl<T> Drop for PortGuard<'_, T> {
    fn drop(&mut self) {
        self.port = None;
        self.borrowed.store(false, Ordering::Release);
    }
}

/// What the engine uses of rtrb 0.4.1.
pub mod rtrb {
    use super::{Arc, AtomicUsize, Mutex, Ordering};
    use std::cell::OnceCell;
    use std::collections::VecDeque;

    #[derive(Debug)]
    struct Shared<T> {
        items: Mutex<VecDeque<T>>,
        capacity: usize,
        /// Items taken out so far; written by the consumer.
        head: AtomicUsize,
        /// Items put in so far; written by the producer.
        tail: AtomicUsize,
    }

    #[derive(Debug)]
    pub struct RingBuffer;

    #[derive(Debug)]
    pub struct Producer<T> {
        shared: Arc<Shared<T>>,
        tail: usize,
    }

    #[derive(Debug)]
    pub struct Consumer<T> {
        shared: Arc<Shared<T>>,
        head: usize,
        /// The item that a peek has shown.
        front: OnceCell<T>,
    }

    #[derive(Debug)]
    pub enum PushError<T> {
        Full(T),
    }

    #[derive(Debug)]
    pub struct Empty;

    #[derive(Debug)]
    pub struct TooFewSlots;

    impl RingBuffer {
        #[expect(clippy::new_ret_no_self, reason = "as in rtrb")]
        pub fn new<T>(capacity: usize) -> (Producer<T>, Consumer<T>) {
            let shared = Arc::new(Shared {
                items: Mutex::new(VecDeque::new()),
                capacity,
                head: AtomicUsize::new(0),
                tail: AtomicUsize::new(0),
            });
            let producer = Producer { shared: Arc::clone(&shared), tail: 0 };
            (producer, Consumer { shared, head: 0, front: OnceCell::new() })
        }
    }

    impl<T> Producer<T> {
        pub fn slots(&self) -> usize {
            self.shared.capacity - (self.tail - self.shared.head.load(Ordering::Acquire))
        }

        pub fn push(&mut self, item: T) -> Result<(), PushError<T>> {
            if self.slots() == 0 {
                return Err(PushError::Full(item));
            }
            self.shared.items.lock().expect("not poisoned").push_back(item);
            self.tail += 1;
            self.shared.tail.store(self.tail, Ordering::Release);
            Ok(())
        }

        pub fn write_chunk(&mut self, items: usize) -> Result<WriteChunk<'_, T>, TooFewSlots>
        where
            T: Default + Clone,
        {
            if self.slots() < items {
                return Err(TooFewSlots);
            }
            Ok(WriteChunk { producer: self, items: vec![T::default(); items] })
        }
    }

    #[derive(Debug)]
    pub struct WriteChunk<'a, T> {
        producer: &'a mut Producer<T>,
        items: Vec<T>,
    }

    impl<T> WriteChunk<'_, T> {
        pub fn as_mut_slices(&mut self) -> (&mut [T], &mut [T]) {
            (&mut self.items, &mut [])
        }

        pub fn commit(self, items: usize) {
            let Self { producer, items: written } = self;
            producer.shared.items.lock().expect("not poisoned").extend(written.into_iter().take(items));
            producer.tail += items;
            producer.shared.tail.store(producer.tail, Ordering::Release);
        }
    }

    impl<T> Consumer<T> {
        fn take_front(&self) -> T {
            self.shared.items.lock().expect("not poisoned").pop_front().expect("the tail says so")
        }

        pub fn slots(&self) -> usize {
            self.shared.tail.load(Ordering::Acquire) - self.head
        }

        pub fn is_empty(&self) -> bool {
            self.shared.tail.load(Ordering::Acquire) == self.head
        }

        pub fn peek(&self) -> Result<&T, Empty> {
            if self.is_empty() { Err(Empty) } else { Ok(self.front.get_or_init(|| self.take_front())) }
        }

        pub fn pop(&mut self) -> Result<T, Empty> {
            if self.is_empty() {
                return Err(Empty);
            }
            let item = self.front.take().unwrap_or_else(|| self.take_front());
            self.head += 1;
            self.shared.head.store(self.head, Ordering::Release);
            Ok(item)
        }
    }
}
