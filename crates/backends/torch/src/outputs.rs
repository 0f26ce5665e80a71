//! From what `forward` returned to what is split among the requests.

use galatea_backend::batching::ModelOutput;
use galatea_config::{ModelConfig, TensorSpec};
use galatea_types::{DataType, Error, Result};

use crate::torch::Output;

/// Outputs that are not as configured. Each names the model and the output.
#[derive(Debug, thiserror::Error)]
enum OutputError {
    #[error(
        "model '{model}': output '{output}' is not in the dictionary that the model returned, which has {keys}"
    )]
    NoKey {
        model: String,
        output: String,
        /// All that it has, joined.
        keys: String,
    },
    #[error(
        "model '{model}': The output {output} in the model configuration refers to an output index which doesn't \
         exist. This model has {count} outputs"
    )]
    NoPosition { model: String, output: String, count: usize },
    #[error(
        "model '{model}': configuration expects datatype {} for output '{output}', model provides {}",
        expected.config_name(),
        found.map_or("a type that no request can carry", |t| t.config_name())
    )]
    DataType { model: String, output: String, expected: DataType, found: Option<DataType> },
    #[error("model '{model}': output '{output}' is a scalar which is not supported.")]
    Scalar { model: String, output: String },
}

impl From<OutputError> for Error {
    fn from(error: OutputError) -> Self {
        Error::invalid_arg(error.to_string()).with_source(error)
    }
}

/// The outputs of the numbers `wanted`, after a check of all. `positions`: of each output of the configuration among
/// those that were returned.
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

/// By its name in a dictionary, else by its position.
fn find<'o>(
    config: &ModelConfig,
    spec: &TensorSpec,
    position: usize,
    outputs: &'o [Output],
) -> Result<&'o Output, OutputError> {
    let keys: Vec<&str> = outputs.iter().filter_map(|o| o.name.as_deref()).collect();
    if !keys.is_empty() {
        return outputs.iter().find(|o| o.name.as_deref() == Some(&*spec.name)).ok_or_else(|| {
            let (model, output) = subject(config, spec);
            OutputError::NoKey { model, output, keys: keys.join(", ") }
        });
    }
    outputs.get(position).ok_or_else(|| {
        let (model, output) = subject(config, spec);
        OutputError::NoPosition { model, output, count: outputs.len() }
    })
}

/// Names of the model and the output, for an error.
fn subject(config: &ModelConfig, spec: &TensorSpec) -> (String, String) {
    (config.name().to_string(), spec.name.to_string())
}

fn check(config: &ModelConfig, spec: &TensorSpec, output: &Output) -> Result<(), OutputError> {
    if output.data_type != Some(spec.data_type) {
        let (model, output_name) = subject(config, spec);
        return Err(OutputError::DataType {
            model,
            output: output_name,
            expected: spec.data_type,
            found: output.data_type,
        });
    }
    if output.shape.is_empty() && (config.has_batching() || spec.dims.is_variable()) {
        let (model, output) = subject(config, spec);
        return Err(OutputError::Scalar { model, output });
    }
    Ok(())
}
