//! Tensors made from, or divided by, the shapes of a ragged batch.

use std::{collections::HashSet, sync::Arc};

use galatea_proto::inference::{self, DataType as RawDataType, batch_input, batch_output};
use galatea_types::DataType;

use super::mistake::{Result, element_of, inside, meant, refuse};
use crate::{BatchInput, BatchInputKind, BatchOutput, BatchOutputKind, RawModelConfig};

pub(super) fn check(raw: &RawModelConfig) -> Result<(Vec<BatchInput>, Vec<BatchOutput>)> {
    let mut taken: HashSet<&str> = input_names(raw).collect();
    let batch_inputs = raw.batch_input.iter().enumerate().map(|(index, input)| {
        check_input(input, raw, &mut taken).map_err(inside(element_of("batch_input", index)))
    });
    let batch_inputs = batch_inputs.collect::<Result<_>>()?;
    let batch_outputs = raw.batch_output.iter().enumerate().map(|(index, output)| {
        check_output(output, raw).map_err(inside(element_of("batch_output", index)))
    });
    Ok((batch_inputs, batch_outputs.collect::<Result<_>>()?))
}

fn input_names(raw: &RawModelConfig) -> impl Iterator<Item = &str> {
    raw.input.iter().map(|input| input.name.as_str())
}

/// Checks an input. Only one rule may fill it, and requests may not. `taken` are the inputs that are filled already.
fn check_input<'r>(
    input: &'r inference::BatchInput,
    raw: &RawModelConfig,
    taken: &mut HashSet<&'r str>,
) -> Result<BatchInput> {
    let model = &raw.name;
    let kind = batch_input::Kind::try_from(input.kind);
    let kind = kind.or_else(|_| unknown_kind("input", input.kind, raw))?;
    let source = only_source("input", kind.as_str_name(), &input.source_input, raw)?;
    let data_type = match RawDataType::try_from(input.data_type) {
        Ok(RawDataType::TypeInt32) => DataType::Int32,
        Ok(RawDataType::TypeFp32) => DataType::Fp32,
        _ => {
            let text = format!("batch input data type must be TYPE_INT32 or TYPE_FP32 for {model}");
            let advice = "write `data_type: TYPE_FP32` or `data_type: TYPE_INT32`";
            return refuse("data_type", text, advice);
        }
    };
    check_source(source, raw)?;
    for (index, target) in input.target_name.iter().enumerate() {
        if !taken.insert(target) {
            let text = format!(
                "target input name '{target}' can only be specified once, and is not an input of requests for {model}"
            );
            return refuse(element_of("target_name", index), text, "remove one of them");
        }
    }
    Ok(BatchInput {
        kind: input_kind(kind),
        targets: names(&input.target_name),
        data_type,
        source: source.into(),
    })
}

fn unknown_kind<T>(side: &str, kind: i32, raw: &RawModelConfig) -> Result<T> {
    let text = format!("unknown batch {side} kind '{kind}' for {}", raw.name);
    refuse("kind", text, "write a kind by its name, for example `BATCH_ELEMENT_COUNT`")
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

fn check_output(output: &inference::BatchOutput, raw: &RawModelConfig) -> Result<BatchOutput> {
    let kind = batch_output::Kind::try_from(output.kind);
    let kind = kind.or_else(|_| unknown_kind("output", output.kind, raw))?;
    let source = only_source("output", kind.as_str_name(), &output.source_input, raw)?;
    check_source(source, raw)?;
    check_targets(&output.target_name, raw)?;
    let kind = match kind {
        batch_output::Kind::BatchScatterWithInputShape => BatchOutputKind::ScatterWithInputShape,
    };
    Ok(BatchOutput { kind, targets: names(&output.target_name), source: source.into() })
}

fn names(names: &[String]) -> Vec<Arc<str>> {
    names.iter().map(|name| name.as_str().into()).collect()
}

fn only_source<'a>(
    side: &str,
    kind: &str,
    sources: &'a [String],
    raw: &RawModelConfig,
) -> Result<&'a str> {
    let [source] = sources else {
        let (count, model) = (sources.len(), &raw.name);
        let text =
            format!("batch {side} kind '{kind}' expects 1 source input, got {count} for {model}");
        return refuse("source_input", text, "name one input of the model in `source_input`");
    };
    Ok(source)
}

fn check_source(source: &str, raw: &RawModelConfig) -> Result<()> {
    if input_names(raw).any(|input| input == source) {
        return Ok(());
    }
    let text = format!("unknown source input name '{source}' for {}", raw.name);
    refuse(element_of("source_input", 0), text, nearest("input", source, input_names(raw)))
}

/// Checks that only one rule divides each output.
fn check_targets(targets: &[String], raw: &RawModelConfig) -> Result<()> {
    let outputs = || raw.output.iter().map(|output| output.name.as_str());
    let mut seen = HashSet::new();
    for (index, target) in targets.iter().enumerate() {
        let field = element_of("target_name", index);
        if !outputs().any(|output| output == target) {
            let text = format!("unknown target output name '{target}' for {}", raw.name);
            return refuse(field, text, nearest("output", target, outputs()));
        }
        if !seen.insert(target) {
            let text = format!(
                "target output name '{target}' can only be specified once for {}",
                raw.name
            );
            return refuse(field, text, "remove one of them");
        }
    }
    Ok(())
}

fn nearest<'a>(side: &str, name: &str, known: impl Iterator<Item = &'a str>) -> String {
    let known: Vec<_> = known.filter(|known| !known.is_empty()).collect();
    meant(name, &known, |listed| match listed.is_empty() {
        true => listed,
        false => format!("the model has {side} {listed}"),
    })
}
