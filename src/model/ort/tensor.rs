//! The inputs and outputs of graphs.

use std::ffi::c_void;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use onnxruntime_sys as sys;

use super::api::call;
use super::library::{Library, made};
use crate::model::ModelError;

/// Type of a tensor's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ElementType {
    /// 32-bit floats.
    F32,
    /// 64-bit signed integers.
    I64,
    /// One byte, zero or one.
    Bool,
    /// A type that this program does not use, by its number in ONNX Runtime's header.
    Other(u32),
}

impl ElementType {
    /// Converts the number of the header, known or not. Source of the numbers: ONNX `TensorProto.DataType`.
    fn from_code(code: u32) -> Self {
        match code {
            1 => Self::F32,
            7 => Self::I64,
            9 => Self::Bool,
            other => Self::Other(other),
        }
    }
}

/// A Rust type whose slices are tensor data.
pub trait Element: Copy + Default + Send + Sync + 'static + sealed::Code {
    /// The element type of the tensor.
    const TYPE: ElementType;
}

mod sealed {
    use onnxruntime_sys as sys;

    /// The number of an element type in ONNX Runtime's header.
    pub trait Code {
        const CODE: sys::ONNXTensorElementDataType;
    }
}

macro_rules! element {
    ($type:ty, $name:ident, $code:ident) => {
        impl sealed::Code for $type {
            const CODE: sys::ONNXTensorElementDataType = sys::ONNXTensorElementDataType::$code;
        }
        impl Element for $type {
            const TYPE: ElementType = ElementType::$name;
        }
    };
}
element!(f32, F32, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
element!(i64, I64, ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64);
element!(bool, Bool, ONNX_TENSOR_ELEMENT_DATA_TYPE_BOOL);

/// Lengths of a tensor's dimensions, without a heap call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    dims: [i64; RANK_MAX],
    rank: usize,
}

impl Shape {
    /// Creates the shape with these lengths.
    ///
    /// # Panics
    /// If there are more than eight.
    #[must_use]
    pub fn new(lengths: &[i64]) -> Self {
        assert!(lengths.len() <= RANK_MAX, "{} dimensions, at most {RANK_MAX}", lengths.len());
        let mut dims = [0; RANK_MAX];
        dims[..lengths.len()].copy_from_slice(lengths);
        Self { dims, rank: lengths.len() }
    }

    /// Returns the lengths; −1 for a length that a graph leaves open.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims[..self.rank]
    }

    /// Returns the number of elements of a tensor of this shape; an open length counts as none.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.dims().iter().map(|&length| usize::try_from(length).unwrap_or(0)).product()
    }
}

/// Converts the length of a dimension to ONNX Runtime's type.
///
/// # Panics
/// If `elements` is above `i64::MAX`, which no slice in memory is.
#[must_use]
pub const fn length_of(elements: usize) -> i64 {
    assert!(elements as u64 <= i64::MAX as u64, "longer than any slice");
    #[expect(clippy::cast_possible_wrap, reason = "compared in the line above")]
    let length = elements as i64;
    length
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dims().fmt(f)
    }
}

/// Most dimensions of a tensor; the largest of the models has four.
const RANK_MAX: usize = 8;

/// Memory that ONNX Runtime reads and writes during a run and Rust at all other times.
pub(super) struct Buffer<T> {
    /// From `Box::into_raw`; slices of the memory exist for the length of a borrow only.
    data: NonNull<[T]>,
}

// SAFETY: the buffer owns its memory, as a box does.
unsafe impl<T: Send> Send for Buffer<T> {}
// SAFETY: as above; `&Buffer` only gives `&[T]`.
unsafe impl<T: Sync> Sync for Buffer<T> {}

impl<T: Element> Buffer<T> {
    pub(super) fn new(len: usize) -> Self {
        let data = Box::into_raw(vec![T::default(); len].into_boxed_slice());
        Self { data: NonNull::new(data).expect("a box is not null") }
    }

