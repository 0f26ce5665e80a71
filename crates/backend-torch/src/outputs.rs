//! From what `forward` returned to what is divided among the requests.

use galatea_backend::{
    Batch,
    batching::{self, Share},
};
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{Error, Result};

use crate::torch::Output;

/// The outputs that some request of `part` asks for. `positions`: of each output of the configuration among
/// those that were returned.
pub(crate) fn shares(
    config: &ModelConfig,
    positions: &[usize],
    batch: &Batch,
    part: &[usize],
    outputs: &[Output],
) -> Result<Vec<Share>> {
    let sizes = batching::sizes(batch, part);
    let mut shares = Vec::with_capacity(positions.len());
    for (spec, &position) in config.outputs().iter().zip(positions) {
        let output = find(config, spec, position, outputs)?;
        check(config, spec, output)?;
        if batching::is_wanted(batch, part, &spec.name) {
            let data = output.data.clone();
            shares.push(Share::divide(config, spec, &output.shape, data, &sizes)?);
        }
    }
    Ok(shares)
}

/// By its name in a dictionary, else by its position.
fn find<'o>(
    config: &ModelConfig,
    spec: &TensorSpec,
    position: usize,
    outputs: &'o [Output],
) -> Result<&'o Output> {
    let keys: Vec<&str> = outputs.iter().filter_map(|o| o.name.as_deref()).collect();
    if !keys.is_empty() {
        return outputs.iter().find(|o| o.name.as_deref() == Some(&*spec.name)).ok_or_else(|| {
            Error::invalid_arg(format!(
                "model '{}': output '{}' is not in the dictionary that the model returned, which has {}",
                config.name(),
                spec.name,
                keys.join(", ")
            ))
        });
    }
    outputs.get(position).ok_or_else(|| {
        Error::invalid_arg(format!(
            "model '{}': The output {} in the model configuration refers to an output index which doesn't \
             exist. This model has {} outputs",
            config.name(),
            spec.name,
            outputs.len()
        ))
    })
}

fn check(config: &ModelConfig, spec: &TensorSpec, output: &Output) -> Result<()> {
    let name = &spec.name;
    if output.data_type != Some(spec.data_type) {
        let found =
            output.data_type.map_or("a type that no request can carry", |t| t.config_name());
        return Err(Error::invalid_arg(format!(
            "model '{}': configuration expects datatype {} for output '{name}', model provides {found}",
            config.name(),
            spec.data_type.config_name()
        )));
    }
    if output.shape.is_empty() && (config.has_batching() || spec.dims.is_variable()) {
        return Err(Error::invalid_arg(format!(
            "model '{}': output '{name}' is a scalar which is not supported.",
            config.name()
        )));
    }
    Ok(())
}
