//! The only place that starts threads.

use std::thread::JoinHandle;

/// What a thread is and how it shall be scheduled.
#[derive(Clone, Debug)]
pub struct ThreadSpec {
    /// Name, at most 15 bytes are visible in `/proc`.
    pub name: String,
    /// Nice value, `0..=19`; 0 leaves it as it is. Lower runs first when cores are scarce.
    pub nice: i32,
}

/// Starts a thread. A nice value that the system refuses is logged, not fatal.
///
/// # Errors
/// When the system has no more threads.
#[expect(clippy::disallowed_methods, reason = "this is the place that the ban points to")]
pub fn spawn<F>(spec: ThreadSpec, body: F) -> std::io::Result<JoinHandle<()>>
where
    F: FnOnce() + Send + 'static,
{
    let ThreadSpec { name, nice } = spec;
    std::thread::Builder::new().name(name.clone()).spawn(move || {
        // Linux keeps the nice value per thread; `None` names the calling one.
        if nice != 0
            && let Err(error) = rustix::process::setpriority_process(None, nice)
        {
            tracing::warn!(thread = name, nice, %error, "nice value not set");
        }
        body();
    })
}
