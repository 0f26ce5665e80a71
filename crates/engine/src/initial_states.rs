//! What the states of a sequence begin with.

use galatea_config::{InitialData, ModelConfig, Scheduling, SequenceState};
use galatea_types::{AlignedBlock, Error, Result, Shape, Tensor};

/// Most bytes of one state at its beginning, which all sequences share.
const MAX_BYTES: usize = 1 << 30;

/// The first value of each state, in the order of the configuration, with a batch dimension where the model has one.
///
/// # Errors
/// For a state that is too large.
pub(crate) fn make(config: &ModelConfig) -> Result<Vec<Tensor>> {
    let Scheduling::Sequence(batching) = config.scheduling() else { return Ok(Vec::new()) };
    batching.states.iter().map(|state| first_value(config, state)).collect()
}

fn first_value(config: &ModelConfig, state: &SequenceState) -> Result<Tensor> {
    let dims = match &state.initial {
        Some(initial) => initial.dims.clone(),
        // A size that any is allowed to be is 1 at first.
        None => state.dims.iter().map(|&dim| dim.max(1)).collect::<Vec<_>>().as_slice().into(),
    };
    if let Some(InitialData::File(_)) = state.initial.as_ref().map(|initial| &initial.data) {
        return Err(Error::unsupported("initial_state.data_file"));
    }
    let element = state.data_type.byte_size().unwrap_or(size_of::<u32>());
    let size = dims.element_count().and_then(|count| count.checked_mul(element));
    let size =
        size.filter(|&size| size <= MAX_BYTES).ok_or_else(|| too_large(config, state, &dims))?;
    let mut block =
        AlignedBlock::try_with_capacity(size).map_err(|_| too_large(config, state, &dims))?;
    block.extend_zeroed(size);
    let shape = if config.has_batching() { dims.with_leading(1) } else { dims };
    Ok(Tensor::new(state.input.clone(), state.data_type, shape, block.freeze()))
}

fn too_large(config: &ModelConfig, state: &SequenceState, dims: &Shape) -> Error {
    Error::invalid_arg(format!(
        "state '{}' of model '{}' is too large with its shape {dims} at the beginning of a sequence: the limit is \
         {MAX_BYTES} bytes",
        state.input,
        config.name()
    ))
}
