//! Inputs and outputs (C-30 to C-35).

use galatea_proto::inference::{self, ModelInput, ModelOutput, ModelTensorReshape, model_input};
use galatea_types::{DataType, Error, Result, Shape};

use super::refuse;
use crate::{Format, RawModelConfig, TensorSpec};

/// The parts an input and an output have alike.
struct Tensor<'a> {
    /// `input` or `output`.
    side: &'static str,
    name: &'a str,
    data_type: i32,
    dims: &'a [i64],
    reshape: Option<&'a ModelTensorReshape>,
    is_shape_tensor: bool,
    is_non_linear_format_io: bool,
}

pub(super) fn check_inputs(raw: &RawModelConfig) -> Result<Vec<TensorSpec>> {
    let specs = raw.input.iter().map(|i| check_input(i, raw).map_err(|e| for_model(e, &raw.name)));
    specs.collect()
}

pub(super) fn check_outputs(raw: &RawModelConfig) -> Result<Vec<TensorSpec>> {
    let specs =
        raw.output.iter().map(|o| check_output(o, raw).map_err(|e| for_model(e, &raw.name)));
    specs.collect()
}

pub(super) fn for_model(error: Error, model: &str) -> Error {
    Error::invalid_arg(format!("{} for {model}", error.message()))
}

fn check_input(input: &ModelInput, raw: &RawModelConfig) -> Result<TensorSpec> {
    let tensor = Tensor {
        side: "input",
        name: &input.name,
        data_type: input.data_type,
        dims: &input.dims,
        reshape: input.reshape.as_ref(),
        is_shape_tensor: input.is_shape_tensor,
        is_non_linear_format_io: input.is_non_linear_format_io,
    };
    let spec = tensor.check_shape(raw.max_batch_size)?;
    let format = match input.format() {
        model_input::Format::None => Format::None,
        model_input::Format::Nhwc => Format::Nhwc,
        model_input::Format::Nchw => Format::Nchw,
    };
    if format != Format::None && input.dims.len() != 3 {
        return refuse("model input NHWC/NCHW require 3 dims".to_owned());
    }
    tensor.check_platform(&raw.platform)?;
    Ok(TensorSpec {
        format,
        is_optional: input.optional,
        allows_ragged_batch: input.allow_ragged_batch,
        ..spec
    })
}

fn check_output(output: &ModelOutput, raw: &RawModelConfig) -> Result<TensorSpec> {
    let tensor = Tensor {
        side: "output",
        name: &output.name,
        data_type: output.data_type,
        dims: &output.dims,
        reshape: output.reshape.as_ref(),
        is_shape_tensor: output.is_shape_tensor,
        is_non_linear_format_io: output.is_non_linear_format_io,
    };
    let spec = tensor.check_shape(raw.max_batch_size)?;
    tensor.check_platform(&raw.platform)?;
    let label = &output.label_filename;
    Ok(TensorSpec { label_filename: (!label.is_empty()).then(|| label.clone()), ..spec })
}

impl Tensor<'_> {
    fn check_shape(&self, max_batch_size: i32) -> Result<TensorSpec> {
        let Self { side, name, dims, .. } = *self;
        if name.is_empty() {
            return refuse(format!("model {side} must specify 'name'"));
        }
        let refuse = |what: String| refuse(format!("model {side} '{name}' {what}"));
        let Some(data_type) = data_type(self.data_type) else {
            return refuse("must specify 'data_type'".to_owned());
        };
        if dims.is_empty() {
            return refuse("must specify 'dims'".to_owned());
        }
        let scalar_reshape = self.reshape.is_some_and(|r| r.shape.is_empty());
        if scalar_reshape && max_batch_size == 0 {
            return refuse(
                "cannot have empty reshape for non-batching model as scalar tensors are not \
                 supported"
                    .to_owned(),
            );
        }
        if let Some(reason) = dims_mistake("dimension", dims) {
            return refuse(reason);
        }
        let mistake = self.reshape.and_then(|r| reshape_mistake(dims, &r.shape));
        if let Some(reason) = mistake {
            return refuse(reason);
        }
        Ok(self.spec(data_type))
    }

    fn spec(&self, data_type: DataType) -> TensorSpec {
        let reshape = self.reshape.filter(|r| r.shape != self.dims);
        TensorSpec {
            name: self.name.into(),
            data_type,
            dims: Shape::from(self.dims),
            reshape: reshape.map(|r| Shape::from(r.shape.as_slice())),
            format: Format::None,
            is_optional: false,
            allows_ragged_batch: false,
            label_filename: None,
        }
    }

    fn check_platform(&self, platform: &str) -> Result<()> {
        let is_tensorrt = platform == "tensorrt_plan";
        if self.is_shape_tensor && !is_tensorrt {
            return refuse("shape tensors are only supported for TensorRT platform".to_owned());
        }
        if self.is_non_linear_format_io && !is_tensorrt {
            return refuse(
                "Non-linear IO format is only supported for the TensorRT platform".to_owned(),
            );
        }
        if self.is_non_linear_format_io && self.dims.len() != 3 {
            return refuse(format!("Non-linear IO format {} requires 3 dims", self.side));
        }
        Ok(())
    }
}

fn dims_mistake(what: &str, dims: &[i64]) -> Option<String> {
    let is_wrong = dims.iter().any(|&d| d < 1 && d != -1);
    is_wrong.then(|| {
        format!("{what} must be integer >= 1, or -1 to indicate a variable-size dimension")
    })
}

fn reshape_mistake(dims: &[i64], reshape: &[i64]) -> Option<String> {
    if let Some(reason) = dims_mistake("reshape dimensions", reshape) {
        return Some(reason);
    }
    let (dims, reshape) = (trunk_sizes(dims), trunk_sizes(reshape));
    match (dims.len() == reshape.len(), dims == reshape) {
        (_, true) => None,
        (false, _) if dims.len() > 1 && reshape.len() > 1 => {
            Some("has different number of variable-size dimensions for dims and reshape".to_owned())
        }
        _ => Some("has different size for dims and reshape".to_owned()),
    }
}

/// Element counts of the runs of dimensions between the variable ones: a reshape may move dimensions
/// about only inside such a run, e.g. `[2,4,-1,6]` into `[8,-1,1,6]`. `None` stands for overflow.
fn trunk_sizes(dims: &[i64]) -> Vec<Option<i64>> {
    let product = |run: &[i64]| run.iter().try_fold(1_i64, |n, &d| n.checked_mul(d));
    dims.split(|&d| d == -1).map(product).collect()
}

/// `None` for the invalid type and for numbers no type has.
pub(super) fn data_type(number: i32) -> Option<DataType> {
    use inference::DataType as Raw;
    Some(match Raw::try_from(number).ok()? {
        Raw::TypeInvalid => return None,
        Raw::TypeBool => DataType::Bool,
        Raw::TypeUint8 => DataType::Uint8,
        Raw::TypeUint16 => DataType::Uint16,
        Raw::TypeUint32 => DataType::Uint32,
        Raw::TypeUint64 => DataType::Uint64,
        Raw::TypeInt8 => DataType::Int8,
        Raw::TypeInt16 => DataType::Int16,
        Raw::TypeInt32 => DataType::Int32,
        Raw::TypeInt64 => DataType::Int64,
        Raw::TypeFp16 => DataType::Fp16,
        Raw::TypeFp32 => DataType::Fp32,
        Raw::TypeFp64 => DataType::Fp64,
        Raw::TypeString => DataType::Bytes,
        Raw::TypeBf16 => DataType::Bf16,
    })
}
