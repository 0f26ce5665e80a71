//! From what `forward` returned to what is divided among the requests.

use galatea_backend::{
    Batch,
    batching::{self, Share},
};
use galatea_config::TensorSpec;
use galatea_types::{Error, Result};

use crate::{model::TorchModel, torch::Output};

/// The outputs that some request of `part` asks for.
pub(crate) fn shares(
    model: &TorchModel,
    batch: &Batch,
    part: &[usize],
    outputs: &[Output],
) -> Result<Vec<Share>> {
    let sizes = batching::sizes(batch, part);
    let mut shares = Vec::with_capacity(model.outputs.len());
    for (spec, &position) in model.config.outputs.iter().zip(&model.outputs) {
        let output = find(model, spec, position, outputs)?;
        check(model, spec, output)?;
        if batching::is_wanted(batch, part, &spec.name) {
            let data = output.data.clone();
            shares.push(Share::divide(&model.config, spec, &output.shape, data, &sizes)?);
        }
    }
    Ok(shares)
}

/// By its name in a dictionary, else by its position.
fn find<'o>(
    model: &TorchModel,
    spec: &TensorSpec,
    position: usize,
    outputs: &'o [Output],
) -> Result<&'o Output> {
    let keys: Vec<&str> = outputs.iter().filter_map(|o| o.name.as_deref()).collect();
    if !keys.is_empty() {
        return outputs.iter().find(|o| o.name.as_deref() == Some(&*spec.name)).ok_or_else(|| {
            Error::invalid_arg(format!(
                "model '{}': output '{}' is not in the dictionary that the model returned, which has {}",
                model.config.name,
                spec.name,
                keys.join(", ")
            ))
        });
    }
    outputs.get(position).ok_or_else(|| {
        Error::invalid_arg(format!(
            "model '{}': The output {} in the model configuration refers to an output index which doesn't \
             exist. This model has {} outputs",
            model.config.name,
            spec.name,
            outputs.len()
        ))
    })
}

fn check(model: &TorchModel, spec: &TensorSpec, output: &Output) -> Result<()> {
    let (config, name) = (&model.config, &spec.name);
    if output.data_type != Some(spec.data_type) {
        let found =
            output.data_type.map_or("a type that no request can carry", |t| t.config_name());
        return Err(Error::invalid_arg(format!(
            "model '{}': configuration expects datatype {} for output '{name}', model provides {found}",
            config.name,
            spec.data_type.config_name()
        )));
    }
    if output.shape.is_empty() && (config.has_batching() || spec.dims.is_variable()) {
        return Err(Error::invalid_arg(format!(
            "model '{}': output '{name}' is a scalar which is not supported.",
            config.name
        )));
    }
    Ok(())
}
