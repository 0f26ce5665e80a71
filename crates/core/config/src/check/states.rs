//! Checks the states of a sequence and their initial values.

use galatea_proto::inference::{
    model_config::SchedulingChoice,
    model_sequence_batching::{InitialState as RawInitialState, State, initial_state::StateData},
};

use super::{
    data_type,
    mistake::{Result, element_of, inside, refuse},
};
use crate::{InitialData, InitialState, RawModelConfig, SequenceState};

/// Returns the states of all sequences; none without a sequence batcher.
pub(super) fn check(raw: &RawModelConfig) -> Result<Vec<SequenceState>> {
    let Some(SchedulingChoice::SequenceBatching(batcher)) = &raw.scheduling_choice else {
        return Ok(Vec::new());
    };
    let states = batcher.state.iter().enumerate();
    let checked = states.map(|(index, state)| {
        check_one(state).map_err(inside(element_of("sequence_batching.state", index)))
    });
    checked.collect()
}

/// Checks a state. It may have one initial state, of its own type and dimensions and of a fixed size.
fn check_one(state: &State) -> Result<SequenceState> {
    let input = &state.input_name;
    let initial = match state.initial_state.as_slice() {
        [] => None,
        [initial] => {
            let checked = check_initial(initial, state);
            Some(checked.map_err(inside(element_of("initial_state", 0)))?)
        }
        several => {
            let text = format!(
                "initial_state field for state input '{input}' must contain exactly one or zero element. Found '{}' \
                 elements.",
                several.len()
            );
            return refuse(element_of("initial_state", 1), text, "remove all but one of them");
        }
    };
    let Some(data_type) = data_type(state.data_type) else {
        let text = format!("state for input '{input}' must specify 'data_type'");
        return refuse("data_type", text, "write its type, for example `data_type: TYPE_FP32`");
    };
    Ok(SequenceState {
        input: input.as_str().into(),
        output: state.output_name.as_str().into(),
        data_type,
        dims: state.dims.as_slice().into(),
        initial,
        uses_same_buffer: state.use_same_buffer_for_input_output,
    })
}

fn check_initial(initial: &RawInitialState, state: &State) -> Result<InitialState> {
    let (input, dims, state_dims) = (&state.input_name, &initial.dims, &state.dims);
    if initial.data_type != state.data_type {
        let text = format!(
            "The data type used for 'initial_state' field of state '{input}' does not match the state data type."
        );
        let advice = "write the same `data_type` in `state` and `initial_state`";
        return refuse("data_type", text, advice);
    }
    if initial.name.is_empty() {
        let text =
            format!("Field 'name' must be set when using initial_state for state input '{input}'.");
        return refuse("name", text, "write `name: \"...\"`");
    }
    let as_state = "write the dimensions of the state, with a size for each -1";
    if dims.len() != state_dims.len() {
        let text = format!(
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input \
             '{input}'. {} != {}",
            dims.len(),
            state_dims.len()
        );
        return refuse("dims", text, as_state);
    }
    if dims.contains(&-1) {
        let text = format!(
            "'initial_state' field for state input name '{input}' contains variable dimensions."
        );
        return refuse("dims", text, "replace each -1 by a size");
    }
    if let Some((i, s)) = dims.iter().zip(state_dims).find(|&(i, s)| *s != -1 && i != s) {
        let text = format!(
            "'initial_state' dim for input name '{input}' doesn't match 'state' dim description. {i} != {s}"
        );
        return refuse("dims", text, as_state);
    }
    let data = match &initial.state_data {
        Some(StateData::DataFile(file)) => InitialData::File(file.clone()),
        Some(StateData::ZeroData(_)) => InitialData::Zeros,
        None => {
            let text =
                format!("initial_state setting expects state'{input}' to have state_data set");
            return refuse("", text, "write `zero_data: true`, or `data_file: \"...\"`");
        }
    };
    Ok(InitialState { name: initial.name.clone(), dims: dims.as_slice().into(), data })
}
