//! Writes small ONNX files: the few messages of the format (onnx.proto3) that the tests need.

use galatea_types::DataType;
use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Model {
    #[prost(int64, tag = "1")]
    ir_version: i64,
    #[prost(message, optional, tag = "7")]
    graph: Option<Graph>,
    #[prost(message, repeated, tag = "8")]
    opset_import: Vec<Opset>,
}

#[derive(Clone, PartialEq, Message)]
struct Opset {
    #[prost(string, tag = "1")]
    domain: String,
    #[prost(int64, tag = "2")]
    version: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Graph {
    #[prost(message, repeated, tag = "1")]
    nodes: Vec<Node>,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(message, repeated, tag = "5")]
    initializers: Vec<Constant>,
    #[prost(message, repeated, tag = "11")]
    inputs: Vec<ValueInfo>,
    #[prost(message, repeated, tag = "12")]
    outputs: Vec<ValueInfo>,
}

#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(string, repeated, tag = "1")]
    inputs: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    outputs: Vec<String>,
    #[prost(string, tag = "4")]
    kind: String,
}

/// A constant; its bytes lie in it or in a file beside the model.
#[derive(Clone, PartialEq, Message)]
pub struct Constant {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(bytes = "vec", optional, tag = "9")]
    raw_data: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "13")]
    external_data: Vec<KeyValue>,
    /// 1: in a file.
    #[prost(int32, tag = "14")]
    location: i32,
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfo {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    kind: Option<Kind>,
}

#[derive(Clone, PartialEq, Message)]
struct Kind {
    #[prost(message, optional, tag = "1")]
    tensor: Option<TensorKind>,
    #[prost(message, optional, boxed, tag = "4")]
    sequence: Option<Box<SequenceKind>>,
}

#[derive(Clone, PartialEq, Message)]
struct SequenceKind {
    #[prost(message, optional, boxed, tag = "1")]
    element: Option<Box<Kind>>,
}

#[derive(Clone, PartialEq, Message)]
struct TensorKind {
    #[prost(int32, tag = "1")]
    data_type: i32,
    #[prost(message, optional, tag = "2")]
    shape: Option<Dims>,
}

#[derive(Clone, PartialEq, Message)]
struct Dims {
    #[prost(message, repeated, tag = "1")]
    dims: Vec<Dim>,
}

#[derive(Clone, PartialEq, Message)]
struct Dim {
    #[prost(int64, optional, tag = "1")]
    value: Option<i64>,
    #[prost(string, optional, tag = "2")]
    name: Option<String>,
}

/// Number of a type in the format.
pub fn type_number(data_type: DataType) -> i32 {
    match data_type {
        DataType::Fp32 => 1,
        DataType::Uint8 => 2,
        DataType::Int8 => 3,
        DataType::Uint16 => 4,
        DataType::Int16 => 5,
        DataType::Int32 => 6,
        DataType::Int64 => 7,
        DataType::Bytes => 8,
        DataType::Bool => 9,
        DataType::Fp16 => 10,
        DataType::Fp64 => 11,
        DataType::Uint32 => 12,
        DataType::Uint64 => 13,
        DataType::Bf16 => 16,
    }
}

/// A graph under construction; -1 is an open dimension.
#[derive(Clone, Default)]
pub struct Builder(Graph);

impl Builder {
    pub fn input(mut self, name: &str, data_type: DataType, dims: &[i64]) -> Self {
        self.0.inputs.push(tensor_info(name, data_type, dims));
        self
    }

    pub fn output(mut self, name: &str, data_type: DataType, dims: &[i64]) -> Self {
        self.0.outputs.push(tensor_info(name, data_type, dims));
        self
    }

    /// An input of any number of dimensions.
    pub fn open_input(mut self, name: &str, data_type: DataType) -> Self {
        self.0.inputs.push(without_shape(name, data_type));
        self
    }

    /// An output of any number of dimensions.
    pub fn open_output(mut self, name: &str, data_type: DataType) -> Self {
        self.0.outputs.push(without_shape(name, data_type));
        self
    }

    pub fn sequence_output(mut self, name: &str, data_type: DataType) -> Self {
        let element = tensor_info("", data_type, &[-1]).kind.map(Box::new);
        let sequence = Some(Box::new(SequenceKind { element }));
        let kind = Some(Kind { tensor: None, sequence });
        self.0.outputs.push(ValueInfo { name: name.to_owned(), kind });
        self
    }

    pub fn node(mut self, kind: &str, inputs: &[&str], outputs: &[&str]) -> Self {
        let owned = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
        let node = Node { inputs: owned(inputs), outputs: owned(outputs), kind: kind.to_owned() };
        self.0.nodes.push(node);
        self
    }

