//! Fills in missing parts of a configuration, from the model.

use galatea_backend::{
    CompletionContext, complete_tensors,
    declared::{DeclaredKind, DeclaredTensor, Subject},
    draft_of,
};
use galatea_config::{ConfigDraft, Diagnostic};
use galatea_types::{Error, Result};

use crate::{
    ort::TensorInfo,
    signature::{HOW_TO_BATCH, Signature},
};

pub(crate) fn complete(
    mut config: ConfigDraft,
    signature: &Signature,
    context: &CompletionContext<'_>,
) -> Result<ConfigDraft> {
    complete_batching(&mut config, signature, context)?;
    let model = config.name().to_owned();
    let outputs = tensors_of(&signature.outputs, &model);
    let draft = |what, info: &TensorInfo, has_batching| {
        let name = &info.name;
        draft_of(&Subject::new(&model, what, name), info, has_batching, || {
            Error::invalid_arg(format!(
                "unable to autofill for '{model}': the file does not say how many dimensions {what} '{name}' has; write \
                 every {what} with its data_type and dims in config.pbtxt, or export the model with a shape for '{name}'"
            ))
        })
    };
    complete_tensors(&mut config, &signature.inputs, &outputs, draft)?;
    Ok(config)
}

/// Returns the outputs that can be served, if there are any. Others are logged.
fn tensors_of(outputs: &[TensorInfo], model: &str) -> Vec<TensorInfo> {
    let is_tensor = |info: &&TensorInfo| matches!(info.kind(), DeclaredKind::Tensor(_));
    let tensors: Vec<_> = outputs.iter().filter(is_tensor).cloned().collect();
    if tensors.is_empty() {
        return outputs.to_vec();
    }
    for left in outputs.iter().filter(|info| !is_tensor(info)) {
        if let DeclaredKind::Other(kind) = left.kind() {
            log::warn!(
                "model '{model}': output '{}' is {}, which is not supported, and is left out of the configuration",
                left.name,
                kind.description
            );
        }
    }
    tensors
}

fn complete_batching(
    config: &mut ConfigDraft,
    signature: &Signature,
    context: &CompletionContext<'_>,
) -> Result<()> {
    if !signature.declaration().can_batch() {
        if config.max_batch_size() == 0 {
            return Ok(());
        }
        let text = format!(
            "autofill failed for model '{}': model does not support batching while non-zero \
             max_batch_size is specified",
            config.name()
        );
        let advice = format!("write `max_batch_size: 0`, or {HOW_TO_BATCH}");
        let found = Diagnostic::error(&*text).with_advice(advice).about("max_batch_size");
        return Err(Error::invalid_arg(text).with_source(found));
    }
    context.complete_batching(config, 0)
}
