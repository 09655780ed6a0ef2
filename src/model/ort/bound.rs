//! A graph with known shapes: buffers, values and bindings are made once, and a run is one call.

use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use onnxruntime_sys as sys;

use super::api::call;
use super::graph::{Graph, Port};
use super::library::made;
use super::tensor::{Buffer, Element, ElementType, Shape, length_of};
use super::terminate::Terminate;
use crate::model::ModelError;

/// One dimension of a bound port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dim {
    /// A fixed length.
    Is(usize),
    /// The number of rows of the run.
    Rows,
}

/// One worker's buffers on a shared graph, bound for every number of rows from one to a maximum.
pub struct Bound {
    /// One binding per number of rows, from 1 on.
    bindings: Vec<Binding>,
    inputs: Vec<BoundPort>,
    outputs: Vec<BoundPort>,
    terminate: Terminate,
    graph: Arc<Graph>,
}

impl Bound {
    /// Makes buffers for the graph's ports, in the order of `inputs` and `outputs` (name and dimensions), and
    /// binds them.
    ///
    /// # Errors
    /// [`ModelError::Wrong`] if the graph has no such port or its elements are neither `f32` nor `i64`,
    /// [`ModelError::Runtime`] if the library fails.
    pub fn new(
        graph: &Arc<Graph>,
        rows_max: usize,
        inputs: &[(&str, &[Dim])],
        outputs: &[(&str, &[Dim])],
    ) -> Result<Self, ModelError> {
        let bind = |ports: &[Port], specs: &[(&str, &[Dim])]| {
            specs
                .iter()
                .map(|(name, dims)| BoundPort::new(graph, ports, name, dims, rows_max))
                .collect::<Result<Vec<_>, _>>()
        };
        let inputs = bind(graph.inputs(), inputs)?;
        let outputs = bind(graph.outputs(), outputs)?;
        let bindings = (1..=rows_max)
            .map(|rows| Binding::new(graph, rows, &inputs, &outputs))
            .collect::<Result<_, _>>()?;
        let terminate = Terminate::new(graph.library())?;
        Ok(Self { bindings, inputs, outputs, terminate, graph: Arc::clone(graph) })
    }

    /// Returns the buffer of input `index`, as last written.
    ///
    /// # Panics
    /// If there is no such input or its elements are not of type `T`.
    #[must_use]
    pub fn input<T: BoundElement>(&self, index: usize) -> &[T] {
        T::slice(&self.inputs[index].memory)
    }

    /// Returns the buffer of input `index` for writing. A run of `n` rows reads the first `n / rows_max`-th
    /// part.
    ///
    /// # Panics
    /// As [`Bound::input`].
    pub fn input_mut<T: BoundElement>(&mut self, index: usize) -> &mut [T] {
        T::slice_mut(&mut self.inputs[index].memory)
    }

    /// Returns the buffer of output `index`, as the last run has written it.
    ///
    /// # Panics
    /// As [`Bound::input`].
    #[must_use]
    pub fn output<T: BoundElement>(&self, index: usize) -> &[T] {
        T::slice(&self.outputs[index].memory)
    }

    /// Runs the network on the first `rows` rows of the inputs.
    ///
    /// # Real-time
    /// The worker that owns `self`. No heap call on the Rust side.
    ///
    /// # Errors
    /// [`ModelError::Runtime`] if the library fails.
    ///
    /// # Panics
    /// If `rows` is zero or more than the maximum.
    pub fn run(&mut self, rows: usize) -> Result<(), ModelError> {
        assert!(
            (1..=self.bindings.len()).contains(&rows),
            "{rows} rows, bound for 1 to {}",
            self.bindings.len()
        );
        let library = self.graph.library();
        let binding = self.bindings[rows - 1].raw.as_ptr();
        // SAFETY: graph, options and binding are alive; the bound buffers belong to `self`, which is borrowed
        // mutably.
        let status = unsafe {
            call!(library.api, RunWithBinding, self.graph.session.as_ptr(), self.terminate.options(), binding)
        };
        library.api.check(status, "run of a model")
    }

    /// Returns the maximum number of rows of a run.
    #[must_use]
    pub fn rows_max(&self) -> usize {
        self.bindings.len()
    }

    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }
}

impl fmt::Debug for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bound")
            .field("graph", &self.graph)
            .field("rows_max", &self.rows_max())
            .finish_non_exhaustive()
    }
}

/// The memory of one port.
enum Memory {
    F32(Buffer<f32>),
    I64(Buffer<i64>),
}

/// An element type that a bound port can have.
pub trait BoundElement: Element + sealed::View {}

impl BoundElement for f32 {}
impl BoundElement for i64 {}

