//! Fills in what a configuration leaves out, from the model. Rules and texts are Triton's.

use galatea_backend::{CompletionContext, complete_tensors};
use galatea_config::{ConfigDraft, TensorDraft};
use galatea_types::Result;

use crate::{load_error::LoadError, openvino::TensorInfo, signature::Signature};

/// `can_batch`: the model's layouts say so. Many files have none.
pub(crate) fn complete(
    mut config: ConfigDraft,
    signature: &Signature,
    can_batch: bool,
    context: &CompletionContext<'_>,
) -> Result<ConfigDraft> {
    signature.check_names(context.model_name)?;
    complete_batching(&mut config, can_batch, context)?;
    let draft = |what, info: &_, has_batching| tensor(context.model_name, what, info, has_batching);
    complete_tensors(&mut config, (&signature.inputs, &signature.outputs), draft)?;
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
    context.complete_batching(config, 1)
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
