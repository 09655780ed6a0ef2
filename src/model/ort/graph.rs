//! A loaded network: its weights, its ports, its runs.

use std::ffi::{CString, c_char, c_void};
use std::fmt;
use std::path::{Path, PathBuf};
use std::ptr::{self, NonNull};
use std::sync::Arc;

use onnxruntime_sys as sys;

use super::api::{ProviderCalls, call};
use super::library::{Library, made};
use super::tensor::{ElementType, Shape, Value, describe};
use super::terminate::Terminate;
use crate::model::ModelError;

/// The device and library behind a graph's runs: an execution provider of ONNX Runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provider {
    /// `cpu`, `cuda`, `tensorrt`, or any name that ONNX Runtime's generic call takes (`OpenVINO`, `XNNPACK`,
    /// …).
    pub name: String,
    /// The provider's own settings, by ONNX Runtime's names for them.
    pub settings: Vec<(String, String)>,
}

impl Default for Provider {
    fn default() -> Self {
        Self { name: "cpu".into(), settings: Vec::new() }
    }
}

/// Options for loading a graph.
#[derive(Clone, Debug)]
pub struct GraphOptions {
    /// Execution provider of the runs.
    pub provider: Provider,
    /// Threads that work on one run, the calling one included. With one, the library starts no thread. More
    /// form a pool that belongs to the graph and is shared by all workers that run it; the threads of the
    /// pool sleep while there is no work.
    pub threads: u16,
    /// True if every run has shapes that occur again and again. The library then keeps a memory plan per set
    /// of shapes; with ever new shapes such plans would pile up.
    pub shapes_recur: bool,
}

impl Default for GraphOptions {
    fn default() -> Self {
        Self { provider: Provider::default(), threads: 1, shapes_recur: false }
    }
}

/// An input or an output of a graph, as declared by the model file.
#[derive(Clone, Debug)]
pub struct Port {
    /// Name in the model file.
    pub name: String,
    /// Type of the elements.
    pub element: ElementType,
    /// Length of each dimension; −1 if the file leaves the length open.
    pub shape: Shape,
    pub(super) c_name: CString,
}

/// A network with its weights. Immutable after loading; all workers share one.
pub struct Graph {
    pub(super) library: Arc<Library>,
    pub(super) session: NonNull<sys::OrtSession>,
    inputs: Vec<Port>,
    outputs: Vec<Port>,
    path: PathBuf,
}

// SAFETY: the library documents `Run` as callable from several threads on one session; the rest of the
// session is read at load time only.
unsafe impl Send for Graph {}
// SAFETY: as above.
unsafe impl Sync for Graph {}

impl Graph {
    /// Loads a model file (`.onnx` or `.ort`).
    ///
    /// # Errors
    /// [`ModelError::Missing`] if there is no such file, [`ModelError::Wrong`] if the library cannot read it,
    /// [`ModelError::Runtime`] for an execution provider that the library does not have.
    pub fn load(
        library: &Arc<Library>,
        path: &Path,
        options: &GraphOptions,
    ) -> Result<Arc<Self>, ModelError> {
        if !path.is_file() {
            return Err(ModelError::Missing { path: path.into(), expected: EXPECTED.into() });
        }
        let c_path = CString::new(path.as_os_str().as_encoded_bytes())
            .map_err(|_| wrong_model(path, "a path with a zero byte".into()))?;
        let settings = Settings::new(library, options)?;
        let mut session = ptr::null_mut();
        // SAFETY: environment and settings are alive, the path ends with a zero byte, `session` is a place
        // for the result.
        let status = unsafe {
            call!(
                library.api,
                CreateSession,
                library.env.as_ptr(),
                c_path.as_ptr(),
                settings.raw.as_ptr(),
                &raw mut session
            )
        };
        Self::opened(library, status, session, path)
    }

    /// Loads a model from the bytes of a file. `path` names the origin of the bytes in errors.
    ///
    /// # Errors
    /// As [`Graph::load`], except for [`ModelError::Missing`].
    pub fn from_bytes(
        library: &Arc<Library>,
        bytes: &[u8],
        path: &Path,
        options: &GraphOptions,
    ) -> Result<Arc<Self>, ModelError> {
        let settings = Settings::new(library, options)?;
        let mut session = ptr::null_mut();
        // SAFETY: environment and settings are alive, the bytes are read during the call only, `session` is a
        // place for the result.
        let status = unsafe {
            call!(
                library.api,
                CreateSessionFromArray,
                library.env.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len(),
                settings.raw.as_ptr(),
                &raw mut session
            )
        };
        Self::opened(library, status, session, path)
    }

