//! Fills in what a configuration leaves out, from the model. Rules and texts are Triton's.

use galatea_backend::CompletionContext;
use galatea_config::{ConfigDraft, TensorDraft};
use galatea_types::Result;

use crate::{
    load_error::LoadError, openvino::TensorInfo, settings::default_max_batch_size,
    signature::Signature,
};

/// `can_batch`: the model's layouts say so. Many files have none.
pub(crate) fn complete(
    mut config: ConfigDraft,
    signature: &Signature,
    can_batch: bool,
    context: &CompletionContext<'_>,
) -> Result<ConfigDraft> {
    signature.check_names(context.model_name)?;
    complete_batching(&mut config, can_batch, context)?;
    let has_batching = config.max_batch_size() > 0;
    let tensors = |what, infos: &[TensorInfo]| -> Result<Vec<TensorDraft>> {
        let draft = |info| tensor(context.model_name, what, info, has_batching);
        Ok(infos.iter().map(draft).collect::<Result<_, LoadError>>()?)
    };
    if !config.has_inputs() {
        let inputs = tensors("input", &signature.inputs)?;
        inputs.into_iter().for_each(|tensor| config.add_input(tensor));
    }
    if !config.has_outputs() {
        let outputs = tensors("output", &signature.outputs)?;
        outputs.into_iter().for_each(|tensor| config.add_output(tensor));
    }
    Ok(config)
}

fn complete_batching(
    config: &mut ConfigDraft,
    can_batch: bool,
    context: &CompletionContext<'_>,
) -> Result<()> {
    let model = context.model_name;
    if !can_batch {
        if config.max_batch_size() > 0 {
            log::warn!(
                "model layout for model {model} does not support batching while non-zero max_batch_size is specified"
            );
        }
        return Ok(());
    }
    if config.max_batch_size() == 0 {
        config.set_max_batch_size(default_max_batch_size(context.backend_config)?);
        log::warn!(
            "autofilled max_batch_size to {} for model '{model}' since batching is supported but no \
             max_batch_size is specified in model configuration. Must specify max_batch_size to utilize \
             autofill with a larger max batch size",
            config.max_batch_size()
        );
    }
    if config.max_batch_size() > 1 {
        config.default_to_dynamic_batching();
    }
    Ok(())
}

/// An input or output as the configuration is to have it.
fn tensor(
    model: &str,
    what: &'static str,
    info: &TensorInfo,
    has_batching: bool,
) -> Result<TensorDraft, LoadError> {
    let names = || (model.to_owned(), info.name.clone());
    let Some(data_type) = info.data_type else {
        let (model, name) = names();
        return Err(LoadError::ElementType { model, what, name });
    };
    let Some(dims) = &info.dims else {
        let (model, name) = names();
        return Err(LoadError::OpenRank { model, what, name });
    };
    Ok(TensorDraft::of_model(&info.name, data_type, dims, has_batching))
}
