//! Turns a worker's response into a client's.

use std::{
    collections::HashSet,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Error, LockExt as _, Result, Shape, Tensor};

use crate::{
    exception::with_traceback,
    parameters,
    requests::{ActiveRequest, ResponseContent},
    reshape,
    transport::Message,
    wire::{ProtocolError, ResponseHead},
};

/// Most undeclared names of outputs that are logged: a model that makes up names does not get a line for each.
const MOST_NAMES: usize = 16;

/// The outputs of a model that were logged because they differ from the configuration. All workers of a model share it: they
/// run the same code.
#[derive(Debug, Default)]
pub struct ReportedOutputs {
    /// A bit for each of the first 64 declared outputs.
    declared: AtomicU64,
    /// Names of outputs that are not declared.
    others: Mutex<HashSet<String>>,
}

impl ReportedOutputs {
    /// Returns true the first time it is called for `name`.
    pub(crate) fn is_new_name(&self, name: &str) -> bool {
        let mut others = self.others.lock_unpoisoned();
        others.len() < MOST_NAMES && others.insert(name.to_owned())
    }

    /// Returns true the first time it is called for `index`.
    fn is_new(&self, index: usize) -> bool {
        let bit = u32::try_from(index).ok().and_then(|index| 1u64.checked_shl(index));
        let bit = bit.unwrap_or_default();
        // Read before writing: a model with wrong outputs has them in every response.
        self.declared.load(Ordering::Relaxed) & bit != bit
            && self.declared.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }
}

/// Reads a response: the outputs that the client of `request` asked for, and the states of its sequence. Without a request
/// it returns all outputs. Without `config` the outputs are not checked.
pub(crate) fn read(
    config: Option<&ModelConfig>,
    told: &ReportedOutputs,
    head: &ResponseHead<'_>,
    message: &Message<'_>,
    request: Option<&ActiveRequest>,
) -> Result<ResponseContent, ProtocolError> {
    let _held = match message.admit(&head.outputs) {
        Ok(held) => held,
        Err(over) => return Ok(Err(over.into())),
    };
    // Take unwanted outputs too: taking a block and dropping it gives it back.
    let outputs = message.tensors(&head.outputs)?;
    if let Some((code, text)) = head.error {
        return Ok(Err(with_traceback(Error::new(code, text), head.traceback)));
    }
    let is_wanted = |name: &Arc<str>| {
        request.is_none_or(|r| r.outputs.contains(name) || r.states.contains(name))
    };
    let outputs = outputs
        .into_iter()
        .filter(|tensor| is_wanted(&tensor.name))
        .map(|tensor| checked(config, told, tensor));
    let outputs = outputs.collect::<Result<Vec<Tensor>>>();
    Ok(outputs.and_then(|outputs| Ok((outputs, parameters::read(head.parameters)?))))
}

/// Compares the output with the configuration. As in Triton the model decides on its data type and shape.
fn checked(
    config: Option<&ModelConfig>,
    told: &ReportedOutputs,
    mut tensor: Tensor,
) -> Result<Tensor> {
    let Some(config) = config else { return Ok(tensor) };
    let spec = config.model_outputs().iter().find(|spec| spec.name == tensor.name);
    let spec = spec.ok_or_else(|| {
        Error::internal(format!(
            "unexpected inference output '{}' for model '{}'",
            tensor.name,
            config.name()
        ))
    })?;
    tensor.name = spec.name.clone();
    if !is_as_declared(config, spec, &tensor) {
        tell(config, told, spec, &tensor);
    }
    if let Some(source) = &spec.reshape {
        tensor.shape = reshape::apply(&tensor.shape, source, &spec.dims, config.has_batching());
    }
    Ok(tensor)
}

fn is_as_declared(config: &ModelConfig, spec: &TensorSpec, tensor: &Tensor) -> bool {
    let declared = spec.reshape.as_ref().unwrap_or(&spec.dims);
    let dims = match config.has_batching() {
        true => tensor.shape.get(1..).unwrap_or_default(),
        false => &tensor.shape,
    };
    tensor.data_type == spec.data_type && declared.admits(dims)
}

/// Logs a difference. Clients get what the model returns, as in Triton, so the log is where its author learns of it.
#[cold]
fn tell(config: &ModelConfig, told: &ReportedOutputs, spec: &TensorSpec, tensor: &Tensor) {
    let index = config.model_outputs().iter().position(|output| output.name == spec.name);
    if !index.is_some_and(|index| told.is_new(index)) {
        return;
    }
    let declared = spec.reshape.as_ref().unwrap_or(&spec.dims);
    let declared = match config.has_batching() {
        true => declared.with_leading(-1),
        false => Shape::clone(declared),
    };
    log::warn!(
        "model '{}' returns output '{}' with data type {} and shape {}, but its configuration says {} and {declared}: \
         clients get it as it is; correct the model or its configuration",
        config.name(),
        spec.name,
        tensor.data_type,
        tensor.shape,
        spec.data_type,
    );
}

#[cfg(test)]
mod tests {
    use galatea_config::testing::model_config;
    use galatea_types::DataType;

    use super::*;

    #[test]
    fn each_unknown_output_is_reported_once() {
        let told = ReportedOutputs::default();
        assert!(told.is_new(0) && told.is_new(63) && !told.is_new(0));
        assert!(!told.is_new(64) && !told.is_new(usize::MAX), "these are not counted");
        assert!(told.is_new_name("a") && !told.is_new_name("a"));
        let told_of = (0..100).filter(|number| told.is_new_name(&number.to_string())).count();
        assert_eq!(told_of, MOST_NAMES - 1);
    }

    #[test]
    fn outputs_have_their_declared_type_and_shape() {
        let config = |batch: u32, more: &str| {
            model_config(&format!(
                "name: 'm' backend: 'identity' max_batch_size: {batch} \
                 input {{ name: 'IN' data_type: TYPE_FP32 dims: [ 1 ] }} \
                 output {{ name: 'OUT' data_type: TYPE_FP32 dims: [ -1, 2 ] {more} }}"
            ))
        };
        let is_declared = |config: &ModelConfig, data_type, shape: &[i64]| {
            let tensor = Tensor::new("OUT", data_type, shape, vec![]);
            is_as_declared(config, &config.outputs()[0], &tensor)
        };
        let plain = config(0, "");
        assert!(is_declared(&plain, DataType::Fp32, &[7, 2]));
        assert!(!is_declared(&plain, DataType::Fp64, &[7, 2]), "numpy's default");
        assert!(!is_declared(&plain, DataType::Fp32, &[7, 3]));
        assert!(!is_declared(&plain, DataType::Fp32, &[1, 7, 2]), "a batch dimension too many");
        let batched = config(4, "");
        assert!(is_declared(&batched, DataType::Fp32, &[4, 7, 2]));
        assert!(
            !is_declared(&batched, DataType::Fp32, &[7, 2])
                && !is_declared(&batched, DataType::Fp32, &[])
        );
        let reshaped = config(0, "reshape { shape: [ -1, 1, 2 ] }");
        assert!(is_declared(&reshaped, DataType::Fp32, &[7, 1, 2]));
    }
}
