//! Whether a configuration and the model it is for agree. Texts and rules are Triton's.

use galatea_config::{ModelConfig, Scheduling, TensorSpec};
use galatea_types::{Error, Result, Shape};

use crate::{
    ort::{TensorInfo, ValueKind},
    signature::Signature,
};

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

/// Inputs that are initialisers are optional and do not count; what a sequence batcher feeds does.
fn check_input_count(config: &ModelConfig, signature: &Signature) -> Result<()> {
    let mut expected = config.inputs().iter().filter(|s| !s.is_optional).count();
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
    Err(Error::invalid_arg(format!(
        "unable to load model '{}', configuration expects {expected} inputs, model provides {provided}",
        config.name()
    )))
}

/// One side of a model: inputs may leave open what the model fixes, outputs must say what it says.
struct Side<'a> {
    config: &'a ModelConfig,
    what: &'static str,
    is_exact: bool,
}

impl Side<'_> {
    fn check_optional(&self, spec: &TensorSpec) -> Result<()> {
        if !spec.is_optional || !self.config.has_batching() {
            return Ok(());
        }
        Err(Error::invalid_arg(format!(
            "unable to load model '{}', optional input '{}' is not supported for models that support \
             batching",
            self.config.name(),
            spec.name
        )))
    }

    fn check(&self, spec: &TensorSpec, info: &TensorInfo) -> Result<()> {
        self.check_type(spec, info)?;
        let dims = spec.reshape.as_ref().unwrap_or(&spec.dims);
        if info.dims.is_empty() {
            self.check_scalar(spec, dims)
        } else {
            self.check_dims(spec, dims, &info.dims)
        }
    }

    fn check_type(&self, spec: &TensorSpec, info: &TensorInfo) -> Result<()> {
        let model = self.config.name();
        let (what, name) = (self.what, &spec.name);
        let provided = match info.kind {
            ValueKind::Tensor(data_type) if data_type == spec.data_type => return Ok(()),
            ValueKind::Tensor(data_type) => format!("TYPE_{data_type}"),
            other => return Err(unsupported_kind(model, what, name, other)),
        };
        let expected = spec.data_type.config_name();
        Err(Error::invalid_arg(format!(
            "unable to load model '{model}', configuration expects datatype {expected} for {what} \
             '{name}', model provides {provided}"
        )))
    }

    /// A model's scalar is configured as `dims: [1]`.
    fn check_scalar(&self, spec: &TensorSpec, dims: &Shape) -> Result<()> {
        if dims.iter().all(|&d| d == 1) {
            return Ok(());
        }
        Err(Error::invalid_arg(format!(
            "unable to load model '{}', scalar tensor '{}', should only provide 1 in the model \
             configuration when the model doesn't support batching. Model configuration provided: {dims}.",
            self.config.name(),
            spec.name
        )))
    }

    fn check_dims(&self, spec: &TensorSpec, dims: &Shape, model_dims: &Shape) -> Result<()> {
        let prefix = format!("model '{}', tensor '{}': ", self.config.name(), spec.name);
        let full = if self.config.has_batching() {
            if model_dims.first() != Some(&-1) {
                return Err(Error::invalid_arg(format!(
                    "{prefix}for the model to support batching the shape should have at least 1 \
                     dimension and the first dimension must be -1; but shape expected by the model is \
                     {model_dims}"
                )));
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
        let specified = if self.config.has_batching() {
            format!(
                "(an initial batch dimension because max_batch_size > 0 followed by the explicit tensor \
                 shape, making complete shape {full})"
            )
        } else {
            format!("(shape {full})")
        };
        Err(Error::invalid_arg(format!(
            "{prefix}the model expects {} dimensions (shape {model_dims}) but the model configuration \
             specifies {} dimensions {specified}",
            model_dims.len(),
            full.len()
        )))
    }
}

pub(crate) fn unsupported_kind(model: &str, what: &str, name: &str, kind: ValueKind) -> Error {
    let kind = match kind {
        ValueKind::Tensor(data_type) => format!("a tensor of {data_type}"),
        ValueKind::OtherTensor(number) => format!("a tensor of ONNX element type {number}"),
        ValueKind::Sequence => "a sequence".to_owned(),
        ValueKind::Map => "a map".to_owned(),
        ValueKind::Other => "neither a tensor nor a sequence nor a map".to_owned(),
    };
    Error::unsupported(format!(
        "unable to load model '{model}', {what} '{name}' is {kind}, which is not supported"
    ))
}
