//! Inputs and outputs.

use galatea_proto::inference::{ModelInput, ModelOutput, ModelTensorReshape, model_input};
use galatea_types::{DataType, Shape};

use super::{
    at::{About, At},
    data_type::data_type,
};
use crate::{FieldPath, Format, RawModelConfig, TensorSpec};

type Result<T> = std::result::Result<T, At<TensorError>>;

/// What is wrong with an input or output. `side` is `input` or `output`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorError {
    /// It has no name.
    #[error("model {side} must specify 'name'")]
    NoName {
        /// Input or output.
        side: &'static str,
    },
    /// Something about its type or dimensions.
    #[error("model {side} '{name}' {problem}")]
    Tensor {
        /// Input or output.
        side: &'static str,
        /// Its name.
        name: String,
        /// What is wrong.
        problem: TensorProblem,
    },
    /// An image has height, width and channel.
    #[error("model input NHWC/NCHW require 3 dims")]
    ImageRank,
    /// Shape tensors are for TensorRT.
    #[error("shape tensors are only supported for TensorRT platform")]
    ShapeTensor,
    /// Formats of TensorRT are for TensorRT.
    #[error("Non-linear IO format is only supported for the TensorRT platform")]
    NonLinearFormat,
    /// Formats of TensorRT are for images.
    #[error("Non-linear IO format {side} requires 3 dims")]
    NonLinearRank {
        /// Input or output.
        side: &'static str,
    },
}

/// What is wrong with type or dimensions of a tensor that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TensorProblem {
    /// No data type.
    #[error("must specify 'data_type'")]
    NoDataType,
    /// No dimensions.
    #[error("must specify 'dims'")]
    NoDims,
    /// A scalar, where there is no batch dimension to keep.
    #[error("cannot have empty reshape for non-batching model as scalar tensors are not supported")]
    ScalarWithoutBatching,
    /// A dimension of 0, or below -1.
    #[error("dimension must be integer >= 1, or -1 to indicate a variable-size dimension")]
    Dimension,
    /// The same in `reshape`.
    #[error("reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension")]
    ReshapeDimension,
    /// Not as many dimensions of -1.
    #[error("has different number of variable-size dimensions for dims and reshape")]
    ReshapeVariables,
    /// Not as many elements.
    #[error("has different size for dims and reshape")]
    ReshapeSize,
}

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
    each_input(raw).collect()
}

pub(super) fn check_outputs(raw: &RawModelConfig) -> Result<Vec<TensorSpec>> {
    each_output(raw).collect()
}

/// What is wrong with each of them.
pub(super) fn mistakes(raw: &RawModelConfig) -> Vec<At<TensorError>> {
    each_input(raw).chain(each_output(raw)).filter_map(Result::err).collect()
}

fn each_input(raw: &RawModelConfig) -> impl Iterator<Item = Result<TensorSpec>> {
    raw.input.iter().enumerate().map(move |(index, input)| {
        check_input(input, raw).map_err(|error| error.inside(part("input", index)))
    })
}

fn each_output(raw: &RawModelConfig) -> impl Iterator<Item = Result<TensorSpec>> {
    raw.output.iter().enumerate().map(move |(index, output)| {
        check_output(output, raw).map_err(|error| error.inside(part("output", index)))
    })
}

fn part(side: &'static str, index: usize) -> FieldPath {
    FieldPath::from(side).index(index)
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
        return Err(TensorError::ImageRank.at("dims"));
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
            return Err(TensorError::NoName { side }.at("name"));
        }
        let refuse = |problem| {
            let field = self.field_of(problem);
            Err(TensorError::Tensor { side, name: name.to_owned(), problem }.at(field))
        };
        let Some(data_type) = data_type(self.data_type) else {
            return refuse(TensorProblem::NoDataType);
        };
        if dims.is_empty() {
            return refuse(TensorProblem::NoDims);
        }
        let scalar_reshape = self.reshape.is_some_and(|r| r.shape.is_empty());
        if scalar_reshape && max_batch_size == 0 {
            return refuse(TensorProblem::ScalarWithoutBatching);
        }
        if has_wrong_dimension(dims) {
            return refuse(TensorProblem::Dimension);
        }
        match self.reshape.and_then(|r| reshape_problem(dims, &r.shape)) {
            Some(problem) => refuse(problem),
            None => Ok(self.spec(data_type)),
        }
    }

    fn field_of(&self, problem: TensorProblem) -> FieldPath {
        let element = |list: FieldPath, dims: &[i64]| match dims.iter().position(is_wrong) {
            Some(index) => list.index(index),
            None => list,
        };
        let reshape = self.reshape.map_or(&[][..], |reshape| reshape.shape.as_slice());
        match problem {
            TensorProblem::NoDataType => "data_type".into(),
            TensorProblem::NoDims => "dims".into(),
            TensorProblem::Dimension => element("dims".into(), self.dims),
            TensorProblem::ReshapeDimension => element("reshape.shape".into(), reshape),
            TensorProblem::ScalarWithoutBatching
            | TensorProblem::ReshapeVariables
            | TensorProblem::ReshapeSize => "reshape".into(),
        }
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
            return Err(TensorError::ShapeTensor.at("is_shape_tensor"));
        }
        if self.is_non_linear_format_io && !is_tensorrt {
            return Err(TensorError::NonLinearFormat.at("is_non_linear_format_io"));
        }
        if self.is_non_linear_format_io && self.dims.len() != 3 {
            return Err(TensorError::NonLinearRank { side: self.side }.at("dims"));
        }
        Ok(())
    }
}

fn has_wrong_dimension(dims: &[i64]) -> bool {
    dims.iter().any(is_wrong)
}

fn is_wrong(dimension: &i64) -> bool {
    *dimension < 1 && *dimension != -1
}

fn reshape_problem(dims: &[i64], reshape: &[i64]) -> Option<TensorProblem> {
    if has_wrong_dimension(reshape) {
        return Some(TensorProblem::ReshapeDimension);
    }
    let (dims, reshape) = (fixed_sizes(dims), fixed_sizes(reshape));
    match (dims.len() == reshape.len(), dims == reshape) {
        (_, true) => None,
        (false, _) if dims.len() > 1 && reshape.len() > 1 => Some(TensorProblem::ReshapeVariables),
        _ => Some(TensorProblem::ReshapeSize),
    }
}

/// Element counts of the runs of dimensions between the variable ones: a reshape may move dimensions
/// only inside such a run, e.g. `[2,4,-1,6]` into `[8,-1,1,6]`. `None`: the product overflows.
fn fixed_sizes(dims: &[i64]) -> Vec<Option<i64>> {
    let product = |run: &[i64]| run.iter().try_fold(1_i64, |n, &d| n.checked_mul(d));
    dims.split(|&d| d == -1).map(product).collect()
}
