//! The inputs and outputs that a model file declares.

use galatea_backend::declared::{Declaration, DeclaredKind, DeclaredTensor, UnsupportedKind};
use galatea_config::TensorSpec;
use galatea_types::{DataType, Result, Shape};

use crate::{
    operators::type_name,
    ort::{Session, TensorInfo, ValueKind},
};

/// Advice to make a model take batches.
pub(crate) const HOW_TO_BATCH: &str =
    "export the model with an open first dimension (dynamic axes)";

/// Advice with both solutions: scikit-learn's exports give probabilities as a list of maps by default.
const WITHOUT_SEQUENCES: &str = "export the model without it: with scikit-learn convert_sklearn(..., \
    options={'zipmap': False}); or list in config.pbtxt the inputs and only the outputs that are tensors, the label for \
    example";

#[derive(Clone, Debug)]
pub(crate) struct Signature {
    /// Inputs every request must bring.
    pub inputs: Vec<TensorInfo>,
    /// Initialisers listed as inputs: a request may bring them.
    pub initializers: Vec<TensorInfo>,
    pub outputs: Vec<TensorInfo>,
}

impl Signature {
    /// Reads the signature from the library.
    pub fn read(session: &Session) -> Result<Self> {
        Ok(Self {
            inputs: session.inputs()?,
            initializers: session.overridable_initializers()?,
            outputs: session.outputs()?,
        })
    }

    pub fn declaration(&self) -> Declaration<'_, TensorInfo> {
        Declaration {
            inputs: &self.inputs,
            optional_inputs: Some(&self.initializers),
            outputs: &self.outputs,
            how_to_batch: HOW_TO_BATCH,
        }
    }
}

impl DeclaredTensor for TensorInfo {
    fn name(&self) -> &str {
        &self.name
    }

    fn kind(&self) -> DeclaredKind {
        let description = match self.kind {
            ValueKind::Tensor(data_type) => return DeclaredKind::Tensor(data_type),
            ValueKind::Maps => return DeclaredKind::Tensor(DataType::Fp32),
            ValueKind::OtherTensor(number) => {
                match u64::try_from(number).ok().and_then(type_name) {
                    Some(name) => format!("a tensor of {name}"),
                    None => format!("a tensor of ONNX element type {number}"),
                }
            }
            ValueKind::Sequence => "a sequence".to_owned(),
            ValueKind::Map => "a map".to_owned(),
            ValueKind::Other => "neither a tensor nor a sequence nor a map".to_owned(),
        };
        let is_listed = matches!(self.kind, ValueKind::Sequence | ValueKind::Map);
        let output_advice = is_listed.then_some(WITHOUT_SEQUENCES);
        DeclaredKind::Other(UnsupportedKind { description, input_advice: None, output_advice })
    }

    fn dims(&self) -> Option<&Shape> {
        self.dims.as_ref()
    }
}

/// An input or output, with its client's and its model's declaration.
pub(crate) struct TensorBinding {
    pub spec: TensorSpec,
    pub info: TensorInfo,
}