    pub(super) fn as_slice(&self) -> &[T] {
        // SAFETY: owned, initialised, and not written while `self` is borrowed: runs that write into a
        // buffer borrow its owner mutably.
        unsafe { self.data.as_ref() }
    }

    pub(super) fn as_mut_slice(&mut self) -> &mut [T] {
        // SAFETY: as above, and `self` is borrowed mutably.
        unsafe { self.data.as_mut() }
    }

    /// Makes a value of shape `shape` on the first elements of this buffer.
    ///
    /// # Safety
    /// The value must not be used after the buffer is gone, nor in a run while a slice of the buffer is
    /// alive, except for reading both.
    pub(super) unsafe fn value(&self, library: &Arc<Library>, shape: &Shape) -> Result<Value, ModelError> {
        let dims = shape.dims();
        assert!(shape.elements() <= self.data.len(), "{shape:?} in a buffer of {}", self.data.len());
        let bytes = shape.elements() * size_of::<T>();
        let start = self.data.as_ptr().cast::<c_void>();
        let mut raw = ptr::null_mut();
        // SAFETY: `start` points to at least `bytes` bytes (asserted), dims are `dims.len()` lengths, `raw`
        // is a place for the result, which the caller keeps within the life of the buffer.
        let status = unsafe {
            call!(
                library.api,
                CreateTensorWithDataAsOrtValue,
                library.memory.as_ptr(),
                start,
                bytes,
                dims.as_ptr(),
                dims.len(),
                T::CODE,
                &raw mut raw
            )
        };
        library.api.check(status, "a tensor on a buffer")?;
        Ok(Value { library: Arc::clone(library), raw: made(raw) })
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // SAFETY: from `Box::into_raw` in `new`, taken back once.
        drop(unsafe { Box::from_raw(self.data.as_ptr()) });
    }
}

/// A tensor of ONNX Runtime.
pub struct Value {
    library: Arc<Library>,
    pub(super) raw: NonNull<sys::OrtValue>,
}

// SAFETY: a value is plain memory with a description; the library has no thread of its own that touches it.
unsafe impl Send for Value {}
// SAFETY: `&Value` is only read, by us and by runs that have it as an input.
unsafe impl Sync for Value {}

impl Value {
    pub(super) fn from_raw(library: &Arc<Library>, raw: NonNull<sys::OrtValue>) -> Self {
        Self { library: Arc::clone(library), raw }
    }

    /// Returns the lengths of the dimensions.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the value is not a tensor or has more than eight dimensions.
    pub fn shape(&self) -> Result<Shape, ModelError> {
        self.describe().map(|(_, shape)| shape)
    }

    /// Returns the elements.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the elements are not of type `T`.
    pub fn data<T: Element>(&self) -> Result<&[T], ModelError> {
        let (element, shape) = self.describe()?;
        if element != T::TYPE {
            let message = format!("found {element:?}, expected {:?}", T::TYPE);
            return Err(ModelError::Runtime { context: "elements of a tensor", message });
        }
        let mut data = ptr::null_mut();
        // SAFETY: `data` is a place for the result.
        let status =
            unsafe { call!(self.library.api, GetTensorMutableData, self.raw.as_ptr(), &raw mut data) };
        self.library.api.check(status, "elements of a tensor")?;
        if data.is_null() || shape.elements() == 0 {
            return Ok(&[]);
        }
        // SAFETY: the tensor has `elements` elements of this type (both just read from it), lives as long as
        // `self`, and nothing writes to it: runs create their outputs anew.
        Ok(unsafe { std::slice::from_raw_parts(data.cast::<T>(), shape.elements()) })
    }

