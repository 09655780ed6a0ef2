//! Loading of a graph that must have certain ports.
//!
//! *Thread:* start-up. A file of another model is refused here, before the first run, with the name of the
//! port that differs.

use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;

use super::ModelError;
use super::ort::{ElementType, Graph, GraphOptions, Library, Port};

/// An input or output that a model must have.
#[derive(Clone, Debug)]
pub struct PortSpec {
    /// Name in the model file.
    pub name: Cow<'static, str>,
    /// Type of the elements.
    pub element: ElementType,
    /// Length of each dimension; [`ANY`] accepts every length.
    pub shape: &'static [i64],
}

/// A length that does not matter, or that the model file leaves open.
pub const ANY: i64 = -1;

impl PortSpec {
    /// Creates a port with a fixed name.
    #[must_use]
    pub const fn new(name: &'static str, element: ElementType, shape: &'static [i64]) -> Self {
        Self { name: Cow::Borrowed(name), element, shape }
    }

    /// Returns true if `port` satisfies the specification. A length that the file leaves open fits every
    /// length.
    fn accepts(&self, port: &Port) -> bool {
        let dims = port.shape.dims();
        let fits = |(&found, &expected): (&i64, &i64)| found == expected || found < 0 || expected == ANY;
        port.element == self.element
            && dims.len() == self.shape.len()
            && dims.iter().zip(self.shape).all(fits)
    }
}

/// Loads the model file at `path` and compares its ports, by name, with `inputs` and `outputs`.
///
/// # Errors
/// [`ModelError::Missing`] and [`ModelError::Runtime`] as [`Graph::load`]; [`ModelError::Wrong`] with the
/// name of the first port that is missing, different or superfluous.
pub fn load(
    library: &Arc<Library>,
    path: &Path,
    options: &GraphOptions,
    inputs: &[PortSpec],
    outputs: &[PortSpec],
) -> Result<Arc<Graph>, ModelError> {
    let graph = Graph::load(library, path, options)?;
    check(&graph, inputs, outputs)?;
    Ok(graph)
}

/// Compares the ports of `graph`, by name, with `inputs` and `outputs`.
///
/// # Errors
/// [`ModelError::Wrong`] with the name of the first port that is missing, different or superfluous.
pub fn check(graph: &Graph, inputs: &[PortSpec], outputs: &[PortSpec]) -> Result<(), ModelError> {
    let found =
        compare("input", graph.inputs(), inputs).and_then(|()| compare("output", graph.outputs(), outputs));
    found.map_err(|(found, expected)| ModelError::Wrong { path: graph.path().into(), found, expected })
}

/// Returns the first difference as the error `(found, expected)`.
fn compare(side: &str, ports: &[Port], specs: &[PortSpec]) -> Result<(), (String, String)> {
    for spec in specs {
        let expected = format!("{side} {} of {:?} {:?}", spec.name, spec.element, spec.shape);
        match ports.iter().find(|port| port.name == spec.name) {
            Some(port) if spec.accepts(port) => {}
            Some(port) => return Err((format!("{:?} {:?}", port.element, port.shape), expected)),
            None => {
                let names: Vec<_> = ports.iter().map(|port| port.name.as_str()).collect();
                return Err((format!("{side}s {}", names.join(", ")), expected));
            }
        }
    }
    match ports.iter().find(|port| specs.iter().all(|spec| spec.name != port.name)) {
        Some(port) => Err((format!("another {side} {}", port.name), format!("{} {side}s", specs.len()))),
        None => Ok(()),
    }
}

/// Returns the index of the port called `name` in `ports`.
///
/// # Panics
/// If there is no such port. [`load`] has checked the ports of every model that it returned.
#[must_use]
pub fn index_of(ports: &[Port], name: &str) -> usize {
    ports.iter().position(|port| port.name == name).expect("the port was checked at load")
}
