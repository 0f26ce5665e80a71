//! The inputs and outputs of a model, by the names that clients use.

use galatea_backend::declared::{Declaration, DeclaredKind, DeclaredTensor, UnsupportedKind};
use galatea_types::{DataType, Shape};

use crate::tensorflow::type_name;

/// Advice to make a model take batches.
pub(crate) const HOW_TO_BATCH: &str = "save the model with an open first dimension (None)";

const WITHOUT_IT: &str = "save the model with a signature that takes and gives ordinary tensors; or list in config.pbtxt \
    only the outputs that are ones";

/// An input or output of a signature.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TensorInfo {
    /// Name for clients: the key in the signature.
    pub name: String,
    /// Name in the graph: `operation:index`. Empty for a value that is not a single tensor.
    pub point: String,
    pub kind: ValueKind,
    /// Dimensions, with -1 for open ones. `None`: the rank is unknown.
    pub dims: Option<Shape>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Tensor(DataType),
    /// A tensor of a type that no request can carry, by TensorFlow's number.
    OtherTensor(i32),
    /// A sparse tensor or another value of several tensors.
    Composite,
}

/// One function of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Signature {
    pub name: String,
    /// Inputs ordered by name.
    pub inputs: Vec<TensorInfo>,
    /// Outputs ordered by name.
    pub outputs: Vec<TensorInfo>,
}

impl Signature {
    pub fn declaration(&self) -> Declaration<'_, TensorInfo> {
        Declaration {
            inputs: &self.inputs,
            // A graph has no value of its own for an input.
            optional_inputs: None,
            outputs: &self.outputs,
            how_to_batch: HOW_TO_BATCH,
        }
    }
}

impl ValueKind {
    /// Returns the kind that a configuration can declare.
    pub fn declared(self) -> DeclaredKind {
        let description = match self {
            Self::Tensor(data_type) => return DeclaredKind::Tensor(data_type),
            Self::OtherTensor(number) => {
                format!("a tensor of TensorFlow's type {}", type_name(number))
            }
            Self::Composite => "a sparse tensor, or another value of several tensors".to_owned(),
        };
        let (input_advice, output_advice) = (Some(WITHOUT_IT), Some(WITHOUT_IT));
        DeclaredKind::Other(UnsupportedKind { description, input_advice, output_advice })
    }
}

impl DeclaredTensor for TensorInfo {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> DeclaredKind {
        self.kind.declared()
    }

    fn dims(&self) -> Option<&Shape> {
        self.dims.as_ref()
    }
}
