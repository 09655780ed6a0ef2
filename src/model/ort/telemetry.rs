//! ONNX Runtime's telemetry: off in every process of this program.
//!
//! From version 1.29 on, the published builds report their use to Microsoft from the moment their environment is made.
//! They also keep an id and a database below the user's cache. An environment variable prevents all of it. The call of
//! the interface comes too late for the first event, but is made as well ([`Library::open`](super::Library::open)).
//!
//! # Source
//! ONNX Runtime, `docs/Privacy.md`, "Disabling Telemetry".

use crate::model::ModelError;

/// Environment variable that turns the telemetry off.
const VARIABLE: &str = "ORT_DISABLE_TELEMETRY";

/// Value of [`VARIABLE`] that turns the telemetry off.
const OFF: &str = "1";

/// Turns the telemetry off, for this process and for every process that it starts. `main` calls this first, because a
/// process with more than one thread must have been started with `ORT_DISABLE_TELEMETRY=1`.
///
/// # Errors
/// [`ModelError::Runtime`] if the variable has another value and other threads run, or may run.
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
    // SAFETY: no other thread reads or writes the environment meanwhile: this is the only thread of the process, which
    // has just been counted, and only this thread could start another one.
    unsafe { std::env::set_var(VARIABLE, OFF) };
    Ok(())
}

/// Returns true if the process has no thread but the calling one; false if the system gives no list of threads.
fn is_only_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}
