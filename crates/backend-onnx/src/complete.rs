//! Fills in what a configuration leaves out, from the model.

use galatea_backend::CompletionContext;
use galatea_config::RawModelConfig;
use galatea_proto::inference::{
    DataType as RawDataType, ModelDynamicBatching, ModelInput, ModelOutput, ModelTensorReshape,
    model_config::SchedulingChoice,
};
use galatea_types::{DataType, Error, Result};

use crate::{
    check::unsupported_kind,
    ort::{TensorInfo, ValueKind},
    settings::default_max_batch_size,
    signature::Signature,
};

/// Whether both sides are configured already, so that the model need not be looked at.
pub(crate) fn is_complete(config: &RawModelConfig) -> bool {
    config.input.len() + config.batch_input.len() > 0 && !config.output.is_empty()
}

pub(crate) fn complete(
    mut config: RawModelConfig,
    signature: &Signature,
    context: &CompletionContext<'_>,
) -> Result<RawModelConfig> {
    complete_batching(&mut config, signature, context)?;
    let has_batching = config.max_batch_size > 0;
    let ports = |what, infos: &[TensorInfo]| -> Result<Vec<Port>> {
        infos.iter().map(|info| Port::of(&config.name, what, info, has_batching)).collect()
    };
    let inputs = ports("input", &signature.inputs)?;
    let outputs = ports("output", &signature.outputs)?;
    if config.input.len() + config.batch_input.len() == 0 {
        config.input = inputs.into_iter().map(Port::into_input).collect();
    }
    if config.output.is_empty() {
        config.output = outputs.into_iter().map(Port::into_output).collect();
    }
    Ok(config)
}

fn complete_batching(
    config: &mut RawModelConfig,
    signature: &Signature,
    context: &CompletionContext<'_>,
) -> Result<()> {
    if !signature.can_batch() {
        if config.max_batch_size == 0 {
            return Ok(());
        }
        return Err(Error::invalid_arg(format!(
            "autofill failed for model '{}': model does not support batching while non-zero \
             max_batch_size is specified",
            config.name
        )));
    }
    if config.max_batch_size == 0 {
        config.max_batch_size = default_max_batch_size(context.backend_config)?;
        log::warn!(
            "autofilled max_batch_size to {} for model '{}' since batching is supported but no \
             max_batch_size is specified in model configuration. Must specify max_batch_size to utilize \
             autofill with a larger max batch size",
            config.max_batch_size,
            config.name
        );
    }
    if config.max_batch_size > 1 && config.scheduling_choice.is_none() {
        let batching = ModelDynamicBatching::default();
        config.scheduling_choice = Some(SchedulingChoice::DynamicBatching(batching));
    }
    Ok(())
}

/// An input or output to be written into the configuration.
struct Port {
    name: String,
    data_type: i32,
    dims: Vec<i64>,
    reshape: Option<ModelTensorReshape>,
}

impl Port {
    fn of(model: &str, what: &str, info: &TensorInfo, has_batching: bool) -> Result<Self> {
        let ValueKind::Tensor(data_type) = info.kind else {
            return Err(unsupported_kind(model, what, &info.name, info.kind));
        };
        let mut dims: Vec<i64> =
            info.dims.iter().skip(usize::from(has_batching)).copied().collect();
        let mut reshape = None;
        if dims.is_empty() {
            // A configuration cannot say "no dimension": it says [1], and with a batch dimension before
            // it that the model wants it gone.
            dims.push(1);
            reshape = has_batching.then(ModelTensorReshape::default);
        }
        Ok(Self {
            name: info.name.clone(),
            data_type: raw_data_type(data_type) as i32,
            dims,
            reshape,
        })
    }

    fn into_input(self) -> ModelInput {
        let Self { name, data_type, dims, reshape } = self;
        ModelInput { name, data_type, dims, reshape, ..ModelInput::default() }
    }

    fn into_output(self) -> ModelOutput {
        let Self { name, data_type, dims, reshape } = self;
        ModelOutput { name, data_type, dims, reshape, ..ModelOutput::default() }
    }
}

fn raw_data_type(data_type: DataType) -> RawDataType {
    RawDataType::from_str_name(data_type.config_name()).unwrap_or(RawDataType::TypeInvalid)
}
