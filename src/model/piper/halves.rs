//! The two networks in the file of a voice: text to latent frames, and latent frames to samples.
//!
//! The first network reads the whole text, decides how long each sound is, and makes the latent frames. The second one,
//! the decoder, makes some hundred samples of each frame and looks only a few frames to either side. Cut apart, the
//! first sound of a text needs one piece of the decoder's work and not all of it.
//!
//! *Thread:* start-up.
//!
//! # Source
//! The numbers of the fields: `onnx.proto3` of ONNX 1.18. The name of the decoder's first weights: VITS
//! (`jaywalnut310/vits`, `models.py`), kept by every export of Piper.

use std::collections::HashSet;

use prost::Message;
use prost::bytes::Bytes;

/// Weights of the decoder's first layer, `[outputs, channels, width]`.
const DECODER_START: &str = "dec.conv_pre.weight";

/// A model file. The halves lack the fields that are not listed: documentation and training.
#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
    #[prost(bytes = "bytes", repeated, tag = "8")]
    opset_imports: Vec<Bytes>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(bytes = "bytes", repeated, tag = "1")]
    nodes: Vec<Bytes>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(bytes = "bytes", repeated, tag = "5")]
    weights: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "11")]
    inputs: Vec<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "12")]
    outputs: Vec<Bytes>,
}

/// The edges of a node.
#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    outputs: Vec<String>,
    #[prost(message, repeated, tag = "5")]
    attributes: Vec<AttributeProto>,
}

/// The graphs inside a node, whose edges this module does not follow.
#[derive(Clone, PartialEq, Message)]
struct AttributeProto {
    #[prost(bytes = "bytes", optional, tag = "6")]
    graph: Option<Bytes>,
    #[prost(bytes = "bytes", repeated, tag = "11")]
    graphs: Vec<Bytes>,
}

/// Shape and name of weights.
#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(string, tag = "8")]
    name: String,
}

