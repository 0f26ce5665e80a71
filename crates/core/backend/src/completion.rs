//! Rules by which backends complete configurations.

use galatea_config::{ConfigDraft, TensorDraft};
use galatea_types::{Error, Result};

use crate::{
    CompletionContext, Settings,
    declared::{DeclaredKind, DeclaredTensor, Subject},
};

impl CompletionContext<'_> {
    /// Enables batching if the model can batch and the configuration names no batch size. The batch size is
    /// `default-max-batch-size` of the command line, 4 without it, and at least `least`.
    ///
    /// # Errors
    /// The setting is not a number.
    pub fn complete_batching(&self, config: &mut ConfigDraft, least: i32) -> Result<()> {
        if config.max_batch_size() == 0 {
            let settings = Settings::of(self.backend_config);
            let default: Option<i32> = settings.number("default-max-batch-size")?;
            config.set_max_batch_size(default.unwrap_or(4).max(least));
            log::warn!(
                "autofilled max_batch_size to {} for model '{}' since batching is supported but no max_batch_size is \
                 specified in model configuration. Must specify max_batch_size to utilize autofill with a larger max \
                 batch size",
                config.max_batch_size(),
                self.model_name
            );
        }
        complete_scheduling(config);
        Ok(())
    }
}

/// Enables dynamic batching for a configuration with batches.
pub fn complete_scheduling(config: &mut ConfigDraft) {
    if config.max_batch_size() > 1 {
        config.default_to_dynamic_batching();
    }
}

/// Adds a model's inputs and outputs that the configuration leaves out. `draft` makes each from its kind (`input` or
/// `output`), its declaration and a flag that says if the model batches.
///
/// # Errors
/// Those of `draft`.
pub fn complete_tensors<T, E>(
    config: &mut ConfigDraft,
    inputs: &[T],
    outputs: &[T],
    draft: impl Fn(&'static str, &T, bool) -> Result<TensorDraft, E>,
) -> Result<(), E> {
    let has_batching = config.max_batch_size() > 0;
    if !config.has_inputs() {
        for input in inputs {
            config.add_input(draft("input", input, has_batching)?);
        }
    }
    if !config.has_outputs() {
        for output in outputs {
            config.add_output(draft("output", output, has_batching)?);
        }
    }
    Ok(())
}

/// Makes an input or output for a configuration from its declaration. `without_rank` makes the error of a tensor whose number of
/// dimensions is open.
///
/// # Errors
/// Those of `without_rank`, and the error of a tensor that requests cannot carry.
pub fn draft_of<T: DeclaredTensor>(
    subject: &Subject,
    tensor: &T,
    has_batching: bool,
    without_rank: impl FnOnce() -> Error,
) -> Result<TensorDraft> {
    match tensor.kind() {
        DeclaredKind::Tensor(data_type) => {
            let dims = tensor.dims().ok_or_else(without_rank)?;
            Ok(TensorDraft::of_model(&subject.name, data_type, dims, has_batching))
        }
        DeclaredKind::Other(kind) => Err(subject.unsupported(&kind)),
    }
}

/// Returns true if the configuration has inputs and outputs, and logs that nothing must be completed.
pub fn has_all_tensors(config: &ConfigDraft) -> bool {
    let has_all = config.has_inputs() && config.has_outputs();
    if has_all {
        log::info!(
            "skipping model configuration auto-complete for '{}': inputs and outputs already specified",
            config.name()
        );
    }
    has_all
}
