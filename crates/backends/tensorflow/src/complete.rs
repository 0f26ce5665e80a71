//! Fills in missing parts of a configuration, from the signature. Rules and texts are Triton's.

use galatea_backend::{
    CompletionContext, complete_scheduling, complete_tensors, declared::Subject, draft_of,
};
use galatea_config::{ConfigDraft, Diagnostic};
use galatea_types::{Code, Error, Result};

use crate::signature::{HOW_TO_BATCH, Signature, TensorInfo};

pub(crate) fn complete(
    mut config: ConfigDraft,
    signature: &Signature,
    context: &CompletionContext<'_>,
) -> Result<ConfigDraft> {
    if config.has_inputs() && config.has_outputs() && config.max_batch_size() > 0 {
        return Ok(config);
    }
    complete_batching(&mut config, signature, context)?;
    let model = context.model_name;
    let draft = |what, info: &TensorInfo, has_batching| {
        let subject = Subject::new(model, what, &info.name);
        draft_of(&subject, info, has_batching, || without_rank(model, what, info))
    };
    complete_tensors(&mut config, &signature.inputs, &signature.outputs, draft)?;
    Ok(config)
}

fn complete_batching(
    config: &mut ConfigDraft,
    signature: &Signature,
    context: &CompletionContext<'_>,
) -> Result<()> {
    let (model, items) = (context.model_name, config.max_batch_size());
    if items > 0 && !signature.declaration().can_batch() {
        let text = format!(
            "unable to autofill for '{model}', configuration specified max-batch {items} but model signature does not \
             support batching"
        );
        return Err(Diagnostic::error(text)
            .with_advice(format!("write `max_batch_size: 0`, or {HOW_TO_BATCH}"))
            .about("max_batch_size")
            .into_error(Code::Internal));
    }
    if items == 0 && signature.declaration().can_batch() && is_to_batch(config, signature, model)? {
        return context.complete_batching(config, 0);
    }
    complete_scheduling(config);
    Ok(())
}

/// Returns true if the configured tensors have no batch dimension. A `max_batch_size` of 0 may be intended, or may be
/// missing.
fn is_to_batch(config: &ConfigDraft, signature: &Signature, model: &str) -> Result<bool> {
    let raw = config.raw();
    let inputs = raw.input.iter().map(|input| (&input.name, input.dims.len(), &signature.inputs));
    let outputs =
        raw.output.iter().map(|output| (&output.name, output.dims.len(), &signature.outputs));
    let mut hint = None;
    for (name, given, infos) in inputs.chain(outputs).filter(|(_, given, _)| *given > 0) {
        let Some(info) = infos.iter().find(|info| info.name == *name) else { continue };
        let is_without = info.dims.as_ref().is_some_and(|dims| dims.len() == given + 1);
        if hint.is_some_and(|hint| hint != is_without) {
            return Err(Error::internal(format!(
                "unable to autofill for '{model}', model tensor configurations are contradicting each other in terms \
                 of whether batching is supported"
            )));
        }
        hint = Some(is_without);
    }
    Ok(hint.unwrap_or(true))
}

/// Returns the error of a tensor whose rank only a request shows.
fn without_rank(model: &str, what: &'static str, info: &TensorInfo) -> Error {
    let name = &info.name;
    let text = format!(
        "unable to autofill for '{model}': the rank of model tensor '{name}' is unknown, so that its shape cannot be"
    );
    Diagnostic::error(text)
        .about(what)
        .with_advice(format!(
            "write every {what} with its data_type and dims in config.pbtxt, or save the model with a shape for '{name}'"
        ))
        .into_error(Code::InvalidArg)
}
