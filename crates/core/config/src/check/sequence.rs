//! The sequence batcher: controls and strategy.

use std::{collections::HashSet, time::Duration};

use galatea_proto::inference::{
    ModelSequenceBatching,
    model_sequence_batching::{
        Control, StrategyChoice, StrategyDirect, StrategyOldest, control::Kind,
    },
};
use galatea_types::DataType;

use super::{
    at::{About, At},
    data_type::data_type,
    scheduling::{BatchingError, check_preferred},
};
use crate::{
    ControlKind, FalseTrue, FieldPath, SequenceBatching, SequenceControl, SequenceStrategy,
};

type Result<T> = std::result::Result<T, At<SequenceError>>;

/// What is wrong with the controls or the strategy of a sequence batcher. `kind` is a kind of control, as it is
/// written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SequenceError {
    /// A control input without a name.
    #[error("sequence batching control tensor must have a name")]
    NoControlName,
    /// Two control inputs of one name.
    #[error("sequence batching control tensor '{0}' is specified for multiple control kinds")]
    RepeatedControlName(String),
    /// Two controls of one kind.
    #[error("sequence batching specifies multiple {kind} tensors")]
    RepeatedControl {
        /// The kind.
        kind: &'static str,
    },
    /// A number that is no kind.
    #[error("sequence batching has unexpected control kind {0}")]
    UnknownControl(i32),
    /// No values for false and true.
    #[error(
        "sequence batching must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for \
         {kind}"
    )]
    NoValues {
        /// The kind.
        kind: &'static str,
    },
    /// Values of several types.
    #[error(
        "sequence batching specifies more than one from 'int32_false_true', 'fp32_false_true' and \
         'bool_false_true' for {kind}"
    )]
    SeveralValues {
        /// The kind.
        kind: &'static str,
    },
    /// Not one value for false and one for true.
    #[error("sequence batching control '{field}' must have exactly 2 entries for {kind}")]
    ValueCount {
        /// The field with the values.
        field: &'static str,
        /// The kind.
        kind: &'static str,
    },
    /// A correlation id is neither false nor true.
    #[error(
        "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' \
         for CONTROL_SEQUENCE_CORRID"
    )]
    CorrelationIdWithValues,
    /// A type no correlation id has.
    #[error("unexpected data type for control CONTROL_SEQUENCE_CORRID")]
    CorrelationIdType,
    /// A share outside 0 to 1.
    #[error("sequence batching minimum slot utilization must be in range (0.0, 1.0]")]
    SlotUtilization,
    /// The preferred batch sizes.
    #[error(transparent)]
    Batching(#[from] BatchingError),
}

impl SequenceError {
    /// What Triton adds after the model's name.
    pub(super) fn explanation(&self) -> &'static str {
        match self {
            Self::CorrelationIdType => {
                ". Allowed data types are TYPE_UINT64, TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
            }
            _ => "",
        }
    }
}

/// Everything but the states, which are checked after it.
pub(super) fn check(
    batcher: &ModelSequenceBatching,
    max_batch_size: i32,
) -> Result<SequenceBatching> {
    check_control_names(batcher)?;
    for kind in [Kind::ControlSequenceStart, Kind::ControlSequenceEnd, Kind::ControlSequenceReady] {
        if let Some((field, control)) = single_control(batcher, kind)? {
            false_true(control, kind).map_err(|error| error.inside(field))?;
        }
    }
    if let Some((field, control)) = single_control(batcher, Kind::ControlSequenceCorrid)? {
        correlation_id(control).map_err(|error| error.inside(field))?;
    }
    Ok(SequenceBatching {
        strategy: strategy(batcher, max_batch_size)?,
        max_idle: Duration::from_micros(batcher.max_sequence_idle_microseconds),
        controls: controls(batcher)?,
        states: Vec::new(),
        is_iterative: batcher.iterative_sequence,
    })
}

fn controls(batcher: &ModelSequenceBatching) -> Result<Vec<SequenceControl>> {
    let control = |(field, input, control): (FieldPath, &str, &Control)| {
        let kind = match Kind::try_from(control.kind) {
            Ok(kind @ Kind::ControlSequenceStart) => ControlKind::Start(false_true(control, kind)?),
            Ok(kind @ Kind::ControlSequenceReady) => ControlKind::Ready(false_true(control, kind)?),
            Ok(kind @ Kind::ControlSequenceEnd) => ControlKind::End(false_true(control, kind)?),
            Ok(Kind::ControlSequenceCorrid) => ControlKind::CorrelationId(correlation_id(control)?),
            Err(_) => {
                return Err(SequenceError::UnknownControl(control.kind).at(field.field("kind")));
            }
        };
        Ok(SequenceControl { input: input.into(), kind })
    };
    placed_controls(batcher).map(control).collect()
}

