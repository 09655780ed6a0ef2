//! The start of the real-time zone's threads. No other module starts one.

use std::thread::JoinHandle;

use super::alloc::HeapCalls;

/// Name and priority of a thread.
#[derive(Clone, Debug)]
pub struct ThreadSpec {
    /// Name, of which `/proc` shows at most 15 bytes.
    pub name: String,
    /// Nice value, `0..=19`; 0 leaves the value as it is. A lower value runs first when cores are scarce.
    pub nice: i32,
}

/// A running thread.
#[derive(Debug)]
pub struct StageThread {
    /// Handle to wait for the thread's end.
    pub handle: JoinHandle<()>,
    /// Counter of the thread's heap calls. Lives as long as the process, like the units.
    pub heap_calls: &'static HeapCalls,
}

/// Sets the nice value of the calling thread, called `thread` in the log, and of the threads that it starts. 0 leaves the
/// value as it is. A value that the system refuses is logged and is no error.
pub fn set_nice(thread: &str, nice: i32) {
    // Linux keeps the nice value per thread; `None` names the calling one.
    if nice != 0
        && let Err(error) = rustix::process::setpriority_process(None, nice)
    {
        tracing::warn!(thread, nice, %error, "nice value not set");
    }
}

/// Starts a thread and passes the counter of its heap calls to `body`. A nice value that the system refuses is logged
/// and is no error.
///
/// # Errors
/// Returns an error if the system has no more threads.
#[expect(clippy::disallowed_methods, reason = "this is the place that the ban points to")]
pub fn spawn<F>(spec: ThreadSpec, body: F) -> std::io::Result<StageThread>
where
    F: FnOnce(&'static HeapCalls) + Send + 'static,
{
    let ThreadSpec { name, nice } = spec;
    let heap_calls: &'static HeapCalls = Box::leak(Box::new(HeapCalls::new(name.clone())));
    let handle = std::thread::Builder::new().name(name).spawn(move || {
        set_nice(heap_calls.thread(), nice);
        body(heap_calls);
    })?;
    Ok(StageThread { handle, heap_calls })
}