    /// Checks the outcome of making a session, and reads the ports of the session.
    fn opened(
        library: &Arc<Library>,
        status: sys::OrtStatusPtr,
        session: *mut sys::OrtSession,
        path: &Path,
    ) -> Result<Arc<Self>, ModelError> {
        let checked = library.api.check(status, "loading a model");
        checked.map_err(|error| wrong_model(path, error.to_string()))?;
        let (library, session) = (Arc::clone(library), made(session));
        let mut graph = Self { library, session, inputs: Vec::new(), outputs: Vec::new(), path: path.into() };
        graph.inputs = graph.ports(Side::Input)?;
        graph.outputs = graph.ports(Side::Output)?;
        let most = graph.inputs.len().max(graph.outputs.len());
        if most > PORTS_MAX {
            let found = format!("a model with {most} inputs or outputs, at most {PORTS_MAX} are supported");
            return Err(wrong_model(path, found));
        }
        Ok(Arc::new(graph))
    }

    /// Returns the inputs, in the order that [`Graph::run`] takes.
    #[must_use]
    pub fn inputs(&self) -> &[Port] {
        &self.inputs
    }

    /// Returns the outputs, in the order that [`Graph::run`] gives.
    #[must_use]
    pub fn outputs(&self) -> &[Port] {
        &self.outputs
    }

    /// Returns the path of the model file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the library that runs the graph.
    #[must_use]
    pub fn library(&self) -> &Arc<Library> {
        &self.library
    }

    /// Runs the network once. `inputs` and `outputs` are in the order of the ports. The old values of
    /// `outputs` are dropped, and the library makes the new ones.
    ///
    /// # Real-time
    /// Any thread, several at once. No heap call on the Rust side.
    ///
    /// # Errors
    /// [`ModelError::Stale`] if `terminate` was stopped, [`ModelError::Runtime`] if the library fails. In
    /// both cases all `outputs` are `None`.
    ///
    /// # Panics
    /// If there are not as many values as ports.
    pub fn run(
        &self,
        terminate: &Terminate,
        inputs: &[&Value],
        outputs: &mut [Option<Value>],
    ) -> Result<(), ModelError> {
        assert_eq!(inputs.len(), self.inputs.len(), "one value for each input of {}", self.path.display());
        assert_eq!(outputs.len(), self.outputs.len(), "one place for each output of {}", self.path.display());
        outputs.fill_with(|| None);
        let (input_names, output_names) = (names(&self.inputs), names(&self.outputs));
        let mut input_values = [ptr::null(); PORTS_MAX];
        for (place, value) in input_values.iter_mut().zip(inputs) {
            *place = value.raw.as_ptr().cast_const();
        }
        let mut output_values = [ptr::null_mut(); PORTS_MAX];
        // SAFETY: names and values are arrays with at least as many entries as the counts (asserted here and
        // in `load`); the input values are borrowed for the call, so no other thread writes to them; null
        // outputs are filled by the library.
        let status = unsafe {
            call!(
                self.library.api,
                Run,
                self.session.as_ptr(),
                terminate.options(),
                input_names.as_ptr(),
                input_values.as_ptr(),
                inputs.len(),
                output_names.as_ptr(),
                outputs.len(),
                output_values.as_mut_ptr()
            )
        };
        self.library.api.check(status, "run of a model").map_err(|error| terminate.judge(error))?;
        for (place, raw) in outputs.iter_mut().zip(output_values) {
            *place = NonNull::new(raw).map(|raw| Value::from_raw(&self.library, raw));
        }
        Ok(())
    }

    /// Runs the network as [`Graph::run`] does, unless `stale` returns true before. A run that was stopped
    /// although its work is not stale is repeated.
    ///
    /// # Errors
    /// [`ModelError::Stale`] if `stale` returns true, [`ModelError::Runtime`] if the library fails.
    ///
    /// # Panics
    /// As [`Graph::run`].
    pub fn run_unless_stale(
        &self,
        terminate: &Terminate,
        stale: &dyn Fn() -> bool,
        inputs: &[&Value],
        outputs: &mut [Option<Value>],
    ) -> Result<(), ModelError> {
        loop {
            terminate.arm();
            if stale() {
                return Err(ModelError::Stale);
            }
            match self.run(terminate, inputs, outputs) {
                Err(ModelError::Stale) => {}
                done => return done,
            }
        }
    }

