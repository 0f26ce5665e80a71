//! Whether a configuration and the model it is for agree. Texts and rules are Triton's.

mod error;

use galatea_config::{ModelConfig, Scheduling, TensorSpec};
use galatea_types::{Result, Shape};

pub(crate) use self::error::Disagreement;
use self::error::{OtherShape, Specified};
use crate::signature::{Signature, TensorInfo, ValueKind};

pub(crate) fn check(config: &ModelConfig, signature: &Signature) -> Result<()> {
    check_input_count(config, signature)?;
    let inputs = Side { config, what: "input", is_exact: false };
    for spec in config.inputs() {
        inputs.check_optional(spec)?;
        inputs.check(spec, signature.expect_input(&spec.name)?)?;
    }
    let outputs = Side { config, what: "output", is_exact: true };
    for spec in config.outputs() {
        outputs.check(spec, signature.expect_output(&spec.name)?)?;
    }
    Ok(())
}

/// What a sequence batcher feeds counts.
fn check_input_count(config: &ModelConfig, signature: &Signature) -> Result<()> {
    let mut expected = config.inputs().len();
    expected += config.batch_inputs().len();
    if let Scheduling::Sequence(sequence) = config.scheduling() {
        expected += sequence.controls.len() + sequence.states.len();
    }
    let provided = signature.inputs.len();
    if expected == provided {
        return Ok(());
    }
    // An unknown name explains itself better than a count.
    for spec in config.inputs() {
        signature.expect_input(&spec.name)?;
    }
    let model = config.name().to_string();
    Err(Disagreement::InputCount { model, expected, provided }.into())
}

/// Whether a tensor is of the configured type.
pub(crate) fn check_type(
    config: &ModelConfig,
    what: &'static str,
    spec: &TensorSpec,
    kind: ValueKind,
) -> Result<(), Disagreement> {
    let (model, name, expected) =
        (config.name().to_string(), spec.name.to_string(), spec.data_type);
    match kind {
        ValueKind::Tensor(provided) if provided == expected => Ok(()),
        ValueKind::Tensor(provided) => {
            Err(Disagreement::OtherType { model, what, name, expected, provided })
        }
        kind => Err(Disagreement::UnsupportedKind { model, what, name, kind }),
    }
}

/// One side of a model: inputs may leave open what the model fixes, outputs must be just as the model declares them.
struct Side<'a> {
    config: &'a ModelConfig,
    what: &'static str,
    is_exact: bool,
}

impl Side<'_> {
    fn check_optional(&self, spec: &TensorSpec) -> Result<(), Disagreement> {
        if !spec.is_optional || !self.config.has_batching() {
            return Ok(());
        }
        let (model, input) = (self.model(), spec.name.to_string());
        Err(Disagreement::OptionalInput { model, input })
    }

    fn check(&self, spec: &TensorSpec, info: &TensorInfo) -> Result<(), Disagreement> {
        check_type(self.config, self.what, spec, info.kind)?;
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        match &info.dims {
            // What the model does not say is as the configuration has it.
            None => Ok(()),
            Some(model_dims) if model_dims.is_empty() => self.check_scalar(spec, dims),
            Some(model_dims) => self.check_dims(spec, dims, model_dims),
        }
    }

    /// A model's scalar is configured as `dims: [1]`.
    fn check_scalar(&self, spec: &TensorSpec, dims: &Shape) -> Result<(), Disagreement> {
        if dims.iter().all(|&d| d == 1) {
            return Ok(());
        }
        let (model, what, name) = (self.model(), self.what, spec.name.to_string());
        Err(Disagreement::Scalar { model, what, name, dims: dims.clone() })
    }

    fn check_dims(
        &self,
        spec: &TensorSpec,
        dims: &Shape,
        model_dims: &Shape,
    ) -> Result<(), Disagreement> {
        let full = if self.config.has_batching() {
            if model_dims.first() != Some(&-1) {
                return Err(Disagreement::NoBatchDimension {
                    model: self.model(),
                    what: self.what,
                    name: spec.name.to_string(),
                    model_dims: model_dims.clone(),
                });
            }
            dims.with_leading(-1)
        } else {
            dims.clone()
        };
        let fits = full.len() == model_dims.len()
            && full
                .iter()
                .zip(model_dims.iter())
                .all(|(c, m)| c == m || (!self.is_exact && *m == -1));
        if fits {
            return Ok(());
        }
        Err(Disagreement::OtherShape(Box::new(OtherShape {
            model: self.model(),
            what: self.what,
            name: spec.name.to_string(),
            model_dims: model_dims.clone(),
            specified: Specified { shape: full, has_batching: self.config.has_batching() },
        })))
    }

    fn model(&self) -> String {
        self.config.name().to_string()
    }
}
