//! Checks the sequence batcher: controls and strategy.

use std::{collections::HashSet, time::Duration};

use galatea_proto::inference::{
    ModelSequenceBatching,
    model_sequence_batching::{
        Control, StrategyChoice, StrategyDirect, StrategyOldest, control::Kind,
    },
};
use galatea_types::DataType;

use super::{
    data_type,
    mistake::{Result, element_of, inside, refuse},
    scheduling::check_preferred,
};
use crate::{
    ControlKind, FalseTrue, FieldPath, RawModelConfig, SequenceBatching, SequenceControl,
    SequenceStrategy,
};

/// Checks everything but the states, which are checked after it.
pub(super) fn check(
    batcher: &ModelSequenceBatching,
    raw: &RawModelConfig,
) -> Result<SequenceBatching> {
    let model = raw.name.as_str();
    check_control_names(batcher, model)?;
    for kind in [
        Kind::ControlSequenceStart,
        Kind::ControlSequenceEnd,
        Kind::ControlSequenceReady,
        Kind::ControlSequenceCorrid,
    ] {
        if let Some((field, control)) = single_control(batcher, kind, model)? {
            control_kind(control, kind, model).map_err(inside(field))?;
        }
    }
    Ok(SequenceBatching {
        strategy: strategy(batcher, raw)?,
        max_idle: Duration::from_micros(batcher.max_sequence_idle_microseconds),
        controls: controls(batcher, model)?,
        states: Vec::new(),
        is_iterative: batcher.iterative_sequence,
    })
}

fn controls(batcher: &ModelSequenceBatching, model: &str) -> Result<Vec<SequenceControl>> {
    let control = |(field, input, control): (FieldPath, &str, &Control)| {
        let Ok(kind) = Kind::try_from(control.kind) else {
            let text = format!(
                "sequence batching has unexpected control kind {} for {model}",
                control.kind
            );
            let advice = "write `CONTROL_SEQUENCE_START`, `CONTROL_SEQUENCE_READY`, `CONTROL_SEQUENCE_END` or \
                          `CONTROL_SEQUENCE_CORRID`";
            return refuse(field.field("kind"), text, advice);
        };
        Ok(SequenceControl { input: input.into(), kind: control_kind(control, kind, model)? })
    };
    placed_controls(batcher).map(control).collect()
}

fn control_kind(control: &Control, kind: Kind, model: &str) -> Result<ControlKind> {
    let make = match kind {
        Kind::ControlSequenceStart => ControlKind::Start,
        Kind::ControlSequenceReady => ControlKind::Ready,
        Kind::ControlSequenceEnd => ControlKind::End,
        Kind::ControlSequenceCorrid => {
            return correlation_id(control, model).map(ControlKind::CorrelationId);
        }
    };
    false_true(control, kind.as_str_name(), model).map(make)
}

/// Returns all controls, each with its place and its input.
fn placed_controls(
    batcher: &ModelSequenceBatching,
) -> impl Iterator<Item = (FieldPath, &str, &Control)> {
    batcher.control_input.iter().enumerate().flat_map(|(i, input)| {
        let field = element_of("control_input", i).field("control");
        let controls = input.control.iter().enumerate();
        controls.map(move |(j, control)| (field.clone().index(j), input.name.as_str(), control))
    })
}

fn check_control_names(batcher: &ModelSequenceBatching, model: &str) -> Result<()> {
    let mut seen = HashSet::new();
    for (index, input) in batcher.control_input.iter().enumerate() {
        let (name, field) = (&input.name, element_of("control_input", index).field("name"));
        if name.is_empty() {
            let text = format!("sequence batching control tensor must have a name for {model}");
            let advice = "write `name: \"...\"`: the input of the model that takes the control";
            return refuse(field, text, advice);
        }
        if !seen.insert(name) {
            let text = format!(
                "sequence batching control tensor '{name}' is specified for multiple control kinds for {model}"
            );
            let advice =
                "list one `control_input` of that name, or give each input a name of its own";
            return refuse(field, text, advice);
        }
    }
    Ok(())
}

fn single_control<'b>(
    batcher: &'b ModelSequenceBatching,
    kind: Kind,
    model: &str,
) -> Result<Option<(FieldPath, &'b Control)>> {
    let mut controls = placed_controls(batcher).filter(|(.., c)| c.kind == kind as i32);
    match (controls.next(), controls.next()) {
        (_, Some((field, ..))) => {
            let kind = kind.as_str_name();
            let text = format!("sequence batching specifies multiple {kind} tensors for {model}");
            refuse(field.field("kind"), text, "remove all but one of them")
        }
        (first, None) => Ok(first.map(|(field, _, control)| (field, control))),
    }
}

