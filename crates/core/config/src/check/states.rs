//! The states of a sequence, and what they begin with.

use galatea_proto::inference::model_sequence_batching::{
    InitialState as RawInitialState, State, initial_state::StateData,
};

use super::{
    at::{About, At},
    data_type::data_type,
};
use crate::{FieldPath, InitialData, InitialState, SequenceState};

type Result<T> = std::result::Result<T, At<StateError>>;

/// What is wrong with a state of sequences. `input` is the input that takes the state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// No data type.
    #[error("state for input '{input}' must specify 'data_type'")]
    NoDataType {
        /// The state's input.
        input: String,
    },
    /// More than one initial state.
    #[error(
        "initial_state field for state input '{input}' must contain exactly one or zero element. Found \
         '{count}' elements."
    )]
    SeveralInitialStates {
        /// The state's input.
        input: String,
        /// How many there are.
        count: usize,
    },
    /// The initial state has another type.
    #[error(
        "The data type used for 'initial_state' field of state '{input}' does not match the state data type."
    )]
    OtherDataType {
        /// The state's input.
        input: String,
    },
    /// The initial state has no name.
    #[error("Field 'name' must be set when using initial_state for state input '{input}'.")]
    NoName {
        /// The state's input.
        input: String,
    },
    /// The initial state has another number of dimensions.
    #[error(
        "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions for state input \
         '{input}'. {initial} != {state}"
    )]
    OtherRank {
        /// The state's input.
        input: String,
        /// Dimensions of the initial state.
        initial: usize,
        /// Dimensions of the state.
        state: usize,
    },
    /// The initial state must have a size.
    #[error("'initial_state' field for state input name '{input}' contains variable dimensions.")]
    Variable {
        /// The state's input.
        input: String,
    },
    /// A dimension of the initial state is another.
    #[error(
        "'initial_state' dim for input name '{input}' doesn't match 'state' dim description. {initial} != {state}"
    )]
    OtherDimension {
        /// The state's input.
        input: String,
        /// The dimension of the initial state.
        initial: i64,
        /// The dimension of the state.
        state: i64,
    },
    /// The initial state has no data.
    #[error("initial_state setting expects state'{input}' to have state_data set")]
    NoData {
        /// The state's input.
        input: String,
    },
}

/// A state may have one initial state, of its own type and dimensions and of a fixed size.
pub(super) fn check(state: &State) -> Result<SequenceState> {
    let name = &state.input_name;
    let initial = match state.initial_state.as_slice() {
        [] => None,
        [initial] => {
            let field = FieldPath::from("initial_state").index(0);
            check_initial(initial, state).map_err(|error| error.inside(field))?;
            Some(initial_state(initial))
        }
        several => {
            let (input, count) = (name.clone(), several.len());
            return Err(StateError::SeveralInitialStates { input, count }
                .at(FieldPath::from("initial_state").index(1)));
        }
    };
    let data_type = data_type(state.data_type);
    let data_type =
        data_type.ok_or_else(|| StateError::NoDataType { input: name.clone() }.at("data_type"))?;
    Ok(SequenceState {
        input: name.as_str().into(),
        output: state.output_name.as_str().into(),
        data_type,
        dims: state.dims.as_slice().into(),
        initial,
        uses_same_buffer: state.use_same_buffer_for_input_output,
        uses_growable_memory: state.use_growable_memory,
    })
}

fn initial_state(initial: &RawInitialState) -> InitialState {
    InitialState {
        name: initial.name.clone(),
        dims: initial.dims.as_slice().into(),
        data: match &initial.state_data {
            Some(StateData::DataFile(file)) => InitialData::File(file.clone()),
            Some(StateData::ZeroData(_)) | None => InitialData::Zeros,
        },
    }
}

fn check_initial(initial: &RawInitialState, state: &State) -> Result<()> {
    let input = || state.input_name.clone();
    let (dims, state_dims) = (&initial.dims, &state.dims);
    if initial.data_type != state.data_type {
        return Err(StateError::OtherDataType { input: input() }.at("data_type"));
    }
    if initial.name.is_empty() {
        return Err(StateError::NoName { input: input() }.at("name"));
    }
    if dims.len() != state_dims.len() {
        let (initial, state) = (dims.len(), state_dims.len());
        return Err(StateError::OtherRank { input: input(), initial, state }.at("dims"));
    }
    if dims.contains(&-1) {
        return Err(StateError::Variable { input: input() }.at("dims"));
    }
    if let Some((&initial, &state)) = dims.iter().zip(state_dims).find(|&(i, s)| *s != -1 && i != s)
    {
        return Err(StateError::OtherDimension { input: input(), initial, state }.at("dims"));
    }
    match initial.state_data {
        Some(_) => Ok(()),
        None => Err(StateError::NoData { input: input() }.at("")),
    }
}