mod sealed {
    use super::Memory;

    /// Conversion of a port's memory to a slice.
    #[expect(private_interfaces, reason = "sealed: nobody outside can name or implement it")]
    pub trait View: Sized {
        fn slice(memory: &Memory) -> &[Self];
        fn slice_mut(memory: &mut Memory) -> &mut [Self];
    }
}

macro_rules! view {
    ($type:ty, $variant:ident) => {
        #[expect(private_interfaces, reason = "sealed: nobody outside can name or implement it")]
        impl sealed::View for $type {
            fn slice(memory: &Memory) -> &[Self] {
                let Memory::$variant(buffer) = memory else {
                    panic!("the port's elements are of another type")
                };
                buffer.as_slice()
            }

            fn slice_mut(memory: &mut Memory) -> &mut [Self] {
                let Memory::$variant(buffer) = memory else {
                    panic!("the port's elements are of another type")
                };
                buffer.as_mut_slice()
            }
        }
    };
}
view!(f32, F32);
view!(i64, I64);

/// One bound port.
struct BoundPort {
    port: Port,
    dims: Vec<Dim>,
    memory: Memory,
}

impl BoundPort {
    fn new(
        graph: &Graph,
        ports: &[Port],
        name: &str,
        dims: &[Dim],
        rows_max: usize,
    ) -> Result<Self, ModelError> {
        let wrong = |found: String| ModelError::Wrong {
            path: graph.path().into(),
            found,
            expected: format!("{name} with elements of type f32 or i64"),
        };
        let port = ports.iter().find(|port| port.name == name).ok_or_else(|| wrong(format!("no {name}")))?;
        let elements = shape(dims, rows_max).elements();
        let memory = match port.element {
            ElementType::F32 => Memory::F32(Buffer::new(elements)),
            ElementType::I64 => Memory::I64(Buffer::new(elements)),
            other => return Err(wrong(format!("{name} of type {other:?}"))),
        };
        Ok(Self { port: port.clone(), dims: dims.into(), memory })
    }
}

fn shape(dims: &[Dim], rows: usize) -> Shape {
    let mut lengths = [0; 8];
    for (length, dim) in lengths.iter_mut().zip(dims) {
        *length = length_of(match *dim {
            Dim::Is(length) => length,
            Dim::Rows => rows,
        });
    }
    Shape::new(&lengths[..dims.len()])
}

/// The library's own list of values for one number of rows.
struct Binding {
    graph: Arc<Graph>,
    raw: NonNull<sys::OrtIoBinding>,
}

// SAFETY: a binding is a list of values; it is used by the thread that owns it.
unsafe impl Send for Binding {}

impl Binding {
    /// Binds the ports' memory for `rows` rows. `Bound` keeps ports and bindings, and drops the bindings first.
    fn new(
        graph: &Arc<Graph>,
        rows: usize,
        inputs: &[BoundPort],
        outputs: &[BoundPort],
    ) -> Result<Self, ModelError> {
        let library = graph.library();
        let mut raw = ptr::null_mut();
        // SAFETY: the session is alive, `raw` is a place for the result.
        let status = unsafe { call!(library.api, CreateIoBinding, graph.session.as_ptr(), &raw mut raw) };
        library.api.check(status, "binding of a model")?;
        let binding = Self { graph: Arc::clone(graph), raw: made(raw) };
        for (ports, is_input) in [(inputs, true), (outputs, false)] {
            for bound in ports {
                let shape = shape(&bound.dims, rows);
                let value = match &bound.memory {
                    // SAFETY: `Bound` drops the bindings before the buffers, lends slices of them only while it
                    // is borrowed, and borrows itself mutably in a run.
                    Memory::F32(buffer) => unsafe { buffer.value(library, &shape) },
                    // SAFETY: as above.
                    Memory::I64(buffer) => unsafe { buffer.value(library, &shape) },
                }?;
                let (raw, name, value) =
                    (binding.raw.as_ptr(), bound.port.c_name.as_ptr(), value.raw.as_ptr());
                let status = if is_input {
                    // SAFETY: all three are alive; the binding keeps its own reference to the value.
                    unsafe { call!(library.api, BindInput, raw, name, value) }
                } else {
                    // SAFETY: as above.
                    unsafe { call!(library.api, BindOutput, raw, name, value) }
                };
                library.api.check(status, "binding of a model")?;
            }
        }
        Ok(binding)
    }
}

impl Drop for Binding {
    fn drop(&mut self) {
        // SAFETY: made by `new`, released once.
        unsafe { call!(self.graph.library().api, ReleaseIoBinding, self.raw.as_ptr()) };
    }
}