fn false_true(control: &Control, kind: &str, model: &str) -> Result<FalseTrue> {
    let (ints, floats, bools) = values(control);
    let counts = [
        ("int32_false_true", ints.len()),
        ("fp32_false_true", floats.len()),
        ("bool_false_true", bools.len()),
    ];
    let given = counts.into_iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>();
    let (field, problem, advice) = match (given.as_slice(), ints, floats, bools) {
        ([_], &[off, on], ..) => return Ok(FalseTrue::Int32([off, on])),
        ([_], _, &[off, on], _) => return Ok(FalseTrue::Fp32([off, on])),
        ([_], .., &[off, on]) => return Ok(FalseTrue::Bool([off, on])),
        ([], ..) => (
            "",
            "must specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true'".to_owned(),
            "write for example `fp32_false_true: [ 0, 1 ]`",
        ),
        (&[(field, _)], ..) => (
            field,
            format!("control '{field}' must have exactly 2 entries"),
            "write the value for false and the one for true: `[ 0, 1 ]`",
        ),
        _ => (
            "",
            "specifies more than one from 'int32_false_true', 'fp32_false_true' and 'bool_false_true'"
                .to_owned(),
            "keep the one that has the type of the model's input",
        ),
    };
    refuse(field, format!("sequence batching {problem} for {kind} for {model}"), advice)
}

fn values(control: &Control) -> (&[i32], &[f32], &[bool]) {
    (&control.int32_false_true, &control.fp32_false_true, &control.bool_false_true)
}

fn correlation_id(control: &Control, model: &str) -> Result<DataType> {
    if !matches!(values(control), ([], [], [])) {
        let text = format!(
            "sequence batching must not specify either 'int32_false_true', 'fp32_false_true' or 'bool_false_true' for \
             CONTROL_SEQUENCE_CORRID for {model}"
        );
        return refuse("", text, "write `data_type: TYPE_UINT64` in their place");
    }
    match data_type(control.data_type) {
        Some(
            id @ (DataType::Uint64
            | DataType::Int64
            | DataType::Uint32
            | DataType::Int32
            | DataType::Bytes),
        ) => Ok(id),
        _ => {
            let text = format!(
                "unexpected data type for control CONTROL_SEQUENCE_CORRID for {model}. Allowed data types are TYPE_UINT64, \
                 TYPE_INT64, TYPE_UINT32, TYPE_INT32 and TYPE_STRING"
            );
            refuse("data_type", text, "write `data_type: TYPE_UINT64`")
        }
    }
}

/// Returns the strategy. Without a choice it is direct.
fn strategy(batcher: &ModelSequenceBatching, raw: &RawModelConfig) -> Result<SequenceStrategy> {
    let direct = match &batcher.strategy_choice {
        Some(StrategyChoice::Oldest(oldest)) => return self::oldest(oldest, raw),
        Some(StrategyChoice::Direct(direct)) => *direct,
        None => StrategyDirect::default(),
    };
    if !(0.0..=1.0).contains(&direct.minimum_slot_utilization) {
        let text = format!(
            "sequence batching minimum slot utilization must be in range (0.0, 1.0] for {}",
            raw.name
        );
        return refuse("direct.minimum_slot_utilization", text, "write a number from 0 to 1");
    }
    Ok(SequenceStrategy::Direct {
        max_queue_delay: Duration::from_micros(direct.max_queue_delay_microseconds),
        minimum_slot_utilization: direct.minimum_slot_utilization,
    })
}

fn oldest(oldest: &StrategyOldest, raw: &RawModelConfig) -> Result<SequenceStrategy> {
    let (sizes, what) = (&oldest.preferred_batch_size, "sequence batching preferred batch");
    Ok(SequenceStrategy::Oldest {
        max_candidate_sequences: u32::try_from(oldest.max_candidate_sequences).unwrap_or_default(),
        preferred_batch_sizes: check_preferred(sizes, what, raw).map_err(inside("oldest"))?,
        max_queue_delay: Duration::from_micros(oldest.max_queue_delay_microseconds),
        preserves_ordering: oldest.preserve_ordering,
    })
}
