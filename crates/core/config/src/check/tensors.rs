//! Checks inputs and outputs.

use std::borrow::Cow;

use galatea_proto::inference::{ModelInput, ModelOutput, model_input};
use galatea_types::{DataType, Shape};

use super::{
    data_type,
    mistake::{Mistake, Result, element_of, inside, refuse},
};
use crate::{FieldPath, RawModelConfig, TensorSpec};

/// An input, or an output, which has all parts of an input except labels.
struct Tensor<'a> {
    raw: &'a RawModelConfig,
    /// `input` or `output`.
    side: &'static str,
    index: usize,
    declared: Cow<'a, ModelInput>,
}

pub(super) fn check_inputs(raw: &RawModelConfig) -> Result<Vec<TensorSpec>> {
    inputs(raw).map(|input| input.check()).collect()
}

pub(super) fn check_outputs(raw: &RawModelConfig) -> Result<Vec<TensorSpec>> {
    let outputs = outputs(raw).zip(&raw.output).map(|(tensor, output)| {
        let label = Some(&output.label_filename).filter(|label| !label.is_empty());
        Ok(TensorSpec { label_filename: label.cloned(), ..tensor.check()? })
    });
    outputs.collect()
}

/// Returns the mistake of each of them. Without `is_complete`, a backend may still complete a tensor from the model's file.
pub(super) fn mistakes(raw: &RawModelConfig, is_complete: bool) -> Vec<Mistake> {
    let counts = |tensor: &Tensor<'_>| is_complete || !tensor.may_be_completed();
    let tensors = inputs(raw).chain(outputs(raw)).filter(counts);
    tensors.filter_map(|tensor| tensor.check().err()).collect()
}

fn inputs(raw: &RawModelConfig) -> impl Iterator<Item = Tensor<'_>> {
    raw.input.iter().enumerate().map(move |(index, input)| Tensor {
        raw,
        side: "input",
        index,
        declared: Cow::Borrowed(input),
    })
}

fn outputs(raw: &RawModelConfig) -> impl Iterator<Item = Tensor<'_>> {
    raw.output.iter().cloned().enumerate().map(move |(index, output)| {
        let ModelOutput { name, data_type, dims, reshape, .. } = output;
        let ModelOutput { is_shape_tensor, is_non_linear_format_io, .. } = output;
        let declared = ModelInput {
            name,
            data_type,
            dims,
            reshape,
            is_shape_tensor,
            is_non_linear_format_io,
            ..ModelInput::default()
        };
        Tensor { raw, side: "output", index, declared: Cow::Owned(declared) }
    })
}

