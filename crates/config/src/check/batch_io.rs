//! Tensors made from, or cut by, the shapes of a ragged batch (C-40, C-41).

use std::collections::HashSet;

use galatea_proto::inference::{DataType, batch_input, batch_output};
use galatea_types::{Error, Result};

use super::{refuse, tensors::for_model};
use crate::RawModelConfig;

pub(super) fn check(raw: &RawModelConfig) -> Result<()> {
    let inputs = raw.input.iter().map(|i| i.name.as_str()).collect();
    let outputs = raw.output.iter().map(|o| o.name.as_str()).collect();
    let outcome = check_inputs(raw, &inputs).and_then(|()| check_outputs(raw, &inputs, &outputs));
    outcome.map_err(|e| for_model(e, &raw.name))
}

fn check_inputs(raw: &RawModelConfig, inputs: &HashSet<&str>) -> Result<()> {
    for made in &raw.batch_input {
        let kind = batch_input::Kind::try_from(made.kind)
            .map_err(|_| Error::invalid_arg(format!("unknown batch input kind '{}'", made.kind)))?;
        if made.source_input.len() != 1 {
            return refuse(format!(
                "batch input kind '{}' expects 1 source input, got {}",
                kind.as_str_name(),
                made.source_input.len()
            ));
        }
        if ![DataType::TypeInt32 as i32, DataType::TypeFp32 as i32].contains(&made.data_type) {
            return refuse("batch input data type must be TYPE_INT32 or TYPE_FP32".to_owned());
        }
        check_sources(&made.source_input, inputs)?;
    }
    Ok(())
}

fn check_outputs(
    raw: &RawModelConfig,
    inputs: &HashSet<&str>,
    outputs: &HashSet<&str>,
) -> Result<()> {
    for cut in &raw.batch_output {
        let kind = batch_output::Kind::try_from(cut.kind)
            .map_err(|_| Error::invalid_arg(format!("unknown batch output kind '{}'", cut.kind)))?;
        if cut.source_input.len() != 1 {
            return refuse(format!(
                "batch output kind '{}' expects 1 source input, got {}",
                kind.as_str_name(),
                cut.source_input.len()
            ));
        }
        check_sources(&cut.source_input, inputs)?;
        check_targets(&cut.target_name, outputs)?;
    }
    Ok(())
}

fn check_sources(sources: &[String], inputs: &HashSet<&str>) -> Result<()> {
    match sources.iter().find(|s| !inputs.contains(s.as_str())) {
        Some(source) => refuse(format!("unknown source input name '{source}'")),
        None => Ok(()),
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
