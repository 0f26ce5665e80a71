//! Writes small SavedModels and graphs: the few messages of the formats that the tests need.

use std::collections::BTreeMap;

use galatea_types::DataType;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct SavedModel {
    #[prost(int64, tag = "1")]
    pub version: i64,
    #[prost(message, repeated, tag = "2")]
    pub graphs: Vec<MetaGraph>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MetaGraph {
    #[prost(message, optional, tag = "1")]
    pub info: Option<MetaInfo>,
    #[prost(message, optional, tag = "2")]
    pub graph: Option<Graph>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub signatures: BTreeMap<String, Signature>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MetaInfo {
    #[prost(string, repeated, tag = "4")]
    pub tags: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Signature {
    #[prost(btree_map = "string, message", tag = "1")]
    pub inputs: BTreeMap<String, Info>,
    #[prost(btree_map = "string, message", tag = "2")]
    pub outputs: BTreeMap<String, Info>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Info {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(int32, tag = "2")]
    pub data_type: i32,
    #[prost(message, optional, tag = "3")]
    pub shape: Option<Dims>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Dims {
    #[prost(message, repeated, tag = "2")]
    pub dims: Vec<Dim>,
    #[prost(bool, tag = "3")]
    pub unknown_rank: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Dim {
    #[prost(int64, tag = "1")]
    pub size: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    #[prost(message, repeated, tag = "1")]
    pub nodes: Vec<Node>,
    #[prost(message, optional, tag = "4")]
    pub versions: Option<Versions>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Versions {
    #[prost(int32, tag = "1")]
    pub producer: i32,
}

#[derive(Clone, PartialEq, Message)]
pub struct Node {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(string, repeated, tag = "3")]
    pub inputs: Vec<String>,
    #[prost(btree_map = "string, message", tag = "5")]
    pub attributes: BTreeMap<String, Attribute>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Attribute {
    #[prost(bytes = "vec", optional, tag = "2")]
    pub text: Option<Vec<u8>>,
    #[prost(int32, optional, tag = "6")]
    pub data_type: Option<i32>,
    #[prost(message, optional, tag = "7")]
    pub shape: Option<Dims>,
}

/// TensorFlow's number of a type.
pub fn type_number(data_type: DataType) -> i32 {
    match data_type {
        DataType::Fp32 => 1,
        DataType::Fp64 => 2,
        DataType::Int32 => 3,
        DataType::Uint8 => 4,
        DataType::Int16 => 5,
        DataType::Int8 => 6,
        DataType::Bytes => 7,
        DataType::Int64 => 9,
        DataType::Bool => 10,
        DataType::Bf16 => 14,
        DataType::Uint16 => 17,
        DataType::Fp16 => 19,
        DataType::Uint32 => 22,
        DataType::Uint64 => 23,
    }
}

fn of_type(data_type: DataType) -> Attribute {
    Attribute { data_type: Some(type_number(data_type)), ..Attribute::default() }
}

/// -1 is an open dimension.
fn shape(dims: &[i64]) -> Dims {
    Dims { dims: dims.iter().map(|&size| Dim { size }).collect(), unknown_rank: false }
}

/// A graph with one signature, under construction.
#[derive(Clone, Default)]
pub struct Builder {
    nodes: Vec<Node>,
    signature: Signature,
}

impl Builder {
    pub fn input(mut self, name: &str, data_type: DataType, dims: &[i64]) -> Self {
        let attributes = BTreeMap::from([
            ("dtype".to_owned(), of_type(data_type)),
            ("shape".to_owned(), Attribute { shape: Some(shape(dims)), ..Attribute::default() }),
        ]);
        let node = format!("in_{name}");
        self.nodes.push(Node {
            name: node.clone(),
            kind: "Placeholder".to_owned(),
            inputs: vec![],
            attributes,
        });
        self.signature.inputs.insert(name.to_owned(), info(&node, data_type, dims));
        self
    }

    /// An operation on what others give; its types are one and the same.
    pub fn node(mut self, kind: &str, name: &str, inputs: &[&str], data_type: DataType) -> Self {
        let attributes = BTreeMap::from([("T".to_owned(), of_type(data_type))]);
        let inputs = inputs.iter().map(|name| (*name).to_owned()).collect();
        self.nodes.push(Node { name: name.to_owned(), kind: kind.to_owned(), inputs, attributes });
        self
    }

    /// An output of the signature, from a node.
    pub fn output(mut self, name: &str, node: &str, data_type: DataType, dims: &[i64]) -> Self {
        self.signature.outputs.insert(name.to_owned(), info(node, data_type, dims));
        self
    }

    /// Changes what the signature says.
    pub fn signature(mut self, change: impl FnOnce(&mut Signature)) -> Self {
        change(&mut self.signature);
        self
    }

    pub fn graph(&self) -> Graph {
        Graph { nodes: self.nodes.clone(), versions: Some(Versions { producer: 1882 }) }
    }

    /// The graph alone, as a file.
    pub fn graph_bytes(&self) -> Vec<u8> {
        self.graph().encode_to_vec()
    }

    pub fn saved_model(&self) -> SavedModel {
        let info = Some(MetaInfo { tags: vec!["serve".to_owned()] });
        let signatures = BTreeMap::from([("serving_default".to_owned(), self.signature.clone())]);
        SavedModel {
            version: 1,
            graphs: vec![MetaGraph { info, graph: Some(self.graph()), signatures }],
        }
    }

    /// A `saved_model.pb`.
    pub fn bytes(&self) -> Vec<u8> {
        self.saved_model().encode_to_vec()
    }
}

fn info(node: &str, data_type: DataType, dims: &[i64]) -> Info {
    Info { name: format!("{node}:0"), data_type: type_number(data_type), shape: Some(shape(dims)) }
}

/// `Y = X`.
pub fn identity(data_type: DataType) -> Builder {
    Builder::default()
        .input("X", data_type, &[-1, -1])
        .node("Identity", "same", &["in_X"], data_type)
        .output("Y", "same", data_type, &[-1, -1])
}

/// `SUM = A + B`, `DIFFERENCE = A - B`.
pub fn add_sub(data_type: DataType) -> Builder {
    binary(&[("AddV2", "SUM"), ("Sub", "DIFFERENCE")], data_type)
}

/// Operations on `A` and `B`, by the names of their outputs.
pub fn binary(operations: &[(&str, &str)], data_type: DataType) -> Builder {
    let inputs =
        Builder::default().input("A", data_type, &[-1, -1]).input("B", data_type, &[-1, -1]);
    operations.iter().fold(inputs, |builder, (kind, output)| {
        let node = output.to_lowercase();
        builder.node(kind, &node, &["in_A", "in_B"], data_type).output(
            output,
            &node,
            data_type,
            &[-1, -1],
        )
    })
}
