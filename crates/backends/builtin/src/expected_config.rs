//! Checks a configuration against the one that a decoupled model requires.

use galatea_config::{FieldPath, ModelConfig, TensorSpec};
use galatea_types::{DataType, Result};

use crate::accumulate::unfit;

/// A tensor that the model requires: name, type, and true if it has one element.
type ExpectedTensor = (&'static str, DataType, bool);

pub(crate) fn check_decoupled(config: &ModelConfig) -> Result<()> {
    if config.is_decoupled() {
        return Ok(());
    }
    let (model, backend) = (config.name(), config.backend());
    let text = format!(
        "model '{model}' of backend '{backend}' needs model_transaction_policy {{ decoupled: true }}"
    );
    let advice = "write `model_transaction_policy { decoupled: true }`";
    Err(unfit(&text, "model_transaction_policy", advice))
}

/// Checks that the configuration has exactly these tensors, in this order. Texts are Triton's.
pub(crate) fn check_tensors(
    kind: &'static str,
    specs: &[TensorSpec],
    expected: &[ExpectedTensor],
) -> Result<()> {
    let (count, wanted) = (specs.len(), expected.len());
    if count != wanted {
        let plural = if wanted == 1 { "" } else { "s" };
        let text = format!("expected {wanted} {kind}{plural}, got {count}");
        let advice = format!("list {wanted}: the backend is made for just these");
        return Err(unfit(&text, kind, &advice));
    }
    let ordinals = ["first", "second", "third"];
    for ((spec, &expected), ordinal) in specs.iter().zip(expected).zip(ordinals) {
        let (name, ..) = expected;
        if *spec.name != *name {
            let got = &*spec.name;
            let text = format!("expected {ordinal} {kind} tensor name to be {name}, got {got}");
            let field = FieldPath::from(kind).named(got).field("name");
            return Err(unfit(&text, field, &format!("write `name: \"{name}\"`")));
        }
        check_tensor(spec, expected)?;
    }
    Ok(())
}

fn check_tensor(spec: &TensorSpec, (name, data_type, is_single): ExpectedTensor) -> Result<()> {
    let wanted = match &*spec.dims {
        [1] => None,
        [_] if !is_single => None,
        _ if is_single => Some("be [1]"),
        _ => Some("have one dimension"),
    };
    if let Some(wanted) = wanted {
        let text = format!("expected {name} shape to {wanted}, got {}", spec.dims);
        let advice = format!("write `dims: {wanted}` for `{name}`");
        return Err(unfit(&text, FieldPath::default(), &advice));
    }
    if spec.data_type == data_type {
        return Ok(());
    }
    let text = format!("expected {name} datatype to be {data_type}, got {}", spec.data_type);
    let advice = format!("write `data_type: {}` for `{name}`", data_type.config_name());
    Err(unfit(&text, FieldPath::default(), &advice))
}
