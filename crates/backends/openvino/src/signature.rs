//! The inputs and outputs that a model declares, and how those of a configuration relate to them.

use galatea_backend::{
    MOST_MISTAKES,
    declared::{check_input_count, unexpected},
    misconfigured,
};
use galatea_config::{FieldPath, ModelConfig, TensorSpec};
use galatea_types::{Code, DataType, Error, Result, Shape};

use crate::{
    openvino::{Model, Retyping, TensorInfo},
    settings::Settings,
};

/// The inputs and outputs of a model, in its own order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Signature {
    pub inputs: Vec<TensorInfo>,
    pub outputs: Vec<TensorInfo>,
}

/// A tensor of the configuration with its number in the model.
#[derive(Clone, Debug)]
pub(crate) struct Binding {
    pub spec: TensorSpec,
    pub index: usize,
    /// The model's declaration, with its final shapes.
    pub info: TensorInfo,
}

impl Signature {
    pub fn of(model: &Model) -> Result<Self> {
        Ok(Self { inputs: model.inputs()?, outputs: model.outputs()? })
    }

    /// Checks that all have names: without one neither a configuration nor a request can name it.
    pub fn check_names(&self, model: &str) -> Result<()> {
        let sides = [("input", &self.inputs), ("output", &self.outputs)];
        for (what, infos) in sides {
            if let Some(index) = infos.iter().position(|info| info.name.is_empty()) {
                return Err(Error::invalid_arg(format!(
                    "unable to load model '{model}': {what} {index} has no name in the model's file; give it one before \
                     the file is saved, in Python: `model.{what}({index}).set_names({{'NAME'}})`"
                )));
            }
        }
        Ok(())
    }

    /// Checks that a configuration has everything the model needs, and nothing that it lacks.
    pub fn bind(&self, config: &ModelConfig) -> Result<(Vec<Binding>, Vec<Binding>)> {
        let inputs = bind("input", config.execution_inputs(), &self.inputs)?;
        let outputs = bind("output", config.model_outputs(), &self.outputs)?;
        check_input_count(config, inputs.len(), self.inputs.len())?;
        Ok((inputs, outputs))
    }

    /// Returns errors for tensors of a configuration that the model does not have, at most [`MOST_MISTAKES`].
    pub fn unknown(&self, config: &ModelConfig) -> Vec<Error> {
        let inputs = config.execution_inputs().iter().map(|spec| ("input", spec, &self.inputs));
        let outputs = config.model_outputs().iter().map(|spec| ("output", spec, &self.outputs));
        let unknown = inputs
            .chain(outputs)
            .filter_map(|(what, spec, infos)| bind(what, std::slice::from_ref(spec), infos).err());
        unknown.take(MOST_MISTAKES).collect()
    }
}

fn bind(what: &'static str, specs: &[TensorSpec], infos: &[TensorInfo]) -> Result<Vec<Binding>> {
    let names = || infos.iter().map(|info| info.name.as_str());
    let bound = |spec: &TensorSpec| {
        let index = infos.iter().position(|info| info.name == *spec.name);
        let found = index.and_then(|index| Some((index, infos.get(index)?.clone())));
        let (index, info) = found.ok_or_else(|| unexpected(what, &spec.name, names()))?;
        Ok(Binding { spec: spec.clone(), index, info })
    };
    specs.iter().map(bound).collect()
}

/// Returns the conversions for types that differ between configuration and model, as Triton makes them.
///
/// # Errors
/// For types that no request can carry, and for texts if the other side has numbers.
pub(crate) fn retypings(
    config: &ModelConfig,
    inputs: &[Binding],
    outputs: &[Binding],
) -> Result<Vec<Retyping>> {
    let sides = [("input", inputs), ("output", outputs)];
    let all = sides.into_iter().flat_map(|(what, all)| all.iter().map(move |one| (what, one)));
    all.filter_map(|(what, binding)| retyping(config, what, binding).transpose()).collect()
}

