//! A model with an input of each kind of type, and data that fits it.

use std::{collections::BTreeSet, sync::LazyLock};

use arbitrary::Arbitrary;
use galatea_config::{ModelConfig, testing};
use galatea_types::{DataType, InferRequest, byte_strings};

/// One open dimension each.
pub static MODEL: LazyLock<ModelConfig> = LazyLock::new(|| testing::model_config(CONFIG));

/// Identity, so that it answers what it was asked.
pub const CONFIG: &str = r#"
name: "m"
backend: "identity"
input { name: "INPUT0" data_type: TYPE_BOOL dims: -1 optional: true }
input { name: "INPUT1" data_type: TYPE_INT8 dims: -1 optional: true }
input { name: "INPUT2" data_type: TYPE_UINT64 dims: -1 optional: true }
input { name: "INPUT3" data_type: TYPE_FP32 dims: -1 optional: true }
input { name: "INPUT4" data_type: TYPE_FP64 dims: -1 optional: true }
input { name: "INPUT5" data_type: TYPE_STRING dims: -1 optional: true }
output { name: "OUTPUT0" data_type: TYPE_BOOL dims: -1 }
output { name: "OUTPUT1" data_type: TYPE_INT8 dims: -1 }
output { name: "OUTPUT2" data_type: TYPE_UINT64 dims: -1 }
output { name: "OUTPUT3" data_type: TYPE_FP32 dims: -1 }
output { name: "OUTPUT4" data_type: TYPE_FP64 dims: -1 }
output { name: "OUTPUT5" data_type: TYPE_STRING dims: -1 }
"#;

/// The elements of one input.
#[derive(Arbitrary, Clone, Debug)]
pub enum Values {
    Bool(Vec<bool>),
    Int8(Vec<i8>),
    Uint64(Vec<u64>),
    Fp32(Vec<f32>),
    Fp64(Vec<f64>),
    Bytes(Vec<String>),
}

impl Values {
    pub fn input(&self) -> &'static str {
        match self {
            Self::Bool(_) => "INPUT0",
            Self::Int8(_) => "INPUT1",
            Self::Uint64(_) => "INPUT2",
            Self::Fp32(_) => "INPUT3",
            Self::Fp64(_) => "INPUT4",
            Self::Bytes(_) => "INPUT5",
        }
    }

    pub fn data_type(&self) -> DataType {
        match self {
            Self::Bool(_) => DataType::Bool,
            Self::Int8(_) => DataType::Int8,
            Self::Uint64(_) => DataType::Uint64,
            Self::Fp32(_) => DataType::Fp32,
            Self::Fp64(_) => DataType::Fp64,
            Self::Bytes(_) => DataType::Bytes,
        }
    }

    pub fn count(&self) -> usize {
        match self {
            Self::Bool(values) => values.len(),
            Self::Int8(values) => values.len(),
            Self::Uint64(values) => values.len(),
            Self::Fp32(values) => values.len(),
            Self::Fp64(values) => values.len(),
            Self::Bytes(values) => values.len(),
        }
    }

    /// As a tensor holds them.
    pub fn bytes(&self) -> Vec<u8> {
        match self {
            Self::Bool(values) => values.iter().map(|&v| u8::from(v)).collect(),
            Self::Int8(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::Uint64(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::Fp32(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::Fp64(values) => values.iter().flat_map(|v| v.to_le_bytes()).collect(),
            Self::Bytes(values) => {
                byte_strings::pack(values).expect("short").host().expect("on the host").to_vec()
            }
        }
    }

    /// Numbers that JSON has no form for become 0.
    pub fn make_finite(&mut self) {
        match self {
            Self::Fp32(values) => {
                values.iter_mut().filter(|v| !v.is_finite()).for_each(|v| *v = 0.0)
            }
            Self::Fp64(values) => {
                values.iter_mut().filter(|v| !v.is_finite()).for_each(|v| *v = 0.0)
            }
            _ => {}
        }
    }
}

/// One of each input that there are values for.
pub fn without_twins<T>(inputs: &mut Vec<T>, values: impl Fn(&T) -> &Values) {
    let mut seen = BTreeSet::new();
    inputs.retain(|input| seen.insert(values(input).input()));
}

/// Panics unless the request holds exactly these inputs.
pub fn assert_holds<'a>(request: &InferRequest, inputs: impl Iterator<Item = &'a Values>) {
    let inputs: Vec<_> = inputs.collect();
    assert_eq!(request.inputs.len(), inputs.len());
    for (input, values) in request.inputs.iter().zip(inputs) {
        assert_eq!((&*input.name, input.data_type), (values.input(), values.data_type()));
        assert_eq!(input.shape.element_count(), Some(values.count()));
        assert_eq!(input.data.host().expect("on the host"), values.bytes(), "{values:?}");
    }
}