    fn describe(&self) -> Result<(ElementType, Shape), ModelError> {
        let api = &self.library.api;
        let mut info = ptr::null_mut();
        // SAFETY: `info` is a place for the result.
        let status = unsafe { call!(api, GetTensorTypeAndShape, self.raw.as_ptr(), &raw mut info) };
        api.check(status, "shape of a tensor")?;
        // SAFETY: `info` was just made by the library.
        let described = unsafe { describe(&self.library, info) };
        // SAFETY: made above, released once.
        unsafe { call!(api, ReleaseTensorTypeAndShapeInfo, info) };
        described
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Value").field("shape", &self.shape().ok()).finish_non_exhaustive()
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: made by the library for this owner, released once.
        unsafe { call!(self.library.api, ReleaseValue, self.raw.as_ptr()) };
    }
}

/// Returns the element type and shape of a description.
///
/// # Safety
/// `info` must be a valid description of this library.
pub(super) unsafe fn describe(
    library: &Library,
    info: *const sys::OrtTensorTypeAndShapeInfo,
) -> Result<(ElementType, Shape), ModelError> {
    let api = &library.api;
    // Read as a number: the library has more types than the crate's enum has.
    let mut code = 0_u32;
    // SAFETY: `info` is valid (caller); the enum of the C header is 32 bits wide, `code` is a place for it.
    let status = unsafe { call!(api, GetTensorElementType, info, (&raw mut code).cast()) };
    api.check(status, "type of a tensor")?;
    let mut rank = 0_usize;
    // SAFETY: `info` is valid, `rank` is a place for the result.
    let status = unsafe { call!(api, GetDimensionsCount, info, &raw mut rank) };
    api.check(status, "shape of a tensor")?;
    if rank > RANK_MAX {
        let message = format!("{rank} dimensions, at most {RANK_MAX}");
        return Err(ModelError::Runtime { context: "shape of a tensor", message });
    }
    let mut dims = [0_i64; RANK_MAX];
    // SAFETY: `info` is valid and has `rank` dimensions, for which there is room.
    let status = unsafe { call!(api, GetDimensions, info, dims.as_mut_ptr(), rank) };
    api.check(status, "shape of a tensor")?;
    Ok((ElementType::from_code(code), Shape::new(&dims[..rank])))
}

/// A tensor on memory of this process, for inputs whose shape changes from run to run.
pub struct Tensor<T: Element> {
    // Declared before the buffer: dropped first.
    value: Value,
    shape: Shape,
    buffer: Buffer<T>,
}

impl<T: Element> Tensor<T> {
    /// Creates a tensor of zeros with room for `capacity` elements.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    ///
    /// # Panics
    /// If `shape` has more elements than `capacity`.
    pub fn new(library: &Arc<Library>, capacity: usize, shape: &[i64]) -> Result<Self, ModelError> {
        let (buffer, shape) = (Buffer::new(capacity), Shape::new(shape));
        // SAFETY: the value is kept beside the buffer and dropped before it; slices are borrows of `self`,
        // and a run borrows `self` too.
        let value = unsafe { buffer.value(library, &shape) }?;
        Ok(Self { value, shape, buffer })
    }

    /// Gives the tensor another shape on the same memory. No heap call on the Rust side; the elements stay as they
    /// are.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    ///
    /// # Panics
    /// If `shape` has more elements than the tensor has room for.
    pub fn reshape(&mut self, shape: &[i64]) -> Result<(), ModelError> {
        let shape = Shape::new(shape);
        if shape != self.shape {
            // SAFETY: as in `new`.
            self.value = unsafe { self.buffer.value(&self.value.library, &shape) }?;
            self.shape = shape;
        }
        Ok(())
    }

    /// Returns the elements that the shape covers, for writing.
    #[must_use]
    pub fn data_mut(&mut self) -> &mut [T] {
        let elements = self.shape.elements();
        &mut self.buffer.as_mut_slice()[..elements]
    }

    /// Returns the tensor as a run takes it.
    #[must_use]
    pub fn value(&self) -> &Value {
        &self.value
    }
}

impl<T: Element> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor").field("type", &T::TYPE).field("shape", &self.shape).finish_non_exhaustive()
    }
}
