//! Fills in missing parts of a configuration, from the model. Rules and texts are Triton's.

use galatea_backend::{CompletionContext, complete_tensors, misconfigured};
use galatea_config::{ConfigDraft, FieldPath, TensorDraft};
use galatea_types::{Code, Result};

use crate::{
    openvino::TensorInfo,
    signature::{Signature, other_elements},
};

/// Completes a configuration. `can_batch`: the model's layouts have a batch. Many files have no layouts.
pub(crate) fn complete(
    mut config: ConfigDraft,
    signature: &Signature,
    can_batch: bool,
    context: &CompletionContext<'_>,
) -> Result<ConfigDraft> {
    signature.check_names(context.model_name)?;
    if can_batch {
        context.complete_batching(&mut config, 1)?;
    } else if config.max_batch_size() > 0 {
        log::warn!(
            "model layout for model {} does not support batching while non-zero max_batch_size is specified",
            context.model_name
        );
    }
    let draft = |what, info: &_, has_batching| tensor(context.model_name, what, info, has_batching);
    complete_tensors(&mut config, &signature.inputs, &signature.outputs, draft)?;
    Ok(config)
}

/// Returns an input or output for the configuration.
fn tensor(
    model: &str,
    what: &'static str,
    info: &TensorInfo,
    has_batching: bool,
) -> Result<TensorDraft> {
    let data_type = info.data_type.ok_or_else(|| other_elements(model, what, &info.name))?;
    let dims = info.dims.as_ref().ok_or_else(|| {
        let name = &info.name;
        let text = format!(
            "model '{model}', {what} '{name}' leaves the number of its dimensions open: the configuration must list them"
        );
        let field = FieldPath::from(what).named(name).field("dims");
        let advice = "list inputs and outputs with their `dims` in config.pbtxt";
        misconfigured(Code::InvalidArg, text, field, advice)
    })?;
    Ok(TensorDraft::of_model(&info.name, data_type, dims, has_batching))
}
