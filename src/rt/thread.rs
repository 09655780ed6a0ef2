//! The only place that starts threads of the real-time zone.

use std::thread::JoinHandle;

use super::alloc::HeapCalls;

/// What a thread is and how it shall be scheduled.
#[derive(Clone, Debug)]
pub struct ThreadSpec {
    /// Name, at most 15 bytes are visible in `/proc`.
    pub name: String,
    /// Nice value, `0..=19`; 0 leaves it as it is. Lower runs first when cores are scarce.
    pub nice: i32,
}

/// A thread that has been started.
#[derive(Debug)]
pub struct StageThread {
    /// To wait for its end.
    pub handle: JoinHandle<()>,
    /// What it takes from the heap. Lives as long as the process, like the units.
    pub heap_calls: &'static HeapCalls,
}

/// Starts a thread; `body` gets where its heap calls are counted. A nice value that the system refuses is logged, not
/// fatal.
///
/// # Errors
/// When the system has no more threads.
#[expect(clippy::disallowed_methods, reason = "this is the place that the ban points to")]
pub fn spawn<F>(spec: ThreadSpec, body: F) -> std::io::Result<StageThread>
where
    F: FnOnce(&'static HeapCalls) + Send + 'static,
{
    let ThreadSpec { name, nice } = spec;
    let heap_calls: &'static HeapCalls = Box::leak(Box::new(HeapCalls::new(name.clone())));
    let handle = std::thread::Builder::new().name(name).spawn(move || {
        // Linux keeps the nice value per thread; `None` names the calling one.
        if nice != 0
            && let Err(error) = rustix::process::setpriority_process(None, nice)
        {
            tracing::warn!(thread = heap_calls.thread(), nice, %error, "nice value not set");
        }
        body(heap_calls);
    })?;
    Ok(StageThread { handle, heap_calls })
}
