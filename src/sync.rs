//! Everything through which threads meet, in one place: the engine (`unit`) names atomics, rings, cells and parked
//! threads only through this file.
//!
//! `tests/loom` compiles the same engine with a `sync.rs` of its own, in which each of these is one that loom can see
//! into. So the model checker reads the engine's own source, and the engine knows nothing of the model checker.

use std::io::{PipeReader, PipeWriter};

pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
pub use std::thread;

pub use atomic_refcell::AtomicRefMut as PortGuard;
pub use rtrb;

use atomic_refcell::AtomicRefCell;
use sync_wrapper::SyncWrapper;

/// Holds a port for whoever works on the unit. A second borrower is our bug and panics; nobody waits.
///
/// Ring ends may go from thread to thread, but not be shared: the wrapper gives out `&mut` only, which makes a cell of
/// them shareable.
#[derive(Debug)]
pub struct PortCell<T>(AtomicRefCell<SyncWrapper<T>>);

impl<T> PortCell<T> {
    /// A cell that nobody has borrowed.
    pub fn new(port: T) -> Self {
        Self(AtomicRefCell::new(SyncWrapper::new(port)))
    }

    /// The port, for as long as the guard lives.
    ///
    /// # Panics
    /// When somebody else has it.
    pub fn borrow(&self) -> PortGuard<'_, T> {
        PortGuard::map(self.0.borrow_mut(), SyncWrapper::get_mut)
    }
}

/// Wakes one sleeper that waits on a descriptor. Sounding it takes no lock and does not block.
#[derive(Debug)]
pub struct Alarm(PipeWriter);

/// What the sleeper waits on: readable once the alarm has been sounded.
#[derive(Debug)]
pub struct AlarmReader(PipeReader);

impl Alarm {
    /// An alarm and what its sleeper waits on.
    ///
    /// # Errors
    /// When the system gives no pipe.
    pub fn new() -> std::io::Result<(Self, AlarmReader)> {
        let (reader, writer) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        Ok((Self(writer), AlarmReader(reader)))
    }

    /// Wakes the sleeper, now or as soon as it sleeps.
    pub fn sound(&self) {
        // A full pipe is readable, which is all that matters; a closed one means that the sleeper has ended.
        let _ = rustix::io::write(&self.0, &[1]);
    }
}

impl From<AlarmReader> for std::os::fd::OwnedFd {
    fn from(reader: AlarmReader) -> Self {
        reader.0.into()
    }
}
