//! The sequence batcher (C-62 to C-66).

use std::collections::HashSet;

use galatea_proto::inference::{
    ModelSequenceBatching,
    model_sequence_batching::{Control, InitialState, State, StrategyChoice, control::Kind},
};
use galatea_types::{DataType, Result};

use super::{refuse, scheduling::check_preferred, tensors::data_type};
use crate::RawModelConfig;

pub(super) fn check(batcher: &ModelSequenceBatching, raw: &RawModelConfig) -> Result<()> {
    let model = &raw.name;
    check_control_names(batcher, model)?;
    for kind in [Kind::ControlSequenceStart, Kind::ControlSequenceEnd, Kind::ControlSequenceReady] {
        if let Some(control) = single_control(batcher, kind, model)? {
            check_boolean(control, kind, model)?;
        }
    }
    if let Some(control) = single_control(batcher, Kind::ControlSequenceCorrid, model)? {
        check_correlation_id(control, model)?;
    }
    check_strategy(batcher, raw)?;
    batcher.state.iter().try_for_each(check_state)
}

fn check_control_names(batcher: &ModelSequenceBatching, model: &str) -> Result<()> {
    let mut seen = HashSet::new();
    for input in &batcher.control_input {
        if input.name.is_empty() {
            return refuse(format!(
                "sequence batching control tensor must have a name for {model}"
            ));
        }
        if !seen.insert(&input.name) {
            return refuse(format!(
                "sequence batching control tensor '{}' is specified for multiple control kinds \
                 for {model}",
                input.name
            ));
        }
    }
    Ok(())
}

fn single_control<'a>(
    batcher: &'a ModelSequenceBatching,
    kind: Kind,
    model: &str,
) -> Result<Option<&'a Control>> {
    let controls = batcher.control_input.iter().flat_map(|i| &i.control);
    let mut controls = controls.filter(|c| c.kind == kind as i32);
    match (controls.next(), controls.next()) {
        (_, Some(_)) => refuse(format!(
            "sequence batching specifies multiple {} tensors for {model}",
            kind.as_str_name()
        )),
        (control, None) => Ok(control),
    }
}

fn check_boolean(control: &Control, kind: Kind, model: &str) -> Result<()> {
    let kind = kind.as_str_name();
    let counts = [
        ("int32_false_true", control.int32_false_true.len()),
        ("fp32_false_true", control.fp32_false_true.len()),
        ("bool_false_true", control.bool_false_true.len()),
    ];
    let given = counts.iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
    match given.as_slice() {
        [] => refuse(format!(
            "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or \
             'bool_false_true' for {kind} for {model}"
        )),
        [(_, 2)] => Ok(()),
        [(name, _)] => refuse(format!(
            "sequence batching control '{name}' must have exactly 2 entries for {kind} for {model}"
        )),
        _ => refuse(format!(
            "sequence batching specifies more than one from 'int32_false_true', \
             'fp32_false_true' and 'bool_false_true' for {kind} for {model}"
        )),
    }
}

fn check_correlation_id(control: &Control, model: &str) -> Result<()> {
    let kind = Kind::ControlSequenceCorrid.as_str_name();
    let has_values = !control.int32_false_true.is_empty()
        || !control.fp32_false_true.is_empty()
        || !control.bool_false_true.is_empty();
    if has_values {
        return refuse(format!(
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or \
             'bool_false_true' for {kind} for {model}"
        ));
    }
    match data_type(control.data_type) {
        Some(
            DataType::Uint64
            | DataType::Int64
            | DataType::Uint32
            | DataType::Int32
            | DataType::Bytes,
        ) => Ok(()),
        _ => refuse(format!(
            "unexpected data type for control {kind} for {model}. Allowed data types are \
             TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
        )),
    }
}

fn check_strategy(batcher: &ModelSequenceBatching, raw: &RawModelConfig) -> Result<()> {
    match &batcher.strategy_choice {
        Some(StrategyChoice::Oldest(oldest)) => {
            let sizes = &oldest.preferred_batch_size;
            check_preferred(sizes, "sequence batching preferred batch", raw).map(drop)
        }
        Some(StrategyChoice::Direct(direct))
            if !(0.0..=1.0).contains(&direct.minimum_slot_utilization) =>
        {
            refuse(format!(
                "sequence batching minimum slot utilization must be in range (0.0, 1.0] for {}",
                raw.name
            ))
        }
        _ => Ok(()),
    }
}

/// A state may have one initial state, of its own type and dimensions and of a fixed size.
fn check_state(state: &State) -> Result<()> {
    let name = &state.input_name;
    let mistake = match state.initial_state.as_slice() {
        [] => None,
        [initial] => initial_state_mistake(initial, state),
        several => Some(format!(
            "initial_state field for state input '{name}' must contain exactly one or zero element. \
             Found '{}' elements.",
            several.len()
        )),
    };
    mistake.map_or(Ok(()), refuse)
}

fn initial_state_mistake(initial: &InitialState, state: &State) -> Option<String> {
    let name = &state.input_name;
    let (dims, state_dims) = (&initial.dims, &state.dims);
    if initial.data_type != state.data_type {
        return Some(format!(
            "The data type used for 'initial_state' field of state '{name}' does not match the state \
             data type."
        ));
    }
    if initial.name.is_empty() {
        return Some(format!(
            "Field 'name' must be set when using initial_state for state input '{name}'."
        ));
    }
    if dims.len() != state_dims.len() {
        return Some(format!(
            "Number of dimensions in 'initial_state' doesn't match the size of 'state' dimensions \
             for state input '{name}'. {} != {}",
            dims.len(),
            state_dims.len()
        ));
    }
    if dims.contains(&-1) {
        return Some(format!(
            "'initial_state' field for state input name '{name}' contains variable dimensions."
        ));
    }
    if let Some((i, s)) = dims.iter().zip(state_dims).find(|&(i, s)| *s != -1 && i != s) {
        return Some(format!(
            "'initial_state' dim for input name '{name}' doesn't match 'state' dim description. \
             {i} != {s}"
        ));
    }
    initial
        .state_data
        .is_none()
        .then(|| format!("initial_state setting expects state'{name}' to have state_data set"))
}