/// An input or output of a graph.
#[derive(Clone, PartialEq, Message)]
struct ValueInfoProto {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<TypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TypeProto {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorTypeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorTypeProto {
    /// 1: 32-bit floats.
    #[prost(int32, tag = "1")]
    element: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<ShapeProto>,
}

#[derive(Clone, PartialEq, Message)]
struct ShapeProto {
    #[prost(message, repeated, tag = "1")]
    dims: Vec<DimensionProto>,
}

/// A length, or the name of a length that is open.
#[derive(Clone, PartialEq, Message)]
struct DimensionProto {
    #[prost(int64, optional, tag = "1")]
    length: Option<i64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

/// Model files of the two networks.
pub(super) struct Halves {
    /// Text to latent frames, with the inputs of the whole.
    pub(super) encoder: Vec<u8>,
    /// Latent frames to samples, with the output of the whole.
    pub(super) decoder: Vec<u8>,
    /// Name of the latent frames in both networks. Their shape is `[1, channels, frames]`.
    pub(super) latent: String,
    /// Numbers of one latent frame.
    pub(super) channels: usize,
}

impl Halves {
    /// Cuts a model file in front of its decoder.
    ///
    /// # Errors
    /// Returns the reason why the file cannot be cut.
    pub(super) fn of(file: Vec<u8>) -> Result<Self, String> {
        let model =
            ModelProto::decode(Bytes::from(file)).map_err(|error| format!("no ONNX model: {error}"))?;
        let ModelProto { ir_version, graph: Some(graph), opset_imports } = model else {
            return Err("a model without a graph".to_owned());
        };
        let nodes = graph.nodes.iter().map(read).collect::<Result<Vec<NodeProto>, _>>()?;
        let weights = graph.weights.iter().map(read).collect::<Result<Vec<TensorProto>, _>>()?;
        let inputs = graph.inputs.iter().map(read).collect::<Result<Vec<ValueInfoProto>, _>>()?;
        let outputs = graph.outputs.iter().map(read).collect::<Result<Vec<ValueInfoProto>, _>>()?;
        if nodes
            .iter()
            .flat_map(|node| &node.attributes)
            .any(|it| it.graph.is_some() || !it.graphs.is_empty())
        {
            return Err("a node with a graph of its own".to_owned());
        }
        let [output] = outputs.as_slice() else {
            return Err(format!("{} outputs, expected 1", outputs.len()));
        };
        let is_start = |node: &&NodeProto| node.inputs.get(1).is_some_and(|name| name == DECODER_START);
        let latent = nodes.iter().find(is_start).map(|node| node.inputs[0].clone());
        let channels =
            weights.iter().find(|it| it.name == DECODER_START).and_then(|it| it.dims.get(1).copied());
        let (Some(latent), Some(channels)) = (latent, channels) else {
            return Err(format!("no layer with the weights {DECODER_START}"));
        };
        let encoder = Part::up_to(&nodes, &latent, None);
        let decoder = Part::up_to(&nodes, &output.name, Some(&latent));
        if let Some(input) = inputs.iter().find(|input| decoder.names.contains(input.name.as_str())) {
            return Err(format!("a decoder that reads {}, expected latent frames alone", input.name));
        }
        let frames = Bytes::from(latent_frames(&latent, channels).encode_to_vec());
        let file_of = |part: &Part<'_>, inputs: &[Bytes], outputs: &[Bytes]| {
            let is_read = |&at: &usize| part.names.contains(weights[at].name.as_str());
            let graph = GraphProto {
                nodes: part.nodes.iter().map(|&at| graph.nodes[at].clone()).collect(),
                name: graph.name.clone(),
                weights: (0..weights.len()).filter(is_read).map(|at| graph.weights[at].clone()).collect(),
                inputs: inputs.to_vec(),
                outputs: outputs.to_vec(),
            };
            ModelProto { ir_version, graph: Some(graph), opset_imports: opset_imports.clone() }
                .encode_to_vec()
        };
        Ok(Self {
            encoder: file_of(&encoder, &graph.inputs, std::slice::from_ref(&frames)),
            decoder: file_of(&decoder, std::slice::from_ref(&frames), &graph.outputs),
            channels: usize::try_from(channels).map_err(|_| format!("{channels} channels"))?,
            latent,
        })
    }
}

fn read<T: Message + Default>(bytes: &Bytes) -> Result<T, String> {
    T::decode(bytes.clone()).map_err(|error| format!("no ONNX model: {error}"))
}

fn latent_frames(name: &str, channels: i64) -> ValueInfoProto {
    let open = |name: &str| DimensionProto { length: None, name: Some(name.to_owned()) };
    let dims = vec![open("batch"), DimensionProto { length: Some(channels), name: None }, open("frames")];
    let tensor = TensorTypeProto { element: 1, shape: Some(ShapeProto { dims }) };
    ValueInfoProto { name: name.to_owned(), kind: Some(TypeProto { tensor: Some(tensor) }) }
}

/// The nodes that a value depends on.
struct Part<'a> {
    /// Indices of the nodes, in the order of the file.
    nodes: Vec<usize>,
    /// Names of all values that these nodes read.
    names: HashSet<&'a str>,
}

impl<'a> Part<'a> {
    /// Collects what the value `end` depends on, and nothing that lies before the value `start`. The nodes of a file stand
    /// in the order in which they can be run, so one look at each, from the last to the first, is enough.
    fn up_to(nodes: &'a [NodeProto], end: &'a str, start: Option<&str>) -> Self {
        let (mut kept, mut names) = (Vec::new(), HashSet::from([end]));
        for (at, node) in nodes.iter().enumerate().rev() {
            let is_read = |name: &String| names.contains(name.as_str()) && Some(name.as_str()) != start;
            if node.outputs.iter().any(is_read) {
                kept.push(at);
                names.extend(node.inputs.iter().map(String::as_str));
            }
        }
        kept.reverse();
        Self { nodes: kept, names }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(inputs: &[&str], output: &str) -> NodeProto {
        NodeProto {
            inputs: inputs.iter().map(|&name| name.to_owned()).collect(),
            outputs: vec![output.to_owned()],
            attributes: Vec::new(),
        }
    }

    fn value(name: &str) -> Bytes {
        ValueInfoProto { name: name.to_owned(), kind: None }.encode_to_vec().into()
    }

    fn weight(name: &str) -> Bytes {
        TensorProto { dims: vec![512, 8, 7], name: name.to_owned() }.encode_to_vec().into()
    }

    fn file(nodes: &[NodeProto]) -> Vec<u8> {
        let graph = GraphProto {
            nodes: nodes.iter().map(|node| node.encode_to_vec().into()).collect(),
            name: "voice".to_owned(),
            weights: vec![weight("a"), weight("both"), weight(DECODER_START)],
            inputs: vec![value("text")],
            outputs: vec![value("sound")],
        };
        ModelProto { ir_version: 8, graph: Some(graph), opset_imports: vec![Bytes::from_static(b"\x10\x0f")] }
            .encode_to_vec()
    }

    fn voice() -> Vec<NodeProto> {
        vec![
            node(&["text", "a"], "hidden"),
            node(&["hidden", "both"], "z"),
            node(&["hidden"], "durations"),
            node(&["z", DECODER_START], "d"),
            node(&["d", "both"], "sound"),
        ]
    }

    type Names = Vec<String>;

    /// Outputs of the nodes, names of the weights, inputs and outputs.
    fn contents(file: &[u8]) -> (Names, Names, Names, Names) {
        let graph = ModelProto::decode(file).unwrap().graph.unwrap();
        let names =
            |values: &[Bytes]| values.iter().map(|it| read::<ValueInfoProto>(it).unwrap().name).collect();
        (
            graph.nodes.iter().map(|it| read::<NodeProto>(it).unwrap().outputs[0].clone()).collect(),
            graph.weights.iter().map(|it| read::<TensorProto>(it).unwrap().name).collect(),
            names(&graph.inputs),
            names(&graph.outputs),
        )
    }

    #[test]
    fn each_half_has_its_own_nodes_and_weights() {
        let halves = Halves::of(file(&voice())).unwrap();
        assert_eq!((halves.latent.as_str(), halves.channels), ("z", 8));
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Names>();
        let expected = (names(&["hidden", "z"]), names(&["a", "both"]), names(&["text"]), names(&["z"]));
        assert_eq!(contents(&halves.encoder), expected);
        let expected =
            (names(&["d", "sound"]), names(&["both", DECODER_START]), names(&["z"]), names(&["sound"]));
        assert_eq!(contents(&halves.decoder), expected);
    }

    #[test]
    fn a_file_that_cannot_be_cut_says_why() {
        let error = |file: Vec<u8>| Halves::of(file).err().unwrap();
        assert!(error(b"PK\x03\x04".to_vec()).contains("no ONNX model"));
        assert!(error(Vec::new()).contains("without a graph"));
        assert!(error(file(&voice()[..2])).contains(DECODER_START));
        let mut by_speaker = voice();
        by_speaker[4].inputs.push("text".to_owned());
        assert!(error(file(&by_speaker)).contains("reads text"));
        let mut branching = voice();
        branching[0].attributes.push(AttributeProto { graph: Some(Bytes::new()), graphs: Vec::new() });
        assert!(error(file(&branching)).contains("graph of its own"));
    }
}