    fn ports(&self, side: Side) -> Result<Vec<Port>, ModelError> {
        let api = &self.library.api;
        let mut count = 0;
        let session = self.session.as_ptr();
        let status = match side {
            // SAFETY: the session is alive, `count` is a place for the result.
            Side::Input => unsafe { call!(api, SessionGetInputCount, session, &raw mut count) },
            // SAFETY: as above.
            Side::Output => unsafe { call!(api, SessionGetOutputCount, session, &raw mut count) },
        };
        api.check(status, "ports of a model")?;
        (0..count).map(|index| self.port(side, index)).collect()
    }

    fn port(&self, side: Side, index: usize) -> Result<Port, ModelError> {
        let (api, session) = (&self.library.api, self.session.as_ptr());
        let allocator = self.library.allocator.as_ptr();
        let mut name = ptr::null_mut();
        let status = match side {
            // SAFETY: the index is below the count, `name` is a place for the result.
            Side::Input => unsafe {
                call!(api, SessionGetInputName, session, index, allocator, &raw mut name)
            },
            // SAFETY: as above.
            Side::Output => unsafe {
                call!(api, SessionGetOutputName, session, index, allocator, &raw mut name)
            },
        };
        api.check(status, "name of a port")?;
        // SAFETY: the library made the text with its default allocator.
        let name = unsafe { self.library.take_text(name) }?;
        let mut info = ptr::null_mut();
        let status = match side {
            // SAFETY: the index is below the count, `info` is a place for the result.
            Side::Input => unsafe { call!(api, SessionGetInputTypeInfo, session, index, &raw mut info) },
            // SAFETY: as above.
            Side::Output => unsafe { call!(api, SessionGetOutputTypeInfo, session, index, &raw mut info) },
        };
        api.check(status, "type of a port")?;
        let mut tensor = ptr::null();
        // SAFETY: `info` was just made; `tensor` is a place for a part of it, or for null.
        let status = unsafe { call!(api, CastTypeInfoToTensorInfo, info, &raw mut tensor) };
        let described = api.check(status, "type of a port").and_then(|()| {
            if tensor.is_null() {
                let message = format!("{name} is not a tensor");
                return Err(ModelError::Runtime { context: "type of a port", message });
            }
            // SAFETY: a part of `info`, which is still there.
            unsafe { describe(&self.library, tensor) }
        });
        // SAFETY: made above, released once, its part not used again.
        unsafe { call!(api, ReleaseTypeInfo, info) };
        let (element, shape) = described?;
        let c_name = CString::new(name.as_str()).expect("the text came from C");
        Ok(Port { name, element, shape, c_name })
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph").field("path", &self.path).finish_non_exhaustive()
    }
}

impl Drop for Graph {
    fn drop(&mut self) {
        // SAFETY: made by `load`, released once; bindings hold the graph, so none is left.
        unsafe { call!(self.library.api, ReleaseSession, self.session.as_ptr()) };
    }
}

/// Description of a model file in errors.
const EXPECTED: &str = "an ONNX model";

fn wrong_model(path: &Path, found: String) -> ModelError {
    ModelError::Wrong { path: path.into(), found, expected: EXPECTED.into() }
}

/// One of the two ends of a graph.
#[derive(Clone, Copy)]
enum Side {
    Input,
    Output,
}

/// Returns the names of `ports` as the library takes them; valid as long as `ports`.
fn names(ports: &[Port]) -> [*const c_char; PORTS_MAX] {
    let mut names = [ptr::null(); PORTS_MAX];
    for (name, port) in names.iter_mut().zip(ports) {
        *name = port.c_name.as_ptr();
    }
    names
}

/// Most inputs, or outputs, of a graph: Moonshine's decoder has 28.
const PORTS_MAX: usize = 32;

/// The library's own form of [`GraphOptions`].
struct Settings<'a> {
    library: &'a Library,
    raw: NonNull<sys::OrtSessionOptions>,
}

