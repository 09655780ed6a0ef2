//! ONNX Runtime's telemetry: off in every process of ours.
//!
//! From version 1.29 on the published builds tell Microsoft what they run, and keep an id and a database below the user's
//! cache, from the moment their environment is made. An environment variable prevents all of it; the call that their
//! interface offers comes too late for the first event, and is made as well ([`Library::open`](super::Library::open)).
//!
//! # Source
//! ONNX Runtime, `docs/Privacy.md`, "Disabling Telemetry".

use crate::model::ModelError;

/// Environment variable that turns the telemetry off.
const VARIABLE: &str = "ORT_DISABLE_TELEMETRY";

/// Value of [`VARIABLE`] that does so.
const OFF: &str = "1";

/// Turns the telemetry off, for this process and for every one that it starts. `main` calls this first, because a process
/// with more than one thread must have been started with `ORT_DISABLE_TELEMETRY=1`.
///
/// # Errors
/// [`ModelError::Runtime`] where the variable has another value and other threads run, or may run.
pub fn disable_telemetry() -> Result<(), ModelError> {
    if std::env::var_os(VARIABLE).is_some_and(|value| value == OFF) {
        return Ok(());
    }
    if !is_only_thread() {
        return Err(ModelError::Runtime {
            context: "telemetry of ONNX Runtime",
            message: format!("found it on in a process with threads, expected {VARIABLE}={OFF} at its start"),
        });
    }
    // SAFETY: nobody reads or writes the environment meanwhile: this is the only thread of the process, which has just been
    // counted, and another one could be started by this one only.
    unsafe { std::env::set_var(VARIABLE, OFF) };
    Ok(())
}

/// Tells whether the process has no thread but the calling one; `false` where the system does not say.
fn is_only_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}
