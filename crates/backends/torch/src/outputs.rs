//! Turns the values that `forward` returned into outputs, which are then split among the requests.

use galatea_backend::batching::ModelOutput;
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Error, Result};

use crate::torch::Output;

/// Checks all outputs and returns those with the numbers `wanted`. `positions`: of each output of the configuration among
/// the returned ones.
pub(crate) fn wanted(
    config: &ModelConfig,
    positions: &[usize],
    wanted: &[usize],
    outputs: &[Output],
) -> Result<Vec<ModelOutput>> {
    let mut found = Vec::with_capacity(wanted.len());
    for (number, (spec, &position)) in config.model_outputs().iter().zip(positions).enumerate() {
        let output = find(config, spec, position, outputs)?;
        check(config, spec, output)?;
        if wanted.contains(&number) {
            found.push(ModelOutput { shape: output.shape.clone(), data: output.data.clone() });
        }
    }
    Ok(found)
}

/// Finds an output by its name in a dictionary, else by its position.
fn find<'o>(
    config: &ModelConfig,
    spec: &TensorSpec,
    position: usize,
    outputs: &'o [Output],
) -> Result<&'o Output> {
    let (model, name) = (config.name(), &spec.name);
    let keys: Vec<&str> = outputs.iter().filter_map(|o| o.name.as_deref()).collect();
    if !keys.is_empty() {
        return outputs.iter().find(|o| o.name.as_deref() == Some(&**name)).ok_or_else(|| {
            Error::invalid_arg(format!(
                "model '{model}': output '{name}' is not in the dictionary that the model returned, which has {}",
                keys.join(", ")
            ))
        });
    }
    outputs.get(position).ok_or_else(|| {
        Error::invalid_arg(format!(
            "model '{model}': The output {name} in the model configuration refers to an output index which doesn't exist. \
             This model has {} outputs",
            outputs.len()
        ))
    })
}

fn check(config: &ModelConfig, spec: &TensorSpec, output: &Output) -> Result<()> {
    let (model, name) = (config.name(), &spec.name);
    if output.data_type != Some(spec.data_type) {
        return Err(Error::invalid_arg(format!(
            "model '{model}': configuration expects datatype {} for output '{name}', model provides {}",
            spec.data_type.config_name(),
            output.data_type.map_or("a type that no request can carry", |t| t.config_name())
        )));
    }
    if output.shape.is_empty() && (config.has_batching() || spec.dims.is_variable()) {
        return Err(Error::invalid_arg(format!(
            "model '{model}': output '{name}' is a scalar which is not supported."
        )));
    }
    Ok(())
}
