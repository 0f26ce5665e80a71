//! The samples of `model_warmup`, made from the configuration and the files in the model's folder `warmup`.

mod content;
mod error;
#[cfg(test)]
mod tests;

use std::{path::Path, sync::Arc};

use galatea_config::{ModelConfig, Scheduling, Warmup, WarmupInput};
use galatea_scheduler::WarmupSample;
use galatea_types::{Buffer, CorrelationId, InferRequest, Result, Tensor};

use self::{content::Content, error::field_of};
use crate::prepare;

/// The largest number of bytes of all samples of one model, and of the joined batch of one.
const MAX_BYTES: usize = 1 << 30;

/// An input of a sample whose elements are made.
#[derive(Clone, Copy)]
struct SampleInput<'a> {
    warmup: &'a Warmup,
    name: &'a str,
    input: &'a WarmupInput,
}

/// Returns the samples that the instances of a model are warmed up with.
///
/// # Errors
/// For a sample that does not fit the model, and a file that cannot be read or is too short.
pub(crate) fn samples(config: &ModelConfig, model_dir: &Path) -> Result<Vec<WarmupSample>> {
    let mut content = Content::new(config.name(), model_dir);
    config.warmups().iter().map(|warmup| sample(warmup, config, &mut content)).collect()
}

fn sample(
    warmup: &Warmup,
    config: &ModelConfig,
    content: &mut Content<'_>,
) -> Result<WarmupSample> {
    let (size, max) = (warmup.batch_size, config.max_batch_size());
    if config.has_batching() && size > max {
        // Triton's backends refuse such a batch, once for each of its requests.
        return Err(error::batch_size(warmup, config.name(), max));
    }
    let mut request = new_request(config);
    let mut added = Vec::new();
    for (name, input) in &warmup.inputs {
        let field = || field_of(warmup).field("inputs").named(&**name).field("value");
        let Some(spec) = config.model_inputs().iter().find(|spec| spec.name == *name) else {
            warn_of_unknown(name, warmup, config);
            continue;
        };
        let data = content.of(name, input, warmup)?;
        let tensor = tensor(name, input, data, config);
        if config.input(name).is_some() {
            request.inputs.push(tensor);
        } else {
            // Clients do not send it.
            prepare::check_tensor(&tensor, spec, config)
                .map_err(|e| error::about(e, warmup, field()))?;
            added.push(tensor);
        }
    }
    let request =
        prepare::prepare(request, config).map_err(|e| error::about(e, warmup, field_of(warmup)))?;
    let (name, batch_size, count) = (warmup.name.clone(), warmup.batch_size, warmup.count);
    Ok(WarmupSample { name, request, added, batch_size, count })
}

fn new_request(config: &ModelConfig) -> InferRequest {
    let request = InferRequest::new(config.name().clone());
    match config.scheduling() {
        Scheduling::Sequence(_) => InferRequest {
            correlation_id: CorrelationId::Number(1),
            sequence_start: true,
            ..request
        },
        _ => request,
    }
}

/// Warns of an unknown input. Triton passes it to the backend, which ignores it.
fn warn_of_unknown(input: &str, warmup: &Warmup, config: &ModelConfig) {
    let (model, sample) = (config.name(), &warmup.name);
    log::warn!(
        "input '{input}' of warm-up sample '{sample}' is left out: model '{model}' has no input of this name"
    );
}

fn tensor(name: &Arc<str>, input: &WarmupInput, data: Buffer, config: &ModelConfig) -> Tensor {
    let shape = if config.has_batching() { input.dims.with_leading(1) } else { input.dims.clone() };
    Tensor::new(name.clone(), input.data_type, shape, data)
}
