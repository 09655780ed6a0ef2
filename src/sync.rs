//! The primitives by which the engine's threads communicate. The engine (`unit`) names atomics, rings, cells and parked
//! threads only through this file.
//!
//! `tests/loom` compiles the same engine with a `sync.rs` of its own, made of primitives that loom observes. So the
//! model checker runs the engine's own source, and the engine has no code for the model checker.

use std::io::{PipeReader, PipeWriter};

pub use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering, fence};
pub use std::thread;

pub use atomic_refcell::AtomicRefMut as PortGuard;
pub use rtrb;

use atomic_refcell::AtomicRefCell;
use sync_wrapper::SyncWrapper;

/// Holds a port for the thread that works on the unit. A second borrower is a bug and panics; no borrower waits.
///
/// Ring ends may go from thread to thread, but not be shared. The wrapper gives out `&mut` only, which makes a cell of
/// them shareable.
#[derive(Debug)]
pub struct PortCell<T>(AtomicRefCell<SyncWrapper<T>>);

impl<T> PortCell<T> {
    /// Creates a cell that is not borrowed.
    pub fn new(port: T) -> Self {
        Self(AtomicRefCell::new(SyncWrapper::new(port)))
    }

    /// Borrows the port for as long as the guard lives.
    ///
    /// # Panics
    /// Panics if the port is borrowed already.
    pub fn borrow(&self) -> PortGuard<'_, T> {
        PortGuard::map(self.0.borrow_mut(), SyncWrapper::get_mut)
    }
}

/// Wakes one sleeper that waits on a descriptor. Sounding the alarm takes no lock and does not block.
#[derive(Debug)]
pub struct Alarm(PipeWriter);

/// The sleeper's end of an alarm: readable once the alarm has been sounded.
#[derive(Debug)]
pub struct AlarmReader(PipeReader);

impl Alarm {
    /// Creates an alarm and its reader.
    ///
    /// # Errors
    /// Returns an error if the system gives no pipe.
    pub fn new() -> std::io::Result<(Self, AlarmReader)> {
        let (reader, writer) = std::io::pipe()?;
        rustix::io::ioctl_fionbio(&writer, true)?;
        Ok((Self(writer), AlarmReader(reader)))
    }

    /// Wakes the sleeper, now or as soon as it sleeps.
    pub fn sound(&self) {
        // A full pipe is readable, which is enough; a closed one means that the sleeper has ended.
        let _ = rustix::io::write(&self.0, &[1]);
    }
}

impl From<AlarmReader> for std::os::fd::OwnedFd {
    fn from(reader: AlarmReader) -> Self {
        reader.0.into()
    }
}
