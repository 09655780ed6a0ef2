//! The way to end a run that goes on in another thread.

use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use onnxruntime_sys as sys;

use super::api::call;
use super::library::{Library, made};
use crate::model::ModelError;

/// Ends the runs of one worker from any thread, for barge-in: ONNX Runtime looks at it before each node of a
/// graph.
///
/// A worker calls [`Terminate::arm`], *then* asks whether its work is stale, *then* runs. Whoever makes work
/// stale does so first and calls [`Terminate::stop`] second. So a stop either comes before `arm`, and the
/// worker sees the stale work, or after it, and the run ends. A stop that comes late may hit the next run; a
/// run that ended though its work is not stale is to be run again
/// ([`Graph::run_unless_stale`](super::Graph::run_unless_stale)).
#[derive(Clone)]
pub struct Terminate(Arc<Inner>);

struct Inner {
    library: Arc<Library>,
    options: NonNull<sys::OrtRunOptions>,
    stopped: AtomicBool,
}

// SAFETY: the library documents that the flag of run options may be set while a run uses them; nothing else
// of them is ever changed.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Terminate {
    /// A handle that is not stopped.
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

    /// Ends the run that goes on with this handle, or the next one that is not armed anew. Any thread, at any
    /// time.
    pub fn stop(&self) {
        // ORDERING: Release pairs with the Acquire in `is_stopped`; whoever sees the stop sees why it was
        // made.
        self.0.stopped.store(true, Ordering::Release);
        // SAFETY: the options live as long as `self`.
        let status = unsafe { call!(self.0.library.api, RunOptionsSetTerminate, self.0.options.as_ptr()) };
        let done = self.0.library.api.check(status, "end of a run");
        debug_assert!(done.is_ok(), "setting a flag does not fail");
    }

    /// Makes the next run possible.
    pub fn arm(&self) {
        // ORDERING: Relaxed; the worker that reads it next is the caller. Cleared before the library's own
        // flag, so that a stop in between leaves at most a mark without effect, and the caller sees its stale
        // work next.
        self.0.stopped.store(false, Ordering::Relaxed);
        // SAFETY: the options live as long as `self`.
        let status = unsafe { call!(self.0.library.api, RunOptionsUnsetTerminate, self.0.options.as_ptr()) };
        let done = self.0.library.api.check(status, "options of a run");
        debug_assert!(done.is_ok(), "clearing a flag does not fail");
    }

    /// Whether [`Terminate::stop`] was called since [`Terminate::arm`].
    #[must_use]
    fn is_stopped(&self) -> bool {
        // ORDERING: Acquire pairs with the Release in `stop`.
        self.0.stopped.load(Ordering::Acquire)
    }

    /// Says of a run's error whether it was asked for. The mark is set before the library's flag; where an
    /// `arm` came between the two, only the library's text tells.
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

/// Part of what the library says of a run that was ended. Source: onnxruntime 1.32.0.
const TERMINATED: &str = "terminate flag";