    pub fn constant(mut self, name: &str, data_type: DataType, dims: &[i64], bytes: &[u8]) -> Self {
        self.0.initializers.push(Constant {
            dims: dims.to_vec(),
            data_type: type_number(data_type),
            name: name.to_owned(),
            raw_data: Some(bytes.to_vec()),
            ..Constant::default()
        });
        self
    }

    /// A constant whose bytes are the content of `file`, beside the model.
    pub fn external(mut self, name: &str, data_type: DataType, dims: &[i64], file: &str) -> Self {
        let location = KeyValue { key: "location".to_owned(), value: file.to_owned() };
        self.0.initializers.push(Constant {
            dims: dims.to_vec(),
            data_type: type_number(data_type),
            name: name.to_owned(),
            external_data: vec![location],
            location: 1,
            ..Constant::default()
        });
        self
    }

    pub fn bytes(self) -> Vec<u8> {
        self.bytes_of(8, 17)
    }

    /// As a file of this version of the format and of the standard's operators.
    pub fn bytes_of(self, ir_version: i64, opset: i64) -> Vec<u8> {
        let opset_import = vec![Opset { domain: String::new(), version: opset }];
        let graph = Graph { name: "test".to_owned(), ..self.0 };
        Model { ir_version, graph: Some(graph), opset_import }.encode_to_vec()
    }
}

fn without_shape(name: &str, data_type: DataType) -> ValueInfo {
    let tensor = Some(TensorKind { data_type: type_number(data_type), shape: None });
    ValueInfo { name: name.to_owned(), kind: Some(Kind { tensor, sequence: None }) }
}

fn tensor_info(name: &str, data_type: DataType, dims: &[i64]) -> ValueInfo {
    let dim = |(i, &d): (usize, &i64)| match d {
        -1 => Dim { value: None, name: Some(format!("{name}_{i}")) },
        d => Dim { value: Some(d), name: None },
    };
    let shape = Some(Dims { dims: dims.iter().enumerate().map(dim).collect() });
    let tensor = Some(TensorKind { data_type: type_number(data_type), shape });
    ValueInfo { name: name.to_owned(), kind: Some(Kind { tensor, sequence: None }) }
}

/// `Y = X`, with the batch dimension `batch` (-1 for open, 0 for none) before an open one.
pub fn identity(data_type: DataType) -> Vec<u8> {
    Builder::default()
        .input("X", data_type, &[-1, -1])
        .output("Y", data_type, &[-1, -1])
        .node("Identity", &["X"], &["Y"])
        .bytes()
}

/// `SUM = A + B`, `DIFFERENCE = A - B`.
pub fn add_sub(data_type: DataType) -> Vec<u8> {
    Builder::default()
        .input("A", data_type, &[-1, -1])
        .input("B", data_type, &[-1, -1])
        .output("SUM", data_type, &[-1, -1])
        .output("DIFFERENCE", data_type, &[-1, -1])
        .node("Add", &["A", "B"], &["SUM"])
        .node("Sub", &["A", "B"], &["DIFFERENCE"])
        .bytes()
}

/// A model of ragged batches: `X_OUT`, `SIZE_OUT` and `BATCH_OUT` are `X`, `SIZE` and `BATCH`, once for each number in
/// `SIZE`.
pub fn ragged() -> Vec<u8> {
    use DataType::{Fp32, Int64};

    let (zero, one) = (0.0_f32.to_le_bytes(), 1.0_f32.to_le_bytes());
    let (first, second) = (0_i64.to_le_bytes(), 1_i64.to_le_bytes());
    let graph = Builder::default()
        .constant("zero", Fp32, &[1], &zero)
        .constant("one", Fp32, &[1], &one)
        .constant("first", Int64, &[1], &first)
        .constant("second", Int64, &[1], &second)
        .input("X", Fp32, &[-1])
        .input("SIZE", Fp32, &[-1])
        .input("BATCH", Fp32, &[-1])
        .node("Mul", &["SIZE", "zero"], &["zeros"])
        .node("Add", &["zeros", "one"], &["ones"])
        .node("Unsqueeze", &["ones", "second"], &["column"]);
    let graph = ["X", "SIZE", "BATCH"].into_iter().fold(graph, |graph, name| {
        let (row, output) = (format!("{name}_row"), format!("{name}_OUT"));
        graph
            .node("Unsqueeze", &[name, "first"], &[&row])
            .node("MatMul", &["column", &row], &[&output])
            .output(&output, Fp32, &[-1, -1])
    });
    graph.bytes()
}