fn retyping(
    config: &ModelConfig,
    what: &'static str,
    binding: &Binding,
) -> Result<Option<Retyping>> {
    let (model, name) = (config.name(), &binding.spec.name);
    let expected = binding.spec.data_type;
    let provided = binding.info.data_type.ok_or_else(|| other_elements(model, what, name))?;
    if provided == expected {
        return Ok(None);
    }
    if [provided, expected].contains(&DataType::Bytes) {
        let text = format!(
            "unable to load model '{model}', configuration expects datatype {} for {what} '{name}', model provides \
             TYPE_{provided}",
            expected.config_name()
        );
        let field = FieldPath::from(what).named(&**name).field("data_type");
        let advice =
            format!("write {}: texts and numbers are not converted", provided.config_name());
        return Err(misconfigured(Code::InvalidArg, text, field, advice));
    }
    let (index, is_input) = (binding.index, what == "input");
    Ok(Some(Retyping { is_input, index, data_type: expected }))
}

/// Returns the error of a tensor (`what`) of a type that no request can carry.
pub(crate) fn other_elements(model: &str, what: &str, name: &str) -> Error {
    Error::unsupported(format!(
        "unable to load model '{model}', {what} '{name}' has elements that no request can carry (of less than a byte, \
         for example)"
    ))
}

/// Returns the first dimension of a tensor of a batching model: open, or the one size it is compiled for. Tensors with
/// joined ragged requests, and tensors that describe the batch, have none.
fn batch_dimension(config: &ModelConfig, settings: &Settings, spec: &TensorSpec) -> Option<i64> {
    let is_of_items = !spec.allows_ragged_batch && config.batch_input_for(&spec.name).is_none();
    (config.has_batching() && is_of_items).then(|| match settings.has_fixed_batch {
        true => i64::from(config.max_batch_size()),
        false => -1,
    })
}

/// Returns new shapes for inputs, by their numbers, to be set before the model is compiled. Inputs that have their shapes
/// already are left out.
pub(crate) fn reshapings(
    config: &ModelConfig,
    settings: &Settings,
    inputs: &[Binding],
) -> Result<Vec<(usize, Vec<i64>)>> {
    check_fixed_batch(config, settings)?;
    let mut changed = Vec::new();
    for binding in inputs {
        let batch = batch_dimension(config, settings, &binding.spec);
        let wanted = dims_of_config(config, &binding.spec, batch);
        let dims = match &binding.info.dims {
            // If the model leaves everything open, or may be changed, it gets the configured shape.
            None => wanted,
            Some(_) if settings.reshapes => wanted,
            Some(own) => {
                check_dims(config, "input", binding, own, batch)?;
                with_batch(own, batch)
            }
        };
        if binding.info.dims.as_deref() != Some(&dims) {
            changed.push((binding.index, dims));
        }
    }
    Ok(changed)
}

/// Rejects elements of varying number if the model is compiled for one size of batch.
fn check_fixed_batch(config: &ModelConfig, settings: &Settings) -> Result<()> {
    let is_ragged = |spec: &&TensorSpec| spec.allows_ragged_batch;
    let made = config.batch_inputs().iter().flat_map(|input| &input.targets);
    let mut names = config.inputs().iter().filter(is_ragged).map(|spec| &spec.name).chain(made);
    match names.next().filter(|_| settings.has_fixed_batch) {
        None => Ok(()),
        Some(input) => {
            let text = format!(
                "unable to load model '{}', input '{input}' cannot be ragged or made from the batch: the model is compiled \
                 for one size of batch (SKIP_OV_DYNAMIC_BATCHSIZE)",
                config.name()
            );
            let field = FieldPath::from("parameters").named("SKIP_OV_DYNAMIC_BATCHSIZE");
            let advice = "remove the parameter SKIP_OV_DYNAMIC_BATCHSIZE";
            Err(misconfigured(Code::InvalidArg, text, field, advice))
        }
    }
}

