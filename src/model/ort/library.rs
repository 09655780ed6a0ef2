//! The opened library: one per process.

use std::ffi::{CStr, c_char};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use onnxruntime_sys as sys;

use super::api::{Api, TABLE_VERSION, call};
use super::telemetry::disable_telemetry;
use crate::model::ModelError;

/// ONNX Runtime, opened and initialised. Shared by all [`Graph`](super::Graph)s and tensors that come from
/// the library.
pub struct Library {
    pub(super) api: Api,
    pub(super) env: NonNull<sys::OrtEnv>,
    /// Description of plain memory of this process.
    pub(super) memory: NonNull<sys::OrtMemoryInfo>,
    /// The library's default allocator; used only to free texts that the library returned.
    pub(super) allocator: NonNull<sys::OrtAllocator>,
    version: String,
    path: PathBuf,
}

// SAFETY: environment, memory description and default allocator are documented as usable from any thread, and
// are only read after `open`.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// Opens the library at `path` and makes its environment: log level *error*, no telemetry, no threads.
    ///
    /// The library stays open for the life of the process, because its threads and exit handlers need its
    /// code.
    ///
    /// # Errors
    /// [`ModelError::Missing`] if there is no such file, [`ModelError::Wrong`] if the file is not an ONNX
    /// Runtime of 1.17 or later, [`ModelError::Runtime`] if the library fails to start, or if its telemetry
    /// is on ([`disable_telemetry`]).
    pub fn open(path: &Path) -> Result<Arc<Self>, ModelError> {
        let expected = format!("ONNX Runtime 1.{TABLE_VERSION} or later");
        if !path.is_file() {
            return Err(ModelError::Missing { path: path.into(), expected });
        }
        disable_telemetry()?;
        let wrong =
            |found: String| ModelError::Wrong { path: path.into(), found, expected: expected.clone() };
        // SAFETY: opening runs the library's initialisers; the caller has chosen the file as the ONNX
        // Runtime.
        let dynamic = unsafe { libloading::Library::new(path) }.map_err(|error| wrong(error.to_string()))?;
        let dynamic = std::mem::ManuallyDrop::new(dynamic);
        // SAFETY: this is the documented type of the library's one entry.
        let entry =
            unsafe { dynamic.get::<unsafe extern "C" fn() -> *const sys::OrtApiBase>(b"OrtGetApiBase\0") };
        let entry = entry.map_err(|error| wrong(error.to_string()))?;
        // SAFETY: the entry takes nothing and may be called at any time.
        let base = unsafe { entry() };
        // SAFETY: the library returns a constant structure or null.
        let base = unsafe { base.as_ref() }.ok_or_else(|| wrong("a library without an interface".into()))?;
        let (Some(version), Some(table)) = (base.GetVersionString, base.GetApi) else {
            return Err(wrong("a library with an incomplete interface".into()));
        };
        // SAFETY: takes nothing and returns a constant.
        let version = unsafe { version() };
        // SAFETY: that constant is text that ends with a zero byte.
        let version = unsafe { CStr::from_ptr(version) }.to_string_lossy().into_owned();
        // SAFETY: any number may be passed; null means that the version is not offered.
        let table = unsafe { table(TABLE_VERSION) };
        if table.is_null() {
            return Err(wrong(format!("version {version}")));
        }
        // SAFETY: the table was just returned for `TABLE_VERSION`, and the library is never closed.
        let api = unsafe { Api::new(table) };
        let api = api.map_err(|name| wrong(format!("version {version} without {name}")))?;
        let (env, memory, allocator) = Self::start(api)?;
        Ok(Arc::new(Self { api, env, memory, allocator, version, path: path.into() }))
    }

    #[expect(clippy::type_complexity, reason = "three handles, taken apart by the only caller")]
    fn start(
        api: Api,
    ) -> Result<(NonNull<sys::OrtEnv>, NonNull<sys::OrtMemoryInfo>, NonNull<sys::OrtAllocator>), ModelError>
    {
        let mut env = ptr::null_mut();
        let level = sys::OrtLoggingLevel::ORT_LOGGING_LEVEL_ERROR;
        // SAFETY: the name is text with a zero byte at its end, `env` a place for the result.
        let status = unsafe { call!(api, CreateEnv, level, c"antiphon".as_ptr(), &raw mut env) };
        api.check(status, "start of ONNX Runtime")?;
        // SAFETY: `env` is the environment that was just made.
        let status = unsafe { call!(api, DisableTelemetryEvents, env) };
        api.check(status, "telemetry of ONNX Runtime")?;
        let (arena, default) = (sys::OrtAllocatorType::OrtArenaAllocator, sys::OrtMemType::OrtMemTypeDefault);
        let mut memory = ptr::null_mut();
        // SAFETY: `memory` is a place for the result.
        let status = unsafe { call!(api, CreateCpuMemoryInfo, arena, default, &raw mut memory) };
        api.check(status, "description of memory")?;
        let mut allocator = ptr::null_mut();
        // SAFETY: `allocator` is a place for the result, which belongs to the library.
        let status = unsafe { call!(api, GetAllocatorWithDefaultOptions, &raw mut allocator) };
        api.check(status, "default allocator")?;
        Ok((made(env), made(memory), made(allocator)))
    }

    /// Returns the version that the library reports.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the path of the opened library.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the long names of the execution providers that were compiled into the library.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    pub fn providers(&self) -> Result<Vec<String>, ModelError> {
        let (mut names, mut count) = (ptr::null_mut(), 0);
        // SAFETY: both are places for results.
        let status = unsafe { call!(self.api, GetAvailableProviders, &raw mut names, &raw mut count) };
        self.api.check(status, "list of execution providers")?;
        let mut providers = Vec::new();
        for n in 0..usize::try_from(count).unwrap_or(0) {
            // SAFETY: the library returned `count` names.
            let name = unsafe { names.add(n) };
            // SAFETY: as above.
            let name = unsafe { *name };
            // SAFETY: each is text that ends with a zero byte.
            providers.push(unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned());
        }
        // SAFETY: list and count are those that the library returned; released once.
        let status = unsafe { call!(self.api, ReleaseAvailableProviders, names, count) };
        self.api.check(status, "list of execution providers")?;
        Ok(providers)
    }

    /// Copies a text that the library made with its default allocator, and frees the text.
    ///
    /// # Safety
    /// `text` must be such a text and not be used afterwards.
    pub(super) unsafe fn take_text(&self, text: *mut c_char) -> Result<String, ModelError> {
        // SAFETY: the caller guarantees that `text` ends with a zero byte.
        let copy = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: `text` came from this allocator and is not used again.
        let status = unsafe { call!(self.api, AllocatorFree, self.allocator.as_ptr(), text.cast()) };
        self.api.check(status, "release of a text")?;
        Ok(copy)
    }
}

/// Converts a handle that the library returned with a status of success.
pub(super) fn made<T>(handle: *mut T) -> NonNull<T> {
    NonNull::new(handle).expect("a call that succeeded has made its handle")
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library")
            .field("path", &self.path)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: made by `start`, released once; graphs and tensors hold the library, so none is left.
        unsafe { call!(self.api, ReleaseMemoryInfo, self.memory.as_ptr()) };
        // SAFETY: as above.
        unsafe { call!(self.api, ReleaseEnv, self.env.as_ptr()) };
    }
}
