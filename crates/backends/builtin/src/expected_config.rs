//! Whether a configuration is the one that a decoupled model is made for.

use galatea_config::{Diagnostic, FieldPath, ModelConfig, TensorSpec};
use galatea_types::{Code, DataType, Error, Shape};

/// A configuration that a decoupled model cannot serve. Texts are Triton's where it has them.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    #[error(
        "model '{model}' of backend '{backend}' needs model_transaction_policy {{ decoupled: true }}"
    )]
    NotDecoupled { model: String, backend: String },
    #[error("expected {wanted} {kind}{}, got {count}", if *.wanted == 1 { "" } else { "s" })]
    TensorCount { kind: &'static str, wanted: usize, count: usize },
    #[error("expected {ordinal} {kind} tensor name to be {name}, got {got}")]
    TensorName { kind: &'static str, ordinal: &'static str, name: &'static str, got: String },
    #[error("expected {name} shape to {wanted}, got {got}")]
    TensorShape { name: &'static str, wanted: &'static str, got: Shape },
    #[error("expected {name} datatype to be {wanted}, got {got}")]
    TensorType { name: &'static str, wanted: DataType, got: DataType },
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        let (field, advice) = error.remedy();
        let found = Diagnostic::error(error.to_string()).about(field).with_advice(advice);
        found.into_unplaced_error(Code::InvalidArg)
    }
}

impl ConfigError {
    /// The field of the configuration that it is about, and what to write there.
    fn remedy(&self) -> (FieldPath, String) {
        match self {
            Self::NotDecoupled { .. } => (
                "model_transaction_policy".into(),
                "write `model_transaction_policy { decoupled: true }`".to_owned(),
            ),
            Self::TensorCount { kind, wanted, .. } => {
                ((*kind).into(), format!("list {wanted}: the backend is made for just these"))
            }
            Self::TensorName { kind, name, got, .. } => (
                FieldPath::from(*kind).named(got).field("name"),
                format!("write `name: \"{name}\"`"),
            ),
            Self::TensorShape { name, wanted, .. } => {
                (FieldPath::default(), format!("write `dims: {wanted}` for `{name}`"))
            }
            Self::TensorType { name, wanted, .. } => {
                let wanted = wanted.config_name();
                (FieldPath::default(), format!("write `data_type: {wanted}` for `{name}`"))
            }
        }
    }
}

/// A tensor the model is made for: name, type, and whether it has one element.
type Expected = (&'static str, DataType, bool);

pub(crate) fn check_decoupled(config: &ModelConfig) -> Result<(), ConfigError> {
    if config.is_decoupled() {
        return Ok(());
    }
    let (model, backend) = (config.name().to_string(), config.backend().to_string());
    Err(ConfigError::NotDecoupled { model, backend })
}

/// Checks that there are just these tensors, in this order.
pub(crate) fn check_tensors(
    kind: &'static str,
    specs: &[TensorSpec],
    expected: &[Expected],
) -> Result<(), ConfigError> {
    let (count, wanted) = (specs.len(), expected.len());
    if count != wanted {
        return Err(ConfigError::TensorCount { kind, wanted, count });
    }
    let ordinals = ["first", "second", "third"];
    for ((spec, &expected), ordinal) in specs.iter().zip(expected).zip(ordinals) {
        let (name, ..) = expected;
        if *spec.name != *name {
            let got = spec.name.to_string();
            return Err(ConfigError::TensorName { kind, ordinal, name, got });
        }
        check_tensor(spec, expected)?;
    }
    Ok(())
}

fn check_tensor(
    spec: &TensorSpec,
    (name, data_type, is_single): Expected,
) -> Result<(), ConfigError> {
    let wanted = match &*spec.dims {
        [1] => None,
        [_] if !is_single => None,
        _ if is_single => Some("be [1]"),
        _ => Some("have one dimension"),
    };
    if let Some(wanted) = wanted {
        return Err(ConfigError::TensorShape { name, wanted, got: spec.dims.clone() });
    }
    if spec.data_type == data_type {
        return Ok(());
    }
    Err(ConfigError::TensorType { name, wanted: data_type, got: spec.data_type })
}
