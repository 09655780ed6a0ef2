//! A counter of the heap calls of the threads that must make none.
//!
//! *Thread:* every thread, inside every heap call. *Never:* allocates, locks, waits.
//!
//! A stage thread is in [`AllocPhase::Init`] while it builds its buffers, then in [`AllocPhase::Static`] for the rest
//! of its life. Around a model call it is in [`AllocPhase::Foreign`]. Calls of the last two phases are counted in every
//! build, each phase apart: `/metrics` shows the numbers, and `tests/no_alloc.rs` holds the first at 0.
//!
//! C and C++ code calls the C allocator and not Rust's. The allocations of ONNX Runtime inside a call are therefore in
//! neither number; `bench/heap_calls.sh` counts them.
//!
//! JUSTIFICATION for unsafe code: [`GlobalAlloc`] is an unsafe trait, and no safe interface sees heap calls. Each
//! method only counts, then passes its arguments on.
#![expect(unsafe_code, reason = "a global allocator cannot be written without")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;

use crate::sync::{AtomicU64, Ordering};

/// Heap calls of one stage thread since it became static: `alloc`, `realloc` and `dealloc` each count as one.
#[derive(Debug)]
pub struct HeapCalls {
    thread: String,
    own: AtomicU64,
    foreign: AtomicU64,
}

impl HeapCalls {
    /// Creates a count of zero for the thread with this name.
    #[must_use]
    pub fn new(thread: String) -> Self {
        Self { thread, own: AtomicU64::new(0), foreign: AtomicU64::new(0) }
    }

    /// Returns the thread's name.
    #[must_use]
    pub fn thread(&self) -> &str {
        &self.thread
    }

    /// Returns the calls of the engine's own code: 0 by design, except for the message of a panic.
    #[must_use]
    pub fn own(&self) -> u64 {
        // ORDERING: Relaxed: a statistic, publishes nothing.
        self.own.load(Ordering::Relaxed)
    }

    /// Returns the calls of Rust code inside model calls.
    #[must_use]
    pub fn foreign(&self) -> u64 {
        // ORDERING: as in `own`.
        self.foreign.load(Ordering::Relaxed)
    }
}

/// Phase of the current thread, which decides the counter of its heap calls.
#[derive(Clone, Copy, Debug)]
pub enum AllocPhase {
    /// Not counted: the thread is no stage thread, or is not ready yet.
    Init,
    /// Counted as the engine's own: an error, as a stage thread must not allocate.
    Static(&'static HeapCalls),
    /// Counted as the model's.
    Foreign(&'static HeapCalls),
}

thread_local! {
    // Constant and without a destructor: a read allocates nothing and works until the thread ends.
    static PHASE: Cell<AllocPhase> = const { Cell::new(AllocPhase::Init) };
}

impl AllocPhase {
    /// Counts the calling thread's heap calls from here on (`Init → Static`).
    ///
    /// # Panics
    /// Panics if the thread is not in `Init`.
    pub fn transition_from_init_to_static(calls: &'static HeapCalls) {
        assert!(matches!(PHASE.get(), Self::Init), "a thread becomes static once");
        PHASE.set(Self::Static(calls));
    }

    fn count(self) {
        let counter = match self {
            Self::Init => return,
            Self::Static(calls) => &calls.own,
            Self::Foreign(calls) => &calls.foreign,
        };
        // ORDERING: Relaxed: a statistic, publishes nothing.
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

/// Runs a model call: `Static → Foreign → Static`, also if the call panics. Changes nothing in another phase.
pub fn foreign<T>(call: impl FnOnce() -> T) -> T {
    struct Back(AllocPhase);

    impl Drop for Back {
        fn drop(&mut self) {
            PHASE.set(self.0);
        }
    }

    let _back = Back(PHASE.get());
    if let AllocPhase::Static(calls) = PHASE.get() {
        PHASE.set(AllocPhase::Foreign(calls));
    }
    call()
}

/// The global allocator: `A`, with a count in the calling thread's [`AllocPhase`].
#[derive(Debug)]
pub struct PhaseAllocator<A>(pub A);

// SAFETY: each method passes its arguments to the same method of `A`, which keeps the trait's contract. Counting
// touches a thread-local value without a destructor and an atomic, and never allocates.
unsafe impl<A: GlobalAlloc> GlobalAlloc for PhaseAllocator<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        PHASE.get().count();
        // SAFETY: the caller keeps the contract of `alloc`, which is that of `A`.
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        PHASE.get().count();
        // SAFETY: the caller keeps the contract of `alloc_zeroed`, which is that of `A`.
        unsafe { self.0.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        PHASE.get().count();
        // SAFETY: `pointer` comes from a method above, and so from `A`, with this `layout`.
        unsafe { self.0.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        PHASE.get().count();
        // SAFETY: `pointer` comes from a method above, and so from `A`, with this `layout`; the caller keeps the rest
        // of the contract.
        unsafe { self.0.realloc(pointer, layout, size) }
    }
}
