//! The sequence batcher (C-62 to C-66).

use std::{collections::HashSet, time::Duration};

use galatea_proto::inference::{
    ModelSequenceBatching,
    model_sequence_batching::{
        Control, InitialState as RawInitialState, State, StrategyChoice, StrategyDirect,
        StrategyOldest, control::Kind, initial_state::StateData,
    },
};
use galatea_types::{DataType, Result};

use super::{refuse, scheduling::check_preferred, tensors::data_type};
use crate::{
    ControlKind, FalseTrue, InitialData, InitialState, RawModelConfig, SequenceBatching,
    SequenceControl, SequenceState, SequenceStrategy,
};

pub(super) fn check(
    batcher: &ModelSequenceBatching,
    raw: &RawModelConfig,
) -> Result<SequenceBatching> {
    let model = &raw.name;
    check_control_names(batcher, model)?;
    for kind in [Kind::ControlSequenceStart, Kind::ControlSequenceEnd, Kind::ControlSequenceReady] {
        if let Some(control) = single_control(batcher, kind, model)? {
            false_true(control, kind, model)?;
        }
    }
    if let Some(control) = single_control(batcher, Kind::ControlSequenceCorrid, model)? {
        correlation_id(control, model)?;
    }
    Ok(SequenceBatching {
        strategy: strategy(batcher, raw)?,
        max_idle: Duration::from_micros(batcher.max_sequence_idle_microseconds),
        controls: controls(batcher, model)?,
        states: batcher.state.iter().map(|s| check_state(s, model)).collect::<Result<_>>()?,
        is_iterative: batcher.iterative_sequence,
    })
}

fn controls(batcher: &ModelSequenceBatching, model: &str) -> Result<Vec<SequenceControl>> {
    let inputs = batcher.control_input.iter();
    let controls = inputs.flat_map(|input| input.control.iter().map(move |c| (&input.name, c)));
    let control = |(input, control): (&String, &Control)| {
        let kind = match Kind::try_from(control.kind) {
            Ok(kind @ Kind::ControlSequenceStart) => {
                ControlKind::Start(false_true(control, kind, model)?)
            }
            Ok(kind @ Kind::ControlSequenceReady) => {
                ControlKind::Ready(false_true(control, kind, model)?)
            }
            Ok(kind @ Kind::ControlSequenceEnd) => {
                ControlKind::End(false_true(control, kind, model)?)
            }
            Ok(Kind::ControlSequenceCorrid) => {
                ControlKind::CorrelationId(correlation_id(control, model)?)
            }
            Err(_) => {
                return refuse(format!(
                    "sequence batching has unexpected control kind {} for {model}",
                    control.kind
                ));
            }
        };
        Ok(SequenceControl { input: input.as_str().into(), kind })
    };
    controls.map(control).collect()
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

fn false_true(control: &Control, kind: Kind, model: &str) -> Result<FalseTrue> {
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
        [(_, 2)] => Ok(pair(control)),
        [(name, _)] => refuse(format!(
            "sequence batching control '{name}' must have exactly 2 entries for {kind} for {model}"
        )),
        _ => refuse(format!(
            "sequence batching specifies more than one from 'int32_false_true', \
             'fp32_false_true' and 'bool_false_true' for {kind} for {model}"
        )),
    }
}

/// The one pair that is given.
fn pair(control: &Control) -> FalseTrue {
    match (
        control.int32_false_true.as_slice(),
        control.fp32_false_true.as_slice(),
        control.bool_false_true.as_slice(),
    ) {
        (&[off, on], _, _) => FalseTrue::Int32([off, on]),
        (_, &[off, on], _) => FalseTrue::Fp32([off, on]),
        (_, _, &[off, on]) => FalseTrue::Bool([off, on]),
        _ => FalseTrue::Bool([false, true]),
    }
}

fn correlation_id(control: &Control, model: &str) -> Result<DataType> {
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
            id @ (DataType::Uint64
            | DataType::Int64
            | DataType::Uint32
            | DataType::Int32
            | DataType::Bytes),
        ) => Ok(id),
        _ => refuse(format!(
            "unexpected data type for control {kind} for {model}. Allowed data types are \
             TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
        )),
    }
}

/// Without a choice the strategy is direct.
fn strategy(batcher: &ModelSequenceBatching, raw: &RawModelConfig) -> Result<SequenceStrategy> {
    let direct = match &batcher.strategy_choice {
        Some(StrategyChoice::Oldest(oldest)) => return self::oldest(oldest, raw),
        Some(StrategyChoice::Direct(direct)) => *direct,
        None => StrategyDirect::default(),
    };
    if !(0.0..=1.0).contains(&direct.minimum_slot_utilization) {
        return refuse(format!(
            "sequence batching minimum slot utilization must be in range (0.0, 1.0] for {}",
            raw.name
        ));
    }
    Ok(SequenceStrategy::Direct {
        max_queue_delay: Duration::from_micros(direct.max_queue_delay_microseconds),
        minimum_slot_utilization: direct.minimum_slot_utilization,
    })
}

fn oldest(oldest: &StrategyOldest, raw: &RawModelConfig) -> Result<SequenceStrategy> {
    let sizes = &oldest.preferred_batch_size;
    Ok(SequenceStrategy::Oldest {
        max_candidate_sequences: u32::try_from(oldest.max_candidate_sequences).unwrap_or_default(),
        preferred_batch_sizes: check_preferred(sizes, "sequence batching preferred batch", raw)?,
        max_queue_delay: Duration::from_micros(oldest.max_queue_delay_microseconds),
        preserves_ordering: oldest.preserve_ordering,
    })
}

/// A state may have one initial state, of its own type and dimensions and of a fixed size.
fn check_state(state: &State, model: &str) -> Result<SequenceState> {
    let name = &state.input_name;
    let initial = match state.initial_state.as_slice() {
        [] => None,
        [initial] => match initial_state_mistake(initial, state) {
            Some(mistake) => return refuse(mistake),
            None => Some(initial_state(initial)),
        },
        several => {
            return refuse(format!(
                "initial_state field for state input '{name}' must contain exactly one or zero \
                 element. Found '{}' elements.",
                several.len()
            ));
        }
    };
    let Some(data_type) = data_type(state.data_type) else {
        return refuse(format!("state for input '{name}' must specify 'data_type' for {model}"));
    };
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

fn initial_state_mistake(initial: &RawInitialState, state: &State) -> Option<String> {
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
