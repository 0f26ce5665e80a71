//! Tensors made from, or cut by, the shapes of a ragged batch (C-40, C-41).

use std::{collections::HashSet, sync::Arc};

use galatea_proto::inference::{self, DataType as RawDataType, batch_input, batch_output};
use galatea_types::{DataType, Error, Result};

use super::{refuse, tensors::for_model};
use crate::{BatchInput, BatchInputKind, BatchOutput, BatchOutputKind, RawModelConfig};

pub(super) fn check(raw: &RawModelConfig) -> Result<(Vec<BatchInput>, Vec<BatchOutput>)> {
    let inputs = raw.input.iter().map(|i| i.name.as_str()).collect();
    let outputs = raw.output.iter().map(|o| o.name.as_str()).collect();
    let check = || {
        let made = raw.batch_input.iter().map(|made| check_input(made, &inputs));
        let made = made.collect::<Result<_>>()?;
        let cut = raw.batch_output.iter().map(|cut| check_output(cut, &inputs, &outputs));
        Ok((made, cut.collect::<Result<_>>()?))
    };
    check().map_err(|e| for_model(e, &raw.name))
}

fn check_input(made: &inference::BatchInput, inputs: &HashSet<&str>) -> Result<BatchInput> {
    let kind = batch_input::Kind::try_from(made.kind)
        .map_err(|_| Error::invalid_arg(format!("unknown batch input kind '{}'", made.kind)))?;
    let [source] = made.source_input.as_slice() else {
        return refuse(format!(
            "batch input kind '{}' expects 1 source input, got {}",
            kind.as_str_name(),
            made.source_input.len()
        ));
    };
    let data_type = match RawDataType::try_from(made.data_type) {
        Ok(RawDataType::TypeInt32) => DataType::Int32,
        Ok(RawDataType::TypeFp32) => DataType::Fp32,
        _ => return refuse("batch input data type must be TYPE_INT32 or TYPE_FP32".to_owned()),
    };
    check_source(source, inputs)?;
    Ok(BatchInput {
        kind: input_kind(kind),
        targets: names(&made.target_name),
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
    cut: &inference::BatchOutput,
    inputs: &HashSet<&str>,
    outputs: &HashSet<&str>,
) -> Result<BatchOutput> {
    let kind = batch_output::Kind::try_from(cut.kind)
        .map_err(|_| Error::invalid_arg(format!("unknown batch output kind '{}'", cut.kind)))?;
    let [source] = cut.source_input.as_slice() else {
        return refuse(format!(
            "batch output kind '{}' expects 1 source input, got {}",
            kind.as_str_name(),
            cut.source_input.len()
        ));
    };
    check_source(source, inputs)?;
    check_targets(&cut.target_name, outputs)?;
    let kind = match kind {
        batch_output::Kind::BatchScatterWithInputShape => BatchOutputKind::ScatterWithInputShape,
    };
    Ok(BatchOutput { kind, targets: names(&cut.target_name), source: source.as_str().into() })
}

fn names(names: &[String]) -> Vec<Arc<str>> {
    names.iter().map(|name| name.as_str().into()).collect()
}

fn check_source(source: &str, inputs: &HashSet<&str>) -> Result<()> {
    match inputs.contains(source) {
        true => Ok(()),
        false => refuse(format!("unknown source input name '{source}'")),
    }
}

fn check_targets(targets: &[String], outputs: &HashSet<&str>) -> Result<()> {
    let mut seen = HashSet::new();
    for target in targets {
        if !outputs.contains(target.as_str()) {
            return refuse(format!("unknown target output name '{target}'"));
        }
        if !seen.insert(target) {
            return refuse(format!("target output name '{target}' can only be specified once"));
        }
    }
    Ok(())
}