impl Tensor<'_> {
    fn check(&self) -> Result<TensorSpec> {
        self.checked().map_err(inside(element_of(self.side, self.index)))
    }

    fn reshape(&self) -> Option<&[i64]> {
        self.declared.reshape.as_ref().map(|reshape| reshape.shape.as_slice())
    }

    /// Returns whether it is reshaped to a scalar and has no batch dimension.
    fn is_scalar_without_batching(&self) -> bool {
        self.reshape().is_some_and(<[_]>::is_empty) && self.raw.max_batch_size == 0
    }

    fn may_be_completed(&self) -> bool {
        let ModelInput { name, data_type: number, dims, .. } = &*self.declared;
        let lacks_part = data_type(*number).is_none() || dims.is_empty();
        !name.is_empty() && (lacks_part || self.is_scalar_without_batching())
    }

    fn checked(&self) -> Result<TensorSpec> {
        let data_type = self.check_shape()?;
        let (declared, model) = (&*self.declared, &self.raw.name);
        if declared.format() != model_input::Format::None && declared.dims.len() != 3 {
            let text = format!("model input NHWC/NCHW require 3 dims for {model}");
            let advice = "`format` is for images, which have height, width and channels: remove it, or write three `dims`";
            return refuse("dims", text, advice);
        }
        self.check_platform()?;
        let reshape = self.reshape().filter(|reshape| *reshape != declared.dims);
        let dims = Shape::from(declared.dims.as_slice());
        Ok(TensorSpec {
            reshape: reshape.map(Shape::from),
            is_optional: declared.optional,
            allows_ragged_batch: declared.allow_ragged_batch,
            ..TensorSpec::plain(declared.name.as_str().into(), data_type, dims)
        })
    }

    fn check_shape(&self) -> Result<DataType> {
        let Self { side, raw: RawModelConfig { name: model, max_batch_size, .. }, .. } = self;
        let ModelInput { name, dims, .. } = &*self.declared;
        if name.is_empty() {
            let text = format!("model {side} must specify 'name' for {model}");
            let advice = "write `name: \"...\"`: the name that the tensor has in the model";
            return refuse("name", text, advice);
        }
        let refuse = |field: FieldPath, problem: &str, advice: &str| {
            refuse(field, format!("model {side} '{name}' {problem} for {model}"), advice)
        };
        let batches = *max_batch_size > 0;
        let Some(data_type) = data_type(self.declared.data_type) else {
            let advice = "write its type, for example `data_type: TYPE_FP32`";
            return refuse("data_type".into(), "must specify 'data_type'", advice);
        };
        if dims.is_empty() {
            let advice = match batches {
                true => {
                    "write one number per dimension but the batch dimension, which `max_batch_size` adds, and -1 for any \
                     size: for example `dims: [ -1 ]`. For one number per item write `dims: [ 1 ] reshape { shape: [ ] }`"
                }
                false => {
                    "write one number per dimension, and -1 for any size: for example `dims: [ -1 ]`"
                }
            };
            return refuse("dims".into(), "must specify 'dims'", advice);
        }
        if self.is_scalar_without_batching() {
            let problem = "cannot have empty reshape for non-batching model as scalar tensors are not supported";
            let advice =
                "remove `reshape`, or set `max_batch_size` if the model has a batch dimension";
            return refuse("reshape".into(), problem, advice);
        }
        if let Some(index) = wrong_dimension(dims) {
            let problem =
                "dimension must be integer >= 1, or -1 to indicate a variable-size dimension";
            let advice = match batches {
                true => {
                    "write -1 for a dimension of any size; the batch dimension is not listed, `max_batch_size` adds it"
                }
                false => "write -1 for a dimension of any size",
            };
            return refuse(element_of("dims", index), problem, advice);
        }
        match self.reshape().and_then(|reshape| reshape_problem(dims, reshape)) {
            Some((field, problem, advice)) => refuse(field, problem, advice),
            None => Ok(data_type),
        }
    }

    fn check_platform(&self) -> Result<()> {
        let Self { side, raw, declared, .. } = self;
        let (is_tensorrt, model) = (raw.platform == "tensorrt_plan", &raw.name);
        if declared.is_shape_tensor && !is_tensorrt {
            let text =
                format!("shape tensors are only supported for TensorRT platform for {model}");
            let advice = "remove `is_shape_tensor`: no TensorRT engine runs in this server";
            return refuse("is_shape_tensor", text, advice);
        }
        let advice = "remove `is_non_linear_format_io`: no TensorRT engine runs in this server";
        if declared.is_non_linear_format_io && !is_tensorrt {
            let text = format!(
                "Non-linear IO format is only supported for the TensorRT platform for {model}"
            );
            return refuse("is_non_linear_format_io", text, advice);
        }
        if declared.is_non_linear_format_io && declared.dims.len() != 3 {
            let text = format!("Non-linear IO format {side} requires 3 dims for {model}");
            return refuse("dims", text, advice);
        }
        Ok(())
    }
}

fn wrong_dimension(dims: &[i64]) -> Option<usize> {
    dims.iter().position(|&dimension| dimension < 1 && dimension != -1)
}

/// Returns field, problem and advice of a wrong reshape.
fn reshape_problem(
    dims: &[i64],
    reshape: &[i64],
) -> Option<(FieldPath, &'static str, &'static str)> {
    if let Some(index) = wrong_dimension(reshape) {
        return Some((
            element_of("reshape.shape", index),
            "reshape dimensions must be integer >= 1, or -1 to indicate a variable-size dimension",
            "write -1 for a dimension of any size",
        ));
    }
    let (dims, reshape) = (fixed_sizes(dims), fixed_sizes(reshape));
    if dims == reshape {
        return None;
    }
    let has_variables = dims.len() > 1 && reshape.len() > 1;
    let (problem, advice) = match dims.len() != reshape.len() && has_variables {
        true => (
            "has different number of variable-size dimensions for dims and reshape",
            "write -1 as often in `reshape` as in `dims`",
        ),
        false => (
            "has different size for dims and reshape",
            "the sizes in `reshape` must have the same product as those in `dims`",
        ),
    };
    Some(("reshape".into(), problem, advice))
}

/// Returns the element counts of the runs between the variable dimensions. A reshape may move dimensions only inside such a run,
/// e.g. `[2,4,-1,6]` into `[8,-1,1,6]`. `None` when the product overflows.
fn fixed_sizes(dims: &[i64]) -> Vec<Option<i64>> {
    let product = |run: &[i64]| run.iter().try_fold(1_i64, |n, &d| n.checked_mul(d));
    dims.split(|&d| d == -1).map(product).collect()
}
