//! Tensors made from, or divided by, the shapes of a ragged batch.

use std::{collections::HashSet, sync::Arc};

use galatea_proto::inference::{self, DataType as RawDataType, batch_input, batch_output};
use galatea_types::DataType;

use super::at::{About, At};
use crate::{BatchInput, BatchInputKind, BatchOutput, BatchOutputKind, FieldPath, RawModelConfig};

type Result<T> = std::result::Result<T, At<BatchIoError>>;

/// What is wrong with a batch input or output. `side` is `input` or `output`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchIoError {
    /// A number that is no kind.
    #[error("unknown batch {side} kind '{kind}'")]
    UnknownKind {
        /// Input or output.
        side: &'static str,
        /// The number.
        kind: i32,
    },
    /// Every kind is about one input.
    #[error("batch {side} kind '{kind}' expects 1 source input, got {count}")]
    SourceCount {
        /// Input or output.
        side: &'static str,
        /// The kind, as it is written.
        kind: &'static str,
        /// How many there are.
        count: usize,
    },
    /// Another data type.
    #[error("batch input data type must be TYPE_INT32 or TYPE_FP32")]
    DataType,
    /// The model has no such input.
    #[error("unknown source input name '{0}'")]
    UnknownSource(String),
    /// An input of the model is filled by one rule only, and by no request then.
    #[error("target input name '{0}' can only be specified once, and is no input of requests")]
    RepeatedInput(String),
    /// The model has no such output.
    #[error("unknown target output name '{0}'")]
    UnknownTarget(String),
    /// An output is divided by one rule only.
    #[error("target output name '{0}' can only be specified once")]
    RepeatedTarget(String),
}

pub(super) fn check(raw: &RawModelConfig) -> Result<(Vec<BatchInput>, Vec<BatchOutput>)> {
    let inputs = raw.input.iter().map(|i| i.name.as_str()).collect();
    let outputs = raw.output.iter().map(|o| o.name.as_str()).collect();
    let of = |list, index| FieldPath::from(list).index(index);
    let mut taken: HashSet<&str> = raw.input.iter().map(|i| i.name.as_str()).collect();
    let batch_inputs = raw.batch_input.iter().enumerate().map(|(index, input)| {
        let checked = check_input(input, &inputs)
            .and_then(|checked| check_input_targets(input, &mut taken).map(|()| checked));
        checked.map_err(|error| error.inside(of("batch_input", index)))
    });
    let batch_inputs = batch_inputs.collect::<Result<_>>()?;
    let batch_outputs = raw.batch_output.iter().enumerate().map(|(index, output)| {
        let checked = check_output(output, &inputs, &outputs);
        checked.map_err(|error| error.inside(of("batch_output", index)))
    });
    Ok((batch_inputs, batch_outputs.collect::<Result<_>>()?))
}

fn check_input(input: &inference::BatchInput, inputs: &HashSet<&str>) -> Result<BatchInput> {
    let kind = batch_input::Kind::try_from(input.kind)
        .map_err(|_| BatchIoError::UnknownKind { side: "input", kind: input.kind }.at("kind"))?;
    let source = only_source("input", kind.as_str_name(), &input.source_input)?;
    let data_type = match RawDataType::try_from(input.data_type) {
        Ok(RawDataType::TypeInt32) => DataType::Int32,
        Ok(RawDataType::TypeFp32) => DataType::Fp32,
        _ => return Err(BatchIoError::DataType.at("data_type")),
    };
    check_source(source, inputs)?;
    Ok(BatchInput {
        kind: input_kind(kind),
        targets: names(&input.target_name),
        data_type,
        source: source.as_str().into(),
    })
}

fn input_kind(kind: batch_input::Kind) -> BatchInputKind {
    use batch_input::Kind;
    match kind {
        Kind::BatchElementCount => BatchInputKind::ElementCount,
        Kind::BatchAccumulatedElementCount => BatchInputKind::AccumulatedElementCount,
        Kind::BatchAccumulatedElementCountWithZero => {
            BatchInputKind::AccumulatedElementCountWithZero
        }
        Kind::BatchMaxElementCountAsShape => BatchInputKind::MaxElementCountAsShape,
        Kind::BatchItemShape => BatchInputKind::ItemShape,
        Kind::BatchItemShapeFlatten => BatchInputKind::ItemShapeFlatten,
    }
}

fn check_output(
    output: &inference::BatchOutput,
    inputs: &HashSet<&str>,
    outputs: &HashSet<&str>,
) -> Result<BatchOutput> {
    let kind = batch_output::Kind::try_from(output.kind)
        .map_err(|_| BatchIoError::UnknownKind { side: "output", kind: output.kind }.at("kind"))?;
    let source = only_source("output", kind.as_str_name(), &output.source_input)?;
    check_source(source, inputs)?;
    check_targets(&output.target_name, outputs)?;
    let kind = match kind {
        batch_output::Kind::BatchScatterWithInputShape => BatchOutputKind::ScatterWithInputShape,
    };
    Ok(BatchOutput { kind, targets: names(&output.target_name), source: source.as_str().into() })
}

fn names(names: &[String]) -> Vec<Arc<str>> {
    names.iter().map(|name| name.as_str().into()).collect()
}

fn only_source<'a>(
    side: &'static str,
    kind: &'static str,
    sources: &'a [String],
) -> Result<&'a String> {
    let count = sources.len();
    let [source] = sources else {
        return Err(BatchIoError::SourceCount { side, kind, count }.at("source_input"));
    };
    Ok(source)
}

fn check_source(source: &str, inputs: &HashSet<&str>) -> Result<()> {
    match inputs.contains(source) {
        true => Ok(()),
        false => Err(BatchIoError::UnknownSource(source.to_owned())
            .at(FieldPath::from("source_input").index(0))),
    }
}

fn check_input_targets<'r>(
    input: &'r inference::BatchInput,
    taken: &mut HashSet<&'r str>,
) -> Result<()> {
    let repeated = input.target_name.iter().position(|target| !taken.insert(target));
    match repeated.and_then(|index| Some((index, input.target_name.get(index)?))) {
        None => Ok(()),
        Some((index, target)) => Err(BatchIoError::RepeatedInput(target.clone())
            .at(FieldPath::from("target_name").index(index))),
    }
}

fn check_targets(targets: &[String], outputs: &HashSet<&str>) -> Result<()> {
    let mut seen = HashSet::new();
    for (index, target) in targets.iter().enumerate() {
        let field = FieldPath::from("target_name").index(index);
        if !outputs.contains(target.as_str()) {
            return Err(BatchIoError::UnknownTarget(target.clone()).at(field));
        }
        if !seen.insert(target) {
            return Err(BatchIoError::RepeatedTarget(target.clone()).at(field));
        }
    }
    Ok(())
}
