//! A handle that ends a run in another thread.

use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onnxruntime_sys as sys;

use super::api::call;
use super::library::{Library, made};
use crate::model::ModelError;

/// Ends the runs of one worker from any thread, for barge-in. ONNX Runtime reads the flag of the handle
/// before each node of a graph.
///
/// A worker calls [`Terminate::arm`], *then* checks its work for staleness, *then* runs. The other thread
/// first makes the work stale and then calls [`Terminate::stop`]. A stop before `arm` is therefore no loss,
/// because the worker sees the stale work. A stop after `arm` ends the run. A late stop may hit the next run.
/// A run that ended although its work is not stale must be repeated
/// ([`Graph::run_unless_stale`](super::Graph::run_unless_stale)).
#[derive(Clone)]
pub struct Terminate(Arc<Inner>);

struct Inner {
    library: Arc<Library>,
    options: NonNull<sys::OrtRunOptions>,
    stopped: AtomicBool,
}

// SAFETY: the library documents that the flag of run options may be set while a run uses them; the rest of
// the options is never changed.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Terminate {
    /// Creates a handle that is not stopped.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    pub fn new(library: &Arc<Library>) -> Result<Self, ModelError> {
        let mut options = ptr::null_mut();
        // SAFETY: `options` is a place for the result.
        let status = unsafe { call!(library.api, CreateRunOptions, &raw mut options) };
        library.api.check(status, "options of a run")?;
        let stopped = AtomicBool::new(false);
        Ok(Self(Arc::new(Inner { library: Arc::clone(library), options: made(options), stopped })))
    }

    /// Ends the current run with this handle, or else the next one if it is not armed anew. Any thread, at
    /// any time.
    pub fn stop(&self) {
        // ORDERING: Release pairs with the Acquire in `is_stopped`; a thread that sees the stop also sees its
        // cause.
        self.0.stopped.store(true, Ordering::Release);
        // SAFETY: the options live as long as `self`.
        let status = unsafe { call!(self.0.library.api, RunOptionsSetTerminate, self.0.options.as_ptr()) };
        let done = self.0.library.api.check(status, "end of a run");
        debug_assert!(done.is_ok(), "setting a flag does not fail");
    }

    /// Clears a former stop; the next run can begin.
    pub fn arm(&self) {
        // ORDERING: Relaxed; the next reader, the worker, is the caller itself. Cleared before the library's
        // own flag, so that a stop in between leaves at most a mark without effect, and the caller sees its
        // stale work next.
        self.0.stopped.store(false, Ordering::Relaxed);
        // SAFETY: the options live as long as `self`.
        let status = unsafe { call!(self.0.library.api, RunOptionsUnsetTerminate, self.0.options.as_ptr()) };
        let done = self.0.library.api.check(status, "options of a run");
        debug_assert!(done.is_ok(), "clearing a flag does not fail");
    }

    /// Returns true if [`Terminate::stop`] was called since [`Terminate::arm`].
    #[must_use]
    fn is_stopped(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `stop`.
        self.0.stopped.load(Ordering::Acquire)
    }

    /// Turns the error of a run that was stopped into [`ModelError::Stale`]. The mark is set before the
    /// library's flag. If an `arm` came between the two, only the library's text shows the stop.
    pub(super) fn judge(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::Runtime { ref message, .. } if self.is_stopped() || message.contains(TERMINATED) => {
                ModelError::Stale
            }
            other => other,
        }
    }

    pub(super) fn options(&self) -> *const sys::OrtRunOptions {
        self.0.options.as_ptr()
    }
}

impl fmt::Debug for Terminate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Terminate").field("stopped", &self.is_stopped()).finish_non_exhaustive()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: made by `new`, released once.
        unsafe { call!(self.library.api, ReleaseRunOptions, self.options.as_ptr()) };
    }
}

/// Part of the library's message about a run that was ended. Source: onnxruntime 1.32.0.
const TERMINATED: &str = "terminate flag";
