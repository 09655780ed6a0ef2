//! The table of ONNX Runtime's functions and the results that they return.

use std::ffi::{CStr, c_char, c_void};

use onnxruntime_sys as sys;

use crate::model::ModelError;

/// Version of the oldest table that has every function used here. Newer libraries serve this version too. The
/// table is append-only, so a newer version would add nothing.
pub(super) const TABLE_VERSION: u32 = 17;

/// Calls a function of the part of the table that onnxruntime-sys describes.
macro_rules! call {
    ($api:expr, $name:ident $(, $argument:expr)* $(,)?) => {
        ($api.table().$name.expect("filled: checked when the library was opened"))($($argument),*)
    };
}
pub(super) use call;

/// Lists the functions used of the described part, with their indices in the table.
macro_rules! described {
    ($($name:ident),* $(,)?) => {
        const DESCRIBED: &[(&str, usize)] =
            &[$((stringify!($name), std::mem::offset_of!(sys::OrtApi, $name) / PLACE_BYTES)),*];

        #[cfg(test)]
        const DESCRIBED_REFERENCE: &[usize] =
            &[$(std::mem::offset_of!(ort_sys::OrtApi, $name) / PLACE_BYTES),*];
    };
}

/// Lists the functions used beyond the described part: index, method, name, type.
macro_rules! appended {
    ($($(#[$doc:meta])* $place:literal $method:ident = $name:ident: $type:ty;)*) => {
        const APPENDED: &[(&str, usize)] = &[$((stringify!($name), $place)),*];

        #[cfg(test)]
        const APPENDED_REFERENCE: &[usize] =
            &[$(std::mem::offset_of!(ort_sys::OrtApi, $name) / PLACE_BYTES),*];

        impl Api {
            $(
                $(#[$doc])*
                pub(super) fn $method(&self) -> $type {
                    let place = self.place($place);
                    // SAFETY: the place is within the table of `TABLE_VERSION`, it is not null (both checked
                    // in `Api::new`), and the function has this type in that version (test
                    // `places_are_right`, ort-sys).
                    unsafe { std::mem::transmute::<*const c_void, $type>(place) }
                }
            )*
        }
    };
}

const PLACE_BYTES: usize = size_of::<*const c_void>();

described! {
    GetErrorMessage, CreateEnv, DisableTelemetryEvents, CreateSession, CreateSessionFromArray, Run, CreateSessionOptions,
    DisableMemPattern, SetSessionGraphOptimizationLevel, SetIntraOpNumThreads, SetInterOpNumThreads, SessionGetInputCount,
    SessionGetOutputCount, SessionGetInputTypeInfo, SessionGetOutputTypeInfo, SessionGetInputName,
    SessionGetOutputName, CreateRunOptions, RunOptionsSetTerminate, RunOptionsUnsetTerminate,
    CreateTensorWithDataAsOrtValue, GetTensorMutableData, CastTypeInfoToTensorInfo, GetOnnxTypeFromTypeInfo,
    GetTensorElementType, GetDimensionsCount, GetDimensions, GetTensorTypeAndShape, CreateCpuMemoryInfo,
    AllocatorFree, GetAllocatorWithDefaultOptions, ReleaseEnv, ReleaseStatus, ReleaseMemoryInfo,
    ReleaseSession, ReleaseValue, ReleaseRunOptions, ReleaseTypeInfo, ReleaseTensorTypeAndShapeInfo,
    ReleaseSessionOptions, GetAvailableProviders, ReleaseAvailableProviders, AddSessionConfigEntry,
    RunWithBinding, CreateIoBinding, ReleaseIoBinding, BindInput, BindOutput,
}

/// Parameters `(options, keys, values, count)`: changes a provider's own settings.
type Update =
    unsafe extern "C" fn(*mut c_void, *const *const c_char, *const *const c_char, usize) -> sys::OrtStatusPtr;

/// Parameters `(session options, provider's settings)`: adds a provider.
type AppendProvider = unsafe extern "C" fn(*mut sys::OrtSessionOptions, *const c_void) -> sys::OrtStatusPtr;

/// Parameter `(out)`: makes new settings of a provider.
type Create = unsafe extern "C" fn(*mut *mut c_void) -> sys::OrtStatusPtr;

/// The functions that add a provider with settings of its own type.
#[derive(Clone, Copy)]
pub(super) struct ProviderCalls {
    pub(super) create: Create,
    pub(super) update: Update,
    pub(super) append: AppendProvider,
    pub(super) release: unsafe extern "C" fn(*mut c_void),
}

appended! {
    170 tensorrt_append = SessionOptionsAppendExecutionProvider_TensorRT_V2: AppendProvider;
    171 tensorrt_create = CreateTensorRTProviderOptions: Create;
    172 tensorrt_update = UpdateTensorRTProviderOptions: Update;
    174 tensorrt_release = ReleaseTensorRTProviderOptions: unsafe extern "C" fn(*mut c_void);
    204 cuda_append = SessionOptionsAppendExecutionProvider_CUDA_V2: AppendProvider;
    205 cuda_create = CreateCUDAProviderOptions: Create;
    206 cuda_update = UpdateCUDAProviderOptions: Update;
    208 cuda_release = ReleaseCUDAProviderOptions: unsafe extern "C" fn(*mut c_void);
    /// Parameters `(session options, name, keys, values, count)`: adds a provider by its name.
    216 append_by_name = SessionOptionsAppendExecutionProvider: unsafe extern "C" fn(
        *mut sys::OrtSessionOptions,
        *const c_char,
        *const *const c_char,
        *const *const c_char,
        usize,
    ) -> sys::OrtStatusPtr;
}

/// The functions of one opened library.
#[derive(Clone, Copy)]
pub(super) struct Api(*const sys::OrtApi);

// SAFETY: the table is constant for the life of the process (the library is never closed), and ONNX Runtime
// documents its functions as callable from any thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

impl Api {
    /// Wraps a table after checking that no function used is missing from the table.
    ///
    /// # Safety
    /// `table` must come from `GetApi(TABLE_VERSION)` of a library that stays open for ever.
    ///
    /// # Errors
    /// The name of a missing function.
    pub(super) unsafe fn new(table: *const sys::OrtApi) -> Result<Self, &'static str> {
        let api = Self(table);
        match DESCRIBED.iter().chain(APPENDED).find(|&&(_, place)| api.place(place).is_null()) {
            Some(&(name, _)) => Err(name),
            None => Ok(api),
        }
    }

    /// Returns the described part of the table.
    pub(super) fn table(&self) -> &sys::OrtApi {
        // SAFETY: the caller of `new` guarantees a table that lives for ever; it begins with the fields of
        // `sys::OrtApi`.
        unsafe { &*self.0 }
    }

    fn place(&self, place: usize) -> *const c_void {
        let places = self.0.cast::<*const c_void>();
        // SAFETY: every caller passes a place of `DESCRIBED` or `APPENDED`. The highest is 216, and a table
        // of `TABLE_VERSION` has more than 250.
        let place = unsafe { places.add(place) };
        // SAFETY: as above; the table is an array of function pointers, null or not.
        unsafe { *place }
    }

    /// Returns the functions for CUDA.
    pub(super) fn cuda(&self) -> ProviderCalls {
        ProviderCalls {
            create: self.cuda_create(),
            update: self.cuda_update(),
            append: self.cuda_append(),
            release: self.cuda_release(),
        }
    }

    /// Returns the functions for TensorRT.
    pub(super) fn tensorrt(&self) -> ProviderCalls {
        ProviderCalls {
            create: self.tensorrt_create(),
            update: self.tensorrt_update(),
            append: self.tensorrt_append(),
            release: self.tensorrt_release(),
        }
    }

    /// Turns the status of a function into a result. The status code is not read, because the crate has it as
    /// a Rust enum without the newer values. The text is more precise.
    pub(super) fn check(&self, status: sys::OrtStatusPtr, context: &'static str) -> Result<(), ModelError> {
        if status.is_null() {
            return Ok(());
        }
        // SAFETY: `status` is a status that this library returned and that has not been released.
        let text = unsafe { call!(self, GetErrorMessage, status) };
        // SAFETY: the text belongs to the status, which is still there, and ends with a zero byte.
        let message = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
        // SAFETY: `status` is released once, here, after the last use of its text.
        unsafe { call!(self, ReleaseStatus, status) };
        Err(ModelError::Runtime { context, message })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares every place in use with ort-sys, a binding of a newer header, which must have the function of
    /// the same name there.
    #[test]
    fn places_are_right() {
        for (list, reference) in [(DESCRIBED, DESCRIBED_REFERENCE), (APPENDED, APPENDED_REFERENCE)] {
            assert!(!list.is_empty());
            for (&(name, place), &expected) in list.iter().zip(reference) {
                assert_eq!(place, expected, "{name}");
            }
        }
    }

    /// Compares the places beyond the described part with their bounds: the end of the described part, and
    /// the first function of version 20. The highest place in use is 216.
    #[test]
    fn places_are_within_the_oldest_table() {
        let newest = std::mem::offset_of!(ort_sys::OrtApi, CreateLoraAdapter) / PLACE_BYTES;
        assert!(APPENDED.iter().all(|&(_, place)| place < newest));
        assert!(APPENDED.iter().all(|&(_, place)| place >= size_of::<sys::OrtApi>() / PLACE_BYTES));
    }

    #[test]
    fn a_table_with_a_hole_is_refused() {
        let table = vec![std::ptr::null::<c_void>(); 300];
        // SAFETY: long enough for every place that is read; nothing is called.
        let missing = unsafe { Api::new(table.as_ptr().cast()) }.err();
        assert_eq!(missing, Some("GetErrorMessage"));
    }
}