impl<'a> Settings<'a> {
    fn new(library: &'a Library, options: &GraphOptions) -> Result<Self, ModelError> {
        let api = &library.api;
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is a place for the result.
        let status = unsafe { call!(api, CreateSessionOptions, &raw mut raw) };
        api.check(status, "options of a model")?;
        let settings = Self { library, raw: made(raw) };
        let raw = settings.raw.as_ptr();
        let all = sys::GraphOptimizationLevel::ORT_ENABLE_ALL;
        // SAFETY: the options are alive, here and in the next calls.
        let status = unsafe { call!(api, SetSessionGraphOptimizationLevel, raw, all) };
        api.check(status, "optimisation of a model")?;
        // SAFETY: as above.
        let status = unsafe { call!(api, SetIntraOpNumThreads, raw, i32::from(options.threads.max(1))) };
        api.check(status, "threads of a model")?;
        // SAFETY: as above.
        let status = unsafe { call!(api, SetInterOpNumThreads, raw, 1) };
        api.check(status, "threads of a model")?;
        if !options.shapes_recur {
            // SAFETY: as above.
            let status = unsafe { call!(api, DisableMemPattern, raw) };
            api.check(status, "memory of a model")?;
        }
        // A thread that spins takes a core from the other stages.
        for (key, value) in
            [(c"session.intra_op.allow_spinning", c"0"), (c"session.inter_op.allow_spinning", c"0")]
        {
            // SAFETY: as above; key and value are texts that end with a zero byte.
            let status = unsafe { call!(api, AddSessionConfigEntry, raw, key.as_ptr(), value.as_ptr()) };
            api.check(status, "threads of a model")?;
        }
        settings.append(&options.provider)?;
        Ok(settings)
    }

    fn append(&self, provider: &Provider) -> Result<(), ModelError> {
        const CONTEXT: &str = "execution provider";
        let text = |text: &str| {
            CString::new(text).map_err(|_| ModelError::Runtime {
                context: CONTEXT,
                message: format!("{text:?} contains a zero byte"),
            })
        };
        let keys = provider.settings.iter().map(|(key, _)| text(key)).collect::<Result<Vec<_>, _>>()?;
        let values = provider.settings.iter().map(|(_, value)| text(value)).collect::<Result<Vec<_>, _>>()?;
        let keys: Vec<*const c_char> = keys.iter().map(|key| key.as_ptr()).collect::<Vec<_>>();
        let values: Vec<*const c_char> = values.iter().map(|value| value.as_ptr()).collect::<Vec<_>>();
        let api = &self.library.api;
        let done = match provider.name.to_ascii_lowercase().as_str() {
            "cpu" => Ok(()),
            "cuda" => self.append_with(api.cuda(), &keys, &values),
            "tensorrt" => self.append_with(api.tensorrt(), &keys, &values),
            _ => {
                let name = text(&provider.name)?;
                let append = api.append_by_name();
                // SAFETY: the options are alive; name, keys and values are texts that end with a zero byte
                // and live through the call.
                let status = unsafe {
                    append(self.raw.as_ptr(), name.as_ptr(), keys.as_ptr(), values.as_ptr(), keys.len())
                };
                api.check(status, CONTEXT)
            }
        };
        done.map_err(|error| {
            let providers = self.library.providers().unwrap_or_default().join(", ");
            let message = format!("{} not available ({error}); this library has {providers}", provider.name);
            ModelError::Runtime { context: CONTEXT, message }
        })
    }

    fn append_with(
        &self,
        calls: ProviderCalls,
        keys: &[*const c_char],
        values: &[*const c_char],
    ) -> Result<(), ModelError> {
        let api = &self.library.api;
        let mut settings: *mut c_void = ptr::null_mut();
        // SAFETY: `settings` is a place for the result.
        let status = unsafe { (calls.create)(&raw mut settings) };
        api.check(status, "settings of an execution provider")?;
        // SAFETY: `settings` was just made; keys and values are texts that live through the call.
        let status = unsafe { (calls.update)(settings, keys.as_ptr(), values.as_ptr(), keys.len()) };
        let done = api.check(status, "settings of an execution provider").and_then(|()| {
            // SAFETY: both are alive; the library copies the settings.
            let status = unsafe { (calls.append)(self.raw.as_ptr(), settings) };
            api.check(status, "execution provider")
        });
        // SAFETY: made above, released once.
        unsafe { (calls.release)(settings) };
        done
    }
}

impl Drop for Settings<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, released once; a session keeps its own copy.
        unsafe { call!(self.library.api, ReleaseSessionOptions, self.raw.as_ptr()) };
    }
}