fn with_batch(dims: &[i64], batch: Option<i64>) -> Vec<i64> {
    let mut dims = dims.to_vec();
    if let (Some(first), Some(batch)) = (dims.first_mut(), batch) {
        *first = batch;
    }
    dims
}

/// Returns the dims as the model has them, batch dimension included. A scalar is configured as [1], which says nothing of
/// the model.
fn dims_of_config(config: &ModelConfig, spec: &TensorSpec, batch: Option<i64>) -> Vec<i64> {
    with_batch(&config.shape_in_model(spec), batch)
}

/// Checks that the model's outputs, with its final shapes, fit the configuration.
pub(crate) fn check_outputs(
    config: &ModelConfig,
    settings: &Settings,
    outputs: &[Binding],
) -> Result<()> {
    for binding in outputs {
        let Some(dims) = &binding.info.dims else { continue };
        if config.batch_output_for(&binding.spec.name).is_some() {
            continue;
        }
        let batch = batch_dimension(config, settings, &binding.spec);
        check_dims(config, "output", binding, dims, batch)?;
        if let Some(batch) = batch
            && dims.first() != Some(&batch)
            && dims.first() != Some(&-1)
        {
            return Err(no_batch_dimension(config, binding, dims, batch));
        }
    }
    Ok(())
}

/// Compares dimensions. Either side may leave open what the other one fixes. The batch is not compared.
fn check_dims(
    config: &ModelConfig,
    what: &'static str,
    binding: &Binding,
    model_dims: &[i64],
    batch: Option<i64>,
) -> Result<()> {
    let wanted = dims_of_config(config, &binding.spec, batch);
    let is_scalar = model_dims.is_empty() && batch.is_none() && wanted.iter().all(|&d| d == 1);
    let skipped = usize::from(batch.is_some());
    let pairs = wanted.iter().zip(model_dims).skip(skipped);
    let fits = wanted.len() == model_dims.len()
        && pairs.into_iter().all(|(&c, &m)| c == m || c == -1 || m == -1);
    if fits || is_scalar {
        return Ok(());
    }
    let (model, name) = (config.name(), &binding.spec.name);
    let (model_dims, config_dims) = (Shape::from(model_dims), Shape::from(wanted));
    let text = format!(
        "model '{model}', tensor '{name}': the model expects {} dimensions (shape {model_dims}) but the model \
         configuration specifies {} dimensions (shape {config_dims}{})",
        model_dims.len(),
        config_dims.len(),
        if batch.is_some() { ", batch dimension included" } else { "" }
    );
    let written: Vec<String> = model_dims.iter().skip(skipped).map(i64::to_string).collect();
    let advice = format!(
        "write `dims: [ {} ]`, or have the model's inputs changed with the parameter RESHAPE_IO_LAYERS = `YES`",
        written.join(", ")
    );
    let field = FieldPath::from(what).named(&**name).field("dims");
    Err(misconfigured(Code::InvalidArg, text, field, advice))
}

fn no_batch_dimension(config: &ModelConfig, binding: &Binding, dims: &[i64], batch: i64) -> Error {
    let (model, name, dims) = (config.name(), &binding.spec.name, Shape::from(dims));
    let batch = match batch {
        ..0 => "left open".to_owned(),
        size => format!("of {size} items (max_batch_size)"),
    };
    let text = format!(
        "model '{model}', tensor '{name}': for the model to support batching its first dimension must be the batch, but \
         with the batch {batch} the model gives it the shape {dims}"
    );
    let advice = "write `max_batch_size: 0` and whole shapes in `dims`; or, where the model is for one size of batch \
                  alone, that size and the parameter SKIP_OV_DYNAMIC_BATCHSIZE = `YES`";
    misconfigured(Code::InvalidArg, text, "max_batch_size", advice)
}
