//! Fills in what a configuration leaves out, from the model.

use galatea_backend::{
    CompletionContext,
    declared::{DeclaredKind, DeclaredTensor, Disagreement, Subject},
};
use galatea_config::{ConfigDraft, Diagnostic, TensorDraft};
use galatea_types::{Error, Result};

use crate::{
    ort::TensorInfo,
    settings::default_max_batch_size,
    signature::{HOW_TO_BATCH, Signature},
};

pub(crate) fn complete(
    mut config: ConfigDraft,
    signature: &Signature,
    context: &CompletionContext<'_>,
) -> Result<ConfigDraft> {
    complete_batching(&mut config, signature, context)?;
    let has_batching = config.max_batch_size() > 0;
    let tensors = |what, infos: &[TensorInfo]| -> Result<Vec<TensorDraft>> {
        infos.iter().map(|info| tensor(config.name(), what, info, has_batching)).collect()
    };
    let needed =
        |is_given, what, infos| if is_given { Ok(Vec::new()) } else { tensors(what, infos) };
    let inputs = needed(config.has_inputs(), "input", &signature.inputs)?;
    let outputs = needed(config.has_outputs(), "output", &signature.outputs)?;
    inputs.into_iter().for_each(|tensor| config.add_input(tensor));
    outputs.into_iter().for_each(|tensor| config.add_output(tensor));
    Ok(config)
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
    if config.max_batch_size() == 0 {
        config.set_max_batch_size(default_max_batch_size(context.backend_config)?);
        log::warn!(
            "autofilled max_batch_size to {} for model '{}' since batching is supported but no \
             max_batch_size is specified in model configuration. Must specify max_batch_size to utilize \
             autofill with a larger max batch size",
            config.max_batch_size(),
            config.name()
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
) -> Result<TensorDraft> {
    match info.kind() {
        DeclaredKind::Tensor(data_type) => {
            Ok(TensorDraft::of_model(&info.name, data_type, &info.dims, has_batching))
        }
        DeclaredKind::Other(kind) => {
            let of = Subject::new(model, what, &info.name);
            Err(Disagreement::UnsupportedKind { of, kind }.into())
        }
    }
}