/// All controls, with their place and the input that they are part of.
fn placed_controls(
    batcher: &ModelSequenceBatching,
) -> impl Iterator<Item = (FieldPath, &str, &Control)> {
    batcher.control_input.iter().enumerate().flat_map(|(i, input)| {
        let field = FieldPath::from("control_input").index(i).field("control");
        let controls = input.control.iter().enumerate();
        controls.map(move |(j, control)| (field.clone().index(j), input.name.as_str(), control))
    })
}

fn check_control_names(batcher: &ModelSequenceBatching) -> Result<()> {
    let mut seen = HashSet::new();
    for (index, input) in batcher.control_input.iter().enumerate() {
        let field = FieldPath::from("control_input").index(index).field("name");
        if input.name.is_empty() {
            return Err(SequenceError::NoControlName.at(field));
        }
        if !seen.insert(&input.name) {
            return Err(SequenceError::RepeatedControlName(input.name.clone()).at(field));
        }
    }
    Ok(())
}

fn single_control(
    batcher: &ModelSequenceBatching,
    kind: Kind,
) -> Result<Option<(FieldPath, &Control)>> {
    let mut controls = placed_controls(batcher).filter(|(.., c)| c.kind == kind as i32);
    match (controls.next(), controls.next()) {
        (_, Some((field, ..))) => {
            let kind = kind.as_str_name();
            Err(SequenceError::RepeatedControl { kind }.at(field.field("kind")))
        }
        (first, None) => Ok(first.map(|(field, _, control)| (field, control))),
    }
}

fn false_true(control: &Control, kind: Kind) -> Result<FalseTrue> {
    let kind = kind.as_str_name();
    let counts = [
        ("int32_false_true", control.int32_false_true.len()),
        ("fp32_false_true", control.fp32_false_true.len()),
        ("bool_false_true", control.bool_false_true.len()),
    ];
    let given = counts.iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
    match given.as_slice() {
        [] => Err(SequenceError::NoValues { kind }.at("")),
        [(_, 2)] => Ok(pair(control)),
        [(field, _)] => {
            let field: &'static str = field;
            Err(SequenceError::ValueCount { field, kind }.at(field))
        }
        _ => Err(SequenceError::SeveralValues { kind }.at("")),
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

fn correlation_id(control: &Control) -> Result<DataType> {
    let has_values = !control.int32_false_true.is_empty()
        || !control.fp32_false_true.is_empty()
        || !control.bool_false_true.is_empty();
    if has_values {
        return Err(SequenceError::CorrelationIdWithValues.at(""));
    }
    match data_type(control.data_type) {
        Some(
            id @ (DataType::Uint64
            | DataType::Int64
            | DataType::Uint32
            | DataType::Int32
            | DataType::Bytes),
        ) => Ok(id),
        _ => Err(SequenceError::CorrelationIdType.at("data_type")),
    }
}

/// Without a choice the strategy is direct.
fn strategy(batcher: &ModelSequenceBatching, max_batch_size: i32) -> Result<SequenceStrategy> {
    let direct = match &batcher.strategy_choice {
        Some(StrategyChoice::Oldest(oldest)) => return self::oldest(oldest, max_batch_size),
        Some(StrategyChoice::Direct(direct)) => *direct,
        None => StrategyDirect::default(),
    };
    if !(0.0..=1.0).contains(&direct.minimum_slot_utilization) {
        return Err(SequenceError::SlotUtilization.at("direct.minimum_slot_utilization"));
    }
    Ok(SequenceStrategy::Direct {
        max_queue_delay: Duration::from_micros(direct.max_queue_delay_microseconds),
        minimum_slot_utilization: direct.minimum_slot_utilization,
    })
}

fn oldest(oldest: &StrategyOldest, max_batch_size: i32) -> Result<SequenceStrategy> {
    let (sizes, what) = (&oldest.preferred_batch_size, "sequence batching preferred batch");
    Ok(SequenceStrategy::Oldest {
        max_candidate_sequences: u32::try_from(oldest.max_candidate_sequences).unwrap_or_default(),
        preferred_batch_sizes: check_preferred(sizes, what, max_batch_size)
            .map_err(|error| error.widen().inside("oldest"))?,
        max_queue_delay: Duration::from_micros(oldest.max_queue_delay_microseconds),
        preserves_ordering: oldest.preserve_ordering,
    })
}
